"""Shells and other programs on a terminal that outlive the agent."""

from __future__ import annotations

import secrets
from dataclasses import dataclass
from datetime import timedelta
from typing import Literal

from perdure._runtime.output import Output, read_all
from perdure._runtime.units import Unit


@dataclass(frozen=True)
class CommandResult:
    """One command of a shell: what it gave, where, and how long it took."""

    command: str
    exit_code: int | None  # None: it had not ended when it was last seen
    output: str
    cwd: str
    duration: timedelta
    start: int  # the output's place in all that the shell has put out
    end: int


class Shell(Unit):
    """A terminal and the program on it."""

    async def send(self, text: str) -> None:
        """Type it. Its intent is on record first; cut off half-way it is uncertain, and never typed again."""
        await self.write("send", text.encode(), id=secrets.token_hex(12))

    async def answer(self, secret: str, *, timeout: float = 30) -> None:
        """Answer a question that does not echo, once it is asked; what was answered is written down nowhere."""
        await self.write("answer", secret.encode() + b"\n", id=secrets.token_hex(12), seconds=timeout)

    async def waiting(self) -> Literal["secret", "prompt"] | None:
        """What the program in front waits for."""
        reply = await self.ask("state")
        found: Literal["secret", "prompt"] | None = reply.args["waiting"]
        return found

    async def read(self, from_offset: int = 0) -> Output:
        """What was put out from an offset on, as far as it is kept."""
        return await read_all(self, from_offset)

    async def resize(self, rows: int, columns: int) -> None:
        await self.write("resize", rows=rows, columns=columns)

    async def signal(self, number: int) -> None:
        """To whoever is in front, as Ctrl-C would."""
        await self.write("signal", number=number)

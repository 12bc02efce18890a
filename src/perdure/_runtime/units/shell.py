"""Shells and other programs on a terminal that outlive the agent.

Inside a durable function `run`, `send` and `answer` are effects, and each read is recorded as a step, so a replay
sees the same output. Elsewhere they are plain calls.
"""

from __future__ import annotations

import hashlib
import re
import secrets as random
import shutil
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import Any, Literal

from perdure._durable import (
    DID_NOT_HAPPEN,
    UNKNOWN,
    Happened,
    effect,
    idempotency_key,
    inside,
    is_in_effect,
    step,
)
from perdure._ground.bridge import Nap
from perdure._ground.durations import Duration, require_seconds, require_timedelta
from perdure._runtime.secrets import Secret
from perdure._runtime.units import terminal_screen as screens
from perdure._runtime.units.output import Output
from perdure._runtime.units.unit import Unit
from perdure._runtime.units.unit_notes import MadeElsewhere, UnitNote
from perdure.errors import EffectUncertain, InvalidInput, NotAllowed, ShellBusy, TimedOut, UnitEnded, UnitHeld

_LONGEST = timedelta(days=30)
# The ways to say that one wants the shell of the house.
_BASH = (["bash"], ["bash", "-i"], ["/bin/bash"], ["/usr/bin/bash"])
# One wait at the keeper; a longer one is several.
_WAIT_SECONDS = 5.0


@dataclass(frozen=True)
class CommandResult:
    """One command of a shell: its output, its exit code, its folder, and how long it took."""

    command: str
    exit_code: int | None  # None: it has not ended
    output: str  # without the codes that colour a terminal
    cwd: str
    duration: timedelta
    start: int = 0  # the output's place in all that the shell has put out
    end: int = 0
    gap: int = 0  # bytes of it that are not kept, from its beginning on; at least 1 where their number is not known


@dataclass(frozen=True)
class CommandOutput:
    """The output of a shell's command so far, and its state."""

    state: Literal["running", "ended", "uncertain"]  # uncertain: the machine was restarted, and the outcome is lost
    text: str  # without the codes that colour a terminal
    next_offset: int  # where the next piece begins
    gap: int = 0  # bytes before `text` that are no longer kept
    exit_code: int | None = None
    cwd: str = ""
    command: str = ""
    waiting: Literal["secret", "prompt"] | None = None  # what the program in front waits for
    is_whole: bool = True  # nothing more is there now


@dataclass(frozen=True)
class Typed:
    """Typed input as the journal stores it: only its length, because it may be secret."""

    length: int

    @classmethod
    def of(cls, text: str) -> Typed:
        typed = cls(len(text))
        object.__setattr__(typed, "text", text)  # no field of it, so it is never stored
        return typed

    def __repr__(self) -> str:
        return f"{self.length} characters"


def _of_shell(shell: Shell, *args: Any, **named: Any) -> Any:
    """The identity of a recorded call: the shell's name and the input."""
    return [shell.name, list(args), named]


class Shell(Unit):
    """A terminal and the program on it."""

    _cursor: int | None = None
    note_of: Callable[[str], UnitNote] | None = None  # the store's note of a command, by its id

    # ── commands ────────────────────────────────────────────────────────────────────────────────

    async def run(self, command: str, *, key: str | None = None, timeout: Duration | None = None) -> CommandResult:
        """Run a command in the shell and return its result.

        With a key it runs once. A later call with the same key returns the recorded result, or waits for the command
        that is still running.

        Raises:
            ShellBusy: the shell is not at its prompt; nothing was typed.
            TimedOut: it has not ended in time and runs on; a call with the same key waits for it again.
            EffectUncertain: a command of this key was asked for on another machine, and how it ended is not known.
        """
        if not command.strip() or "\0" in command:
            raise InvalidInput("the command is empty, or has a null character")
        seconds = None if timeout is None else require_timedelta("timeout", timeout).total_seconds()
        if inside() is not None and not is_in_effect():
            recorded: CommandResult = await self._run_as_effect(command, key, seconds)
            return recorded
        return await self._run_by_key(command, key, f"run-{random.token_hex(12)}", seconds)

    async def _run_by_key(self, command: str, key: str | None, other: str, seconds: float | None) -> CommandResult:
        """Run it under the id of its key, which is noted in the store first; or under another id."""
        if key and self.note_of is not None:
            try:
                asked = {"digest": hashlib.sha256(command.encode()).hexdigest()}
                await self.note_of(_id(key)).begin(self._client.keeper_identity, asked)
            except MadeElsewhere as known:
                if (await self.ask("command_state", id=_id(key))).args["state"] is None:  # no bundle has brought it
                    why = f"it was asked for on {known.made.host}, by a keeper that is not here"
                    raise EffectUncertain(f"the command with key {key!r}", why) from None
        return await self._run(command, _id(key) or other, seconds)

    async def _run(self, command: str, id: str, seconds: float | None) -> CommandResult:
        reply = await self.write("run", command.encode(), id=id, within=seconds)
        if reply.args.get("is_running"):
            raise TimedOut(
                f"the command in shell {self.name!r} has not ended within {seconds:g} s",
                kept="it runs on, and its output is kept",
                do="ask again with the same key, or stop it with signal()",
            )
        result = _result(reply.args, reply.body)
        self._cursor = result.end or self._cursor
        return result

    async def _has_run(self, command: str, key: str | None, seconds: float | None) -> Any:
        """The probe of a command whose end was not seen."""
        id = _id(key) or idempotency_key()
        state = (await self.ask("command_state", id=id)).args["state"]
        if state in ("begun", "ended"):
            return Happened(await self._run(command, id, seconds))
        # Of what the former one was asked for under another keeper, this one knows what a bundle has brought.
        is_blind = "elsewhere" in self.record.facts and "rebuilt_from" not in self.record.facts
        return UNKNOWN if state == "uncertain" or (state is None and is_blind) else DID_NOT_HAPPEN

    @effect(
        name="shell.run",
        verify=_has_run,
        identity=_of_shell,
        timeout=_LONGEST,
        failed_on=(ShellBusy, UnitHeld, TimedOut, InvalidInput),
        raises=(UnitEnded,),
    )
    async def _run_as_effect(self, command: str, key: str | None, seconds: float | None) -> CommandResult:
        return await self._run_by_key(command, key, idempotency_key(), seconds)

    @step(name="shell.output", identity=_of_shell)
    async def output(self, key: str, from_offset: int = 0, *, wait: Duration | None = None) -> CommandOutput:
        """The output of the command with this key, by its own offsets, while it runs and afterwards.

        It has neither colours nor the marks by which perdure knows where commands begin and end. With `wait`, it is
        given when the command has ended, or when that time is over. Of a long output, one piece of at most 256 kB.

        Raises:
            NotFound: no command of this shell has the key.
        """
        limit = require_timedelta("wait", wait)
        end = time.monotonic() + (limit.total_seconds() if limit is not None else 0.0)
        while True:
            rest = max(0.0, min(_WAIT_SECONDS, end - time.monotonic()))
            reply = await self.ask("command_output", id=_id(key), start=from_offset, seconds=rest)
            if reply.args["state"] in ("ended", "uncertain") or time.monotonic() >= end:
                return _output(reply.args, reply.body)

    @step(name="shell.commands", identity=_of_shell)
    async def commands(self) -> Sequence[CommandResult]:
        """All remembered commands without their output, including those that ended while no process was attached."""
        reply = await self.ask("commands")
        return [_result(told, None) for told in reply.args["commands"]]

    # ── input ───────────────────────────────────────────────────────────────────────────────────

    async def send(self, text: str, *, refuse_secret: bool = False) -> None:
        """Type it. Its intent is on record first, by its length; cut off half-way it is uncertain, and never typed
        again. With `refuse_secret`, nothing is typed into a question that does not echo.

        Raises:
            NotAllowed: the program asks for a secret, and `refuse_secret` is set; nothing was typed.
        """
        if inside() is not None and not is_in_effect():
            more = {"refuse_secret": True} if refuse_secret else {}  # what is not said is not in the identity of a call
            self._cursor = await self._send_as_effect(Typed.of(text), **more)
        else:
            self._cursor = await self._send(text, random.token_hex(12), refuse_secret)

    async def _send(self, text: str, id: str, refuse_secret: bool) -> int:
        more = {"unless_secret": True} if refuse_secret else {}
        reply = await self.write("send", text.encode(), id=id, **more)
        return int(reply.args.get("offset", self._cursor or 0))

    async def _was_sent(self, typed: Typed, refuse_secret: bool = False) -> Any:
        reply = await self.ask("input_state", id=idempotency_key())
        if reply.args["state"] == "done":
            return Happened(reply.args["offset"])
        # A shell in place of a former one does not know what was typed into that.
        is_blind = "elsewhere" in self.record.facts or "instead_of" in self.record.facts
        return UNKNOWN if reply.args["state"] == "begun" or is_blind else DID_NOT_HAPPEN

    @effect(
        name="shell.send", verify=_was_sent, identity=_of_shell, failed_on=(UnitHeld, NotAllowed), raises=(UnitEnded,)
    )
    async def _send_as_effect(self, typed: Typed, refuse_secret: bool = False) -> int:
        return await self._send(typed.text, idempotency_key(), refuse_secret)  # type: ignore[attr-defined]

    async def answer(self, secret: Secret | str, *, timeout: float | Duration = 30) -> None:
        """Answer a question that does not echo, once the program asks it. The answer is written down nowhere.

        Raises:
            TimedOut: the program did not ask; nothing was sent.
        """
        seconds = require_seconds("timeout", timeout)
        if inside() is not None and not is_in_effect():
            if isinstance(secret, str):
                raise InvalidInput(
                    "inside a durable function an answer is given by reference", do="use Secret('env', 'NAME')"
                )
            await self._answer_as_effect(secret.reference, seconds)
        else:
            value = secret.value() if isinstance(secret, Secret) else secret
            await self._answer(value, random.token_hex(12), seconds)

    async def _answer(self, value: str, id: str, seconds: float) -> None:
        await self.write("answer", value.encode() + b"\n", id=id, seconds=seconds)

    async def _was_answered(self, reference: str, seconds: float) -> Any:
        found = await self._was_sent(Typed(0))
        return Happened(None) if isinstance(found, Happened) else found

    @effect(name="shell.answer", verify=_was_answered, identity=_of_shell, failed_on=(UnitHeld, TimedOut))
    async def _answer_as_effect(self, reference: str, seconds: float) -> None:
        await self._answer(Secret.parse(reference).value(), idempotency_key(), seconds)

    # ── output ──────────────────────────────────────────────────────────────────────────────────

    @step(name="shell.waiting", identity=_of_shell)
    async def waiting(self) -> Literal["secret", "prompt"] | None:
        """The kind of input the foreground program waits for: a password, other input, or none that can be seen.

        A program with a line editor of its own counts as waiting whenever it sleeps.
        """
        reply = await self.ask("state")
        found: Literal["secret", "prompt"] | None = reply.args["waiting"]
        return found

    @step(name="shell.read", identity=_of_shell)
    async def read(self, from_offset: int = 0, *, plain: bool = False) -> Output:
        """The output from an offset on, as far as it is kept; `plain` without colours, other codes and marks."""
        data, start, gap = await self._bytes(from_offset)
        if plain:
            data = data[: screens.whole_length(data)]
        return Output(screens.plain(data) if plain else data.decode(errors="replace"), start + len(data), gap)

    async def _bytes(self, offset: int) -> tuple[bytes, int, int]:
        reply = await self.ask("read", start=offset)
        first, gap, parts = int(reply.args["start"]), int(reply.args["gap"]), [reply.body]
        end = first + len(reply.body)
        while reply.body and end < reply.args["end"]:
            reply = await self.ask("read", start=end)
            if reply.args["gap"]:  # it flows faster than it is read
                break
            parts.append(reply.body)
            end += len(reply.body)
        return b"".join(parts), first, gap

    @step(name="shell.expect", identity=_of_shell)
    async def expect(self, pattern: str, *, timeout: float | Duration = 30) -> str:
        """Wait until this has been put out since the last input, and give all up to its end, without colours.

        Raises:
            TimedOut: it did not come.
            UnitEnded: it will not come any more.
        """
        wanted, limit = re.compile(pattern), require_seconds("timeout", timeout)
        cursor = self._cursor if self._cursor is not None else int(self.record.about.get("last_input_at", 0))
        end, data = time.monotonic() + limit, b""
        while True:
            rest = max(0.0, min(_WAIT_SECONDS, end - time.monotonic()))
            reply = await self.ask("wait", start=cursor + len(data), seconds=rest)
            if reply.args["gap"]:
                cursor, data = int(reply.args["start"]), b""
            data += reply.body
            text = screens.plain(data)
            found = wanted.search(text)
            if found is not None:
                self._cursor = cursor + screens.place_of(data, found.end())
                return text[: found.end()]
            if reply.args["is_over"] and not reply.body:
                raise UnitEnded(self.name, f"it ended, and {pattern!r} had not come")
            if time.monotonic() >= end:
                raise TimedOut(f"{pattern!r} did not come within {limit:g} s", kept="all that was put out; read()")

    async def screen(self) -> str:
        """The terminal's screen as a person would see it now."""
        state = (await self.ask("state")).args
        data, _, _ = await self._bytes(0)
        return screens.render(data, state.get("rows", 40), state.get("columns", 120))

    # ── the terminal ────────────────────────────────────────────────────────────────────────────

    async def resize(self, rows: int, columns: int) -> None:
        await self.write("resize", rows=rows, columns=columns)

    async def signal(self, number: int) -> None:
        """Send a signal to the foreground program, as Ctrl-C would."""
        await self.write("signal", number=number)

    async def ended(self, timeout: float | Duration = 30) -> int | None:
        """Its exit code once it has ended, or minus the signal that ended it. None if it does not end in time."""
        end = time.monotonic() + require_seconds("timeout", timeout)
        while (record := await self.refresh()).ended is None and time.monotonic() < end:
            await Nap(0.02)
        return None if record.ended is None else exit_code(record.ended)


def shell_command(argv: Sequence[str] | None) -> tuple[list[str], bool]:
    """The program to start, and True if its commands can be followed: bash without arguments."""
    if argv is not None and list(argv) not in _BASH:
        return list(argv), False
    bash = shutil.which("bash")
    return ([bash], True) if bash is not None else (list(argv or ["/bin/sh"]), False)


def exit_code(status: int) -> int:
    """As shells count it, but minus the signal for a process that was ended by one."""
    return -(status & 0x7F) if status & 0x7F else status >> 8


def _id(key: str | None) -> str:
    """The id by which the keeper knows a command of this key."""
    return f"key-{hashlib.sha256(key.encode()).hexdigest()[:40]}" if key else ""


def _output(told: dict[str, Any], data: bytes) -> CommandOutput:
    first, has_ended = int(told["start"]), told["state"] != "asked" and told["state"] != "running"
    is_last = first + len(data) >= told["end"]
    if not (has_ended and is_last):
        data = data[: screens.whole_length(data)]  # the rest of a code or character is still to come
    state: Any = "running" if told["state"] == "asked" else told["state"]
    return CommandOutput(
        state=state,
        text=screens.plain(data),
        next_offset=first + len(data),
        gap=int(told["gap"]),
        exit_code=told["code"],
        cwd=told["cwd"],
        command=told["text"],
        waiting=told["waiting"],
        is_whole=is_last,
    )


def _result(told: dict[str, Any], output: bytes | None) -> CommandResult:
    size = told.get("end", 0) - told.get("start", 0)
    if told.get("is_bare"):  # its result was written down, its output is gone
        size = told["size"] if told.get("size") is not None else 1
    return CommandResult(
        command=told.get("text", ""),
        exit_code=told["code"],
        output=screens.plain(output or b""),
        cwd=told.get("cwd", ""),
        duration=timedelta(seconds=told.get("seconds", 0.0)),
        start=told.get("start", 0),
        end=told.get("end", 0),
        gap=0 if output is None else max(0, size - len(output)),
    )

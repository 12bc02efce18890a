"""HTTP requests that are made once, whoever lives to read the answer.

A small program of its own makes the request (fetcher.py) and writes the body into a file as it comes; it belongs to
the anchor, so neither the agent's end nor the keeper's interrupts it. Readers come and go by offset. A request of
one name is made once: a second process finds the first one's answer. What was under way when the machine went down
is not made again by itself, because nobody knows what became of it.
"""

from __future__ import annotations

import hashlib
import json
import os
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any, ClassVar

from perdure.keeper import untrusted
from perdure.keeper.kinds import Answer, Call, Kind, Refused, Verb
from perdure.keeper.processes import COOKIE
from perdure.keeper.spawn import Command
from perdure.keeper.spooled import UNSEEN, Spooled
from perdure.keeper.wire import REAL_URL

_FETCHER = str(Path(__file__).with_name("fetcher.py"))
HEAD = "head.json"
MOST_HEAD = 512 << 10  # as much as fits into one answer of the keeper
_SCHEMES = ("http://", "https://")


class Request(Spooled):
    file = "body"
    kept = 1 << 62  # an answer is kept whole
    _sent = b""

    @classmethod
    def check(cls, recipe: dict[str, Any]) -> None:
        url, headers = recipe.get("url"), recipe.get("headers")
        if (
            not isinstance(url, str)
            or not url.lower().startswith(_SCHEMES)
            or any(c.isspace() or c == "@" for c in url)
        ):
            raise Refused("invalid", what=f"url is {url!r}")
        if not isinstance(headers, dict) or not all(isinstance(part, str) for pair in headers.items() for part in pair):
            raise Refused("invalid", what="headers are no mapping of texts")
        method = recipe.get("method")
        if not isinstance(method, str) or not method.isalpha():
            raise Refused("invalid", what=f"method is {method!r}")

    def start(self) -> None:
        self._sent = self.given  # in memory until it is sent: nobody needs it afterwards
        try:
            super().start()
        finally:
            self._sent = b""

    def command(self) -> Command:
        # Nothing of the agent's environment but what says how to get out and whom to trust.
        env = {name: os.environ[name] for name in ("SSL_CERT_FILE", "SSL_CERT_DIR", "PATH") if name in os.environ}
        folder = str(self.keeper.units.folder(self.unit))
        return Command([sys.executable, "-I", "-S", _FETCHER, HEAD], folder, {**env, COOKIE: self.unit.uid}, 0o077)

    def input(self) -> int:
        """What to ask, with secrets: in memory, and gone when it was read."""
        recipe = self.unit.recipe
        headers = {**recipe["headers"], **self.secrets}
        url = headers.pop(REAL_URL, recipe["url"])
        told = json.dumps({"method": recipe["method"], "url": url, "headers": headers}).encode()
        fd = os.memfd_create("request", os.MFD_CLOEXEC) if hasattr(os, "memfd_create") else _nameless()
        os.write(fd, len(told).to_bytes(4) + told)
        view = memoryview(self._sent)
        while view:
            view = view[os.write(fd, view) :]
        os.lseek(fd, 0, os.SEEK_SET)
        return fd

    def state(self, call: Call) -> Answer:
        """The answer's head, once it is there; and how it ended."""
        return Answer({"status": self.unit.ended, "end": self.size, "head": self._head()})

    async def answered(self, call: Call) -> Answer:
        """The same, as soon as the head is there or it has ended."""
        await self.wait_until(lambda: "status" in (self._head() or {}))
        return self.state(call)

    async def whole(self, call: Call) -> Answer:
        """Whether the answer is still what came: why not, or an empty text."""
        return Answer({"damage": await self.keeper.loop.run_in_executor(None, self._damage)})

    def _damage(self) -> str:
        head = self._head()
        if head is None or not head.get("whole"):
            return "what was noted of its answer is gone"
        size = os.fstat(self._fd).st_size
        if "sha256" not in head:  # of a former perdure
            return ""
        if size != head["length"]:
            return f"its answer was changed: {head['length']:,} bytes had come, and {size:,} are there"
        digest, place, fd = hashlib.sha256(), 0, os.dup(self._fd)
        try:
            while piece := os.pread(fd, 1 << 20, place):
                digest.update(piece)
                place += len(piece)
        finally:
            os.close(fd)
        return "" if digest.hexdigest() == head["sha256"] else "its answer was overwritten: it is not what came"

    @property
    def watched(self) -> str:
        return str(self.keeper.units.folder(self.unit))  # the head is moved there, the body grows there

    def status_unseen(self) -> int:
        """An answer that is whole was bought, whoever saw it come."""
        return 0 if (self._head() or {}).get("whole") else UNSEEN

    def _head(self) -> dict[str, Any] | None:
        try:
            head = untrusted.read_json(self.keeper.units.folder(self.unit) / HEAD, MOST_HEAD)
        except (OSError, ValueError):
            return None
        return head if isinstance(head, dict) else None

    def about(self) -> dict[str, Any]:
        head = self._head() or {}
        return {**super().about(), "answered": head.get("status"), "error": head.get("error", "")}

    verbs: ClassVar[Mapping[str, Verb]] = {**Spooled.verbs, "state": state, "answered": answered, "whole": whole}


def _nameless() -> int:
    import tempfile

    with tempfile.TemporaryFile() as file:
        return os.dup(file.fileno())


KINDS = (Kind("request", Request, lambda recipe: (recipe.get("method"), recipe.get("url"), recipe.get("digest"))),)

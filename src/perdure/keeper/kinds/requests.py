"""HTTP requests that are made once, whichever process lives to read the answer.

A small program of its own makes the request (fetcher.py) and writes the body into a file as it comes; it belongs to
the anchor, so neither the agent's end nor the keeper's interrupts it. Readers come and go by offset. A request of
one name is made once: a second process finds the first one's answer. What was under way when the machine went down
is not repeated automatically, because its outcome is not known.

Secrets in the head of an answer, such as cookies, are never written to disk in clear. The anchor keeps them in memory,
and readers get them from there. With a key all of it is sealed on disk when the answer is whole.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any, ClassVar

from perdure._ground.secrets import secret_forms
from perdure.keeper.core import REAL_URL, Answer, Call, Kind, NotHeld, Refused, Verb, untrusted
from perdure.keeper.kinds.spooled_program import UNSEEN, Spooled
from perdure.keeper.process import COOKIE, Program, memory_file

# In the folder of the keeper: one of an earlier version that still runs starts the program from there.
_FETCHER = str(Path(__file__).parents[1] / "fetcher.py")
HEAD = "head.json"
_SEALED_HEAD = "head.sealed"
_IN_MEMORY = "/answer-head"  # behind the unit's uid: the anchor's name of it
MOST_IN_MEMORY = 256  # the newest answers; each needs a descriptor
MOST_HEAD = 512 << 10  # as much as fits into one answer of the keeper
HIDDEN = secret_forms.HIDDEN
_SCHEMES = ("http://", "https://")


class RequestUnit(Spooled):
    file = "body"
    kept = 1 << 62  # an answer is kept whole
    _sent = b""
    _memory = -1  # the head as it came

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
            raise Refused("invalid", what="headers must map names to texts")
        method = recipe.get("method")
        if not isinstance(method, str) or not method.isalpha():
            raise Refused("invalid", what=f"method is {method!r}")

    def start(self) -> None:
        self._sent = self.given  # in memory until it is sent; not needed afterwards
        try:
            super().start()
        finally:
            self._sent = b""

    def command(self) -> Program:
        # Nothing of the agent's environment but what says how to get out and whom to trust.
        env = {name: os.environ[name] for name in ("SSL_CERT_FILE", "SSL_CERT_DIR", "PATH") if name in os.environ}
        folder = str(self.keeper.units.folder(self.unit))
        argv = [sys.executable, "-I", "-S", _FETCHER, HEAD, secret_forms.__file__]
        return Program(argv, folder, {**env, COOKIE: self.unit.uid}, 0o077)

    def line(self) -> int:
        """The place of the complete head: in memory, with the anchor."""
        fd = memory_file()
        self.keeper.anchored.put(self.unit.uid + _IN_MEMORY, fd)
        self._memory = os.dup(fd)
        return fd

    def input(self) -> int:
        """The request, with secrets: in memory, and deleted once it was read."""
        recipe = self.unit.recipe
        headers = {**recipe["headers"], **self.secrets}
        url = headers.pop(REAL_URL, recipe["url"])
        what = {"method": recipe["method"], "url": url, "headers": headers}
        told = json.dumps({**what, "hides_all": self.keeper.units.records.has_key}).encode()
        fd = memory_file()
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
        """Whether the answer is unchanged: the reason if not, or an empty text."""
        return Answer({"damage": await self.keeper.loop.run_in_executor(None, self._damage, self._head())})

    def _damage(self, head: dict[str, Any] | None) -> str:
        """In a thread of its own: the anchor and the sealing program must not be asked here."""
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
        """A whole answer was paid for, even if nothing saw it arrive."""
        return 0 if (self._head() or {}).get("whole") else UNSEEN

    def _head(self) -> dict[str, Any] | None:
        folder, records = self.keeper.units.folder(self.unit), self.keeper.units.records
        if (head := self._head_in_memory()) is not None:
            return head
        for file in (_SEALED_HEAD, HEAD):
            with contextlib.suppress(OSError, ValueError):
                head = untrusted.json_of(records.read(folder / file, MOST_HEAD))
                if isinstance(head, dict):
                    return head
        return None

    def _head_in_memory(self) -> dict[str, Any] | None:
        if self._memory == -1:
            try:
                self._memory, _ = self.keeper.anchored.get(self.unit.uid + _IN_MEMORY)
            except NotHeld:
                self._memory = -2
        if self._memory < 0:
            return None
        *lines, _ = os.pread(self._memory, 3 * MOST_HEAD, 0).split(b"\n")  # the last one may be incomplete
        return json.loads(lines[-1]) if lines else None

    def exited(self) -> None:
        self._settle_head()
        super().exited()

    def _settle_head(self) -> None:
        """The answer is complete: keep the head where it stays, and in memory only the parts that are written nowhere
        else."""
        head, keeper = self._head_in_memory(), self.keeper
        folder = keeper.units.folder(self.unit)
        is_written = head is None or HIDDEN not in _values(folder / HEAD)
        if head is not None and not is_written and keeper.units.records.has_key:
            keeper.units.records.write(folder / _SEALED_HEAD, json.dumps(head).encode())
            is_written = True
        if is_written:
            self._drop(self.unit.uid)
        kept = sorted(name.removesuffix(_IN_MEMORY) for name, _ in keeper.anchored.names() if _IN_MEMORY in name)
        ended = [uid for uid in kept if (unit := keeper.units.get(uid)) is None or not unit.is_alive]
        for uid in ended[:-MOST_IN_MEMORY]:
            self._drop(uid)

    def _drop(self, uid: str) -> None:
        self.keeper.anchored.drop(uid + _IN_MEMORY)
        held = self.keeper.held.get(uid)
        if isinstance(held, RequestUnit):
            held.close_memory()

    def close_memory(self) -> None:
        if self._memory >= 0:
            os.close(self._memory)
        self._memory = -2

    def forget(self) -> None:
        self.close_memory()
        super().forget()

    def about(self) -> dict[str, Any]:
        head = self._head() or {}
        return {**super().about(), "answered": head.get("status"), "error": head.get("error", "")}

    verbs: ClassVar[Mapping[str, Verb]] = {**Spooled.verbs, "state": state, "answered": answered, "whole": whole}


def _values(file: Path) -> list[str]:
    """The values of the headers that were written down."""
    try:
        return [value for _, value in untrusted.read_json(file, MOST_HEAD).get("headers", ())]
    except (OSError, ValueError, TypeError, AttributeError):
        return [HIDDEN]  # it is missing, so the part in memory is all there is


KINDS = (Kind("request", RequestUnit, lambda recipe: (recipe.get("method"), recipe.get("url"), recipe.get("digest"))),)

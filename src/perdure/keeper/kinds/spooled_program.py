"""A program whose output goes straight into a file: no pipe can fill up, so nothing that happens to the keeper or
to its readers can hold the program up.

Offsets are permanent places in the file. Its older pages are given back to the disk, so a program that talks for weeks
does not fill it. The file outlives the keeper and a restart of the machine.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
from collections.abc import Callable, Mapping
from typing import Any, ClassVar

from perdure.keeper.core import Answer, Call, Caller, Gone, Held, Refused, Verb, untrusted
from perdure.keeper.kinds.output_log import give_back
from perdure.keeper.process import COOKIE, Program, is_below, processes

_SLACK = 1 << 20
_CHUNK = 1 << 18
# How often to look at a file that a client follows, and at one that none follows.
_LOOK_SECONDS, _REST_SECONDS = 0.02, 1.0
# The same while somebody waits for more and no bell rings, and how long they are kept waiting before they are told of
# nothing.
_WAIT_SECONDS, MOST_PATIENCE = 0.003, 20.0
UNSEEN = -1  # the status of what ended when nobody watched


class Spooled(Held):
    """Any program that writes to a file of ours."""

    file = "output"
    kept = 16 << 20  # of the newest bytes; older ones may be missing
    with_token = False  # whether it may use the keeper
    _fd = -1
    _pidfd = -1  # of one whose anchor has died

    def start(self) -> None:
        self._attach(new=True)
        try:
            self.begin()
        except BaseException:
            self._timer.cancel()
            raise

    def begin(self) -> None:
        """Start the program."""
        given = self.input()
        if not os.path.lexists(self._path):  # it was removed; what was read before the restart is gone
            os.close(self._fd)
            self._fd = untrusted.open_file(self._path, os.O_RDWR | os.O_CREAT | os.O_EXCL)
        # Its own description, to append with: whatever it writes, and whoever it leaves it to, goes to the end.
        into = untrusted.open_file(self._path, os.O_WRONLY | os.O_APPEND)
        try:
            stdio = (given, into, self.errors(into))
            self.keeper.launch(
                self, self.command(), stdio, is_terminal=False, with_token=self.with_token, line=self.line()
            )
        finally:
            os.close(given)
            os.close(into)
        self._hurry()

    def errors(self, output: int) -> int:
        """The destination of its errors: its output."""
        return output

    def line(self) -> int | None:
        """One more descriptor for it, if it gets no token."""
        return None

    def input(self) -> int:
        """The program's input: empty."""
        return os.open(os.devnull, os.O_RDONLY)

    def command(self) -> Program:
        recipe = self.unit.recipe
        env = {**recipe["env"], **self.secrets, COOKIE: self.unit.uid}
        return self.program(self.argv, env)

    def recall(self) -> None:
        try:
            self._attach(new=False)
        except FileNotFoundError:
            raise Gone("its output was removed") from None

    # ── taking it up again ──────────────────────────────────────────────────────────────────────

    def recover(self) -> None:
        unit = self.unit
        try:
            self.recall()
        except Gone:
            self._attach(new=False, path=self._still_open())
        if any((one.pid, one.start) == (unit.pid, unit.start) for one in self.keeper.anchored.exits()):
            return  # its end is on its way
        if not processes.is_same(unit.pid, unit.start):
            self._ended_unseen("it ended while no keeper was running")
        elif not is_below(unit.pid, self.keeper.anchor_pid):
            self._watch_orphan()

    def _still_open(self) -> str:
        """The file that was removed, as its program has it open; else it would be called gone while it runs."""
        pid = self.unit.pid
        if processes.is_same(pid, self.unit.start):
            with contextlib.suppress(OSError):
                if os.readlink(f"/proc/{pid}/fd/1") == f"{self._path} (deleted)":
                    return f"/proc/{pid}/fd/1"
        raise Gone("its output was removed")

    def _watch_orphan(self) -> None:
        """Its anchor has died: its exit status will never be known, only that it has ended."""
        with contextlib.suppress(ProcessLookupError, AttributeError):  # it has just ended; or there are no pidfds here
            self._pidfd = os.pidfd_open(self.unit.pid)
            self.keeper.loop.add_reader(self._pidfd, self._look_at_orphan)
        self._look_at_orphan()

    def _look_at_orphan(self) -> None:
        if self.unit.is_alive and processes.is_same(self.unit.pid, self.unit.start):
            if self._pidfd < 0:
                self.keeper.loop.call_later(_REST_SECONDS, self._look_at_orphan)
            return
        self._close_pidfd()
        if self.unit.is_alive:
            self._ended_unseen("it ended; its exit status went with the anchor")
            self.exited()

    def _ended_unseen(self, why: str) -> None:
        unit = self.unit
        unit.ended, unit.ended_at = self.status_unseen(), self.keeper.now()
        unit.facts["why"] = why
        self.keeper.save(unit)

    def status_unseen(self) -> int:
        """Its end, as far as it is known without a witness."""
        return UNSEEN

    def _close_pidfd(self) -> None:
        if self._pidfd >= 0:
            self.keeper.loop.remove_reader(self._pidfd)
            os.close(self._pidfd)
            self._pidfd = -1

    def _attach(self, *, new: bool, path: str = "") -> None:
        flags = os.O_RDWR | (os.O_CREAT | os.O_TRUNC if new else 0)
        self._fd = untrusted.open_file(path or self._path, flags, is_descriptor=bool(path))
        self._followers: dict[Caller, int] = {}
        self._news, self._waiting = asyncio.Event(), 0
        self._bell: int | None = None  # rings while a client waits
        self._seen = self._first = 0
        self._timer = self.keeper.loop.call_later(_LOOK_SECONDS, self._look)

    @property
    def _path(self) -> str:
        return str(self.keeper.units.folder(self.unit) / self.file)

    # ── output ──────────────────────────────────────────────────────────────────────────────────

    @property
    def size(self) -> int:
        """The offset at which the next byte will stand; it never goes back, whatever is done to the file."""
        return os.fstat(self._fd).st_size + self._shift

    @property
    def _shift(self) -> int:
        """The difference between offsets and places in the file, after another program has truncated it."""
        return int(self.unit.facts.get("shift", 0))

    @property
    def _begin(self) -> int:
        """The oldest byte that can be read."""
        return max(int(self.unit.facts.get("cut_at", 0)), self.size - self.kept, 0)

    def look(self) -> None:
        """Note changes to its output from outside: they are reported, and the program continues."""
        facts, size, seen = self.unit.facts, self.size, int(self.unit.facts.get("seen", 0))
        if size < seen:
            facts |= {"shift": self._shift + seen - size, "cut_at": seen}
            self._note(f"its output was cut short: what it had put out before byte {seen:,} is gone")
        else:
            facts["seen"] = size
        try:
            about, ours = os.stat(self._path, follow_symlinks=False), os.fstat(self._fd)
            if (about.st_dev, about.st_ino) != (ours.st_dev, ours.st_ino):
                self._note("the file of its output was replaced; what it puts out is read while the program lives")
        except OSError:
            self._note("the file of its output was removed; what it puts out is read while the program lives")

    def _note(self, trouble: str) -> None:
        if self.unit.facts.get("output_trouble") != trouble:
            self.unit.facts["output_trouble"] = trouble
            self.keeper.save(self.unit)

    def _look(self) -> None:
        """Has it said something? Tell those who follow, and give old pages back."""
        size = self.size
        if size != self._seen:
            self.look()
            self._seen = size = self.size
            self.touch()
            self._news.set()
        if self._waiting and self._bell is None:
            self._news.set()  # each waiting client looks itself
        for caller, sent in list(self._followers.items()):
            self._tell(caller, sent, size)
        if size - self._shift - self.kept - self._first > _SLACK:
            first = (size - self._shift - self.kept) & ~4095
            give_back(self._fd, self._first, first - self._first)
            self._first = first
        if self.unit.is_alive or self._followers or self._waiting:
            self._timer = self.keeper.loop.call_later(self._until_next_look(), self._look)

    def _until_next_look(self) -> float:
        if self._waiting and self._bell is None:
            return _WAIT_SECONDS
        return _LOOK_SECONDS if self._followers else _REST_SECONDS

    def _tell(self, caller: Caller, sent: int, size: int) -> None:
        while sent < size:
            data = os.pread(self._fd, min(_CHUNK, size - sent), sent - self._shift)
            if not data:  # it was cut short a moment ago
                break
            if not caller.tell("output", {"unit": self.unit.uid, "start": sent}, data):
                self._followers.pop(caller, None)  # it reads by offset once it has caught up
                return
            sent += len(data)
        self._followers[caller] = sent

    def read(self, call: Call) -> Answer:
        """The output from an offset on."""
        start = max(0, call.get("start", int, 0))
        self.look()
        size = self.size
        begin = min(max(start, self._begin), size)
        data = os.pread(self._fd, min(_CHUNK, size - begin), begin - self._shift)
        place = {"start": begin, "gap": max(0, begin - start), "end": size}
        return Answer({**place, "status": self.unit.ended}, data)

    def follow(self, call: Call) -> Answer:
        """The same, and news from there on as soon as all of it is read."""
        answer = self.read(call)
        end = answer.values["start"] + len(answer.body)
        if end == answer.values["end"]:
            self._followers[call.caller] = end
            answer.values["following"] = True
            self._hurry()
        return answer

    async def more(self, call: Call) -> Answer:
        """The output from an offset on, as soon as there is some or the program has ended."""
        start = call.get("start", int, 0)
        await self.wait_until(lambda: self.size > start)
        return self.read(call)

    async def wait_until(self, is_so: Callable[[], bool]) -> None:
        """Return when it is, when the program has ended, or after a while, whatever is."""
        if is_so() or not self.unit.is_alive:
            return
        self._waiting += 1
        if self._bell is None:
            self._bell = self.keeper.bells.watch(self.watched, self._rung)
        self._hurry()
        try:
            async with asyncio.timeout(MOST_PATIENCE):
                while not is_so() and self.unit.is_alive:
                    self._news.clear()
                    await self._news.wait()
        except TimeoutError:
            pass  # nothing came: they ask again
        finally:
            self._waiting -= 1
            if not self._waiting and self._bell is not None:
                self.keeper.bells.leave(self._bell)
                self._bell = None

    @property
    def watched(self) -> str:
        """The places where a change is news."""
        return self._path

    def _rung(self) -> None:
        self.touch()
        self._news.set()

    def unfollow(self, call: Call) -> Answer:
        self._followers.pop(call.caller, None)
        return Answer()

    def _hurry(self) -> None:
        self._timer.cancel()
        self._timer = self.keeper.loop.call_later(self._until_next_look(), self._look)

    # ── the unit ────────────────────────────────────────────────────────────────────────────────

    def exited(self) -> None:
        size = self.size
        self._news.set()
        for caller, sent in list(self._followers.items()):
            self._tell(caller, sent, size)
            caller.tell("ended", {"unit": self.unit.uid, "status": self.unit.ended, "end": size})

    def about(self) -> dict[str, Any]:
        return {"end": self.size, "begin": self._begin}

    def left(self, caller: Caller) -> None:
        self._followers.pop(caller, None)

    def forget(self) -> None:
        self._close_pidfd()
        with contextlib.suppress(AttributeError, OSError):  # it may have stopped early
            self._timer.cancel()
            os.close(self._fd)

    verbs: ClassVar[Mapping[str, Verb]] = {"read": read, "more": more, "follow": follow, "unfollow": unfollow}


def check_command(recipe: dict[str, Any]) -> None:
    """Refuse a recipe whose command, environment or folder has the wrong shape."""
    argv, env, cwd = recipe.get("argv"), recipe.get("env"), recipe.get("cwd")
    if not isinstance(argv, list) or not argv or not all(isinstance(part, str) for part in argv):
        raise Refused("invalid", what=f"argv is {argv!r}")
    if not isinstance(env, dict) or not all(isinstance(part, str) for pair in env.items() for part in pair):
        raise Refused("invalid", what="env is not a mapping of texts")
    if not isinstance(cwd, str) or not os.path.isabs(cwd):
        raise Refused("invalid", what=f"cwd is {cwd!r}")

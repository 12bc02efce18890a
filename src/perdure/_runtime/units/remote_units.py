"""`app.units`: the live things of all tasks, for a program that shows them and lets people type into them.

A person who types comes through a server, as others do. So the right to write is held by a *writer*, a label with a
time to live, and not by the server's process. Each write names its writer and renews its time.
"""

from __future__ import annotations

import hashlib
import re
import shlex
import signal
from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any

import msgspec
from msgspec import Struct

from perdure import keeper
from perdure._ground.bridge import Call
from perdure._ground.clock import moment
from perdure._ground.durations import Duration, require_timedelta
from perdure._ground.ids import check_id
from perdure._ground.secrets.known_secrets import redact
from perdure._model import Page, Verdict
from perdure._runtime.keeper_client import Client, Record, keeper_control
from perdure._runtime.secrets import redact_value
from perdure._runtime.units.verdicts import MADE_ANEW, verdict_of
from perdure._store import Store
from perdure._tasks import Tasks, store_of
from perdure.errors import Conflict, InvalidInput, KeeperUnavailable, NotFound, TimedOut, UnitEnded

# Bytes of one input.
MOST_INPUT = 64 << 10
# Longest time that one look at the output waits for more.
_LONGEST_WAIT = timedelta(seconds=60)
_INPUT_ID = re.compile(r"[A-Za-z0-9_.:-]{1,64}")
_WITH_TERMINAL = ("shell", "command")
_LONGEST_COMMAND = 500
# Parts of a recipe that are shown by names of their own, or that say nothing to people.
_UNSHOWN = ("argv", "cwd", "env", "is_shell", "most_files")


class UnitRecord(Struct, frozen=True, kw_only=True):
    """One unit of a task, as its keeper describes it now."""

    task: str
    name: str
    kind: str
    uid: str
    pid: int
    is_alive: bool
    verdict: Verdict  # how it came to be as it is: kept, rebuilt, or lost
    status: int | None  # how it ended: its exit status, or minus the signal; -1 when it was not seen
    why: str  # it ended, where that is known
    made_at: datetime
    ended_at: datetime | None
    waiting: str | None  # what a terminal waits for: "secret" or "prompt"
    running: str | None  # the command in front of a shell
    argv: Sequence[str]  # secrets hidden
    cwd: str
    begin: int | None  # offset of the oldest byte of output that is kept
    end: int | None  # offset after the newest
    rows: int | None  # of its terminal
    columns: int | None
    recipe: Mapping[str, Any]  # what it is made from, without its environment; secrets are references
    writer: str  # who may type: a label, "process 4711", or empty
    writer_until: datetime | None  # of a label
    limits: Mapping[str, float]


class UnitProcess(Struct, frozen=True):
    """A process that belongs to a unit."""

    pid: int
    command: str  # secrets hidden, cut


class UnitOutput(Struct, frozen=True):
    """Some output of a unit, from an offset on."""

    start: int  # offset of the first byte
    data: bytes
    gap: int  # so many bytes before `start` were asked for and are no longer kept
    end: int  # offset after the newest byte there is
    status: int | None  # once it has ended
    is_over: bool  # nothing will come after `end`

    @property
    def next(self) -> int:
        """The offset to ask for next."""
        return self.start + len(self.data)


class UnitCommand(Struct, frozen=True, kw_only=True):
    """A command that a shell has carried out."""

    text: str  # secrets hidden; empty if it was typed in a way that the shell does not tell
    was_asked: bool  # by an agent's `run`, rather than typed
    code: int | None  # None while it runs
    cwd: str
    begun_at: datetime
    ended_at: datetime | None
    start: int  # offsets of its output
    end: int


class Units:
    """The live things of the tasks of one namespace."""

    def __init__(self, tasks: Tasks) -> None:
        self._store = store_of(tasks)

    async def page(
        self,
        *,
        task: str | None = None,
        kind: str | None = None,
        alive: bool | None = None,
        limit: int = 100,
        cursor: str | None = None,
    ) -> Page[UnitRecord]:
        """Units, the oldest first; `cursor` of one page begins the next. Without a keeper there are none."""
        if not 1 <= limit <= 1000:
            raise InvalidInput(f"limit is {limit}; it lies between 1 and 1000")
        found = [
            one
            for one in await self._records(task)
            if (kind is None or one.kind == kind)
            and (alive is None or one.is_alive == alive)
            and (cursor is None or one.uid > cursor)
        ]
        page = [_shown(self._store, one) for one in found[:limit]]
        return Page(page, page[-1].uid if len(found) > limit else None)

    async def get(self, task: str, name: str) -> UnitAccess:
        """The task's unit of this name: the one that lives, else the newest that has ended.

        Raises:
            NotFound: there is none.
        """
        found = [one for one in await self._records(task) if one.name == name]
        if not found:
            raise NotFound("unit", name, f"task {task!r}", do="`perdure units` lists them")
        chosen = next((one for one in reversed(found) if one.is_alive), found[-1])
        client = keeper_control.find(self._store)
        if client is None:
            raise UnitEnded(name, "its keeper has ended")
        return UnitAccess(self._store, client, chosen)

    async def _records(self, task: str | None) -> list[Record]:
        if task is not None:
            check_id(task)
        namespace = self._store.namespace
        found = await keeper_control.units(self._store)
        return [one for one in found if one.owner["namespace"] == namespace and task in (None, one.owner["task"])]


class UnitAccess:
    """One unit whose output is read, or that is typed into."""

    name: str
    kind: str

    def __init__(self, store: Store, client: Client, record: Record) -> None:
        self._store, self._client, self._record = store, client, record
        self.name, self.kind = record.name, record.kind

    @property
    def record(self) -> UnitRecord:
        """As it was when it was looked up."""
        return _shown(self._store, self._record)

    async def refresh(self) -> UnitRecord:
        """As it is now.

        Raises:
            UnitEnded: the keeper does not know it any more.
        """
        reply = await self._client.ask("units", task_uid=self._record.owner["uid"])
        found = [told for told in reply.args["units"] if told["uid"] == self._record.uid]
        if not found:
            raise UnitEnded(self.name, "the keeper does not know it any more")
        self._record = Record.read(found[0])
        return self.record

    async def output(self, from_offset: int = 0, *, wait: Duration | None = None, errors: bool = False) -> UnitOutput:
        """What it has put out from an offset on, at most 256 kB. With `wait`, and for a terminal, as soon as there is
        something, or when that time is over: 60 s at most. With `errors`, what a service has written to stderr."""
        if type(from_offset) is not int or not 0 <= from_offset < 1 << 62:
            raise InvalidInput(f"{from_offset!r:.80} is not an offset")
        seconds = min(require_timedelta("wait", wait) or timedelta(), _LONGEST_WAIT).total_seconds()
        verb = "wait" if seconds > 0 and self.has_terminal else "read"
        if errors and self.kind != "service":
            raise InvalidInput(f"a {self.kind} has one output for everything")
        verb = "read_errors" if errors else verb
        told = await self._client.do(self._record.uid, verb, start=from_offset, seconds=seconds)
        values, status = told.args, told.args["status"]
        is_over = bool(values.get("is_over", False)) or status is not None
        return UnitOutput(values["start"], told.body, values["gap"], values["end"], status, is_over)

    async def commands(self) -> Sequence[UnitCommand]:
        """The commands of a shell, oldest first; other units have none."""
        if self.kind != "shell":
            return []
        told = await self._client.do(self._record.uid, "commands")
        return [_command(one) for one in told.args["commands"]]

    # ── the right to write ──────────────────────────────────────────────────────────────────────

    async def take(self, writer: str, *, force: bool = False, lasts: Duration = "60s") -> datetime:
        """The right to write, for 60 s after each write or take; until when. The same writer may take it again.

        Raises:
            UnitHeld: another writer or an agent's process has it; `by` says who. With `force` it is taken away.
            UnitEnded: the unit has ended.
        """
        length = require_timedelta("lasts", lasts, is_positive=True)
        told = await self._client.ask(
            "claim", unit=self._record.uid, label=_writer(writer), seconds=length.total_seconds(), take=force
        )
        if "label" not in told.args:
            raise KeeperUnavailable(
                "the keeper is older than this perdure and knows no writers",
                kept="its units; nothing was written",
                do="`perdure keep restart` replaces it; units live on",
            )
        return moment(self._store.clock.now_ms() + length // timedelta(milliseconds=1))

    async def release(self, writer: str) -> None:
        """Let others write; nothing happens if another writer has it."""
        await self._client.ask("release", unit=self._record.uid, label=_writer(writer))

    # ── writing ─────────────────────────────────────────────────────────────────────────────────

    async def send(self, input_id: str, data: bytes, *, writer: str) -> None:
        """Type it once. The same id again types nothing; choose ids that no other input has, such as random ones.

        Raises:
            EffectUncertain: the keeper was replaced while it was being written: part of it may have been read. It is
                never sent again.
            UnitHeld: the writer does not have the right; nothing was written.
            UnitEnded: the unit has ended.
        """
        await self._write("send", writer, _data(data), id=_input(writer, input_id))

    async def answer(self, input_id: str, data: bytes, *, writer: str) -> None:
        """Type an answer to a question for a secret: only while the terminal shows no echo, and kept nowhere.

        Raises:
            Conflict: nothing asks for a secret now; nothing was written.
            and what `send` raises.
        """
        try:
            await self._write("answer", writer, _data(data), id=_input(writer, input_id), seconds=0)
        except TimedOut:
            raise Conflict(
                f"unit {self.name!r} does not ask for a secret now",
                kept="the answer was not sent",
                do="wait until `waiting` of the unit says so",
            ) from None

    async def resize(self, rows: int, columns: int, *, writer: str) -> None:
        await self._write("resize", writer, rows=rows, columns=columns)

    async def signal(self, name: str, *, writer: str, signal_id: str | None = None) -> None:
        """Send a signal, such as "INT", to what is in front, as a key of the terminal would. The same id again sends
        nothing.

        Raises:
            EffectUncertain: the keeper was replaced while it was being sent. It is never sent again.
            and what `send` raises.
        """
        named: dict[str, Any] = {} if signal_id is None else {"id": _input(writer, signal_id)}
        await self._write("signal", writer, number=_number(name), **named)

    async def processes(self) -> Sequence[UnitProcess]:
        """Its own process, and all it has started: they end with it."""
        if not self._record.is_alive:
            return []
        anchor = int((await self._client.ask("status")).args["anchor"])
        found = await Call(lambda: keeper.list_processes(self._record.pid, self._record.uid, anchor))
        return [UnitProcess(pid, redact(shlex.join(argv))[:_LONGEST_COMMAND]) for pid, argv in found]

    async def end(self) -> None:
        """End it and every process it has started. It has ended when this returns; `processes` tells which they are."""
        await self._client.ask("end", unit=self._record.uid, wait=True)

    async def _write(self, verb: str, writer: str, body: bytes = b"", **args: Any) -> keeper.Reply:
        if not self.has_terminal and verb != "signal":
            raise InvalidInput(f"a {self.kind} has no terminal to type into")
        return await self._client.do(self._record.uid, verb, body, label=_writer(writer), **args)

    @property
    def is_made_anew(self) -> bool:
        """True if a restore makes it anew once it is gone, if it was saved."""
        return self.kind in MADE_ANEW

    @property
    def has_terminal(self) -> bool:
        return self._record.kind in _WITH_TERMINAL


def _shown(store: Store, one: Record) -> UnitRecord:
    about, recipe, now = one.about, one.recipe, store.clock.now_ms()
    label = one.writer_label
    return UnitRecord(
        task=one.owner["task"],
        name=one.name,
        kind=one.kind,
        uid=one.uid,
        pid=one.pid,
        is_alive=one.is_alive,
        verdict=_verdict(one),
        status=one.ended,
        why=str(one.facts.get("why") or ""),
        made_at=moment(int(one.made_at * 1000)),
        ended_at=moment(int(one.ended_at * 1000)) if one.ended_at is not None else None,
        waiting=about.get("waiting"),
        running=about.get("running"),
        argv=[str(part) for part in recipe.get("argv") or ()],
        cwd=str(recipe.get("cwd") or ""),
        begin=about.get("begin"),
        end=about.get("end"),
        rows=about.get("rows"),
        columns=about.get("columns"),
        recipe=redact_value({name: value for name, value in recipe.items() if name not in _UNSHOWN}),
        writer=label or (f"process {one.writer}" if one.writer else ""),
        writer_until=moment(now + int(one.writer_left * 1000)) if label else None,
        limits=dict(one.limits),
    )


def _verdict(one: Record) -> Verdict:
    return msgspec.convert(
        redact_value(msgspec.to_builtins(verdict_of(one, False, "why_rebuilt" in one.facts))), Verdict
    )


def _command(told: Mapping[str, Any]) -> UnitCommand:
    has_ended = told["code"] is not None
    return UnitCommand(
        text=redact(told["text"]),
        was_asked=told["was_asked"],
        code=told["code"],
        cwd=told["cwd"],
        begun_at=moment(int(told["begun_at"] * 1000)),
        ended_at=moment(int(told["ended_at"] * 1000)) if has_ended else None,
        start=told["start"],
        end=told["end"],
    )


def _writer(name: object) -> str:
    if type(name) is not str or not 0 < len(name) <= 200 or not name.isprintable():
        raise InvalidInput(f"writer is {name!r:.80}; it is a text of 1 to 200 printable characters")
    return name


def _input(writer: str, id: object) -> str:
    """The id as the keeper has it: inputs of two writers are never taken for one."""
    if type(id) is not str or not _INPUT_ID.fullmatch(id):
        raise InvalidInput(f"input_id is {id!r:.80}; it has 1 to 64 letters, digits and _.:-")
    return f"w{hashlib.sha256(_writer(writer).encode()).hexdigest()[:16]}:{id}"


def _data(data: object) -> bytes:
    if not isinstance(data, bytes):
        raise InvalidInput(f"an input is bytes, not {type(data).__name__}")
    if len(data) > MOST_INPUT:
        raise InvalidInput(f"an input has {len(data)} bytes; {MOST_INPUT} are allowed", do="send it in parts")
    return data


def _number(name: object) -> int:
    text = name.upper().removeprefix("SIG") if isinstance(name, str) else ""
    found = getattr(signal, f"SIG{text}", None)
    if not isinstance(found, signal.Signals):
        raise InvalidInput(f"{name!r:.80} is not a signal", do="name one, such as INT, TERM, HUP or KILL")
    return int(found)

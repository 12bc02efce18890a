"""The seam between the keeper and the kinds of units it holds. One module per kind; no other module knows the kinds.

To add a kind, write `keeper/kinds/<kind>s.py` with a class of Held and a `KINDS = (Kind(name, Held class),)`, and name
the module in MODULES. On the agent's side, write `_runtime/units/<kind>.py` with a class of Unit, and a method of
Runtime that opens it. What the keeper does for every kind:

    opening      one unit per task and name; a second open finds the first, also in another process
    records      `unit` is on disk before `start` returns; change `unit.facts`, then `keeper.save(unit)`
    descriptors  `keeper.anchored.put(name, fd)`: begin the name with `f"{unit.uid}/"`, and `forget` drops them all
    processes    `keeper.launch(held, command, …)`: adopted by the anchor, watched, its exit reported to `exited`
    leases       a verb named in `writes` is refused unless its caller holds the unit's write lease
    limits       time, silence (`touch` says that it is not silent) and memory of `unit.pid`'s session

What a kind does:

    start        make it, the first time; on Refused nothing of it may remain
    recover      the keeper was replaced while it lived: take it over from the anchor, or raise Gone
    recall       it ended before this keeper started: open its output for reading
    verbs        what clients may ask: a function of the unit and the call that gives an Answer, now or by awaiting
    rebuild      the recipe for a new one in place of `old`, which has ended; raise Refused if there is none
    exited       its process has ended; the record says how
    about        a few words for `perdure units`
    left         a connection has gone: drop what was subscribed for it
    end          end it now, with all it has started

Nothing here may block: the keeper is one loop for all units.
"""

from __future__ import annotations

import asyncio
import json
import os
import signal
import socket
from collections.abc import Awaitable, Callable, Generator, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from importlib import import_module
from pathlib import Path
from typing import Any, ClassVar, Protocol

from perdure._ground.secrets.secret_forms import hide_in_command
from perdure.keeper.core.anchor_client import Anchored, NotHeld
from perdure.keeper.core.clients import Connection, Labels
from perdure.keeper.core.file_bells import Bells
from perdure.keeper.core.units import Registry, Unit
from perdure.keeper.process import CannotStart, Isolation, Program, memory_file

MODULES = (
    "perdure.keeper.kinds.shells",
    "perdure.keeper.kinds.programs",
    "perdure.keeper.kinds.services",
    "perdure.keeper.kinds.descriptors",
    "perdure.keeper.kinds.requests",
    "perdure.keeper.kinds.sessions",
)


HIDDEN_ARGV = "argv"
_MOST_SIGNALS = 100  # whose ids a unit remembers
WITHOUT_SECRETS = "its command line had secrets in it, which are written down nowhere: open it with its command again"


class Refused(Exception):
    """Not done, and nothing has changed; a word for programs, and values."""

    def __init__(self, error: str, **values: object) -> None:
        self.error, self.values = error, values
        super().__init__(error)


class Gone(Exception):
    """A unit of a former keeper no longer exists; the message says why."""


@dataclass(slots=True)  # one for every keystroke: not frozen, which would make it several times slower
class Answer:
    values: dict[str, Any] = field(default_factory=dict)
    body: bytes = b""
    fds: tuple[int, ...] = ()


class Soon:
    """A future answer. Waiters get it the moment it is given; a second answer is ignored."""

    __slots__ = ("_given", "_then")

    def __init__(self) -> None:
        self._given: Answer | Exception | None = None
        self._then: list[Callable[[], None]] = []

    @property
    def is_given(self) -> bool:
        return self._given is not None

    def give(self, answer: Answer | Exception) -> None:
        """The answer, or raise why there is none."""
        if self._given is None:
            self._given = answer
            for act in self._then:
                act()

    def then(self, act: Callable[[], None]) -> None:
        if self._given is None:
            self._then.append(act)
        else:
            act()

    def result(self) -> Answer:
        if isinstance(self._given, Exception):
            raise self._given
        assert self._given is not None
        return self._given

    def __await__(self) -> Generator[Any, None, Answer]:
        if self._given is None:
            bell: asyncio.Future[None] = asyncio.get_running_loop().create_future()
            self.then(lambda: None if bell.done() else bell.set_result(None))
            yield from bell
        return self.result()


class Caller(Protocol):
    """The client that asks: one connection."""

    def tell(self, topic: str, values: dict[str, Any], body: bytes = b"") -> bool:
        """News, unasked; False when the other end reads too slowly, and this one was not sent."""
        ...


@dataclass(slots=True)
class Call:
    """One question to a unit."""

    caller: Caller
    values: dict[str, Any]
    body: bytes = b""
    fds: tuple[int, ...] = ()

    def get(self, name: str, kind: type, default: object = None) -> Any:
        """One value of it.

        Raises:
            Refused: it is of another type.
        """
        value = self.values.get(name, default)
        if value is not default and (not isinstance(value, kind) or isinstance(value, bool) is not (kind is bool)):
            raise Refused("invalid", what=f"{name} is {value!r}")
        return value


Verb = Callable[[Any, Call], Answer | Soon | Awaitable[Answer]]


class KeeperCore(Protocol):
    """The part of the keeper that kinds of units, and the parts of the core, can use."""

    home: Path
    live: Path  # for what must not reach a disk
    argv: list[str]
    loop: asyncio.AbstractEventLoop
    listener: socket.socket
    anchored: Anchored
    anchor_pid: int
    bells: Bells
    units: Registry
    held: dict[str, Held]
    writers: dict[str, Connection]
    labels: Labels
    connections: set[Connection]
    kinds: dict[str, Kind]

    def launch(
        self,
        held: Held,
        command: Program,
        stdio: tuple[int, int, int],
        *,
        is_terminal: bool,
        with_token: bool = False,
        line: int | None = None,
    ) -> None: ...

    def save(self, unit: Unit, *, through_power_loss: bool = False) -> None: ...

    def signal(self, unit: Unit, number: int) -> None: ...

    def end(self, unit: Unit) -> None: ...

    def end_of(self, unit: Unit) -> Soon: ...

    def ended_unseen(self, unit: Unit) -> None: ...

    def forget(self, unit: Unit) -> None: ...

    @property
    def hidden(self) -> list[str]: ...

    def alone(self, what: str) -> AbstractContextManager[None]: ...

    @staticmethod
    def now() -> float: ...

    def stop(self) -> None: ...


class Held:
    """One live unit in the keeper."""

    verbs: ClassVar[Mapping[str, Verb]] = {}
    writes: ClassVar[frozenset[str]] = frozenset()
    has_process: ClassVar[bool] = True
    is_idle_since: float = 0.0  # on the loop's clock; for the limit of silence

    def __init__(self, keeper: KeeperCore, unit: Unit) -> None:
        self.keeper, self.unit = keeper, unit
        self.secrets: dict[str, str] = {}  # of the environment: for `start` only, and written down nowhere
        self.given = b""  # the body of the question, for `start` only
        self.given_fds: tuple[int, ...] = ()
        self.touch()

    def touch(self) -> None:
        """Something happens here."""
        self.is_idle_since = self.keeper.loop.time()

    def hide(self, argv: Sequence[str]) -> None:
        """Keep a command line that has secrets in it: in memory, with the anchor, and not in the record."""
        fd = memory_file()
        try:
            os.write(fd, json.dumps(list(argv)).encode())
            self.keeper.anchored.put(f"{self.unit.uid}/{HIDDEN_ARGV}", fd)
        finally:
            os.close(fd)

    @property
    def argv(self) -> list[str]:
        """The command to execute.

        Raises:
            CannotStart: it had secrets in it, and they are gone.
        """
        recipe = self.unit.recipe
        if not recipe.get("hides_argv"):
            return list(recipe["argv"])
        found = hidden_argv(self.keeper, self.unit.uid)
        if found is None:
            raise CannotStart(WITHOUT_SECRETS)
        return found

    def program(self, argv: Sequence[str], env: Mapping[str, str], *, shown: Sequence[str] = ()) -> Program:
        """The command of the recipe. `shown` lists the keeper's folders that an isolated unit still sees."""
        recipe = self.unit.recipe
        how = Isolation(self.keeper.hidden, shown) if recipe.get("isolate") else None
        return Program(argv, recipe["cwd"], env, recipe.get("umask", 0o022), recipe.get("most_files", 1024), how)

    def start(self) -> None:
        raise NotImplementedError

    def recover(self) -> None:
        raise NotImplementedError

    def revive(self) -> bool:
        """It ended under a former keeper, which would have started it again: do so, if that is still due."""
        return False

    def recall(self) -> None:
        """It ended under a former keeper: open the rest of it for reading, or raise Gone."""
        raise Gone("nothing is left of it")

    @classmethod
    def check(cls, recipe: dict[str, Any]) -> None:
        """Refuse an impossible recipe before anything is made."""

    @classmethod
    def rebuild(cls, keeper: KeeperCore, old: Unit) -> dict[str, Any]:
        raise Refused("no recipe", what=f"a {old.kind} cannot be made again")

    def elsewhere(self) -> dict[str, Any]:
        """The recipe for one like it under another keeper, with what is in it, as far as that can be taken along."""
        return dict(self.unit.recipe)

    def look(self) -> None:
        """Check that the unit is still intact before a client gets it; `lose` it if not."""

    def lose(self, why: str) -> None:
        """End a unit that is no longer intact, and record why."""
        self.unit.facts["why"] = why
        self.end()

    def superseded(self) -> None:
        """It has ended, and must not be started again: it was ended, or another one is made in its place."""

    def expect(self) -> None:
        """A client opens it after it has ended: if it is about to be started again, do so now."""

    def found(self, by: list[int]) -> dict[str, Any]:
        """A client has opened it again, as this process and attempt; more for `about`."""
        return {}

    def is_known(self, call: Call) -> bool:
        """True if this was asked before, so that asking again writes nothing and only returns the result."""
        return call.get("do", str, "") == "signal" and call.get("id", str, "") in self._signals

    def signal_once(self, call: Call) -> Answer:
        """Send a signal; the same id again sends nothing. An id is on record before its signal is sent, and after it.

        Raises:
            Refused: the keeper was replaced while it was being sent: it may have been, and is never sent again.
        """
        id, send = call.get("id", str, ""), self.verbs["signal"]
        if not id:
            return self._whole_answer(send(self, call))
        if known := self._signals.get(id):
            if known == "begun":
                raise Refused("uncertain", id=id)
            return Answer({"again": True})
        self._note_signal(id, "begun")
        try:
            answer = self._whole_answer(send(self, call))
        except Refused:
            self._note_signal(id, None)
            raise
        self._note_signal(id, "done")
        return answer

    @property
    def _signals(self) -> dict[str, str]:
        found: dict[str, str] = self.unit.facts.get("signals") or {}
        return found

    def _note_signal(self, id: str, state: str | None) -> None:
        known = {name: kept for name, kept in self._signals.items() if name != id}
        if state is not None:
            known[id] = state
        self.unit.facts["signals"] = dict(list(known.items())[-_MOST_SIGNALS:])
        self.keeper.save(self.unit)

    @staticmethod
    def _whole_answer(answer: Answer | Soon | Awaitable[Answer]) -> Answer:
        assert isinstance(answer, Answer)  # no kind waits for anything to send a signal
        return answer

    def mend(self) -> None:
        """The live folder was removed and made again, empty: restore the unit's files in it."""

    def settled(self) -> Soon | None:
        """For a rebuilt unit: an answer given when it is known how it came back; None if it is known now."""
        return None

    def exited(self) -> None:
        """The record already says how."""

    def about(self) -> dict[str, Any]:
        return {}

    def left(self, caller: Caller) -> None:
        """This connection is gone."""

    def end(self, number: int = signal.SIGTERM) -> None:
        """Ask the unit to end. If it does not, the keeper kills it a little later."""
        self.keeper.signal(self.unit, number)

    def forget(self) -> None:
        """The record is removed: close all open descriptors."""


def hidden_argv(keeper: KeeperCore, uid: str) -> list[str] | None:
    """The command line of a unit that has secrets in it, while the anchor holds it."""
    try:
        fd, _ = keeper.anchored.get(f"{uid}/{HIDDEN_ARGV}")
    except NotHeld:
        return None
    try:
        return [str(part) for part in json.loads(os.pread(fd, os.fstat(fd).st_size, 0))]
    finally:
        os.close(fd)


@dataclass(frozen=True)
class Kind:
    name: str
    held: type[Held]
    # The values that must be equal for a second open to mean the same unit.
    identity: Callable[[dict[str, Any]], Any] = lambda recipe: (
        hide_in_command(recipe.get("argv") or ()),
        bool(recipe.get("isolate")),
    )
    runs_once: bool = False  # an ended unit still has its name


def all_kinds() -> dict[str, Kind]:
    modules = [import_module(module) for module in MODULES]
    return {kind.name: kind for module in modules for kind in module.KINDS}

"""The surroundings of a task in this process: environment, directory, variables, units, permissions.

A context lives in this process's memory. `save` writes it into a checkpoint, and `restore` fills one from there, all
of it or nothing. Units are held by name, each with the units it needs (`after`), which are restored before it.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

from perdure._ground.ids import check_id
from perdure._model import Verdict
from perdure._runtime.context.fingerprints import Fingerprint
from perdure._runtime.secrets import NO_RULES, Rules, umask_now
from perdure._store import Store
from perdure.errors import Conflict, InvalidInput, NotAllowed


class Held(NamedTuple):
    """A unit in this process: its kind, the live thing, and the units it needs."""

    name: str
    kind: str
    live: Any
    after: tuple[str, ...] = ()
    verdict: Verdict | None = None  # of one that cannot come back: said when it is held


@dataclass
class Context:
    """The surroundings of one task."""

    env: dict[str, str] = field(default_factory=lambda: dict(os.environ))
    folder: Path | None = None  # None: the working directory of the process
    previous_cwd: Path | None = None
    umask: int = field(default_factory=umask_now)
    variables: dict[str, Any] = field(default_factory=dict)
    messages: Any = None  # the conversation with the model
    partial_results: dict[str, Any] = field(default_factory=dict)
    permissions: frozenset[str] | None = None
    rules: Rules = NO_RULES
    units: dict[str, Held] = field(default_factory=dict)
    fingerprints: dict[tuple[str, str], Fingerprint] = field(default_factory=dict)
    # What a kind needs in this process to bring its unit back: functions that renew a credential, and the like.
    given: dict[str, Mapping[str, Any]] = field(default_factory=dict)
    # Epoch of the attempt it belongs to; 0 outside a durable function.
    epoch: int = 0
    # Brought back at the claim, and not yet taken up by the code.
    brought: set[str] = field(default_factory=set)
    # Saved units and recorded fingerprints that only the user's code can restore or check, when it reaches them again.
    waiting: dict[str, Any] = field(default_factory=dict)
    # The verdicts on units that a restore could not bring back, by name. Opening a new one of that name reports them.
    lost: dict[str, str] = field(default_factory=dict)
    replaced: set[str] = field(default_factory=set)  # of these a new one was made
    unlooked: dict[tuple[str, str], Any] = field(default_factory=dict)

    def begin(self, epoch: int) -> None:
        """Another attempt in this process: its code says its variables again, from the beginning."""
        if epoch not in (0, self.epoch):
            self.epoch = epoch
            self.variables, self.messages, self.partial_results = {}, None, {}
            self.lost, self.replaced = {}, set()

    def anew(self, epoch: int) -> Context:
        """As in a fresh process, but for the functions this one has been given."""
        return Context(epoch=epoch, rules=self.rules, fingerprints=self.fingerprints, given=self.given)

    @property
    def cwd(self) -> Path:
        """The working directory of processes started from now on."""
        return self.folder if self.folder is not None else Path.cwd()

    @cwd.setter
    def cwd(self, path: Path) -> None:
        self.folder = path

    def hold(
        self, name: str, kind: str, live: Any, *, after: Sequence[str] = (), verdict: Verdict | None = None
    ) -> Held:
        """Keep a live thing under a name, so that the next save captures it.

        Raises:
            InvalidInput: it needs a unit that is not there (so no circle can be made).
        """
        check_id(name, "name of a unit")
        for needed in after:
            if needed not in self.units:
                raise InvalidInput(f"unit {name!r} needs {needed!r}, which is not there", do="hold that one first")
        if name in self.units and self.units[name].kind != kind:
            raise Conflict(f"unit {name!r} is a {self.units[name].kind}", do="choose another name")
        held = self.units[name] = Held(name, kind, live, tuple(after), verdict)
        return held

    def expect(self, *fingerprints: Fingerprint) -> None:
        """Have these recorded by every save, and checked before every restore."""
        for fingerprint in fingerprints:
            self.fingerprints[(fingerprint.kind, fingerprint.name)] = fingerprint

    def chdir(self, path: str | Path) -> None:
        """Change the working directory of processes started from now on.

        Raises:
            InvalidInput: the folder does not exist.
        """
        target = Path(os.path.normpath(self.cwd / Path(path).expanduser()))
        if not target.is_dir():
            raise InvalidInput(f"{target} is not a folder", do="make it first")
        self.previous_cwd, self.cwd = self.cwd, target

    def may(self, permission: str) -> bool:
        return self.permissions is None or permission in self.permissions

    def need(self, permission: str, what: str) -> None:
        """
        Raises:
            NotAllowed: this run may not do that.
        """
        if not self.may(permission):
            raise NotAllowed(
                f"{what} needs the permission to {permission}, which this run does not have",
                kept="everything as it was",
                do=f"begin a new task that may {permission}; a resumed one never may more than before",
            )


def narrowed(saved: Iterable[str] | None, now: frozenset[str] | None) -> frozenset[str] | None:
    """The permissions of a resumed attempt: what both the saved one and this one allow, never more."""
    if saved is None:
        return now
    before = frozenset(saved)
    return before if now is None else before & now


# The contexts of this process: one for each task it works on.
_contexts: dict[tuple[str, str], Context] = {}


def context_of(store: Store, uid: str) -> Context:
    """This process's context for a task."""
    found = _contexts.get((store.place, uid))
    if found is None:
        found = Context(given={"rate_limits": {"clock": store.clock}})
        keep_context(store, uid, found)
    return found


def keep_context(store: Store, uid: str, context: Context) -> None:
    _contexts[(store.place, uid)] = context


def forget_contexts() -> None:
    """As in a fresh process: for tests, and after a fork."""
    _contexts.clear()

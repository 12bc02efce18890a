"""The units a keeper holds: the record of each, and its write lease.

A unit's record is one JSON file in a folder of its own, replaced as a whole: its kind, its owner, how it was made (the
recipe), its process, and how it ended. The file survives the keeper and a restart of the machine; descriptors survive
the keeper in the anchor. With a key it is sealed (records.py).

One connection at a time may write to a unit: it holds the unit's write lease. Each time the lease
changes hands, the epoch rises and is written to the record, and writes of the former holder are refused.
"""

from __future__ import annotations

import contextlib
import json
import math
import os
import re
import shutil
import time
from collections.abc import Iterator
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from perdure._ground.ids import new_uid, pid_ns
from perdure.keeper.core import untrusted
from perdure.keeper.core.records import NoKey, Records

FORMAT = 1
# Files beside the record that are sealed with it: a shell's state, typed input, an answer's headers.
SEALED_FILES = ("state", "history", "head.sealed")


@dataclass
class Owner:
    """The task a unit is kept for."""

    namespace: str
    task: str
    uid: str


@dataclass
class Unit:
    uid: str
    kind: str
    name: str
    owner: Owner
    recipe: dict[str, Any]  # how it was made, enough to make it again
    boot: str  # the boot it was made in: in another one, its process is gone
    made_at: float
    pid: int = 0
    start: int = 0
    epoch: int = 0
    task_epoch: int = 0  # of the attempt that holds the lease: a later attempt takes over from an earlier one
    ended: int | None = None  # its process's status, as waitpid gives it; -1: it ended unseen
    ended_at: float | None = None
    pid_ns: str = ""  # where its pid means something; in another container it names another process
    limits: dict[str, float] = field(default_factory=dict)  # seconds, idle_seconds, memory
    facts: dict[str, Any] = field(default_factory=dict)  # what its kind keeps beside
    format: int = FORMAT

    @property
    def is_alive(self) -> bool:
        return self.ended is None


_UID = re.compile(r"[A-Za-z0-9_-]{1,64}")
_MOST_NAME = 1000
_TYPES: dict[str, tuple[type, ...]] = {
    **dict.fromkeys(("kind", "name", "boot", "pid_ns"), (str,)),
    **dict.fromkeys(("pid", "start", "epoch", "task_epoch", "format"), (int,)),
    **dict.fromkeys(("recipe", "facts", "limits"), (dict,)),
    "made_at": (int, float),
    "ended": (int, type(None)),
    "ended_at": (int, float, type(None)),
}


class Newer(ValueError):
    """A record that a newer keeper has written; it is left alone."""


def is_uid(name: object) -> bool:
    """True if this can be the uid of a unit, and so the name of its folder."""
    return isinstance(name, str) and _UID.fullmatch(name) is not None


def _read(told: object, folder: str) -> Unit:
    """The unit of a record, if the keeper can go by it: a damaged one must not take all others down with it.

    Raises:
        Newer: a newer keeper has written it.
        ValueError, TypeError, KeyError: it is damaged.
    """
    if not isinstance(told, dict) or type(told.get("format")) is not int:
        raise ValueError("it is not the record of a unit")
    if told["format"] > FORMAT:
        raise Newer("made by a newer keeper")
    unit = Unit(**{**told, "owner": _owner_in(told)})
    if unit.uid != folder or not is_uid(folder):
        raise ValueError(f"uid is {shortened(unit.uid)}")
    for name, kinds in _TYPES.items():
        value = getattr(unit, name)
        if not isinstance(value, kinds) or isinstance(value, bool) or (isinstance(value, float) and math.isinf(value)):
            raise ValueError(f"{name} is {shortened(value)}")
    if not (unit.pid == 0 or 1 < unit.pid < 1 << 31) or unit.start < 0:
        raise ValueError(f"pid is {shortened(unit.pid)}, start {shortened(unit.start)}")
    for name, value in unit.limits.items():
        if type(value) not in (int, float) or not math.isfinite(value):
            raise ValueError(f"the limit {name} is {shortened(value)}")
    return unit


def _owner_in(told: dict[str, Any]) -> Owner:
    owner = Owner(**told["owner"])
    for value in vars(owner).values():
        if not isinstance(value, str) or len(value) > _MOST_NAME:
            raise ValueError(f"owner is {shortened(told['owner'])}")
    return owner


def _remains(told: Any, folder: str, why: str) -> Unit | None:
    """The known facts of a unit whose record is damaged: its owner, and that it is lost."""
    try:
        owner, kind, name = _owner_in(told), told["kind"], told["name"]
    except (ValueError, TypeError, KeyError):
        return None
    is_named = isinstance(kind, str) and isinstance(name, str) and len(kind) + len(name) < _MOST_NAME
    if not is_named or not is_uid(folder):
        return None
    lost = {"why": f"its record was damaged ({why}) and is set aside", "aside": True}
    return Unit(folder, kind, name, owner, {}, "", 0.0, ended=-1, ended_at=time.time(), facts=lost)


def shortened(value: object) -> str:
    """A value of a damaged record, as an error shows it."""
    return untrusted.printable(repr(value)[:80])


class Registry:
    """All units, on disk and by name."""

    def __init__(self, home: Path, records: Records) -> None:
        self.home, self.records = _folder_of(home), records
        self._by_uid: dict[str, Unit] = {}
        self.unreadable: list[str] = []  # folders whose records were set aside, with the reason
        self.aside: list[str] = []  # the same as uids, as far as they are
        self._without_key: dict[Path, str] = {}  # folders whose records wait for their key, and how they are described
        for folder in sorted(self.home.iterdir()):
            self._load(folder)

    def _load(self, folder: Path) -> None:
        told = None
        try:
            if folder.is_symlink() or not folder.is_dir():
                raise ValueError("it is not a folder")
            told = untrusted.read_json(folder / "unit.json")
            unit = _read(told := self.records.opened(told), folder.name)
        except FileNotFoundError:
            shutil.rmtree(folder, ignore_errors=True)  # it was never finished
        except (Newer, NoKey) as error:
            said = f"{untrusted.printable(folder.name)}: {error}"
            self.unreadable.append(said)
            if isinstance(error, NoKey):
                self._without_key[folder] = said
        except (ValueError, TypeError, KeyError, OSError) as error:
            self._set_aside(folder.name, told, untrusted.printable(str(error)))
        else:
            self._by_uid[unit.uid] = unit

    def _set_aside(self, folder: str, told: object, why: str) -> None:
        self.unreadable.append(f"{untrusted.printable(folder)}: {why}")
        if is_uid(folder):
            self.aside.append(folder)
        if (lost := _remains(told, folder, why)) is not None:
            self._by_uid[folder] = lost

    def keys_given(self) -> list[Unit]:
        """Open the records that new keys open and return them; seal all records with the current key."""
        known, waiting = set(self._by_uid), self._without_key
        self._without_key = {}
        for folder, said in waiting.items():
            self.unreadable.remove(said)
            self._load(folder)
        for unit in self:
            with contextlib.suppress(OSError, ValueError):  # a full disk, or a damaged file: it stays as it is
                self.save(unit)
                self.records.reseal(self.folder(unit), SEALED_FILES)
        return [unit for unit in self if unit.uid not in known]

    def __iter__(self) -> Iterator[Unit]:
        return iter(list(self._by_uid.values()))

    def get(self, uid: str) -> Unit | None:
        return self._by_uid.get(uid)

    def find(self, namespace: str, task_uid: str, name: str) -> Unit | None:
        """The task's newest unit of this name."""
        mine = [
            unit
            for unit in self
            if unit.owner.uid == task_uid and unit.owner.namespace == namespace and unit.name == name
        ]
        return max(mine, key=lambda unit: unit.uid, default=None)

    def folder(self, unit: Unit) -> Path:
        return self.home / unit.uid

    def new(self, kind: str, name: str, owner: Owner, recipe: dict[str, Any], boot: str) -> Unit:
        """A unit that is not written down yet; `save` does that."""
        unit = Unit(new_uid(time.time_ns() // 1_000_000), kind, name, owner, recipe, boot, time.time(), pid_ns=pid_ns())
        self.folder(unit).mkdir(mode=0o700)
        self._by_uid[unit.uid] = unit
        return unit

    def save(self, unit: Unit, *, through_power_loss: bool = False) -> None:
        """Replace the unit's file."""
        folder = self.folder(unit)
        data = json.dumps(self.records.sealed(asdict(unit))).encode()
        untrusted.write(folder / "unit.json", data, through_power_loss=through_power_loss)
        if through_power_loss:
            for place in (folder, self.home):
                sync_folder(place)

    def write_again(self) -> None:
        """All of it was removed: have each unit's folder and record again."""
        self.home.mkdir(mode=0o700, parents=True, exist_ok=True)
        for unit in self:
            self.folder(unit).mkdir(mode=0o700, exist_ok=True)
            self.save(unit)

    def remove(self, unit: Unit) -> None:
        """As if it had never been."""
        self._by_uid.pop(unit.uid, None)
        shutil.rmtree(self.folder(unit), ignore_errors=True)


def _folder_of(home: Path) -> Path:
    """The folder of all units. Anything else of that name is moved out of the way."""
    folder = home / "units"
    try:
        untrusted.make_folder(folder)
    except untrusted.Unfit:
        with contextlib.suppress(OSError):
            folder.rename(home / f"units.aside-{time.time_ns()}")
        untrusted.make_folder(folder)
    return folder


def sync_folder(folder: Path) -> None:
    fd = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(fd)
    finally:
        os.close(fd)

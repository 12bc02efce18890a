"""The units a keeper holds: what is written down about each, and who may write to it.

A unit's record is one JSON file in a folder of its own, replaced as a whole: what it is, whose it is, how it was
made (the recipe), which process it is, and how it ended. The file outlives the keeper and the machine's running;
descriptors outlive the keeper in the anchor.

One connection at a time may write to a unit: it holds the unit's write lease. Each time the lease goes to another
one, the epoch rises and is written down, and what the former holder still sends is refused.
"""

from __future__ import annotations

import json
import os
import shutil
import time
from collections.abc import Iterator
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from perdure._ground.ids import new_uid, pid_ns

FORMAT = 1


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
    pid_ns: str = ""  # where its pid means something; in another container it is somebody else's
    limits: dict[str, float] = field(default_factory=dict)  # seconds, idle_seconds, memory
    facts: dict[str, Any] = field(default_factory=dict)  # what its kind keeps beside
    format: int = FORMAT

    @property
    def is_alive(self) -> bool:
        return self.ended is None


_NUMBER = (int, float)
_TYPES: dict[str, type | tuple[type, ...]] = {
    **dict.fromkeys(("kind", "name", "boot", "pid_ns"), str),
    **dict.fromkeys(("pid", "start", "epoch", "task_epoch"), int),
    **dict.fromkeys(("recipe", "facts", "limits"), dict),
    "made_at": _NUMBER,
    "ended": (int, type(None)),
    "ended_at": (*_NUMBER, type(None)),
}


def _checked(unit: Unit, folder: str) -> Unit:
    """A record that the keeper can go by: a damaged one must not take all others down with it."""
    if unit.uid != folder:
        raise ValueError(f"uid is {unit.uid!r}")
    for name, kind in _TYPES.items():
        if not isinstance(getattr(unit, name), kind):
            raise ValueError(f"{name} is {getattr(unit, name)!r}")
    return unit


class Registry:
    """All units, on disk and by name."""

    def __init__(self, home: Path) -> None:
        self.home = home / "units"
        self.home.mkdir(mode=0o700, parents=True, exist_ok=True)
        self._by_uid: dict[str, Unit] = {}
        self.unreadable: list[str] = []
        for folder in sorted(self.home.iterdir()):
            self._load(folder)

    def _load(self, folder: Path) -> None:
        try:
            told = json.loads((folder / "unit.json").read_text())
            if told["format"] > FORMAT:
                raise ValueError("made by a newer keeper")
            unit = _checked(Unit(**{**told, "owner": Owner(**told["owner"])}), folder.name)
        except FileNotFoundError:
            shutil.rmtree(folder, ignore_errors=True)  # it was never finished
        except (ValueError, TypeError, KeyError, OSError) as error:
            self.unreadable.append(f"{folder.name}: {error}")
        else:
            self._by_uid[unit.uid] = unit

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
        fresh = folder / "unit.json.new"
        with open(fresh, "w") as file:
            json.dump(asdict(unit), file)
            if through_power_loss:
                file.flush()
                os.fsync(file.fileno())
        fresh.replace(folder / "unit.json")
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


def sync_folder(folder: Path) -> None:
    fd = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(fd)
    finally:
        os.close(fd)

"""The stored form of a context in a checkpoint, and the cut that a user sees of it. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

import msgspec

from perdure._model import Checkpoint
from perdure._runtime.context import Recorded
from perdure.errors import RecordDamaged

FORMAT = 1


class SavedUnit(msgspec.Struct, frozen=True):
    name: str
    kind: str
    recipe: Any
    after: tuple[str, ...] = ()
    is_connection: bool = False


class Saved(msgspec.Struct, frozen=True):
    """A context as it is stored: the units carry everything, the rest says whose they were."""

    host: str
    user: str
    units: list[SavedUnit]
    fingerprints: list[Recorded] = []
    call_stack: list[dict[str, Any]] = []
    partial_results: dict[str, Any] = {}
    permissions: list[str] | None = None
    is_root: bool = False
    format: int = FORMAT

    def recipe(self, kind: str) -> Any:
        return next((unit.recipe for unit in self.units if unit.kind == kind), None)


@dataclass(frozen=True, slots=True, kw_only=True)
class Cut:
    """A checkpoint that also holds the surroundings of the task."""

    id: str
    seq: int
    timestamp: datetime
    state: Any
    env: Mapping[str, str]  # secrets stand as references
    cwd: str
    connections: Sequence[Mapping[str, Any]]
    partial_results: Mapping[str, Any]
    call_stack: Sequence[Mapping[str, Any]]
    units: Sequence[Mapping[str, Any]]
    host: str = ""
    is_there: bool = True  # False: it was made, and has been pruned or damaged since; only its id is known


def bare_cut(id: str) -> Cut:
    """A cut of which only the id is left."""
    seq, empty = int(id.rpartition(".")[2]), datetime.fromtimestamp(0, UTC)
    return Cut(
        id=id,
        seq=seq,
        timestamp=empty,
        state=None,
        env={},
        cwd="",
        connections=(),
        partial_results={},
        call_stack=(),
        units=(),
        is_there=False,
    )


def to_data(saved: Saved) -> dict[str, Any]:
    """Plain data, for the store; what units and users gave stays as it is."""
    data = msgspec.structs.asdict(saved)
    data["units"] = [msgspec.structs.asdict(unit) for unit in saved.units]
    data["fingerprints"] = [msgspec.structs.asdict(one) for one in saved.fingerprints]
    return data


def from_data(data: Any, checkpoint: str) -> Saved:
    """
    Raises:
        RecordDamaged: it is damaged, or a newer perdure saved it.
    """
    if isinstance(data, Mapping) and isinstance(data.get("format"), int) and data["format"] > FORMAT:
        raise RecordDamaged(f"the context of checkpoint {checkpoint}", f"a newer perdure saved it ({data['format']})")
    try:
        return msgspec.convert(data, Saved)
    except msgspec.ValidationError as error:
        raise RecordDamaged(f"the context of checkpoint {checkpoint}", str(error)) from None


def cut_of(checkpoint: Checkpoint, saved: Saved) -> Cut:
    environment, directory = saved.recipe("environment") or {}, saved.recipe("directory") or {}
    return Cut(
        id=checkpoint.id,
        seq=checkpoint.seq,
        timestamp=checkpoint.timestamp,
        state=checkpoint.data,
        env={**environment.get("values", {}), **environment.get("secrets", {})},
        cwd=directory.get("cwd", ""),
        connections=[_shown(unit) for unit in saved.units if unit.is_connection],
        partial_results=saved.partial_results,
        call_stack=saved.call_stack,
        units=[{"name": unit.name, "kind": unit.kind, "after": list(unit.after)} for unit in saved.units],
        host=saved.host,
    )


def _shown(unit: SavedUnit) -> dict[str, Any]:
    recipe = unit.recipe if isinstance(unit.recipe, Mapping) else {}
    hidden = ("sealed",)  # values that only the store's key keeps
    kind = recipe.get("kind", unit.kind)
    return {"name": unit.name, "type": kind, **{key: value for key, value in recipe.items() if key not in hidden}}


def in_order(units: Sequence[SavedUnit]) -> list[SavedUnit]:
    """Order units so that each follows those it needs, otherwise as they were saved.

    Raises:
        RecordDamaged: they need each other.
    """
    left, done, ordered = list(units), set[str](), list[SavedUnit]()
    names = {unit.name for unit in units}
    while left:
        ready = [unit for unit in left if all(name in done or name not in names for name in unit.after)]
        if not ready:
            raise RecordDamaged("the units of a checkpoint", "they need each other in a circle")
        ordered += ready
        done.update(unit.name for unit in ready)
        left = [unit for unit in left if unit.name not in done]
    return ordered

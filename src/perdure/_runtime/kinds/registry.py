"""The kinds of unit that this process knows.

A package may offer kinds by an entry point in the group `perdure.units`, named as the kind. A record only names its
kind. A kind that is neither registered nor installed here is not looked for anywhere else, and its units are lost,
by name.
"""

from __future__ import annotations

from importlib.metadata import entry_points

from perdure._model import Verdict
from perdure._runtime.context import UnitType
from perdure.errors import InvalidInput

GROUP = "perdure.units"
_types: dict[str, UnitType] = {}


def register(unit_type: UnitType) -> UnitType:
    """Make a kind known to this process.

    Raises:
        InvalidInput: it has no name, or another one has it.
    """
    if not unit_type.kind:
        raise InvalidInput(f"{type(unit_type).__name__} has no kind", do="give the class a `kind`")
    known = _types.setdefault(unit_type.kind, unit_type)
    if type(known) is not type(unit_type):
        raise InvalidInput(f"there are two unit types {unit_type.kind!r}", do="give each kind a name of its own")
    return known


def unknown_kind(kind: str) -> Verdict:
    """The verdict on a unit whose kind is not known here."""
    return Verdict(
        "lost", f"units of kind {kind!r} are not known here", options=("install its package, or register it",)
    )


def type_of(kind: str) -> UnitType | None:
    """The unit type of this kind; None when it is not known here."""
    if kind not in _types:
        _register_built_in()
    if kind not in _types:
        for point in entry_points(group=GROUP, name=kind):
            register(point.load()())
    return _types.get(kind)


def _register_built_in() -> None:
    from perdure._runtime.kinds.built_in import BUILT_IN

    for unit_type in BUILT_IN:
        register(unit_type())

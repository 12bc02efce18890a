"""Durable functions that change while their tasks go on.

A function is known by name and version: `__main__` and `my.module` are one, and a function can move to another module.
If two modules have a function of the same name, the module that began a task decides. Three ways to change one:

    patched(name)                 both ways stay in the code; which one a task takes is decided once
    two versions side by side     a task continues with the version that began it
    upgrade=                      the task starts over on a new line, with the arguments that `upgrade` makes
                                  of the old ones; what its effects did, `upgrade` must take by `effects=`

Without any of them a task that another version began is paused, as diverged.
"""

from __future__ import annotations

import inspect
from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

from perdure._durable.attempt import Attempt, current
from perdure._durable.declare.code_places import file_of, is_another, is_same_module, place_of
from perdure._durable.declare.functions import DurableFunction
from perdure._durable.values import Signature
from perdure._ground.encoding import codec
from perdure._model import Entry, name_of
from perdure.errors import Conflict, InvalidInput, ReplayDiverged

_known: dict[tuple[str, int], DurableFunction[..., Any]] = {}
_namesakes: dict[tuple[str, int], list[DurableFunction[..., Any]]] = {}  # where there are several, all of them


def remember(made: DurableFunction[..., Any]) -> None:
    """Register the function by its name. Functions of two modules may have the same name by chance.

    Raises:
        Conflict: both were given this name explicitly, or they are in one file.
    """
    key = made.name, made.version
    before = _namesakes.get(key) or ([_known[key]] if key in _known else [])
    others = [one for one in before if is_another(one.function, made.function)]
    for other in others:
        if (other.is_named and made.is_named) or file_of(other.function) == file_of(made.function):
            raise Conflict(
                f"two durable functions are called {made.name!r}: in {place_of(other.function)} and "
                f"{place_of(made.function)}",
                do="give one of them another name or version: @durable(name=…, version=…)",
            )
    _known[key] = made
    if others:
        _namesakes[key] = [*others, made]
    else:
        _namesakes.pop(key, None)


def namesakes_of(function: DurableFunction[..., Any]) -> Sequence[DurableFunction[..., Any]]:
    """All that are called so, if there are several; else none."""
    return _namesakes.get((function.name, function.version), ())


def chosen_among(namesakes: Sequence[DurableFunction[..., Any]], module: str) -> DurableFunction[..., Any] | None:
    """The one of the module that began the task. If none is, the only one that was given the name by `name=`."""
    fits = [one for one in namesakes if module and is_same_module(one.module, module)]
    fits = fits or [one for one in namesakes if one.is_named]
    return fits[0] if len(fits) == 1 else None


def refuse_namesakes(task_id: str, namesakes: Sequence[DurableFunction[..., Any]], module: str) -> ReplayDiverged:
    name, places = namesakes[0].name, " and ".join(place_of(one.function) for one in namesakes)
    begun = f"{name} of the module {module!r}" if module else name
    do = f"put @durable(name={name!r}) above the function that the task belongs to, then resume the task"
    return ReplayDiverged(task_id, 0, begun, f"one of the functions {name} in {places}", do=do)


def known_functions() -> dict[str, DurableFunction[..., Any]]:
    """The newest version of each function of this process, by name."""
    return {name: _known[name, version] for name, version in sorted(_known)}


def known_versions() -> list[tuple[str, int, bool]]:
    """All that this process can carry on: name, version, and whether older versions are brought to it."""
    return [(name, version, made.upgrade is not None) for (name, version), made in sorted(_known.items())]


def function_for(name: str, version: int, module: str | None = None) -> DurableFunction[..., Any] | None:
    """The function of this process that can carry on a task begun by this version. None: leave it to others.

    Among several of that name, the one of `module`, or none. Without a module it is any of them, with all as its
    `namesakes`: the right one is found when the task is read.
    """
    found = _known.get((name, version))
    if found is None:
        newest = known_functions().get(name)
        found = newest if newest is not None and newest.version > version and newest.upgrade is not None else None
    namesakes = _namesakes.get((name, found.version)) if found is not None else None
    if found is None or namesakes is None:
        return found
    return chosen_among(namesakes, module) if module is not None else found.among(namesakes)


# ── both ways in the code ────────────────────────────────────────────────────────────────────────


def patched(name: str) -> bool:
    """True if this task takes the new way: yes, unless it had gone the old way before this was first asked.

    Decided once for a task and recorded; without a task it is the new way.
    """
    if not name or "|" in name or "#" in name:
        raise InvalidInput(f"the name of a patch is {name!r}", do="choose one without | and #")
    scope = current.get()
    if scope is None:
        return True
    attempt = scope.attempt
    attempt.check()
    decided = attempt.seldom.patches.get(name)
    if decided is None:
        decided = attempt.seldom.patches[name] = _decide(attempt, f"|patched.{name}#1")
    return decided


def _decide(attempt: Attempt, path: str) -> bool:
    mark = attempt.cursor.marks.get(path)
    if mark is not None and mark.value is not None:
        return bool(codec.decode(mark.value, bool))
    is_new = not attempt.is_replaying and not attempt.cursor.open
    now, data = attempt.store.clock.now_ms(), codec.encode(is_new)
    attempt.record(Entry("result", "patched", path, b"", data, at=now, epoch=attempt.epoch))
    return is_new


# ── another version ──────────────────────────────────────────────────────────────────────────────


class PastEffect(NamedTuple):
    """The outcome of an effect of an older version, as `upgrade(…, effects=)` gets it."""

    name: str
    key: str
    value: Any
    is_known: bool  # False: it was under way when the process died


def refuse_version(task_id: str, function: DurableFunction[..., Any], version: int) -> ReplayDiverged:
    begun, now = f"{function.name} version {version}", f"{function.name} version {function.version}"
    if version > function.version:
        do = f"bring the code that has version {version}; or fork the task at its beginning, for this one"
    else:
        do = f"keep version {version} beside it, or give version {function.version} an upgrade= (the task starts over)"
    return ReplayDiverged(task_id, 0, begun, now, do=do)


def upgraded(
    task_id: str, function: DurableFunction[..., Any], version: int, arguments: bytes, entries: Iterable[Entry]
) -> bytes:
    """The arguments with which a task of an older version starts over.

    Raises:
        ReplayDiverged: there is no way from that version, or effects were done that `upgrade` does not take.
    """
    upgrade = function.upgrade
    if upgrade is None or version > function.version:
        raise refuse_version(task_id, function, version)
    past = past_effects(entries)
    takes_effects = "effects" in inspect.signature(upgrade).parameters
    if past and not takes_effects:
        names = ", ".join(sorted({effect.name for effect in past}))
        begun = f"{function.name} version {version}, which did {names}"
        asked = f"{function.name} version {function.version}, whose upgrade takes no effects="
        do = "have upgrade take effects=, and decide by it what is left to do"
        raise ReplayDiverged(task_id, 0, begun, asked, do=do)
    args, kwargs = Signature(upgrade, leave_out=("effects",)).decode_like(arguments, function.signature)
    made = upgrade(*args, **kwargs, **({"effects": past} if takes_effects else {}))
    if isinstance(made, dict):
        return function.signature.encode_arguments((), made)
    return function.signature.encode_arguments(made if isinstance(made, tuple) else (made,), {})


def past_effects(entries: Iterable[Entry]) -> Sequence[PastEffect]:
    """The effects that a journal line has done, or may have done."""
    found: dict[str, PastEffect] = {}
    for entry in entries:
        if not entry.op.startswith("effect") or entry.kind == "cut":
            continue
        name, key = name_of(entry.path), str((entry.note or {}).get("key", ""))
        if entry.kind == "intent":
            found[entry.path] = PastEffect(name, key, None, False)
        elif entry.value is not None:
            found[entry.path] = PastEffect(name, key, codec.peek(entry.value), True)
        else:
            found.pop(entry.path, None)  # it definitely failed
    return list(found.values())

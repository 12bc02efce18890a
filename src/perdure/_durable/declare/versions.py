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
import os
import sys
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple

from perdure._durable.attempt import current
from perdure._durable.values import Signature
from perdure._ground.encoding import codec
from perdure._model import Entry, name_of
from perdure.errors import Conflict, InvalidInput, ReplayDiverged

if TYPE_CHECKING:
    from perdure._durable.attempt import Attempt
    from perdure._durable.declare.functions import DurableFunction

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
        if (other.is_named and made.is_named) or _file(other.function) == _file(made.function):
            raise Conflict(
                f"two durable functions are called {made.name!r}: in {_place(other.function)} and "
                f"{_place(made.function)}",
                do="give one of them another name or version: @durable(name=…, version=…)",
            )
    _known[key] = made
    if others:
        _namesakes[key] = [*others, made]
    else:
        _namesakes.pop(key, None)


def module_of(function: Callable[..., Any]) -> str:
    """The module it is in, as others would import it: a script by the name of its file."""
    name: str = getattr(_written(function), "__module__", None) or ""
    if name not in ("__main__", "__mp_main__"):
        return name
    main = sys.modules.get(name)
    spec = getattr(main, "__spec__", None)
    if spec is not None:
        return str(spec.name).removesuffix(".__main__")
    file = getattr(main, "__file__", None)
    return os.path.splitext(os.path.basename(file))[0] if file else name


def is_same_module(a: str, b: str) -> bool:
    """Whether two names can be one module's: a script does not know its own package."""
    return a == b or a.endswith(f".{b}") or b.endswith(f".{a}")


def namesakes_of(function: DurableFunction[..., Any]) -> Sequence[DurableFunction[..., Any]]:
    """All that are called so, if there are several; else none."""
    return _namesakes.get((function.name, function.version), ())


def chosen_among(namesakes: Sequence[DurableFunction[..., Any]], module: str) -> DurableFunction[..., Any] | None:
    """The one of the module that began the task. If none is, the only one that was given the name by `name=`."""
    fits = [one for one in namesakes if module and is_same_module(one.module, module)]
    fits = fits or [one for one in namesakes if one.is_named]
    return fits[0] if len(fits) == 1 else None


def refuse_namesakes(task_id: str, namesakes: Sequence[DurableFunction[..., Any]], module: str) -> ReplayDiverged:
    name, places = namesakes[0].name, " and ".join(_place(one.function) for one in namesakes)
    begun = f"{name} of the module {module!r}" if module else name
    do = f"put @durable(name={name!r}) above the function that the task belongs to, then resume the task"
    return ReplayDiverged(task_id, 0, begun, f"one of the functions {name} in {places}", do=do)


def is_another(a: Callable[..., Any], b: Callable[..., Any]) -> bool:
    # The same file loaded again, a notebook's cell run again, a test's local function: all are the same one.
    a, b = _written(a), _written(b)
    if not hasattr(a, "__code__") or not hasattr(b, "__code__"):  # written in C: one there is
        return False
    if "<locals>" in a.__qualname__ or "<locals>" in b.__qualname__:
        return False
    files = (a.__code__.co_filename, b.__code__.co_filename)
    return a.__qualname__ != b.__qualname__ if files[0] == files[1] else not (_is_cell(a) and _is_cell(b))


def _written(function: Any) -> Any:
    """The def behind it: a partial's function, the `__call__` of an object."""
    while isinstance(function, partial):
        function = function.func
    return function if inspect.isfunction(function) else getattr(function, "__func__", type(function).__call__)


def _is_cell(function: Callable[..., Any]) -> bool:
    """Whether it is a cell of a notebook: an edited cell is another file by name, and none of them is on disk."""
    return function.__module__ == "__main__" and not os.path.exists(function.__code__.co_filename)


def _file(function: Callable[..., Any]) -> str:
    return str(getattr(getattr(_written(function), "__code__", None), "co_filename", ""))


def _place(function: Callable[..., Any]) -> str:
    function = _written(function)
    return f"{function.__code__.co_filename}:{function.__code__.co_firstlineno}"


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
    """Whether this task takes the new way: yes, unless it had gone the old way before this was first asked.

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

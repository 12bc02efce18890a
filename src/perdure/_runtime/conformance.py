"""Check that a kind of unit keeps its promises: the same checks for built-in kinds and for yours.

    await check_unit_type(CounterType(), make=lambda: MyCounter(3), same=lambda a, b: a.n == b.n, folder=tmp_path)

Each check raises AssertionError with the promise that was broken.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable
from copy import deepcopy
from pathlib import Path
from typing import Any

from perdure._ground.encoding import codec
from perdure._ground.secrets.crypto import Key, KeyRing
from perdure._model import Verdict
from perdure._runtime.context import Context, Place, UnitType
from perdure._runtime.secrets import redaction

_LEVELS = ("kept", "imaged", "rebuilt", "lost")


async def check_unit_type(
    unit_type: UnitType,
    *,
    make: Callable[[Context], Any] | Callable[[], Any],
    same: Callable[[Any, Any], bool],
    folder: Path,
    can_seal: bool = True,
) -> None:
    """Check one kind. `make` returns a live thing, `same` says whether the restored one equals it.

    Raises:
        AssertionError: a promise is not kept; the message says which.
    """
    context = Context(env={}, folder=folder)
    ring = KeyRing([Key("conformance", bytes(32))] if can_seal else [])
    place = Place("conformance", "conformance", "here", 1_900_000_000_000, context, folder / "home", ring=ring)
    live = _made(make, context)
    recipe = await unit_type.capture(live, place)
    stored = _stored(unit_type, recipe)
    await _check_validate(unit_type, stored, place)
    await _check_rollback(unit_type, stored, place)
    back = await unit_type.restore(stored, place)
    assert same(live, back), f"{unit_type.kind}: what came back is not what was captured"
    once_more = await unit_type.capture(back if not _is_surrounding(unit_type) else context, place)
    assert _stored(unit_type, once_more) == stored, f"{unit_type.kind}: captured again, it is another recipe"
    await unit_type.commit(back, place)
    if not _is_surrounding(unit_type):
        await unit_type.close(back)
        await unit_type.close(live)


def _made(make: Callable[..., Any], context: Context) -> Any:
    try:
        return make(context)
    except TypeError:
        return make()


def _is_surrounding(unit_type: UnitType) -> bool:
    """Of these the live thing is the context, and `restore` gives what it was before."""
    from perdure._runtime.restore import SURROUNDINGS

    return unit_type.kind in SURROUNDINGS


def _stored(unit_type: UnitType, recipe: Any) -> Any:
    raw, copy = codec.round_trip(recipe)
    assert not redaction.known_in(raw) or b"sealed" in raw, f"{unit_type.kind}: a secret stands in its recipe"
    return copy


async def _check_validate(unit_type: UnitType, recipe: Any, place: Place) -> None:
    before, shown = _footprint(place), deepcopy(recipe)
    verdict: Any = await unit_type.validate(recipe, place)
    assert isinstance(verdict, Verdict) and verdict.level in _LEVELS, f"{unit_type.kind}: validate gives a Verdict"
    assert verdict.reason, f"{unit_type.kind}: a verdict gives its reason"
    assert _footprint(place) == before, f"{unit_type.kind}: validate has touched something"
    assert recipe == shown, f"{unit_type.kind}: validate has changed the recipe"


async def _check_rollback(unit_type: UnitType, recipe: Any, place: Place) -> None:
    before = _footprint(place)
    live = await unit_type.restore(recipe, place)
    await unit_type.rollback(live, place)
    assert _footprint(place) == before, f"{unit_type.kind}: rollback has left something behind"


def _footprint(place: Place) -> Any:
    """The traces of a process: descriptors, children, threads, its environment, the context, files."""
    descriptors = len(os.listdir("/proc/self/fd")) if os.path.isdir("/proc/self/fd") else 0
    threads = sum(not thread.name.startswith("perdure-") for thread in threading.enumerate())
    context = place.context
    around = (dict(context.env), context.cwd, context.previous_cwd, context.umask, deepcopy(context.variables))
    files = sorted((str(path), path.lstat().st_size) for path in place.context.cwd.rglob("*") if not path.is_dir())
    return descriptors, threads, _children(), dict(os.environ), os.getcwd(), around, files


def _children() -> str:
    try:
        return Path(f"/proc/self/task/{threading.get_native_id()}/children").read_text(encoding="utf-8")
    except OSError:
        return ""

"""The contexts of this process: one for each task it works on."""

from __future__ import annotations

from perdure._runtime.context.context import Context
from perdure._store import Store

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

"""Scopes, and the sets of them that have a name."""

from __future__ import annotations

import difflib
from collections.abc import Iterable
from typing import get_args

from perdure.errors import InvalidInput
from perdure.server.http import Scope

SCOPES: tuple[str, ...] = get_args(Scope)
_VIEWER = ("tasks:read", "data:read")
PRESETS: dict[str, tuple[str, ...]] = {
    "viewer": _VIEWER,
    "agent": (*_VIEWER, "tasks:write", "events:send"),
    "operator": (*_VIEWER, "tasks:control", "inbox:decide", "units:type", "schedules:write"),
    "admin": SCOPES,
}


def scopes_of(names: Iterable[str]) -> tuple[str, ...]:
    """The scopes that these names of scopes and presets give, each once, in the order of SCOPES.

    Raises:
        InvalidInput: a name is neither, or there is none.
    """
    found: set[str] = set()
    for name in names:
        if name not in PRESETS and name not in SCOPES:
            near = difflib.get_close_matches(name[:100], [*PRESETS, *SCOPES], 1)
            do = f"did you mean {near[0]!r}?" if near else f"use {', '.join([*PRESETS, *SCOPES])}"
            raise InvalidInput(f"unknown scope {name[:100]!r}", do=do)
        found.update(PRESETS.get(name, (name,)))
    if not found:
        raise InvalidInput("a credential needs at least one scope", do=f"use {', '.join([*PRESETS, *SCOPES])}")
    return tuple(scope for scope in SCOPES if scope in found)

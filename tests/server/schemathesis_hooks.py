"""What schemathesis is told beyond the OpenAPI file: a media type of browsers, and ids of things that are there.

Loaded by schemathesis itself (SCHEMATHESIS_HOOKS); PERDURE_KNOWN_IDS is a JSON object of path parts and values.
"""

from __future__ import annotations

import json
import os
from typing import Any

import schemathesis

KNOWN: dict[str, list[str]] = json.loads(os.environ.get("PERDURE_KNOWN_IDS", "{}"))
_turns = {"next": 0}


@schemathesis.serializer("application/csp-report")
def report(_: Any, value: Any) -> bytes:
    return value if isinstance(value, bytes) else json.dumps(str(value)).encode()


@schemathesis.hook
def before_call(_: Any, case: Any, **__: Any) -> None:
    """Let every other request that fits the contract name something that is there: its handler has more to do."""
    if case.operation.path.endswith("/wait"):
        _wait_shortly(case.query)
    _turns["next"] += 1
    is_negative = case.meta is not None and case.meta.generation.mode.is_negative
    if is_negative or _turns["next"] % 2:
        return
    for name in case.path_parameters or {}:
        if name in KNOWN:
            values = KNOWN[name]
            case.path_parameters[name] = values[_turns["next"] // 2 % len(values)]


def _wait_shortly(query: dict[str, Any]) -> None:
    try:
        is_long = 0 <= float(query.get("timeout", 30)) <= 60
    except (TypeError, ValueError):
        return
    if is_long:
        query["timeout"] = 0.01

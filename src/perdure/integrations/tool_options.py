"""The user's choice of how a tool of an agent is recorded: "step", or {"kind": "effect", "keyed": True}."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal, TypeAlias

from perdure.errors import InvalidInput

How: TypeAlias = Literal["effect", "step", "plain"] | Mapping[str, Any]


def options_of(tool: str, how: How) -> dict[str, Any]:
    """The options of `perdure.call` for a tool, or {"kind": "plain"}."""
    options: dict[str, Any] = {"kind": how} if isinstance(how, str) else {"kind": "effect", **how}
    if options["kind"] not in ("effect", "step", "plain"):
        raise InvalidInput(f"tool {tool!r} cannot be {options['kind']!r}", do="say 'effect', 'step' or 'plain'")
    return options

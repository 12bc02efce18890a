"""Tools by which a model writes to its own memory, described in a form that every model API accepts.

A layer offers tools by a method `tools()`; the runner collects them and `call` finds the right one.
"""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from perdure.errors import InvalidInput

_TYPES: dict[str, Any] = {
    "string": str,
    "integer": int,
    "boolean": bool,
    "object": Mapping,
    "array": (list, tuple),
}


@dataclass(frozen=True, slots=True)
class Tool:
    """A tool: its name, purpose, parameters as JSON schema, and function."""

    name: str
    description: str
    parameters: Mapping[str, Any]
    act: Callable[..., Awaitable[Any]]

    def describe(self) -> dict[str, Any]:
        """In the form that most model APIs accept: {name, description, parameters}; some call the last one
        input_schema."""
        return {"name": self.name, "description": self.description, "parameters": dict(self.parameters)}


def takes(**properties: Mapping[str, Any]) -> dict[str, Any]:
    """The JSON schema of a tool's arguments; those marked `optional` may be left out."""
    required = [name for name, shape in properties.items() if not shape.get("optional")]
    shapes = {name: _without(shape, "optional") for name, shape in properties.items()}
    return {"type": "object", "properties": shapes, "required": required, "additionalProperties": False}


def _without(shape: Mapping[str, Any], word: str) -> dict[str, Any]:
    return {key: part for key, part in shape.items() if key != word}


async def call(tools: Sequence[Tool], name: str, arguments: Mapping[str, Any]) -> Any:
    """Carry out the model's call of a tool.

    Raises:
        InvalidInput: the tool does not exist, or does not take these arguments; nothing was done.
    """
    tool = next((one for one in tools if one.name == name), None)
    if tool is None:
        raise InvalidInput(f"there is no tool {name!r}", do=f"one of {', '.join(one.name for one in tools) or 'none'}")
    if not isinstance(arguments, Mapping):
        raise InvalidInput(f"{name} takes an object of arguments, not {type(arguments).__name__}")
    known, required = tool.parameters["properties"], tool.parameters["required"]
    unknown = [key for key in arguments if key not in known]
    missing = [key for key in required if key not in arguments]
    if unknown or missing:
        wrong = f"does not take {unknown[0]!r}" if unknown else f"needs {missing[0]!r}"
        raise InvalidInput(f"{name} {wrong}", do=f"it takes {', '.join(known)}")
    for key, value in arguments.items():
        _check(f"{name}: {key}", value, known[key])
    return await tool.act(**arguments)


def _check(what: str, value: Any, shape: Mapping[str, Any]) -> None:
    """Refuse a value that is not of the type its schema names: a model can send anything."""
    wanted = shape.get("type")
    if wanted is None:
        return
    is_number = wanted == "integer" and isinstance(value, bool)
    if not isinstance(value, _TYPES[wanted]) or is_number:
        raise InvalidInput(f"{what} is to be of type {wanted}, not {type(value).__name__}")
    for place, item in enumerate(value if wanted == "array" else ()):
        _check(f"{what}[{place}]", item, shape.get("items", {}))


def with_own_names(offered: Iterable[tuple[str, Tool]]) -> list[Tool]:
    """The tools of several layers, given as (layer id, tool); when a name is taken, the layer's id is appended to
    it."""
    found: dict[str, Tool] = {}
    for layer_id, tool in offered:
        own = f"{tool.name}_{re.sub(r'[^A-Za-z0-9]+', '_', layer_id)}" if tool.name in found else tool.name
        found[own] = replace(tool, name=own)
    return list(found.values())

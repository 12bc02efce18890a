"""The JSON Schema of an annotation, kept with a question so that answers can be checked without its code."""

from __future__ import annotations

from typing import Any

import msgspec

from perdure._durable.values.values import Signature
from perdure._ground.class_fields import is_pydantic


def schema_of(annotation: Any) -> dict[str, Any] | None:
    """What values of this annotation look like in JSON; None when that cannot be told."""
    if annotation is Any or annotation is None:
        return None
    try:
        if is_pydantic(annotation):
            found: dict[str, Any] = annotation.model_json_schema()
            return found
        return msgspec.json.schema(annotation)
    except (TypeError, RuntimeError, ValueError, NameError):
        return None


def arguments_schema(signature: Signature) -> dict[str, Any]:
    """What a function takes by name, as the JSON Schema of an object."""
    found: dict[str, Any] = {}
    shared: dict[str, Any] = {}
    for name, annotation in signature.types.items():
        schema = dict(schema_of(annotation) or {})
        shared |= schema.pop("$defs", {})
        found[name] = schema
    whole: dict[str, Any] = {"type": "object", "properties": found, "required": signature.required}
    if not signature.takes_more:
        whole["additionalProperties"] = False
    return {**whole, "$defs": shared} if shared else whole

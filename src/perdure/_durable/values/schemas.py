"""The JSON Schema of an annotation, kept with a question so that answers can be checked without its code."""

from __future__ import annotations

from typing import Any

import msgspec
from msgspec import inspect

from perdure._durable.values.values import Signature
from perdure._ground.encoding.class_fields import is_pydantic


def schema_of(annotation: Any) -> dict[str, Any] | None:
    """The JSON schema for values of this annotation; None if it is not known."""
    if annotation is Any or annotation is None:
        return None
    try:
        if is_pydantic(annotation):
            found: dict[str, Any] = annotation.model_json_schema()
            return found
        return _with_moments(annotation, msgspec.json.schema(annotation))
    except (TypeError, RuntimeError, ValueError, NameError):
        return None


def _with_moments(annotation: Any, whole: dict[str, Any]) -> dict[str, Any]:
    """The schema, in which each moment has its format: msgspec says only that it is a text."""
    defs: dict[str, Any] = whole.get("$defs", {})
    seen: set[str] = set()

    def walk(kind: inspect.Type, schema: Any) -> None:
        if not isinstance(schema, dict):
            return
        if "$ref" in schema:
            name = str(schema["$ref"]).removeprefix("#/$defs/")
            if name not in seen:
                seen.add(name)
                walk(kind, defs.get(name))
        elif isinstance(kind, inspect.DateTimeType):
            schema.setdefault("format", "date-time")
        elif isinstance(kind, inspect.UnionType):
            forms = schema.get("anyOf", ())
            if len(forms) == len(kind.types):
                for one, form in zip(kind.types, forms, strict=True):
                    walk(one, form)
        elif isinstance(kind, inspect.TupleType):
            for one, form in zip(kind.item_types, schema.get("prefixItems", ()), strict=False):
                walk(one, form)
        elif isinstance(kind, inspect.CollectionType):
            walk(kind.item_type, schema.get("items"))
        elif isinstance(kind, inspect.DictType):
            walk(kind.value_type, schema.get("additionalProperties"))
        elif isinstance(kind, inspect.StructType | inspect.DataclassType | inspect.TypedDictType):
            for field in kind.fields:
                walk(field.type, schema.get("properties", {}).get(field.encode_name))

    walk(inspect.type_info(annotation), whole)
    return whole


def arguments_schema(signature: Signature) -> dict[str, Any]:
    """The parameters that a function takes by name, as the JSON Schema of an object."""
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

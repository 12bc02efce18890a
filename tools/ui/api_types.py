"""The types of what the API answers, for the checker of the dashboard.

    declare namespace Api { interface Now {…} … interface Get { (path: `/v1/now`, …): Promise<Now>; … } }

They are made from openapi.json whenever they are needed, and kept nowhere.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

Document = Mapping[str, Any]


def declarations(openapi: Document) -> str:
    """Each schema as an interface, and what reading each path gives."""
    shapes = [_shape(name, schema) for name, schema in openapi["components"]["schemas"].items()]
    reads = [f"    (path: {path}, signal?: AbortSignal): Promise<{answer}>;" for path, answer in _reads(openapi)]
    return "\n".join(
        [
            "declare namespace Api {",
            "  type Json = any;",
            *shapes,
            "  interface Get {",
            *reads,
            "    (path: string, signal?: AbortSignal): Promise<any>;  // an address that the server has told",
            "  }",
            "}",
            "",
        ]
    )


def _shape(name: str, schema: Document) -> str:
    if "properties" not in schema:
        return f"  type {name} = {_type(schema)};"
    return f"  interface {name} {_fields(schema)}"


def _fields(schema: Document) -> str:
    required = set(schema.get("required", ()))
    fields = (
        f"{_key(name)}{'' if name in required else '?'}: {_type(field)};"
        for name, field in schema["properties"].items()
    )
    return f"{{ {' '.join(fields)} }}"


def _key(name: str) -> str:
    return name if re.fullmatch(r"[A-Za-z_]\w*", name) else f'"{name}"'


def _type(schema: Document) -> str:
    if "$ref" in schema:
        return str(schema["$ref"]).rsplit("/", 1)[1]
    for several in ("anyOf", "oneOf"):
        if several in schema:
            return " | ".join(dict.fromkeys(_type(each) for each in schema[several]))
    if "enum" in schema or "const" in schema:
        values = schema.get("enum", [schema.get("const")])
        return " | ".join(f'"{value}"' if isinstance(value, str) else str(value).lower() for value in values)
    kinds = schema.get("type")
    if isinstance(kinds, list):
        return " | ".join(_type({**schema, "type": kind}) for kind in kinds)
    if kinds == "array":
        if "prefixItems" in schema:
            return f"[{', '.join(_type(each) for each in schema['prefixItems'])}]"
        return f"Array<{_type(schema.get('items') or {})}>"
    if kinds == "object":
        if "properties" in schema:
            return _fields(schema)
        values = schema.get("additionalProperties")
        return f"Record<string, {_type(values) if isinstance(values, dict) else 'Json'}>"
    simple = {"string": "string", "integer": "number", "number": "number", "boolean": "boolean", "null": "null"}
    return simple.get(kinds or "", "Json")


def _reads(openapi: Document) -> Iterator[tuple[str, str]]:
    """Paths as template types, each before the shorter ones that would match it too, and what each answers."""
    found = []
    for path, methods in openapi["paths"].items():
        content = methods.get("get", {}).get("responses", {}).get("200", {}).get("content", {})
        schema = content.get("application/json", {}).get("schema")
        if schema:
            pattern = re.sub(r"\{[^}]+\}", "${string}", path)
            found.append((pattern, _type(schema)))
    for pattern, answer in sorted(found, key=lambda one: (-one[0].count("/"), one[0].count("$"), -len(one[0]))):
        yield f"`{pattern}` | `{pattern}?${{string}}`", answer

"""Types of requests and answers as JSON Schema, in the mapping of perdure/_ground/encoding/json_values.py.

An answer always has every field of its record, and its public properties beside them. A request may leave out what has
a default, and names no field that is unknown. So a record that is in both has two schemas; that of requests ends in
`Given`.
"""

from __future__ import annotations

import inspect
from typing import Any, Literal, TypeAlias, get_args, get_origin, get_type_hints

from msgspec import NODEFAULT
from msgspec import inspect as types

Schema: TypeAlias = dict[str, Any]
Use: TypeAlias = Literal["request", "answer"]
_ROOT = "#/components/schemas/"
_BOUNDS = {"ge": "minimum", "gt": "exclusiveMinimum", "le": "maximum", "lt": "exclusiveMaximum"}
_LENGTHS = {"min_length": "minLength", "max_length": "maxLength"}
_COUNTS = {"min_length": "minItems", "max_length": "maxItems"}


class Schemas:
    """The named schemas of one document. A record is written once for each use, and referred to by its name."""

    def __init__(self, *, both: frozenset[type[Any]] = frozenset()) -> None:
        """`both`: records that requests and answers share."""
        self.components: dict[str, Schema] = {}
        self._names: dict[tuple[Any, Use], str] = {}
        self._both = both

    def of(self, kind: Any, use: Use) -> Schema:
        """The schema of a type, for a request or an answer."""
        return self._node(types.type_info(kind), use)

    def _node(self, node: types.Type, use: Use) -> Schema:
        match node:
            case types.Metadata():
                return {**self._node(node.type, use), **(node.extra_json_schema or {})}
            case types.StructType() | types.DataclassType():
                return {"$ref": _ROOT + self._record(node, use)}
            case types.UnionType():
                return _any_of([self._node(one, use) for one in node.types])
            case types.ListType() | types.SetType() | types.FrozenSetType() | types.VarTupleType():
                return {"type": "array", "items": self._node(node.item_type, use), **_kept(node, _COUNTS)}
            case types.TupleType():
                items = [self._node(one, use) for one in node.item_types]
                return {"type": "array", "prefixItems": items, "minItems": len(items), "maxItems": len(items)}
            case types.DictType():
                return {"type": "object", "additionalProperties": self._node(node.value_type, use)}
            case _:
                return _plain(node, use)

    def _record(self, node: types.StructType | types.DataclassType, use: Use) -> str:
        name = self._names.get((node.cls, use))
        if name is None:
            name = self._names[node.cls, use] = self._free_name(node.cls, use)
            self.components[name] = {}  # a record may hold records of its own kind
            self.components[name] = self._object(node, use)
        return name

    def _free_name(self, cls: Any, use: Use) -> str:
        name = _name_of(cls) + ("Given" if use == "request" and cls in self._both else "")
        if name in self.components:
            home = str((get_origin(cls) or cls).__module__).rpartition(".")[2]
            name = "".join(word.title() for word in home.split("_")) + name
        if name in self.components:
            raise ValueError(f"two records are called {name}: rename one of them")
        return name

    def _object(self, node: types.StructType | types.DataclassType, use: Use) -> Schema:
        cls = get_origin(node.cls) or node.cls
        made: Schema = {"type": "object"}
        if about := _docstring_of(cls):
            made["description"] = about
        fields = {field.encode_name: self._field(field, use) for field in node.fields}
        required = [field.encode_name for field in node.fields if _is_always_there(field, use)]
        if use == "answer":
            extra = {name: self.of(kind, use) for name, kind in properties_of(cls).items()}
            fields, required = {**fields, **extra}, [*required, *extra]
        made["properties"] = fields
        if required:
            made["required"] = required
        if use == "request":
            made["additionalProperties"] = False
        return made

    def _field(self, field: types.Field, use: Use) -> Schema:
        schema = self._node(field.type, use)
        if use == "request" and isinstance(field.default, str | int | float | bool):
            return {**schema, "default": field.default}
        return schema


def properties_of(cls: type[Any]) -> dict[str, Any]:
    """The public properties of one of our records, which an answer has beside its fields, with their types."""
    if not cls.__module__.startswith("perdure."):
        return {}
    found = {name: what for name, what in vars(cls).items() if isinstance(what, property) and name[0] != "_"}
    return {name: get_type_hints(what.fget).get("return", Any) for name, what in found.items()}


def records_in(kind: Any) -> frozenset[type[Any]]:
    """Every record that a type holds, itself included."""
    found: set[Any] = set()

    def look(node: types.Type) -> None:
        if isinstance(node, types.StructType | types.DataclassType):
            if node.cls in found:
                return
            found.add(node.cls)
            for field in node.fields:
                look(field.type)
        for name in ("type", "item_type", "value_type"):
            if isinstance(inner := getattr(node, name, None), types.Type):
                look(inner)
        for inner in (*getattr(node, "types", ()), *getattr(node, "item_types", ())):
            look(inner)

    look(types.type_info(kind))
    return frozenset(found)


def _plain(node: types.Type, use: Use) -> Schema:
    match node:
        case types.NoneType():
            return {"type": "null"}
        case types.BoolType():
            return {"type": "boolean"}
        case types.IntType():
            return {"type": "integer", **_kept(node, _BOUNDS)}
        case types.FloatType():
            return {"type": "number", **_kept(node, _BOUNDS)}
        case types.StrType():
            pattern = {"pattern": node.pattern} if node.pattern else {}
            return {"type": "string", **_kept(node, _LENGTHS), **pattern}
        case types.BytesType() | types.ByteArrayType() | types.MemoryViewType():
            return {"type": "string", "contentEncoding": "base64"}
        case types.DateTimeType():
            return {"type": "string", "format": "date-time"}
        case types.DateType():
            return {"type": "string", "format": "date"}
        case types.TimeDeltaType() if use == "answer":
            return {"type": "number", "description": "seconds"}
        case types.TimeDeltaType():
            return {"type": "string", "format": "duration"}
        case types.LiteralType():
            return {"enum": sorted(node.values, key=str)}
        case types.EnumType():
            return {"enum": [member.value for member in node.cls]}
        case types.DecimalType() | types.UUIDType() | types.TimeType():
            return {"type": "string"}
        case _:
            return {}


def _any_of(schemas: list[Schema]) -> Schema:
    if {} in schemas:
        return {}
    bare = [one for one in schemas if one.keys() == {"type"} and isinstance(one["type"], str)]
    if len(bare) == len(schemas):
        return {"type": [one["type"] for one in schemas]}
    return {"anyOf": schemas}


def _kept(node: Any, names: dict[str, str]) -> Schema:
    return {told: getattr(node, name) for name, told in names.items() if getattr(node, name) is not None}


def _is_always_there(field: types.Field, use: Use) -> bool:
    if use == "request":
        return field.required
    # What may be unset has neither a default nor a need to be there.
    return field.required or field.default is not NODEFAULT or field.default_factory is not NODEFAULT


def _name_of(cls: Any) -> str:
    arguments = "".join(_name_of(one) for one in get_args(cls))
    return f"{getattr(get_origin(cls) or cls, '__name__', 'Any')}{'Of' + arguments if arguments else ''}"


def _docstring_of(cls: type[Any]) -> str:
    own = cls.__dict__.get("__doc__") or ""
    return "" if own.startswith(f"{cls.__name__}(") else inspect.cleandoc(own)

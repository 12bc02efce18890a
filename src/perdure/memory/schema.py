"""Validate data against a schema: a pydantic model, a msgspec Struct, a dataclass or a TypedDict.

Data arrives bit by bit, so a missing field is allowed. A field of the wrong type is refused, and so is one that the
schema does not have.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import Any, get_type_hints

import msgspec

from perdure.errors import InvalidData, InvalidInput


class Schema:
    """One class, used to validate mappings."""

    def __init__(self, cls: type) -> None:
        self._cls = cls
        self._is_pydantic = hasattr(cls, "model_validate") and hasattr(cls, "model_fields")
        if not self._is_pydantic:
            self._hints, self._required = _fields(cls)

    def check(self, data: Mapping[str, Any]) -> None:
        """Refuse data that does not fit.

        Raises:
            InvalidData: with the field and what is wrong with it.
        """
        if self._is_pydantic:
            self._check_pydantic(data)
            return
        for name, value in data.items():
            if name not in self._hints:
                raise InvalidData(name, f"{self._cls.__name__} has no such field")
            self._convert(value, self._hints[name], name)
        if self._required <= set(data):
            self._convert(dict(data), self._cls, "")

    def _convert(self, value: Any, as_type: Any, name: str) -> None:
        try:
            msgspec.convert(value, as_type)
        except (msgspec.ValidationError, ValueError, TypeError) as error:
            raise InvalidData(name, str(error).splitlines()[0]) from None

    def _check_pydantic(self, data: Mapping[str, Any]) -> None:
        fields: Any = getattr(self._cls, "model_fields")  # noqa: B009 - pydantic is not a dependency
        known = set(fields) | {field.alias for field in fields.values() if field.alias}
        unknown = [name for name in data if name not in known]
        if unknown and getattr(self._cls, "model_config", {}).get("extra") != "allow":
            raise InvalidData(unknown[0], f"{self._cls.__name__} has no such field")
        try:
            getattr(self._cls, "model_validate")(dict(data))  # noqa: B009
        except ValueError as error:
            for one in getattr(error, "errors", list)():
                if not (one["type"] == "missing" and len(one["loc"]) == 1):
                    raise InvalidData(".".join(map(str, one["loc"])), one["msg"]) from None


def _fields(cls: type) -> tuple[dict[str, Any], set[str]]:
    """The fields with their types, and the names of the required ones."""
    if issubclass(cls, msgspec.Struct):
        fields = msgspec.structs.fields(cls)
        return {one.encode_name: one.type for one in fields}, {one.encode_name for one in fields if one.required}
    hints = get_type_hints(cls, include_extras=True)
    if dataclasses.is_dataclass(cls):
        missing = dataclasses.MISSING
        own = dataclasses.fields(cls)
        return hints, {one.name for one in own if one.default is missing and one.default_factory is missing}
    if hasattr(cls, "__required_keys__"):
        return hints, set(cls.__required_keys__)
    raise InvalidInput(
        f"{cls!r} is not a schema", do="give a pydantic model, a msgspec Struct, a dataclass or a TypedDict"
    )

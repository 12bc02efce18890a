"""Values, errors and calls of a SQLite session as lines of JSON carry them."""

from __future__ import annotations

from base64 import b64decode, b64encode
from typing import Any

import apsw

from perdure.keeper.json_text import to_json
from perdure.keeper.session import StatementCall


def columns_of(cursor: apsw.Cursor) -> list[str]:
    try:
        return [column[0] for column in cursor.get_description()]
    except apsw.ExecutionCompleteError:
        return []


def to_plain(value: object) -> Any:
    return {"bytes": b64encode(value).decode()} if isinstance(value, bytes) else value


def _value(plain: object) -> Any:
    return b64decode(plain["bytes"]) if isinstance(plain, dict) else plain


def failure_of(error: apsw.Error) -> dict[str, Any]:
    return {"failed": type(error).__name__, "message": str(error)}


def call_of(asked: dict[str, Any]) -> StatementCall | None:
    told = asked.get("call")
    return None if told is None else StatementCall.of(to_json(told).encode())


def bindings_of(given: Any) -> Any:
    if isinstance(given, dict):
        return {name: _value(value) for name, value in given.items()}
    return [_value(value) for value in given]

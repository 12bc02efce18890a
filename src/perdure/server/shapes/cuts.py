"""Values too long for a list: cut, with their length and a link to the whole.

A list of records is not to weigh megabytes because one agent wrote a long text. A large value can also be looked at
from the top: its outer levels, with the way to each part that is left out.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any
from urllib.parse import quote

from perdure._ground.encoding.json_values import plain
from perdure.server.http import HttpProblem

Json = Any
LONGEST = 64 * 1024  # characters of a text in a list
_BRIEF_TEXT, _BRIEF_ITEMS, _BRIEF_DEPTH = 2000, 100, 3


def cut(value: Any, at: str | None = None) -> Json:
    """The value in JSON's types; a text of more than 64 kB becomes `{"$cut": {"length": …, "at": …}}`."""
    return _cut(plain(value), at)


def _cut(value: Json, at: str | None) -> Json:
    if isinstance(value, str):
        return {"$cut": {"length": len(value), "at": at}} if len(value) > LONGEST else value
    if isinstance(value, dict):
        return {name: _cut(item, at) for name, item in value.items()}
    return [_cut(item, at) for item in value] if isinstance(value, list) else value


def brief(value: Any, link: str, path: tuple[str | int, ...] = ()) -> Json:
    """The outer levels of a value. What is left out is a `$cut` with its kind, its size and the link to it.

    `link` is an address that takes `path`, a JSON list, as its last parameter.
    """
    return _brief(plain(value), link, path, 0)


def _brief(value: Json, link: str, path: tuple[str | int, ...], depth: int) -> Json:
    if isinstance(value, str):
        return value if len(value) <= _BRIEF_TEXT else _left_out("text", len(value), link, path, value[:200])
    if not isinstance(value, dict | list) or not value:
        return value
    if depth >= _BRIEF_DEPTH:
        return _left_out("object" if isinstance(value, dict) else "list", len(value), link, path)
    if isinstance(value, dict):
        shown = list(value.items())[:_BRIEF_ITEMS]
        made = {name: _brief(item, link, (*path, name), depth + 1) for name, item in shown}
        if len(value) > len(shown):
            made["$cut"] = {"kind": "keys", "length": len(value), "at": _link(link, path)}
        return made
    items = [_brief(item, link, (*path, at), depth + 1) for at, item in enumerate(value[:_BRIEF_ITEMS])]
    if len(value) > len(items):
        items.append(_left_out("items", len(value), link, path))
    return items


def _left_out(kind: str, length: int, link: str, path: tuple[str | int, ...], begin: str | None = None) -> Json:
    told: dict[str, Json] = {"kind": kind, "length": length, "at": _link(link, path)}
    if begin is not None:
        told["begin"] = begin
    return {"$cut": told}


def _link(link: str, path: tuple[str | int, ...]) -> str:
    return f"{link}{quote(json.dumps(path, ensure_ascii=False))}"


def read_path(text: str) -> list[str | int]:
    """
    Raises:
        HttpProblem: it is not a JSON list of keys and positions.
    """
    try:
        path = json.loads(text)
    except (ValueError, RecursionError):
        path = None
    if not isinstance(path, list) or len(path) > 200 or not all(type(part) in (str, int) for part in path):
        raise HttpProblem(400, "bad_request", "path is a JSON list of keys and positions", do='send path=["files",16]')
    return path


def without(value: Any, *names: str) -> Mapping[str, Json]:
    """A record as JSON, without these fields: they hold what agents wrote."""
    return {name: item for name, item in plain(value).items() if name not in names}

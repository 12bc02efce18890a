"""Find what a change of the HTTP contract breaks for callers that were written before it.

    python tools/openapi_diff.py                   the last release's contract beside the present one
    python tools/openapi_diff.py OLD.json NEW.json

Broken is: a route that is gone, a status of success that is gone, a field of an answer that is gone or may now be
absent, a field, parameter or header that a request now needs or may no longer have, and a type that a request may no
longer use or that an answer did not use before. Exits with 1 if the newest part of CHANGELOG.md does not name the route
of each, as `POST /v1/tasks`.
"""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

ROOT = Path(__file__).resolve().parents[1]
CONTRACT = "src/perdure/server/openapi.json"
_METHODS = ("get", "post", "put", "patch", "delete")
_ANY = frozenset({"null", "boolean", "integer", "number", "string", "array", "object"})


class Break(NamedTuple):
    """Something that callers could rely on, and no longer can."""

    route: str  # POST /v1/tasks
    what: str

    def __str__(self) -> str:
        return f"{self.route}: {self.what}"


def breaks(old: dict[str, Any], new: dict[str, Any]) -> list[Break]:
    """What the new contract breaks of the old one."""
    return [
        found
        for path, operations in old["paths"].items()
        for method in _METHODS
        if method in operations
        for found in _of_route(f"{method.upper()} {path}", operations[method], _operation(new, path, method), old, new)
    ]


def untold(found: list[Break], changelog: str) -> list[Break]:
    """Those that the newest part of the changelog does not name."""
    newest = changelog.partition("\n## ")[2].partition("\n## ")[0]
    return [one for one in found if f"`{one.route}`" not in newest]


def released_contract() -> dict[str, Any] | None:
    """The contract of the last release that this commit comes after; None before the first one."""
    tag = _git("describe", "--tags", "--abbrev=0", "--match", "v*")
    text = _git("show", f"{tag.strip()}:{CONTRACT}") if tag else ""
    found: dict[str, Any] | None = json.loads(text) if text else None
    return found


def _git(*arguments: str) -> str:
    command = ["git", "-C", str(ROOT), *arguments]
    ran = subprocess.run(command, check=False, capture_output=True, encoding="utf-8")
    return ran.stdout if ran.returncode == 0 else ""


def _operation(document: dict[str, Any], path: str, method: str) -> dict[str, Any] | None:
    found: dict[str, Any] | None = document["paths"].get(path, {}).get(method)
    return found


def _of_route(
    route: str, was: dict[str, Any], now: dict[str, Any] | None, old: dict[str, Any], new: dict[str, Any]
) -> Iterator[Break]:
    if now is None:
        yield Break(route, "it is gone")
        return
    for what in (*_parameters(was, now, old, new), *_body(was, now, old, new), *_answers(was, now, old, new)):
        yield Break(route, what)
    if any(needs not in was["security"] for needs in now["security"]):
        yield Break(route, f"it needs {now['security']}, not {was['security']}")


def _parameters(was: Any, now: Any, old: Any, new: Any) -> Iterator[str]:
    before = {(one["in"], one["name"]): one for one in map(_resolver(old), was.get("parameters", []))}
    after = {(one["in"], one["name"]): one for one in map(_resolver(new), now.get("parameters", []))}
    for key in before.keys() - after.keys():
        yield f"{key[0]} {key[1]!r} is gone"
    for key, one in after.items():
        if one.get("required") and not before.get(key, {}).get("required") and key[0] != "path":
            yield f"{key[0]} {key[1]!r} is needed"
        if key in before:
            yield from _narrower(one["schema"], before[key]["schema"], new, old, f"{key[0]} {key[1]!r}", ())


def _body(was: Any, now: Any, old: Any, new: Any) -> Iterator[str]:
    for media, content in was.get("requestBody", {}).get("content", {}).items():
        present = now.get("requestBody", {}).get("content", {}).get(media)
        if present is None:
            yield f"a body of {media} is refused"
        else:
            yield from _narrower(present.get("schema", {}), content.get("schema", {}), new, old, "the body", ())
    if now.get("requestBody", {}).get("required") and not was.get("requestBody", {}).get("required"):
        yield "a body is needed"


def _answers(was: Any, now: Any, old: Any, new: Any) -> Iterator[str]:
    for status, answer in was["responses"].items():
        if not status.startswith("2"):
            continue
        present = now["responses"].get(status)
        if present is None:
            yield f"it no longer answers {status}"
            continue
        for media, content in answer.get("content", {}).items():
            if media not in present.get("content", {}):
                yield f"{status} is no longer {media}"
                continue
            schema = present["content"][media].get("schema", {})
            yield from _wider(content.get("schema", {}), schema, old, new, f"the answer {status}", ())


def _narrower(now: Any, was: Any, new: Any, old: Any, where: str, seen: tuple[Any, ...]) -> Iterator[str]:
    """What a request could hold before and cannot now."""
    key = (now.get("$ref"), was.get("$ref"))
    now, was = _resolver(new)(now), _resolver(old)(was)
    if key != (None, None) and key in seen:
        return
    seen = (*seen, key)
    if lost := _kinds(was, old) - _kinds(now, new):
        yield f"{where} may no longer be {' or '.join(sorted(lost))}"
    if "enum" in now and (words := {str(v) for v in was.get("enum", ["anything else"])} - set(map(str, now["enum"]))):
        yield f"{where} may no longer be {', '.join(sorted(words))}"
    for name in now.get("required", ()):
        if name not in was.get("required", ()):
            yield f"{where} needs {name!r}"
    for name, schema in was.get("properties", {}).items():
        if name in now.get("properties", {}):
            yield from _narrower(now["properties"][name], schema, new, old, f"{where}.{name}", seen)
        elif now.get("additionalProperties") is False:
            yield f"{where} may no longer have {name!r}"
    if isinstance(was.get("items"), dict) and isinstance(now.get("items"), dict):
        yield from _narrower(now["items"], was["items"], new, old, f"{where}[]", seen)


def _wider(was: Any, now: Any, old: Any, new: Any, where: str, seen: tuple[Any, ...]) -> Iterator[str]:
    """What an answer held before and may now lack, and what it may now be that it was not."""
    key = (now.get("$ref"), was.get("$ref"))
    now, was = _resolver(new)(now), _resolver(old)(was)
    if key != (None, None) and key in seen:
        return
    seen = (*seen, key)
    if gained := _kinds(now, new) - _kinds(was, old):
        yield f"{where} may now be {' or '.join(sorted(gained))}"
    for name, schema in was.get("properties", {}).items():
        if name not in now.get("properties", {}):
            yield f"{where} has no {name!r}"
            continue
        if name in was.get("required", ()) and name not in now.get("required", ()):
            yield f"{where} may lack {name!r}"
        yield from _wider(schema, now["properties"][name], old, new, f"{where}.{name}", seen)
    if isinstance(was.get("items"), dict) and isinstance(now.get("items"), dict):
        yield from _wider(was["items"], now["items"], old, new, f"{where}[]", seen)


def _kinds(schema: Any, document: Any) -> frozenset[str]:
    """The JSON types that a schema allows."""
    schema = _resolver(document)(schema)
    if "anyOf" in schema:
        return frozenset().union(*(_kinds(one, document) for one in schema["anyOf"]))
    if "type" in schema:
        told = schema["type"]
        return frozenset([told] if isinstance(told, str) else told)
    return frozenset({"string"}) if "enum" in schema else _ANY


def _resolver(document: Any) -> Any:
    def resolve(schema: Any) -> Any:
        found = schema
        while "$ref" in found:
            target: Any = document
            for step in found["$ref"].removeprefix("#/").split("/"):
                target = target[step]
            found = target
        return found

    return resolve


def main() -> int:
    if len(sys.argv) == 3:
        old, new = (json.loads(Path(name).read_text(encoding="utf-8")) for name in sys.argv[1:])
    else:
        old, new = released_contract(), json.loads((ROOT / CONTRACT).read_text(encoding="utf-8"))
    found = breaks(old, new) if old is not None else []
    silent = untold(found, (ROOT / "CHANGELOG.md").read_text(encoding="utf-8"))
    for one in found:
        print(f"{'not in CHANGELOG.md' if one in silent else 'told'}: {one}")
    return 1 if silent else 0


if __name__ == "__main__":
    sys.exit(main())

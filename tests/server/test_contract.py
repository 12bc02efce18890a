"""The OpenAPI file and the reference page say what the table of routes says."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from jsonschema_rs import Draft202012Validator, meta
from msgspec import UNSET, Struct, UnsetType

from perdure import Perdure
from perdure._ground.encoding.json_values import plain
from perdure.server.shapes import openapi
from perdure.server.shapes.json_schema import Schemas
from perdure.server.table import Nothing, Route, routes, routes_by_noun
from perdure.types import TaskRecord

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tools"))

import make_openapi  # noqa: E402


def refs_in(value: Any) -> Iterator[str]:
    if isinstance(value, dict):
        if isinstance(value.get("$ref"), str):
            yield value["$ref"]
        for item in value.values():
            yield from refs_in(item)
    elif isinstance(value, list):
        for item in value:
            yield from refs_in(item)


@pytest.mark.parametrize("file", make_openapi.texts(), ids=lambda file: file.name)
def test_what_is_committed_is_what_the_table_makes(file):
    is_same = file.read_text(encoding="utf-8") == make_openapi.texts()[file]
    assert is_same, f"{file.relative_to(ROOT)} is stale: run `.venv/bin/python tools/make_openapi.py` and commit"


def test_every_route_has_one_operation():
    document = openapi.document(routes_by_noun())
    told = {f"{method.upper()} {path}" for path, found in document["paths"].items() for method in found}
    assert told == {route.name for route in routes()}


def test_every_reference_leads_somewhere_and_every_schema_is_used():
    document = openapi.document(routes_by_noun())
    used = set(refs_in(document))
    for ref in used:
        found: Any = document
        for step in ref.removeprefix("#/").split("/"):
            found = found[step]
    unused = {f"#/components/schemas/{name}" for name in document["components"]["schemas"]} - used
    assert unused == set()


def test_every_schema_is_one():
    for schema in openapi.document(routes_by_noun())["components"]["schemas"].values():
        meta.validate({"$schema": "https://json-schema.org/draft/2020-12/schema", **schema})


async def test_the_server_gives_the_file(ask_once):
    answer = await ask_once("GET", "/openapi.json")
    assert answer.status == 200
    assert answer.json == json.loads((ROOT / "src/perdure/server/openapi.json").read_text(encoding="utf-8"))
    again = await ask_once("GET", "/openapi.json", headers={"if-none-match": answer.headers["etag"]})
    assert (again.status, again.body) == (304, b"")


async def test_a_record_fits_its_schema(quick_url):
    async with Perdure(quick_url) as app:
        task = await app.tasks.create("one", state={"a": [1]}, tags={"k": "v"})
        async with task.attempt():
            await task.checkpoint({"a": [1, 2]}, label="two")
        await task.pause("wait", reason="human_input")
        record = await task.record()
    schemas = Schemas()
    schema = {**schemas.of(TaskRecord, "answer"), "components": {"schemas": schemas.components}}
    Draft202012Validator(schema).validate(plain(record))


class Maybe(Struct):
    """A record with a field that may be left out."""

    always: int
    perhaps: str | UnsetType = UNSET


def test_what_is_unset_is_left_out_of_an_answer_and_not_required():
    assert plain(Maybe(1)) == {"always": 1}
    schemas = Schemas()
    schemas.of(Maybe, "answer")
    assert schemas.components["Maybe"]["required"] == ["always"]


async def nothing(_: Any) -> Any:
    raise AssertionError


def test_two_routes_with_the_same_name_are_refused():
    one = Route(method="GET", path="/v1/a/b", handler=nothing, does="One.", who="nobody", query=Nothing)
    other = Route(method="GET", path="/v1/a_b", handler=nothing, does="Another.", who="nobody", query=Nothing)
    with pytest.raises(ValueError, match="get_a_b"):
        openapi.document({"service": (one, other)})

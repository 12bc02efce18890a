"""A change of the contract that breaks callers is found, and has to be told in the changelog."""

from __future__ import annotations

import copy
import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tools"))

import openapi_diff  # noqa: E402

PRESENT = json.loads((ROOT / openapi_diff.CONTRACT).read_text(encoding="utf-8"))
PAUSE = "/v1/tasks/{task}/pause"


def schema(document: Any, name: str) -> Any:
    return document["components"]["schemas"][name]


def without_route(document: Any) -> None:
    del document["paths"][PAUSE]["post"]


def without_field(document: Any) -> None:
    del schema(document, "TaskRecord")["properties"]["uid"]


def perhaps_without_field(document: Any) -> None:
    schema(document, "TaskRecord")["required"].remove("uid")


def needing_a_field(document: Any) -> None:
    schema(document, "NewPause")["required"].append("payload")


def refusing_a_field(document: Any) -> None:
    del schema(document, "NewPause")["properties"]["now"]


def taking_a_narrower_type(document: Any) -> None:
    schema(document, "NewPause")["properties"]["message"] = {"type": "integer"}


def taking_fewer_words(document: Any) -> None:
    schema(document, "NewPause")["properties"]["reason"]["enum"].remove("human_input")


def giving_a_wider_type(document: Any) -> None:
    schema(document, "TaskRecord")["properties"]["uid"] = {"type": ["string", "null"]}


def needing_a_header(document: Any) -> None:
    operation = document["paths"][PAUSE]["post"]
    operation["parameters"].append({"name": "If-Match", "in": "header", "required": True, "schema": {"type": "string"}})


def needing_another_scope(document: Any) -> None:
    document["paths"][PAUSE]["post"]["security"] = [{"key": ["store:admin"]}]


@pytest.mark.parametrize(
    "change, says",
    [
        (without_route, "it is gone"),
        (without_field, "has no 'uid'"),
        (perhaps_without_field, "may lack 'uid'"),
        (needing_a_field, "needs 'payload'"),
        (refusing_a_field, "may no longer have 'now'"),
        (taking_a_narrower_type, "message may no longer be string"),
        (taking_fewer_words, "may no longer be human_input"),
        (giving_a_wider_type, "uid may now be null"),
        (needing_a_header, "'If-Match' is needed"),
        (needing_another_scope, "it needs"),
    ],
)
def test_what_breaks_callers_is_found(change: Callable[[Any], None], says: str) -> None:
    changed = copy.deepcopy(PRESENT)
    change(changed)
    found = [str(one) for one in openapi_diff.breaks(PRESENT, changed)]
    assert any(text.startswith(f"POST {PAUSE}:") and says in text for text in found), found


def test_what_is_added_breaks_no_caller() -> None:
    changed = copy.deepcopy(PRESENT)
    changed["paths"]["/v1/new"] = {"get": changed["paths"][PAUSE]["post"]}
    schema(changed, "TaskRecord")["properties"]["more"] = {"type": "string"}
    schema(changed, "NewPause")["properties"]["more"] = {"type": "string"}
    assert openapi_diff.breaks(PRESENT, changed) == []


def test_a_break_is_told_when_the_newest_part_of_the_changelog_names_its_route() -> None:
    found = [openapi_diff.Break("POST /v1/tasks", "it is gone")]
    told = "# Changelog\n\n## 0.2.0\n\n- `POST /v1/tasks` is now `POST /v1/jobs`.\n\n## 0.1.0\n\nFirst.\n"
    told_before = "# Changelog\n\n## 0.2.0\n\nNothing.\n\n## 0.1.0\n\n- `POST /v1/tasks` is there.\n"
    assert openapi_diff.untold(found, told) == []
    assert openapi_diff.untold(found, told_before) == found


def test_nothing_that_the_last_release_promised_is_broken_in_silence() -> None:
    released = openapi_diff.released_contract() or PRESENT  # before the first release nothing can be broken
    changelog = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
    assert openapi_diff.untold(openapi_diff.breaks(released, PRESENT), changelog) == []

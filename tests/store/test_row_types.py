"""A query's columns are the fields of its row type, by name and in order, on every engine."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

import perdure._store
from perdure._store.rows import ROWS
from tests.store.kit import UIDS, Hand

STORE = Path(perdure._store.__file__).parent


def columns(engine: str, query: str) -> list[str]:
    """The names of the columns that a query selects."""
    folder = STORE / engine / "queries"
    text = (folder / f"{query}.sql").read_text()
    text = re.sub(r"--> (\w+)", lambda found: (folder / f"_{found[1]}.sql").read_text(), text)
    text = re.sub(r"--[^\n]*", "", text)
    text = re.sub(r"\([^()]*\)", "", re.sub(r"\([^()]*\)", "", text))  # a subquery's own columns are not of the row
    selected = re.search(r"\bSELECT\b(.*?)\bFROM\b", text, re.DOTALL)
    assert selected is not None
    return [re.split(r"[\s.]+", column.strip())[-1].strip('"') for column in selected[1].split(",")]


@pytest.mark.parametrize("engine", ["sqlite", "postgres"])
@pytest.mark.parametrize("query", ROWS)
def test_the_columns_of_a_query_are_the_fields_of_its_row(engine: str, query: str) -> None:
    assert tuple(columns(engine, query)) == ROWS[query]._fields


def test_every_engine_answers_with_as_many_columns_as_its_row_has(hand: Hand) -> None:
    hand.create(UIDS[0])
    asked = {"namespace": "main", "id": "alpha", "uid": UIDS[0], "after": 0, "limit": 10}
    for query in ("get_task", "get_task_by_uid", "get_history", "read_events"):
        (row,) = hand.engine.query(query, asked)
        assert len(row) == len(ROWS[query]._fields), query
    for query in ("get_call", "read_pauses", "read_signals", "read_attempts", "read_workers", "read_switches"):
        assert all(len(row) == len(ROWS[query]._fields) for row in hand.engine.query(query, asked)), query

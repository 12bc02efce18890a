"""The PostgreSQL that tests run on is real, durable, and each test's own."""

from __future__ import annotations

import psycopg
import pytest


@pytest.mark.parametrize("turn", [1, 2])
def test_each_test_has_an_empty_database(postgres_url: str, turn: int) -> None:
    with psycopg.connect(postgres_url) as connection:
        connection.execute("CREATE TABLE kept (turn integer)")
        connection.execute("INSERT INTO kept VALUES (%s)", [turn])
        assert connection.execute("SELECT turn FROM kept").fetchall() == [(turn,)]


def test_what_is_committed_reaches_the_disk(postgres_url: str) -> None:
    with psycopg.connect(postgres_url) as connection:
        settings = [connection.execute(f"SHOW {name}").fetchone() for name in ("fsync", "synchronous_commit")]
    assert settings == [("on",), ("on",)]

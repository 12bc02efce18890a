"""Loops and streams of plain functions, by the names of `perdure.sync`."""

from __future__ import annotations

import contextlib
import sqlite3
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from perdure.errors import InvalidInput
from perdure.sync import Perdure, Retry, durable, loops, step, stream


@pytest.mark.req("R60")
@pytest.mark.parametrize("cursor", ["target", "whole", "journal"])
def test_a_script_runs_on_the_thread_its_connection_was_made_on(tmp_path: Path, cursor: Any) -> None:
    tries: list[int] = []

    @step(retry=Retry(2, wait=timedelta(0)))
    def filling() -> int:
        with contextlib.closing(sqlite3.connect(tmp_path / "user.db")) as connection:
            done = loops.run_script(connection, "CREATE TABLE t (n); INSERT INTO t VALUES (1)", cursor=cursor)
            tries.append(done)
            if len(tries) == 1:
                raise ValueError("after the script")
            return len(connection.execute("SELECT n FROM t").fetchall())

    @durable
    def work() -> int:
        return filling()

    with Perdure(tmp_path / "p.db") as app:
        assert app.run("t", work) == 1
    assert tries == [2, 0]


def test_a_plain_source_that_gives_none_does_not_end_its_stream(tmp_path: Path) -> None:
    def model(_: str) -> Iterator[Any]:
        yield from ("so ", None, "far")

    @durable
    def work() -> str:
        return "".join(stream("answer", model))

    with Perdure(tmp_path / "p.db") as app, pytest.raises(InvalidInput, match="gave NoneType, not str"):
        app.run("t", work)

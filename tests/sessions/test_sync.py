"""Blocking code has the same sessions: the same names without await."""

from __future__ import annotations

import os
import signal
import threading
from pathlib import Path
from typing import Any

import psycopg
import pytest

from perdure._runtime.sessions.session_processes import ask
from perdure.sync import Perdure, durable, pause, runtime, step
from tests.runtime.kit import Place, until
from tests.sessions.acts import IDENTITY


def rows(url: str) -> list[int]:
    with psycopg.connect(url, autocommit=True) as connection:
        return [x for (x,) in connection.execute("SELECT x FROM t ORDER BY x")]


@pytest.mark.req("R79")
def test_blocking_code_goes_on_in_the_same_transaction(place: Place, url: str, tmp_path: Path) -> None:
    with Perdure(place.url) as app:
        app.tasks.open("work", state={})
        rt = app.runtime("work")
        con = rt.postgres("main", url, hold="10m").connect()
        con.execute("INSERT INTO t VALUES (1)")
        before = con.execute(IDENTITY).fetchone()
        books = rt.sqlite("books", tmp_path / "books.db")
        books.execute("CREATE TABLE b (x)")
        books.execute("BEGIN")
        books.execute("INSERT INTO b VALUES (1)")
        rt.save()
    with Perdure(place.url) as app:
        rt = app.runtime("work")
        back = rt.restore()
        assert back.report.lost == [] and back.resume().id == "work"
        db = rt.postgres("main", url, hold="10m")
        assert (db.level, rows(url)) == ("kept", [])
        with db.connect() as con:
            assert con.execute(IDENTITY).fetchone() == before
            with con.cursor() as cursor:
                cursor.execute("SELECT x FROM t")
                assert list(cursor) == [(1,)]
        assert rows(url) == [1]
        books = rt.sqlite("books", tmp_path / "books.db")
        assert books.in_transaction and books.fetch("SELECT x FROM b") == [(1,)]
        books.execute("COMMIT")
        with books.transaction():
            books.execute("INSERT INTO b VALUES (2)")
        assert books.fetch("SELECT count(*) FROM b") == [(2,)]


@step(identity=lambda con, x: x)
def insert(con: Any, x: int) -> int:
    con.execute("INSERT INTO t VALUES (%s)", (x,))
    return int(con.execute("SELECT txid_current()").fetchone()[0])


@durable(name="sessions.plain")
def plain(url: str) -> list[int]:
    con = runtime.open().postgres("main", url, hold="10m").connect()
    with con.transaction():
        first = insert(con, 1)
        pause.input("more?", str)
        second = insert(con, 2)
    con.close()
    return [first, second]


@pytest.mark.req("R79")
def test_a_plain_function_pauses_inside_its_transaction_and_goes_on_in_it(place: Place, url: str) -> None:
    with Perdure(place.url) as app:
        results: list[list[int]] = []
        working = threading.Thread(target=lambda: results.append(app.run("plain", plain, url)))
        working.start()
        until(lambda: (found := app.tasks.get("plain")) and found.status == "paused")
        assert rows(url) == []
        app.tasks.handle("plain").answer("yes", by="ada")
        working.join()
        [(first, second)] = results
    assert first == second
    assert rows(url) == [1, 2]


@pytest.mark.req("R79")
def test_a_plain_function_goes_on_when_its_proxy_is_killed(place: Place, url: str) -> None:
    kills: list[int] = []

    def kill_proxy(folder: Path) -> None:
        state = ask(folder, {"ask": "state"})
        assert state is not None
        kills.append(1)
        os.kill(state["proxy"], signal.SIGKILL)

    @durable(name="sessions.plain-broken")
    def broken(url: str) -> int:
        session = runtime.open().postgres("main", url, hold="10m")
        con = session.connect()
        with con.transaction():
            insert(con, 1)
            if not kills:
                kill_proxy(session.folder)
            insert(con, 2)
            con.execute("INSERT INTO t VALUES (3)")
        return 3

    with Perdure(place.url) as app:
        assert app.run("broken", broken, url) == 3
    assert rows(url) == [1, 2, 3]

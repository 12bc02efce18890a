"""The process of a session ends after it was found and before it is used: opening finds the next one."""

from __future__ import annotations

import shutil
import tempfile
import threading
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import apsw
import pytest

from perdure._runtime.sessions import postgres
from perdure._runtime.sessions.session_processes import SessionPlace
from perdure._runtime.sessions.sqlite import open_sqlite
from perdure.keeper.pgproxy import control_socket
from perdure.keeper.sqlite_holder import __main__ as sqliteholder
from tests.sessions.kit import HOLD, Stage, be_holder, be_proxy
from tests.support.processes import Link, Nursery, die


@pytest.fixture
def file(tmp_path: Path) -> Path:
    connection = apsw.Connection(str(tmp_path / "user.db"))
    connection.execute("CREATE TABLE t (x)")
    connection.close()
    return tmp_path / "user.db"


@pytest.fixture
def sqlite_stage(children: Nursery) -> Iterator[Stage]:
    folder = Path(tempfile.mkdtemp(prefix="pds-"))
    with Stage(children, folder, "") as made:
        yield made
    shutil.rmtree(folder, ignore_errors=True)


def place_of(stage: Stage, first: Callable[..., None], later: Callable[..., None]) -> SessionPlace:
    """Where the first process of a session is one of these, and each later start lets the first one go on."""

    def launch(_program: str, config: dict[str, Any], _folder: Path) -> dict[str, Any]:
        if stage.proxies:
            with suppress(BrokenPipeError):  # it has ended, or ends just now
                stage.proxies[0].tell()
        stage.proxies.append(stage.children.start(later if stage.proxies else first, config))
        answer: dict[str, Any] = stage.proxies[-1].heard()
        return answer

    return SessionPlace(stage.folder, stage.parking, launch)


# ── SQLite ───────────────────────────────────────────────────────────────────────────────────────


def be_slow_to_end(link: Link, config: dict[str, Any]) -> None:
    """A holder that has said that it ends, and goes on until it is told to."""
    kill = sqliteholder.os.kill

    def end_when_told(pid: int, number: int) -> None:
        link.recv()
        kill(pid, number)

    sqliteholder.os.kill = lambda *how: threading.Thread(target=end_when_told, args=how, daemon=True).start()
    be_holder(link, config)


async def test_a_holder_that_has_been_ended_is_not_found_again(sqlite_stage: Stage, file: Path) -> None:
    place = place_of(sqlite_stage, be_slow_to_end, be_holder)
    session = await open_sqlite(place, "main", file)
    await session.end()
    session = await open_sqlite(place, "main", file)
    await session.execute("INSERT INTO t VALUES (1)")
    assert len(sqlite_stage.proxies) > 1 and session.level == "kept"


async def test_a_holder_whose_file_is_gone_and_that_is_slow_to_end_is_told_as_lost(
    sqlite_stage: Stage, file: Path
) -> None:
    place = place_of(sqlite_stage, be_slow_to_end, be_holder)
    session = await open_sqlite(place, "main", file)
    await session.execute("BEGIN IMMEDIATE")
    file.rename(file.with_suffix(".moved"))
    session = await open_sqlite(place, "main", file)
    assert session.level == "lost" and "was moved or deleted" in session.verdict.reason
    assert (await session.fetch("SELECT count(*) FROM sqlite_schema")) == [(0,)]


def be_dead_at_the_second_client(link: Link, config: dict[str, Any]) -> None:
    attach = sqliteholder.Holder.attach

    def attached(self: Any, link: Any) -> int:
        return die() if self.epoch else attach(self, link)

    sqliteholder.Holder.attach = attached  # type: ignore[method-assign]
    be_holder(link, config)


@pytest.mark.req("R79", "R89")
async def test_a_holder_that_dies_when_a_client_comes_is_replaced_and_its_death_told(
    sqlite_stage: Stage, file: Path
) -> None:
    place = place_of(sqlite_stage, be_dead_at_the_second_client, be_holder)
    session = await open_sqlite(place, "main", file)
    await session.execute("BEGIN IMMEDIATE")
    await session.execute("INSERT INTO t VALUES (1)")
    session = await open_sqlite(place, "main", file)
    assert session.level == "lost" and not session.in_transaction
    assert await session.fetch("SELECT x FROM t") == []


async def test_a_client_that_came_later_is_left_alone(sqlite_stage: Stage, file: Path) -> None:
    place = sqlite_stage.place
    session, later = await open_sqlite(place, "main", file), await open_sqlite(place, "main", file)
    assert session._has_holder_ended() is False
    await later.execute("INSERT INTO t VALUES (1)")


# ── PostgreSQL ───────────────────────────────────────────────────────────────────────────────────


def be_dead_when_held_again(link: Link, config: dict[str, Any]) -> None:
    """A proxy that dies once a second client has found it."""
    do = control_socket.Control._do

    def done(self: Any, link: Any, asked: dict[str, Any]) -> None:
        if asked["ask"] == "hold":
            die()
        do(self, link, asked)

    control_socket.Control._do = done  # type: ignore[method-assign]
    be_proxy(link, config)


@pytest.mark.req("R79", "R89")
async def test_a_proxy_that_dies_once_it_was_found_leaves_the_transaction_to_the_next(stage: Stage) -> None:
    place = place_of(stage, be_dead_when_held_again, be_proxy)
    session = await postgres.open_postgres(place, "main", stage.url, hold=HOLD)
    con = await session.connect()
    await con.execute("CREATE TABLE t (x int)")
    again = await postgres.open_postgres(place, "main", stage.url, hold=HOLD)
    assert len(stage.proxies) == 2
    assert again.level == "kept" and again.backend_pid == session.backend_pid, again.verdict

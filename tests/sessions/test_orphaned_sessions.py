"""What is called lost is gone, and what has outlived its keeper is found: seen from outside."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import apsw
import psycopg
import pytest

from perdure._ground.clock import MovableClock
from perdure._runtime.sessions.session_processes import ask
from tests.runtime.kit import Place, is_alive, until
from tests.runtime.test_run import CLI, environment
from tests.sessions.acts import IDENTITY, one


@pytest.fixture
def eyes(url: str) -> Iterator[psycopg.Connection]:
    with psycopg.connect(url, autocommit=True) as connection:
        yield connection


def is_served(eyes: psycopg.Connection, pid: int) -> bool:
    return eyes.execute("SELECT 1 FROM pg_stat_activity WHERE pid = %s", (pid,)).fetchone() is not None


def proxy_of(session: object) -> int:
    found = ask(session.folder, {"ask": "state"})  # type: ignore[attr-defined]
    return int((found or {}).get("proxy") or (found or {}).get("holder") or 0)


@pytest.mark.req("R79", "R89")
@pytest.mark.parametrize("milliseconds", [0, 4, 8, 12, 16, 20, 30, 40])
async def test_a_keeper_that_dies_just_after_a_proxy_leaves_no_backend_behind(
    place: Place, url: str, eyes: psycopg.Connection, milliseconds: int
) -> None:
    async with place.runtime() as rt:
        session = await rt.postgres("main", url, hold="10m")
        con = await session.connect()
        await con.execute("INSERT INTO t VALUES (1)")
        before = await one(con, IDENTITY)
        keeper, proxy = place.keeper, proxy_of(session)
        con.pgconn.finish()
        os.kill(proxy, signal.SIGKILL)
        end = time.perf_counter() + milliseconds / 1000
        while time.perf_counter() < end:
            pass
        os.kill(keeper, signal.SIGKILL)
        until(lambda: place.keeper != keeper)

        session = await rt.postgres("main", url, hold="10m")
        if session.level == "lost":
            assert not is_served(eyes, before[0])
        else:
            con = await session.connect()
            assert await one(con, IDENTITY) == before
            await con.close()
        await session.end()
        until(lambda: not is_served(eyes, before[0]))


@pytest.mark.parametrize("is_opened", [True, False], ids=["opened again", "left alone"])
async def test_a_proxys_end_that_a_dead_keeper_had_only_noted_is_no_end_of_its_session(
    place: Place, url: str, eyes: psycopg.Connection, is_opened: bool
) -> None:
    async with place.runtime() as rt:
        session = await rt.postgres("main", url, hold="10m")
        con = await session.connect()
        before = await one(con, IDENTITY)
        await con.execute("INSERT INTO t VALUES (1)")
        keeper, proxy = place.keeper, proxy_of(session)
        con.pgconn.finish()
        os.kill(keeper, signal.SIGSTOP)
        os.kill(proxy, signal.SIGKILL)
        [record] = place.home.glob("units/*/unit.json")
        record.write_text(json.dumps({**json.loads(record.read_text()), "ended": 9, "ended_at": time.time()}))
        os.kill(keeper, signal.SIGKILL)
        until(lambda: place.keeper != keeper)
        if not is_opened:
            until(lambda: (proxy_of(session) or proxy) != proxy)
            return
        session = await rt.postgres("main", url, hold="10m")
        assert session.level == "kept"
        con = await session.connect()
        assert await one(con, IDENTITY) == before
        await con.commit()
        await con.close()
    assert eyes.execute("SELECT count(*) FROM t").fetchone() == (1,)


async def test_the_next_unit_of_a_session_finds_what_the_one_before_has_parked(
    place: Place, url: str, eyes: psycopg.Connection
) -> None:
    async with place.runtime() as rt:
        session = await rt.postgres("main", url, hold="10m")
        con = await session.connect()
        before = await one(con, IDENTITY)
        keeper, proxy = place.keeper, proxy_of(session)
        con.pgconn.finish()
        os.kill(keeper, signal.SIGSTOP)
        os.kill(proxy, signal.SIGKILL)
        [record] = place.home.glob("units/*/unit.json")
        facts = json.loads(record.read_text())
        facts |= {"ended": 9, "ended_at": time.time(), "facts": {**facts["facts"], "is_over": True}}
        record.write_text(json.dumps(facts))
        os.kill(keeper, signal.SIGKILL)
        until(lambda: place.keeper != keeper)
        session = await rt.postgres("main", url, hold="10m")
        con = await session.connect()
        assert await one(con, IDENTITY) == before
        await con.close()
        assert len(list(place.home.glob("units/*/unit.json"))) == 2


async def test_a_proxy_that_keeps_dying_lets_its_connection_go(
    place: Place, url: str, eyes: psycopg.Connection
) -> None:
    async with place.runtime() as rt:
        session = await rt.postgres("main", url, hold="10m")
        con = await session.connect()
        await con.execute("INSERT INTO t VALUES (1)")
        pid = con.info.backend_pid
        con.pgconn.finish()
        dead = {0}

        def kill_the_next() -> bool:
            unit = place.ask("units")["units"][0]
            if unit["ended"] is None and unit["pid"] not in dead:
                dead.add(unit["pid"])
                os.kill(unit["pid"], signal.SIGKILL)
            return unit["ended"] is not None

        until(kill_the_next)
        until(lambda: not is_served(eyes, pid))
        assert (await rt.postgres("main", url, hold="10m")).level == "lost"


@pytest.mark.parametrize("engine", ["postgres", "sqlite"])
async def test_a_session_whose_anchor_died_is_listed_kept_and_stopped_with_the_units(
    place: Place, url: str, eyes: psycopg.Connection, tmp_path: Path, engine: str
) -> None:
    apsw.Connection(str(tmp_path / "user.db")).execute("CREATE TABLE t (x)")
    async with place.runtime() as rt:
        if engine == "postgres":
            session = await rt.postgres("main", url, hold="10m")
            con = await session.connect()
            await con.execute("INSERT INTO t VALUES (1)")
            pid = con.info.backend_pid
            con.pgconn.finish()
        else:
            held = await rt.sqlite("main", tmp_path / "user.db")
            await held.execute("BEGIN IMMEDIATE")
            session, pid = held, 0  # type: ignore[assignment]
    process = proxy_of(session)
    place.kill_anchor()
    assert is_alive(process)
    listed = subprocess.run([*CLI, "units", "--json"], env=environment(place), capture_output=True, check=True)
    assert [(unit["pid"], unit["is_alive"]) for unit in json.loads(listed.stdout)["items"]] == [(process, True)]
    place.kill_anchor()
    said = subprocess.run([*CLI, "keep", "stop", "--units"], env=environment(place), capture_output=True, check=True)
    assert b"was stopped" in said.stdout
    until(lambda: not is_alive(process))
    until(lambda: not is_served(eyes, pid))


async def test_the_hold_limit_runs_in_a_proxy_whose_anchor_has_died(
    place: Place, url: str, eyes: psycopg.Connection, clock: MovableClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PERDURE_TEST_CLOCK", str(clock.path))
    async with place.runtime() as rt:
        session = await rt.postgres("main", url, hold="10m")
        con = await session.connect()
        await con.execute("INSERT INTO t VALUES (1)")
        con.pgconn.finish()
    place.kill_anchor()
    ours = "state = 'idle in transaction' AND datname = current_database()"
    idle = f"SELECT count(*) FROM pg_stat_activity WHERE {ours}".encode()
    assert eyes.execute(idle).fetchone() == (1,)
    clock.advance(seconds=601)
    until(lambda: eyes.execute(idle).fetchone() == (0,))
    assert place.keeper  # the next one has taken the proxy up, and ends it

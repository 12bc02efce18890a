"""A COMMIT whose answer is lost, and a server that restarts, crashes or is not the same any more."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psycopg
import pytest
from psycopg.conninfo import make_conninfo

from perdure._runtime.sessions.postgres import PostgresSession, open_postgres
from tests.runtime.kit import Place, is_alive, until
from tests.sessions.acts import send_and_die
from tests.sessions.cluster import Cluster
from tests.sessions.kit import Stage
from tests.sessions.test_lost_commits import Gate, kill_all
from tests.sessions.test_servers import _follow
from tests.sessions.test_with_keeper import proxy_of
from tests.support.proxy import Proxy, proxy_to


@pytest.fixture
def way(cluster: Cluster) -> Iterator[Proxy]:
    look(cluster, "DROP TABLE IF EXISTS t; CREATE TABLE t (x int); GRANT ALL ON t TO PUBLIC")
    with proxy_to(cluster.admin()) as made:
        yield made


def look(cluster: Cluster, sql: str) -> Any:
    with psycopg.connect(cluster.admin(), autocommit=True) as connection:
        cursor = connection.execute(sql.encode())
        return cursor.fetchone()[0] if cursor.description else None  # type: ignore[index]


def answers(cluster: Cluster) -> bool:
    try:
        return bool(look(cluster, "SELECT NOT pg_is_in_recovery()"))
    except psycopg.OperationalError:
        return False


async def opened(stage: Stage, url: str) -> PostgresSession:
    return await open_postgres(stage.place, "main", url, hold="10m", rebuild="auto")


@pytest.mark.parametrize("restart", [signal.SIGINT, signal.SIGQUIT], ids=["shut down", "crashed"])
@pytest.mark.parametrize("moment", ["before", "after"])
async def test_a_server_that_was_restarted_since(
    stage: Stage, cluster: Cluster, way: Proxy, moment: Any, restart: signal.Signals
) -> None:
    """After a crash the number may be another transaction's: that it was committed is not believed then."""
    session = await opened(stage, way.url)
    con = await session.connect()
    await con.execute("INSERT INTO t VALUES (1)")
    way.cut_next_commit(moment)
    with pytest.raises(psycopg.OperationalError):
        await con.commit()
    await con.close()
    cluster.stop(restart)
    cluster.start()
    until(lambda: answers(cluster))

    session = await opened(stage, way.url)
    rows = look(cluster, "SELECT count(*) FROM t")
    assert rows == (1 if moment == "after" else 0)
    assert session.last_outcome is not None
    state = "undone" if not rows else "uncertain" if restart == signal.SIGQUIT else "done"
    assert session.last_outcome.state == state
    await session.commit()
    assert look(cluster, "SELECT count(*) FROM t") == 1
    await session.end()


async def test_another_server_cannot_tell(stage: Stage, cluster: Cluster, way: Proxy) -> None:
    session = await opened(stage, way.url)
    con = await session.connect()
    await con.execute("INSERT INTO t VALUES (1)")
    way.cut_next_commit("after")
    with pytest.raises(psycopg.OperationalError):
        await con.commit()
    await con.close()
    standby = cluster.standby()
    try:
        _follow(cluster, standby)
        standby.promote()
        until(lambda: answers(standby))
        way._server = psycopg.conninfo.conninfo_to_dict(standby.admin())
        session = await opened(stage, way.url)
        assert session.last_outcome is not None and session.last_outcome.state == "uncertain"
        assert "another has taken over" in session.verdict.for_model("main")
        await session.end()
    finally:
        standby.remove()


GATED = """
CREATE TABLE gated (x int);
GRANT ALL ON gated TO PUBLIC;
CREATE FUNCTION wait_for_the_gate() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN PERFORM pg_advisory_xact_lock(7); RETURN NULL; END $$;
CREATE CONSTRAINT TRIGGER slow AFTER INSERT ON gated DEFERRABLE INITIALLY DEFERRED
FOR EACH ROW EXECUTE FUNCTION wait_for_the_gate();
"""


@pytest.mark.parametrize(
    "commit, told",
    [
        ("COMMIT", "was committed, says the server"),
        ("COMMIT AND CHAIN", "was committed, says the server"),
        ("PREPARE TRANSACTION 'transfer'", "it is prepared"),
    ],
)
async def test_a_user_without_rights_is_told_too(stage: Stage, cluster: Cluster, commit: str, told: str) -> None:
    look(cluster, "DROP TABLE IF EXISTS gated; DROP FUNCTION IF EXISTS wait_for_the_gate" + ";" + GATED)
    url = make_conninfo(**cluster.url("app"))
    gate = Gate(cluster.admin())
    await opened(stage, url)
    stage.url = url
    client = stage.client(send_and_die, "INSERT INTO gated VALUES (1)", commit)
    client.heard()
    client.wait()
    until(gate.has_one_waiting)
    kill_all(stage)
    gate.open()

    session = await opened(stage, url)
    assert told in session.verdict.for_model("main")
    if "PREPARE" in commit:
        assert look(cluster, "SELECT count(*) FROM gated") == 0
        look(cluster, "COMMIT PREPARED 'transfer'")
    assert look(cluster, "SELECT count(*) FROM gated") == 1
    await session.end()


@pytest.mark.req("R79")
@pytest.mark.parametrize("rebuild", ["never", "auto"])
async def test_agent_proxy_keeper_and_anchor_die_during_a_commit(
    cluster: Cluster, tmp_path: Path, rebuild: Any
) -> None:
    look(cluster, "DROP TABLE IF EXISTS gated; DROP FUNCTION IF EXISTS wait_for_the_gate" + ";" + GATED)
    url, place, gate = make_conninfo(**cluster.url("app")), Place(tmp_path / "perdure.db"), Gate(cluster.admin())
    try:
        async with place.runtime() as rt:
            session = await rt.postgres("main", url, hold="10m", rebuild=rebuild)
            con = await session.connect()
            await con.execute("INSERT INTO gated VALUES (1)")
            con.pgconn.send_query(b"COMMIT")
            while con.pgconn.flush():
                pass
            until(gate.has_one_waiting)
            proxy, pid = proxy_of(session), session.backend_pid
            place.kill_anchor()

            os.kill(proxy, signal.SIGKILL)
            until(lambda: not is_alive(proxy))
            con.pgconn.finish()
        gate.open()
        async with place.runtime() as rt:
            session = await rt.postgres("main", url, hold="10m", rebuild=rebuild)
            assert "was committed, says the server" in session.verdict.for_model("main")
            assert look(cluster, f"SELECT count(*) FROM pg_stat_activity WHERE pid = {pid}") == 0
            await session.commit()
            await session.end()
    finally:
        place.clear()
    assert look(cluster, "SELECT count(*) FROM gated") == 1

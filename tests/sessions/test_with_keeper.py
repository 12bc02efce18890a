"""Sessions of a task's runtime: their processes are the keeper's, and are started again when they die."""

from __future__ import annotations

import asyncio
import contextlib
import os
import shutil
import signal
import socket
import threading
from pathlib import Path

import psycopg
import psycopg.conninfo
import pytest

from perdure._runtime.sessions.session_processes import ask
from perdure.errors import SessionUnavailable
from tests.runtime.kit import Place, until
from tests.sessions.acts import IDENTITY, one


def proxy_of(session: object) -> int:
    found = ask(session.folder, {"ask": "state"})  # type: ignore[attr-defined]
    return found["proxy"] if found else 0


@pytest.mark.req("R79")
async def test_the_same_transaction_after_the_death_of_agent_proxy_and_keeper(place: Place, url: str) -> None:
    async with place.runtime() as rt:
        session = await rt.postgres("main", url, hold="10m")
        assert session.level == "kept"
        con = await session.connect()
        await con.execute("INSERT INTO t VALUES (1)")
        before = await one(con, IDENTITY)
        first = proxy_of(session)

        os.kill(first, signal.SIGKILL)
        con.pgconn.finish()
        con = await session.connect()
        assert await one(con, IDENTITY) == before
        second = proxy_of(session)
        assert second != first

        place.kill_keeper()
        assert await one(con, IDENTITY) == before
        os.kill(second, signal.SIGKILL)
        con.pgconn.finish()

    async with place.runtime() as rt:
        session = await rt.postgres("main", url, hold="10m")
        assert (session.level, "the transaction is open" in session.verdict.same) == ("kept", True)
        con = await session.connect()
        assert await one(con, IDENTITY) == before
        await con.commit()
        await con.close()
        assert [unit.name for unit in await rt.units()] == ["postgres:main"]


async def test_a_stray_sigterm_loses_nothing(place: Place, url: str) -> None:
    async with place.runtime() as rt:
        session = await rt.postgres("main", url, hold="10m")
        con = await session.connect()
        before = await one(con, IDENTITY)
        os.kill(proxy_of(session), signal.SIGTERM)
        con.pgconn.finish()
        con = await session.connect()
        assert await one(con, IDENTITY) == before
        await con.close()


async def test_keeper_and_proxy_die_together(place: Place, url: str) -> None:
    async with place.runtime() as rt:
        session = await rt.postgres("main", url, hold="10m")
        con = await session.connect()
        before = await one(con, IDENTITY)
        keeper = place.keeper
        os.kill(keeper, signal.SIGKILL)
        os.kill(proxy_of(session), signal.SIGKILL)
        con.pgconn.finish()
        con = await session.connect()
        assert await one(con, IDENTITY) == before
        await con.close()


async def test_a_session_whose_folder_is_removed_while_its_process_is_dead_is_kept(place: Place, url: str) -> None:
    async with place.runtime() as rt:
        session = await rt.postgres("main", url, hold="10m")
        con = await session.connect()
        await con.execute("INSERT INTO t VALUES (1)")
        before = await one(con, IDENTITY)
        keeper, first = place.keeper, proxy_of(session)
        os.kill(keeper, signal.SIGSTOP)  # so that it starts no other process before the folder is gone
        os.kill(first, signal.SIGKILL)
        shutil.rmtree(session.folder)
        os.kill(keeper, signal.SIGCONT)
        con.pgconn.finish()
        door = session.folder / "control"
        until(lambda: door.exists() or place.ask("units")["units"][0]["ended"] is not None)

        session = await rt.postgres("main", url, hold="10m")
        assert (session.level, "the transaction is open" in session.verdict.same) == ("kept", True)
        con = await session.connect()
        assert await one(con, IDENTITY) == before
        await con.close()


async def test_what_the_server_ended_is_lost_and_a_new_session_begins(place: Place, url: str) -> None:
    async with place.runtime() as rt:
        session = await rt.postgres("main", url, hold="10m")
        with psycopg.connect(url, autocommit=True) as other:
            other.execute("SELECT pg_terminate_backend(%s)", (session.backend_pid,))
        until(lambda: ask(session.folder, {"ask": "state"})["gone"])  # type: ignore[index]
        session = await rt.postgres("main", url, hold="10m")
        assert session.level == "lost"
        assert "administrator" in session.verdict.reason
        con = await session.connect()
        assert await one(con, "SELECT 1") == (1,)
        await con.close()


async def test_a_refused_login_is_told_and_can_be_tried_again(place: Place, url: str) -> None:
    async with place.runtime() as rt:
        for _ in range(2):
            with pytest.raises(SessionUnavailable, match="does not exist"):
                await rt.postgres("main", url.replace("/t_", "/no_"), hold="10m")
        session = await rt.postgres("main", url, hold="10m")
        assert session.level == "kept"


async def test_ending_a_session_ends_its_backend_and_its_process(place: Place, url: str) -> None:
    async with place.runtime() as rt:
        session = await rt.postgres("main", url, hold="10m")
        pid = session.backend_pid
        await session.end()
        until(lambda: all(unit.record.ended == 0 for unit in place_units(place)))
        with psycopg.connect(url, autocommit=True) as other:
            until(lambda: other.execute("SELECT 1 FROM pg_stat_activity WHERE pid = %s", (pid,)).fetchone() is None)
        again = await rt.postgres("main", url, hold="10m")
        assert again.backend_pid != pid
        assert again.level == "kept"  # nothing is lost that was ended on purpose


def place_units(place: Place) -> list[object]:
    from perdure._runtime.keeper_client.unit_record import Record

    told = place.ask("units")["units"]
    return [type("Shown", (), {"record": Record.read(one)}) for one in told]


async def test_no_credential_is_written_down(place: Place, url: str) -> None:
    secret = "swordfish-9f2c"
    async with place.runtime() as rt:
        await rt.postgres("main", f"{url}&password={secret}", hold="10m")
        live = Path(place.socket).parent
        files = [file for folder in (place.home, live) for file in folder.rglob("*") if file.is_file()]
        assert len(files) > 3
        assert [file for file in files if secret.encode() in file.read_bytes()] == []


async def test_a_session_that_was_being_made_when_its_keeper_died_is_told_as_what_it_is(place: Place, url: str) -> None:
    """Its process goes on logging in; the next keeper hears what it says at its start."""
    real = psycopg.conninfo.conninfo_to_dict(url)
    with socket.create_server(("127.0.0.1", 0)) as gate:
        through = f"host=127.0.0.1 port={gate.getsockname()[1]} user={real['user']} dbname={real['dbname']}"
        async with place.runtime() as rt:
            opening = asyncio.create_task(rt.postgres("main", f"{through} sslmode=disable", hold="10m"))
            arrived, _ = await asyncio.to_thread(gate.accept)  # it is about to log in
            place.kill_keeper()
            with socket.socket(socket.AF_UNIX) as server, arrived:
                server.connect(f"{real['host']}/.s.PGSQL.{real.get('port', 5432)}")
                pumps = [threading.Thread(target=pump, args=pair) for pair in ((arrived, server), (server, arrived))]
                for one in pumps:
                    one.start()
                session = await opening
                assert (session.level, session.verdict.reason) == ("kept", "new; nothing was kept before")
                await session.end()
                for one in pumps:
                    one.join()


def pump(source: socket.socket, target: socket.socket) -> None:
    with contextlib.suppress(OSError):
        while data := source.recv(65536):
            target.sendall(data)
        target.shutdown(socket.SHUT_WR)


async def test_a_sqlite_session_whose_process_and_notes_are_gone_is_not_called_kept(
    place: Place, tmp_path: Path
) -> None:
    def holder() -> int:
        return int(place.ask("units")["units"][0]["pid"])

    async with place.runtime() as rt:
        session = await rt.sqlite("books", tmp_path / "books.db")
        await session.execute("CREATE TABLE books (title)")
        await session.execute("BEGIN")
        await session.execute("INSERT INTO books VALUES ('Walden')")
        first = holder()
        shutil.rmtree(session.folder)
        session.folder.mkdir(mode=0o700)
        os.kill(first, signal.SIGKILL)
        until(lambda: holder() != first)
        again = await rt.sqlite("books", tmp_path / "books.db")
        assert again.level == "lost" and "not known" in again.verdict.reason
        assert await again.fetch("SELECT * FROM books") == []

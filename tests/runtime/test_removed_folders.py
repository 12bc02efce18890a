"""The keeper's folders are removed while it lives: units stay reachable or are told as lost, and none runs twice."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import subprocess
from pathlib import Path
from typing import Any

import psycopg
import pytest

from perdure._runtime.context import context as contexts
from perdure._runtime.keeper_client import client
from perdure._runtime.sessions.session_processes import ask as session_state
from perdure.runtime import port
from tests.runtime.kit import Place, is_alive, until
from tests.runtime.test_requests import Target
from tests.runtime.test_run import CLI, environment
from tests.runtime.test_services import SERVER, ask, serving
from tests.support.folders import remove_tree
from tests.support.ports import free_port
from tests.support.waiting import look_again

ENV = {"HOME": "/", "PS1": "$ "}


def running(*words: str) -> list[int]:
    """The processes whose command line has all of these, as the system lists them."""
    found = []
    for process in Path("/proc").glob("[0-9]*"):
        try:
            command = (process / "cmdline").read_bytes()
        except OSError:
            continue
        if all(os.fsencode(word) in command for word in words) and is_alive(int(process.name)):
            found.append(int(process.name))
    return found


def remove(place: Place, what: str) -> None:
    client.client_for(place.home).close()
    _remove_folders(place, what)


def _remove_folders(place: Place, what: str) -> None:
    live = Path(place.socket).parent
    if what in ("home", "both"):
        remove_tree(place.home)
    if what in ("live", "both"):
        remove_tree(live)


@pytest.mark.req("R82", "R83")
@pytest.mark.parametrize("what", ["live", "home", "both"])
async def test_units_stay_reachable_when_the_keeper_s_folders_are_removed(place: Place, what: str) -> None:
    number = free_port()
    async with place.runtime() as rt:
        web = await rt.service("web", serving(number), ready=port(number))
        shell = await rt.shell("main", env=ENV)
        await shell.run("X=42")
        first, pid, keeper, anchor = ask(number), web.pid, place.keeper, place.anchor
    remove(place, what)

    async with place.runtime() as rt:
        again = await rt.service("web", serving(number), ready=port(number))
        assert (again.level, again.pid, ask(number)) == ("kept", pid, first)
        shell = await rt.shell("main", env=ENV)
        assert (shell.level, (await shell.run("echo $X")).output) == ("kept", "42\n")
        assert "listening" in (await again.read()).text
        assert (place.keeper, place.anchor) == (keeper, anchor)
    assert running("anchor.py", f'"home": "{place.home}"') == [anchor]
    assert running(str(SERVER), str(number)) == [pid]
    place.kill_keeper()  # the records are there again
    async with place.runtime() as rt:
        again = await rt.service("web", serving(number), ready=port(number))
        assert (again.level, again.pid, ask(number)) == ("kept", pid, first)
        assert "listening" in (await again.read()).text


@pytest.mark.req("R83")
async def test_a_keeper_whose_home_was_removed_is_found_by_the_command_line(place: Place) -> None:
    async with place.runtime() as rt:
        await rt.service("web", ["sleep", "1000"])
    remove(place, "home")
    shown = subprocess.run([*CLI, "units"], env=environment(place), capture_output=True, text=True, check=True)
    assert "web" in shown.stdout
    done = subprocess.run([*CLI, "keep", "stop", "--units"], env=environment(place), capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    until(lambda: running("anchor.py", f'"home": "{place.home}"') == [])


@pytest.mark.req("R82", "R83")
@pytest.mark.parametrize("is_killed", ["", "keeper", "anchor"])
async def test_a_store_that_was_removed_and_made_again_starts_no_second_service(place: Place, is_killed: str) -> None:
    number = free_port()
    async with place.runtime() as rt:
        web = await rt.service("web", serving(number), ready=port(number))
        first, keeper = ask(number), place.keeper
    client.client_for(place.home).close()
    remove_tree(place.home.parent)
    if is_killed == "keeper":
        os.kill(keeper, signal.SIGKILL)
    elif is_killed == "anchor":
        [anchor] = running("anchor.py", f'"home": "{place.home}"')
        os.kill(keeper, signal.SIGSTOP)
        os.kill(anchor, signal.SIGKILL)
        os.kill(keeper, signal.SIGKILL)
        until(lambda: not is_alive(keeper) and not is_alive(anchor))
        assert ask(number) == first

    contexts.forget_contexts()
    async with place.runtime() as rt:  # another store, another task of the same id
        again = await rt.service("web", serving(number), ready=port(number))
        assert running(str(SERVER), str(number)) == [again.pid] != [web.pid]
        assert ask(number) != first
        if is_killed != "keeper":
            assert again.level == "rebuilt" and str(web.pid) in again.verdict.reason


@pytest.mark.req("R79", "R83")
@pytest.mark.parametrize("what", ["live", "home", "both"])
async def test_sessions_stay_in_their_transactions_when_the_folders_are_removed(
    place: Place, tmp_path: Path, postgres_url: str, what: str
) -> None:
    with psycopg.connect(postgres_url, autocommit=True) as connection:
        connection.execute("CREATE TABLE t (x int)")
    async with place.runtime() as rt:
        session = await rt.postgres("pg", postgres_url, hold="10m")
        con = await session.connect()
        await con.execute("INSERT INTO t VALUES (1)")
        before = await (await con.execute("SELECT count(*), pg_backend_pid() FROM t")).fetchone()
        await con.close()
        local = await rt.sqlite("lite", tmp_path / "own.db")
        await local.execute("CREATE TABLE t (x)")
        await local.execute("BEGIN IMMEDIATE")
        await local.execute("INSERT INTO t VALUES (1)")
    remove(place, what)

    async with place.runtime() as rt:
        session = await rt.postgres("pg", postgres_url, hold="10m")
        assert session.level == "kept"
        con = await session.connect()
        found = await (await con.execute("SELECT count(*), pg_backend_pid() FROM t")).fetchone()
        assert found == before
        await con.commit()
        await con.close()
        with psycopg.connect(postgres_url) as other:
            assert other.execute("SELECT count(*) FROM t").fetchone() == (1,)
        local = await rt.sqlite("lite", tmp_path / "own.db")
        assert local.level == "kept"
        assert (await local.execute("SELECT count(*) FROM t")).rows == [(1,)]
        await local.execute("COMMIT")


@pytest.mark.req("R82", "R83")
@pytest.mark.parametrize("is_alive_agent", [True, False], ids=["the same agent", "the next agent"])
@pytest.mark.parametrize("what", ["live", "home", "both"])
async def test_what_is_under_way_while_the_folders_are_removed_is_answered(
    place: Place, tmp_path: Path, what: str, is_alive_agent: bool
) -> None:
    """A command, and a request whose answer has come half."""
    gate, began, target = tmp_path / "gate", tmp_path / "began", Target()
    os.mkfifo(gate)
    command = f"echo once >> {began}; read line < {gate}; echo heard $line"

    async def ask_for_both(rt: Any) -> list[asyncio.Task[Any]]:
        shell = await rt.shell("main", env=ENV)
        request = await rt.request("llm", "POST", target.url, json={})
        await request.head()
        return [asyncio.create_task(act) for act in (shell.run(command, key="slow"), request.read())]

    async with place.runtime() as rt:
        asking, reading = await ask_for_both(rt)
        while not began.exists():
            await look_again()
        _remove_folders(place, what)
        if not is_alive_agent:
            for task in (asking, reading):
                task.cancel()
            client.client_for(place.home).close()
    async with place.runtime() as rt:
        if not is_alive_agent:
            asking, reading = await ask_for_both(rt)
        target.go.set()
        assert await reading == b"first second"
        await asyncio.to_thread(gate.write_text, "you\n")
        result = await asking
        assert (result.exit_code, result.output, result.gap) == (0, "heard you\n", 0)
        assert (began.read_text(), len(target.asked)) == ("once\n", 1)
    target.server.shutdown()
    target.server.server_close()


@pytest.mark.req("R79", "R83")
async def test_sessions_of_a_removed_store_end_also_when_their_anchor_was_killed(
    place: Place, tmp_path: Path, postgres_url: str
) -> None:
    async with place.runtime() as rt:
        holder = await rt.sqlite("lite", tmp_path / "own.db")
        await holder.execute("BEGIN IMMEDIATE")
        proxy = await rt.postgres("pg", postgres_url, hold="10m")
        states = [session_state(unit.folder, {"ask": "state"}) or {} for unit in (holder, proxy)]
        pids = [states[0]["holder"], states[1]["proxy"]]
    place.kill_anchor()
    client.client_for(place.home).close()
    remove_tree(place.home.parent)
    assert all(map(is_alive, pids))

    contexts.forget_contexts()
    async with place.runtime() as rt:
        await rt.shell("main", env=ENV)
        until(lambda: not any(map(is_alive, pids)))


@pytest.mark.req("R79", "R83")
async def test_a_session_whose_first_words_were_lost_with_the_anchor_is_reached_again(
    place: Place, tmp_path: Path
) -> None:
    async with place.runtime() as rt:
        session = await rt.sqlite("lite", tmp_path / "own.db")
        await session.execute("BEGIN IMMEDIATE")
        await session.close()
        live = Path(place.socket).parent
    place.kill_anchor()
    client.client_for(place.home).close()
    [record] = place.home.glob("units/*/unit.json")
    told = json.loads(record.read_text())
    del told["facts"]["is_ready"]
    record.write_text(json.dumps(told))
    remove_tree(live)

    contexts.forget_contexts()
    async with place.runtime() as rt:
        again = await rt.sqlite("lite", tmp_path / "own.db")
        assert (again.level, again.in_transaction) == ("kept", True)

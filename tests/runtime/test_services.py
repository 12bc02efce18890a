"""Services outlive the agent and the keeper; there are never two of one."""

from __future__ import annotations

import asyncio
import os
import shutil
import signal
import socket
import sys
import urllib.request
from datetime import timedelta
from pathlib import Path

import pytest

from perdure.errors import Conflict, TimedOut, UnitEnded
from perdure.runtime import http, log_line, port
from tests.runtime.kit import Place, is_alive, until
from tests.support.ports import free_port

SERVER = Path(__file__).with_name("devserver.py")


def ask(number: int) -> str:
    with urllib.request.urlopen(f"http://127.0.0.1:{number}/id", timeout=120) as answer:
        return str(answer.read().decode())


def serving(number: int, *more: str) -> list[str]:
    return [sys.executable, str(SERVER), str(number), *more]


NODE = """
const id = require("crypto").randomUUID();
require("http").createServer((_, answer) => answer.end(id)).listen(Number(process.argv[1]), "127.0.0.1");
"""


@pytest.mark.skipif(shutil.which("node") is None, reason="there is no node here")
async def test_a_node_server_keeps_its_process_and_answers_while_nobody_is_there(place: Place) -> None:
    number, node = free_port(), shutil.which("node") or ""
    async with place.runtime() as rt:
        web = await rt.service("web", [node, "-e", NODE, str(number)], ready=port(number))
        first, pid = ask(number), web.pid
    place.kill_keeper()
    assert ask(number) == first
    async with place.runtime() as rt:
        again = await rt.service("web", [node, "-e", NODE, str(number)], ready=port(number))
        assert (again.pid, again.level, ask(number)) == (pid, "kept", first)


@pytest.mark.req("R82", "R31")
async def test_a_server_is_the_same_process_after_the_agent_and_the_keeper_were_killed(place: Place) -> None:
    number = free_port()
    async with place.runtime() as rt:
        web = await rt.service("web", serving(number), ready=port(number))
        first, pid = ask(number), web.pid
    place.kill_keeper()

    async with place.runtime() as rt:
        again = await rt.service("web", serving(number), ready=port(number))
        assert (again.pid, again.level) == (pid, "kept")
        assert ask(number) == first
        assert "listening" in (await again.read()).text
    place.kill_keeper()
    assert ask(number) == first


@pytest.mark.req("R82", "R89")
async def test_a_server_that_died_is_rebuilt_once_from_its_own_recipe(
    place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    number = free_port()
    async with place.runtime() as rt:
        env = {"APP_MODE": "first"}
        web = await rt.service("web", serving(number), env=env, ready=http(f"http://127.0.0.1:{number}/id"))
        before = ask(number)
        os.kill(web.pid, signal.SIGKILL)
        until(lambda: not is_alive(web.pid))

    monkeypatch.setenv("APP_MODE", "second")
    async with place.runtime() as rt:
        again = await rt.service("web", serving(number), env={"APP_MODE": "second"}, ready=port(number))
        assert again.level == "rebuilt"
        assert ask(number) != before
        assert ask(number).endswith("first"), "made from the environment of the one that asks"
        alive = [unit for unit in await rt.units() if unit.record.is_alive]
        assert len(alive) == 1


@pytest.mark.req("R82")
async def test_a_port_of_another_program_is_left_to_it(place: Place) -> None:
    with socket.socket() as stranger:
        stranger.bind(("127.0.0.1", 0))
        stranger.listen()
        number = stranger.getsockname()[1]
        async with place.runtime() as rt:
            with pytest.raises(Conflict, match="taken"):
                await rt.service("web", serving(number), ready=port(number))
            assert await rt.units() == []


async def test_a_name_is_one_command(place: Place) -> None:
    number = free_port()
    async with place.runtime() as rt:
        await rt.service("web", serving(number), ready=port(number))
        with pytest.raises(Conflict, match="already"):
            await rt.service("web", serving(number, "--other"))


async def test_a_service_that_ends_at_once_says_what_its_log_says(place: Place) -> None:
    async with place.runtime() as rt:
        with pytest.raises(UnitEnded, match="no such luck"):
            await rt.service("web", ["sh", "-c", "echo no such luck; exit 3"], ready=port(free_port()))


async def test_a_service_that_is_never_ready_goes_on_and_is_told_as_such(place: Place) -> None:
    async with place.runtime() as rt:
        with pytest.raises(TimedOut, match="not ready"):
            await rt.service("web", ["sleep", "1000"], ready=log_line("^up$"), timeout=timedelta(milliseconds=200))
        assert [unit.record.is_alive for unit in await rt.units()] == [True]


@pytest.mark.req("R82")
async def test_the_end_of_a_service_is_the_end_of_what_it_forked_twice(place: Place, tmp_path: Path) -> None:
    told = tmp_path / "child"
    script = f"(setsid sh -c 'echo $$ > {told}; exec sleep 1000' &) ; echo up; exec sleep 1000"
    async with place.runtime() as rt:
        web = await rt.service("web", ["sh", "-c", script], ready=log_line("^up$"))
        child = int(until(lambda: told.exists() and told.read_text().strip()))
        assert is_alive(child)
        await web.end()
        until(lambda: not is_alive(child) and not is_alive(web.pid))


async def test_what_was_ended_is_not_found_alive_by_who_opens_it_next(place: Place, tmp_path: Path) -> None:
    last_words = tmp_path / "last words"
    os.mkfifo(last_words)
    slow = ["sh", "-c", f"trap 'read _ < \"{last_words}\"; kill $!; exit' TERM; sleep 1000 & echo up; wait"]
    async with place.runtime() as rt:
        web = await rt.service("web", slow, ready=log_line("^up$"))
        ending = asyncio.ensure_future(web.end())
        said = await asyncio.to_thread(os.open, last_words, os.O_WRONLY)  # it has been asked to end, and lives
        assert is_alive(web.pid) and not ending.done()
        os.close(said)
        await ending
        assert not is_alive(web.pid)
        again = await rt.service("web", slow, ready=log_line("^up$"))
        assert again.pid != web.pid and again.level == "rebuilt" and is_alive(again.pid)


async def test_a_service_is_started_again_after_failures_and_not_for_ever(place: Place, tmp_path: Path) -> None:
    runs = tmp_path / "runs"
    script = f"echo run >> {runs}; test $(wc -l < {runs}) -ge 3 && exec sleep 1000; exit 1"
    async with place.runtime() as rt:
        web = await rt.service("web", ["sh", "-c", script], restart="on-failure")
        until(lambda: runs.exists() and runs.read_text().count("run") == 3)
        state = await web.state()
        assert (state.restarts, state.is_alive) == (2, True)


@pytest.mark.req("R82")
async def test_a_line_of_the_process_before_does_not_make_a_restarted_service_ready(
    place: Place, tmp_path: Path
) -> None:
    runs, go = tmp_path / "runs", tmp_path / "go"
    os.mkfifo(go)
    script = f"echo run >> {runs}; test $(wc -l < {runs}) -gt 1 && cat {go}; echo up; exec sleep 1000"
    is_up = log_line("^up$")
    async with place.runtime() as rt:
        web = await rt.service("web", ["sh", "-c", script], ready=is_up, restart="on-failure")
        os.kill(web.pid, signal.SIGKILL)
        until(lambda: runs.read_text().count("run") == 2)
        assert (await web.state()).restarts == 1 and not await is_up.is_ready(web)
        opening = asyncio.ensure_future(rt.service("web", ["sh", "-c", script], ready=is_up, restart="on-failure"))
        go.write_text("")
        web = await opening
        assert (await web.own_log(), (await web.log()).count("up")) == ("up\n", 2)


async def test_nobody_reading_its_log_does_not_hold_a_service_up(place: Place, tmp_path: Path) -> None:
    done = tmp_path / "done"
    script = f"head -c 40000000 /dev/zero | tr '\\0' x; echo; echo end; touch {done}; exec sleep 1000"
    async with place.runtime() as rt:
        web = await rt.service("web", ["sh", "-c", script], ready=log_line("^end$"))
        assert done.exists() or until(done.exists)
        output = await web.read()
        assert output.offset == 40_000_005
        assert output.gap > 0
        assert output.gap + len(output.text) == output.offset


@pytest.mark.req("R82")
async def test_a_service_whose_anchor_died_is_found_and_never_doubled(place: Place) -> None:
    number = free_port()
    async with place.runtime() as rt:
        web = await rt.service("web", serving(number), ready=port(number))
        first, pid = ask(number), web.pid
        place.kill_anchor()

    async with place.runtime() as rt:
        again = await rt.service("web", serving(number), ready=port(number))
        assert (again.pid, ask(number)) == (pid, first)

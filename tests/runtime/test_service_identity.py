"""A service that was restarted or made anew is told as such, with the process it was and the process it is."""

from __future__ import annotations

import os
import shutil
import signal
import socket
from pathlib import Path

import pytest

from perdure import Perdure
from perdure._runtime import Runtime
from perdure._runtime.bundles.task_bundle import bring_in, export
from perdure._runtime.context import context as contexts
from perdure.keeper.anchor import start_of
from perdure.runtime import port
from tests.runtime.kit import Place, is_alive, until
from tests.runtime.test_files import agent, kill
from tests.runtime.test_services import SERVER, ask, serving
from tests.support.folders import remove_tree
from tests.support.ports import free_port

KEY = "test-key:" + "QUJDREVGR0hJSktMTU5PUFFSU1RVVldYWVphYmNkZWY="


pytestmark = pytest.mark.usefixtures("fresh_process")


@pytest.mark.req("R82", "R89")
async def test_a_service_that_was_restarted_is_not_told_as_kept(place: Place, tmp_path: Path) -> None:
    number = free_port()
    async with place.runtime() as rt:
        web = await rt.service("web", serving(number), ready=port(number), restart="on-failure")
        before, old = ask(number), (web.pid, start_of(web.pid))
        os.kill(web.pid, signal.SIGKILL)
        until(lambda: _answers(number) not in ("", before))
        new = int(ask(number).split()[0])

        [listed] = await rt.units()
        assert listed.level == "rebuilt"
        again = await rt.service("web", serving(number), ready=port(number), restart="on-failure")
        assert (again.level, again.pid) == ("rebuilt", new)
        for pid, start in (old, (new, start_of(new))):
            assert f"process {pid} (start {start})" in again.verdict.reason
        assert "signal 9" in again.verdict.since_you_left[0]
        state = await again.state()
        assert (state.pid, state.start, state.restarts) == (new, start_of(new), 1)

    kill(agent(place, KEPT, str(number), *serving(number)))  # the next attempt finds the process it knows


KEPT = """
async def act(rt, number, *argv):
    from perdure.runtime import port
    web = await rt.service("web", list(argv), ready=port(int(number)), restart="on-failure")
    assert web.level == "kept", web.verdict
"""


def listens(number: int) -> bool:
    return bool(_answers(number))


def _answers(number: int) -> str:
    try:
        return ask(number)
    except OSError:
        return ""


@pytest.mark.req("R82", "R89")
async def test_a_restore_tells_a_service_that_was_restarted_since_the_save(place: Place) -> None:
    number = free_port()
    async with place.runtime() as rt:
        web = await rt.service("web", serving(number), ready=port(number), restart="on-failure")
        await rt.save()
        assert (await rt.plan()).units[-1].level == "kept"
        before = ask(number)
        os.kill(web.pid, signal.SIGKILL)
        until(lambda: _answers(number) not in ("", before))
        assert (await rt.plan()).units[-1].level == "rebuilt"
        back = await rt.restore()
        assert back.report.level("service web") == "rebuilt"
        assert f"process {web.pid} " in back.report.units[-1].verdict.reason


@pytest.mark.req("R82")
async def test_a_service_that_waits_for_its_restart_is_not_started_twice(place: Place, tmp_path: Path) -> None:
    """Opening it starts it at once; the restart that was due must not come beside it."""
    runs, go = tmp_path / "runs", tmp_path / "go"
    async with place.runtime() as rt:
        await rt.service("web", _failing(runs, go), restart="on-failure")
        _waits_for_its_restart(place, runs)
        go.touch()
        again = await rt.service("web", _failing(runs, go), restart="on-failure")
        assert again.level == "rebuilt"
        await _wait_longer_than_its_pause(rt, tmp_path / "others")
        assert [pid for pid in map(int, runs.read_text().split()) if is_alive(pid)] == [again.pid]


def _failing(runs: Path, go: Path) -> list[str]:
    """Fails at once until there is `go`; after the third time the pause before the next one is 0.8 s."""
    return ["sh", "-c", f"echo $$ >> {runs}; test -e {go} && exec sleep 1000; exit 1"]


def _waits_for_its_restart(place: Place, runs: Path) -> None:
    until(lambda: _count(runs) == 3 and place.ask("units")["units"][0]["ended"] is not None)


async def _wait_longer_than_its_pause(rt: Runtime, others: Path) -> None:
    await rt.service("witness", ["sh", "-c", f"echo >> {others}; exit 1"], restart="on-failure")
    until(lambda: _count(others) == 4)  # it has waited for 1.4 s in all


@pytest.mark.req("R82", "R89")
async def test_a_service_that_waits_for_its_restart_is_not_called_lost(place: Place, tmp_path: Path) -> None:
    """A service that was called lost, and may not be rebuilt, came back a moment later."""
    runs, go = tmp_path / "runs", tmp_path / "go"
    async with place.runtime() as rt:
        await rt.service("web", _failing(runs, go), restart="on-failure")
        _waits_for_its_restart(place, runs)
        go.touch()
        again = await rt.service("web", _failing(runs, go), restart="on-failure", rebuild="ask")
        assert (again.level, (await again.state()).restarts) == ("rebuilt", 3)
        assert "it was restarted after a failure" in again.verdict.reason
        await _wait_longer_than_its_pause(rt, tmp_path / "others")
        assert [int(pid) for pid in runs.read_text().split()][3:] == [again.pid] and is_alive(again.pid)


@pytest.mark.req("R82")
@pytest.mark.parametrize("is_replaced", [False, True])
async def test_a_service_that_is_ended_while_it_waits_for_its_restart_stays_ended(
    place: Place, tmp_path: Path, is_replaced: bool
) -> None:
    runs = tmp_path / "runs"
    async with place.runtime() as rt:
        web = await rt.service("web", _failing(runs, tmp_path / "go"), restart="on-failure")
        _waits_for_its_restart(place, runs)
        await web.end()
        if is_replaced:
            place.kill_keeper()
        await _wait_longer_than_its_pause(rt, tmp_path / "others")
        assert _count(runs) == 3


@pytest.mark.req("R82")
async def test_a_restart_that_was_due_when_the_keeper_died_is_made_by_the_next_one(
    place: Place, tmp_path: Path
) -> None:
    runs, go = tmp_path / "runs", tmp_path / "go"
    async with place.runtime() as rt:
        await rt.service("web", _failing(runs, go), restart="on-failure")
        _waits_for_its_restart(place, runs)
        go.touch()
        os.kill(place.keeper, signal.SIGKILL)
        until(lambda: _count(runs) == 4)
        await _wait_longer_than_its_pause(rt, tmp_path / "others")
        assert _count(runs) == 4 and is_alive(int(runs.read_text().split()[3]))


def _count(file: Path) -> int:
    return file.read_text().count("\n") if file.exists() else 0


async def _saved(place_url: str, number: int, root: Path) -> tuple[str, str]:
    root.mkdir(parents=True)
    shutil.copy(SERVER, root / "server.py")
    async with Perdure(place_url, key=KEY) as app:
        await app.tasks.open("work", state={})
        rt = await app.runtime("work")
        rt.context.cwd = root
        argv = [*serving(number)[:1], str(root / "server.py"), str(number)]
        web = await rt.service("web", argv, env={"APP_MODE": "first"}, ready=port(number))
        first = ask(number)
        rt.workspace(root)
        await rt.save()
        return first, web.uid


@pytest.mark.req("R82", "R107", "R109")
async def test_a_service_comes_back_at_another_home_and_host(
    place: Place, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    number, bundle = free_port(), tmp_path / "task.perdure"
    old, new = tmp_path / "home-a", tmp_path / "home-b"
    monkeypatch.setenv("HOME", str(old))
    monkeypatch.setenv("SSH_AUTH_SOCK", "/tmp/agent")
    first, _ = await _saved(place.url, number, old / "desk")
    async with Perdure(place.url, key=KEY) as app:
        await export(app.tasks, "work", bundle, move=True)
    place.clear()
    until(lambda: not listens(number))

    contexts.forget_contexts()
    new.mkdir()
    monkeypatch.setenv("HOME", str(new))
    monkeypatch.setenv("APP_MODE", "second")
    monkeypatch.setattr(socket, "gethostname", lambda: "host-b")
    there = Place(tmp_path / "there" / "perdure.db")
    try:
        async with Perdure(there.url, key=KEY) as app:
            await bring_in(app.tasks, bundle)
            rt = await app.runtime("work")
            back = await rt.restore()
            assert back.report.level("service web") == "rebuilt"
            argv = [*serving(number)[:1], str(new / "desk" / "server.py"), str(number)]
            web = await rt.service("web", argv, ready=port(number))
            pid, _, mode = ask(number).split()
            assert (int(pid), mode) == (web.pid, "first") and ask(number) != first
            environ = Path(f"/proc/{web.pid}/environ").read_bytes().split(b"\0")
            assert f"HOME={new}".encode() in environ and not any(b"SSH_AUTH_SOCK" in one for one in environ)
            assert os.readlink(f"/proc/{web.pid}/cwd") == str(new / "desk")
    finally:
        there.clear()


@pytest.mark.req("R82", "R89")
async def test_a_service_comes_back_when_the_home_of_its_keeper_is_gone(
    place: Place, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    number = free_port()
    first, _ = await _saved(place.url, number, tmp_path / "desk")
    place.clear()
    until(lambda: not listens(number))
    remove_tree(place.home)

    contexts.forget_contexts()
    monkeypatch.setenv("APP_MODE", "second")
    async with Perdure(place.url, key=KEY) as app:
        rt = await app.runtime("work")
        back = await rt.restore()
        assert back.report.level("service web") == "rebuilt"
        until(lambda: listens(number))
        assert ask(number).split()[2] == "first" and ask(number) != first


@pytest.mark.req("R89")
@pytest.mark.parametrize("what", ["folder", "program", "port"])
async def test_a_service_that_cannot_be_started_here_is_lost_and_the_rest_comes_back(
    place: Place, tmp_path: Path, what: str
) -> None:
    number, desk = free_port(), tmp_path / "desk"
    desk.mkdir()
    program = tmp_path / "sleeper"
    program.symlink_to(shutil.which("sleep") or "")
    async with place.runtime() as rt:
        rt.variables["seen"] = 1
        await rt.service("web", [str(program), "1000"] if what == "program" else serving(number), cwd=desk,
                         ready=None if what == "program" else port(number))  # fmt: skip
        await rt.save()
    place.clear()
    until(lambda: not listens(number))
    remove_tree(place.home)
    contexts.forget_contexts()
    with socket.socket() as stranger:
        if what == "port":
            stranger.bind(("127.0.0.1", number))
            stranger.listen()
        elif what == "folder":
            desk.rmdir()
        else:
            program.unlink()
        async with place.runtime() as rt:
            back = await rt.restore()
            assert back.report.level("service web") == "lost"
            assert f"there is no {what}" in back.report.units[-1].verdict.reason or what == "port"
            assert rt.variables == {"seen": 1}


@pytest.mark.req("R89")
async def test_a_service_whose_command_line_has_a_secret_is_not_started_with_stars_in_its_place(place: Place) -> None:
    async with place.runtime() as rt:
        await rt.service("web", ["sh", "-c", "sleep 1000", "--password=hunter2-of-this-test"])
        await rt.save()
    place.clear()
    remove_tree(place.home)
    contexts.forget_contexts()
    async with place.runtime() as rt:
        back = await rt.restore()
        assert back.report.level("service web") == "lost"
        assert "command line has a secret" in back.report.units[-1].verdict.reason

"""What lives on when anchor and keeper are killed is found by the next keeper, and its end is noticed."""

from __future__ import annotations

import os
import signal
import subprocess
from pathlib import Path

import pytest

from perdure import Perdure
from perdure.errors import RequestFailed
from tests.runtime.kit import PATIENCE, Place, until
from tests.runtime.test_requests import Target, target
from tests.runtime.test_run import CLI, environment

__all__ = ["target"]


@pytest.mark.req("R83")
@pytest.mark.parametrize("is_seen", [True, False], ids=["while a keeper lives", "while none does"])
async def test_a_command_that_outlived_its_anchor_ends_its_task(place: Place, tmp_path: Path, is_seen: bool) -> None:
    go = tmp_path / "go"
    os.mkfifo(go)
    command = [*CLI, "run", "work", "--", "sh", "-c", f"echo up; read _ < '{go}'; echo over"]
    running = subprocess.Popen(command, env=environment(place), stdin=subprocess.DEVNULL, stdout=subprocess.PIPE)
    assert running.stdout is not None and running.stdout.readline() == b"up\n"
    pid = next(told["pid"] for told in place.ask("units")["units"] if told["kind"] == "piped")
    if is_seen:
        place.kill_anchor()
        assert place.keeper  # the next one has found it
        go.write_text("\n")
    else:
        os.kill(running.pid, signal.SIGSTOP)  # or it would start the next keeper
        place.kill_anchor()
        os.kill(pid, signal.SIGKILL)
        os.kill(running.pid, signal.SIGCONT)
    said, _ = running.communicate(timeout=PATIENCE)
    assert (said, running.returncode) == (b"over\n" if is_seen else b"", 1)
    [record] = [told for told in place.ask("units")["units"] if told["kind"] == "piped"]
    assert record["ended"] == -1
    async with Perdure(place.url) as app:
        task = await app.tasks.get("work")
        assert task is not None and task.status == "failed" and task.error["kind"] == "interrupted"


@pytest.mark.req("R117")
async def test_an_answer_that_came_when_its_anchor_was_dead_is_whole_and_bought_once(
    place: Place, target: Target
) -> None:
    async with place.runtime() as rt:
        request = await rt.request("llm", "POST", target.url, json={})
        assert (await request.head()).status == 200
    place.kill_anchor()
    assert place.keeper
    target.go.set()
    async with place.runtime() as rt:
        again = await rt.request("llm", "POST", target.url, json={})
        assert await again.read() == b"first second" and len(target.asked) == 1


@pytest.mark.req("R117")
async def test_a_request_that_died_with_its_anchor_is_not_called_alive(place: Place, target: Target) -> None:
    async with place.runtime() as rt:
        request = await rt.request("llm", "POST", target.url, json={})
        assert (await request.head()).status == 200
    place.kill_anchor()
    os.kill(request.record.pid, signal.SIGKILL)
    async with place.runtime() as rt:
        again = await rt.request("llm", "POST", target.url, json={})
        until(lambda: place.ask("units")["units"][0]["ended"] is not None)
        with pytest.raises(RequestFailed):
            await again.read()
        assert len(target.asked) == 1

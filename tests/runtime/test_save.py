"""What the keeper holds is part of a save and of a restore: found where it lives, else made anew or lost."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from perdure import Perdure
from perdure._runtime.context import context as contexts
from perdure._runtime.context.unit_types import UnitType
from perdure._runtime.keeper_client import client
from perdure._runtime.kinds import registry as unit_types
from perdure.errors import RestoreFailed
from perdure.runtime import log_line, port
from tests.runtime.kit import Place, until
from tests.support import ports

SERVER = [sys.executable, "-c", "import http.server,sys; s=http.server.HTTPServer(('127.0.0.1', int(sys.argv[1])), http.server.BaseHTTPRequestHandler); print('up', flush=True); s.serve_forever()"]  # fmt: skip  # noqa: E501


pytestmark = pytest.mark.usefixtures("fresh_process")


def _end_all(place: Place) -> None:
    for told in place.ask("units")["units"]:
        if told["ended"] is None:
            place.ask("end", unit=told["uid"], wait=True)


@pytest.mark.req("R82", "R89", "R96")
async def test_units_that_live_are_kept_and_the_plan_says_so_in_a_fresh_process(place: Place) -> None:
    async with place.runtime() as rt:
        shell = await rt.shell("main")
        await shell.run("export TOK=42")
        web = await rt.service("web", ["sh", "-c", "echo up; exec sleep 1000"], ready=log_line("^up$"))
        cut = await rt.save()
        assert {"shell main", "service web"} <= {unit["name"] for unit in cut.units}
        pids = (shell.record.pid, web.record.pid)
    contexts.forget_contexts()
    async with place.runtime() as rt:
        plan = await rt.plan()
        back = await rt.restore()
        assert (back.report.level("shell main"), back.report.level("service web")) == ("kept", "kept")
        assert [(line.name, line.level) for line in plan.units] == [
            (line.name, line.level) for line in back.report.units
        ]
        again = await rt.shell("main")
        assert (
            again.record.pid,
            (await rt.service("web", ["sh", "-c", "echo up; exec sleep 1000"])).record.pid,
        ) == pids
        assert "42" in (await again.run("echo $TOK")).output


@pytest.mark.req("R82", "R89", "R96")
async def test_a_service_that_is_gone_is_made_anew_once_and_a_shell_that_is_gone_is_lost(
    place: Place, free_port: int
) -> None:
    argv = [*SERVER, str(free_port)]
    async with place.runtime() as rt:
        await rt.shell("main")
        await rt.service("web", argv, ready=port(free_port))
        await rt.save()
    _end_all(place)
    contexts.forget_contexts()
    told = json.loads(_perdure(place, "resume", "--plan", "work", "--json"))
    async with place.runtime() as rt:
        back = await rt.restore()
        assert (back.report.level("service web"), back.report.lost) == ("rebuilt", ["shell main"])
        assert {unit["name"]: unit["verdict"]["level"] for unit in told["units"]} == {
            line.name: line.level for line in back.report.units
        }
        alive = [unit for unit in await rt.units() if unit.record.is_alive]
        assert [(unit.record.kind, unit.name) for unit in alive] == [("service", "web")]
        assert "lost" in back.report.for_model() and "web" in back.report.for_model()
    shown = json.loads(_perdure(place, "show", "work", "--json"))["restored"]
    assert {unit["name"]: unit["verdict"]["level"] for unit in shown["plan"]["units"]}["shell main"] == "lost"
    assert "came back" in _perdure(place, "show", "work")


class Failing(UnitType):
    kind = "failing"

    async def capture(self, live: object, place: object) -> object:
        return {}

    async def restore(self, recipe: object, place: object) -> object:
        raise OSError("it does not come back")


@pytest.mark.req("R90")
async def test_a_service_that_a_failed_restore_has_made_is_gone_again(place: Place, free_port: int) -> None:
    unit_types.register(Failing())
    async with place.runtime() as rt:
        await rt.service("web", [*SERVER, str(free_port)], ready=port(free_port))
        await rt.save()
    _end_all(place)
    contexts.forget_contexts()
    async with place.runtime() as rt:
        # The one that fails comes last, after the service was made anew.
        task = await rt._task()
        from perdure._runtime.restore import save as saves
        from perdure._tasks import carried, carry

        found = await carried(task, saves.PART, cause=saves.CAUSE)
        assert found is not None
        data = found[1]
        data["units"].append({"name": "last", "kind": "failing", "recipe": {}, "after": [], "is_connection": False})
        await carry(task, saves.PART, data, cause=saves.CAUSE, kind="saved")
        with pytest.raises(RestoreFailed, match="does not come back"):
            await rt.restore()
        until(lambda: not any(told["ended"] is None for told in place.ask("units")["units"]))
        assert not _answers(free_port)
    unit_types._types.pop("failing")


async def test_looking_at_a_plan_starts_no_keeper(tmp_path: Path) -> None:
    place = Place(tmp_path / "store" / "perdure.db")
    async with Perdure(place.url) as app:
        task = await app.tasks.open("work", state={})
        rt = await app.runtime(task.id)
        await rt.save()
        await rt.plan()
    assert client.find(place.home) is None


def _perdure(place: Place, *words: str) -> str:
    argv = [sys.executable, "-m", "perdure", *words]
    env = {**os.environ, "PERDURE_URL": place.url}
    done = subprocess.run(argv, capture_output=True, text=True, env=env, check=False, timeout=120)
    assert done.returncode == 0, done.stderr
    return done.stdout


def _answers(number: int) -> bool:
    import socket

    try:
        socket.create_connection(("127.0.0.1", number), timeout=1).close()
    except OSError:
        return False
    return True


@pytest.fixture
def free_port() -> int:
    return ports.free_port()

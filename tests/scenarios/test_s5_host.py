"""S5 on a machine with another name and another home: a process of its own, from the command line alone."""

from __future__ import annotations

import json
import os
import shutil
import socket
import subprocess
import sys
from pathlib import Path
from typing import Any

import msgspec
import pytest

from perdure import Perdure
from perdure._ground.clock import MovableClock
from perdure._ground.secrets import envelope
from perdure._ground.secrets.crypto import KeyRing
from perdure._runtime.bundles import bundle_file
from perdure._runtime.context import context as contexts
from perdure._runtime.restore.continuity import Continuity
from perdure._runtime.restore.save import CAUSE, PART
from perdure._runtime.workspace import manifest as workspace_manifest
from perdure._tasks import carried, carry
from perdure.errors import BundleRefused, CutFailed, InvalidTransition, LeaseLost, RecordDamaged
from tests.scenarios import s5
from tests.support.processes import ROOT, ChildDied, Nursery

pytestmark = pytest.mark.usefixtures("fresh_process")


def named(host: str, *argv: str) -> list[str]:
    """The command on a machine of this name: in a namespace of its own where that is allowed, else by a seam."""
    told = f'hostname {host} && exec "$@"'
    for way in (["unshare", "--uts"], ["unshare", "--user", "--map-root-user", "--uts"]):
        if shutil.which(way[0]) and subprocess.run([*way, "true"], capture_output=True, check=False).returncode == 0:
            return [*way, "sh", "-c", told, "sh", sys.executable, *argv]
    seam = f"import runpy, socket, sys; socket.gethostname = lambda: {host!r}; "
    seam += "sys.argv = sys.argv[1:]; runpy.run_module(sys.argv[0], run_name='__main__', alter_sys=True)"
    return [sys.executable, "-c", seam, *argv[1:]]


def on(host: str, home: Path, *argv: str, **env: str) -> str:
    whole = {**os.environ, "HOME": str(home), "PERDURE_KEY": s5.KEY, "PYTHONPATH": str(ROOT), **env}
    done = subprocess.run(named(host, "-m", *argv), env=whole, capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.mark.req("R56", "R97", "R106", "R107", "R109", "R110", "R119")
async def test_a_task_goes_on_on_a_host_of_another_name_and_the_old_one_is_fenced(
    clock: MovableClock, children: Nursery, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    home_a, home_b, database = tmp_path / "home-a", tmp_path / "home-b", tmp_path / "app.db"
    (home_a / "work").mkdir(parents=True)
    home_b.mkdir()
    (home_a / "work/notes.md").write_text("half done\n")
    database.touch()
    store_a, store_b = f"sqlite://{home_a}/p.db", f"sqlite://{home_b}/p.db"
    env = {"HOME": str(home_a), "APP_TOKEN": "s5-app-token-value", "PERDURE_TEST_CLOCK": str(clock.path)}
    arguments = (str(home_a / "work"), str(database))
    with pytest.raises(ChildDied):
        children.run(s5.host_a, store_a, *arguments, env=env)
    monkeypatch.setenv("HOME", str(home_a))
    async with Perdure(store_a, key=s5.KEY) as app:
        old = await app.tasks.handle("s5")
        await old.frames.push("thought", goal="choose an index", done=["a", "b", "c"], next=["d", "e", "f"])
        bundle = str(tmp_path / "s5.perdure")
        on(socket.gethostname(), home_a, "perdure", "--store", store_a, "export", "s5", bundle, "--move")
        with pytest.raises((LeaseLost, InvalidTransition)):
            await old.checkpoint({"woken": "later"})

    told = json.loads(on("host-b", home_b, "perdure", "--json", "--store", store_b, "import", bundle))
    assert told["host"] == socket.gethostname() and told["is_signed"]
    where = on("host-b", home_b, "perdure", "--store", store_b, "where", "s5")
    assert "back to" in where and "step 4/6" in where
    app_token = {"APP_TOKEN": "the token of host B"}
    found = json.loads(on("host-b", home_b, "tests.scenarios.s5", store_b, *arguments, **app_token))

    assert found["result"] == " ".join(s5.WORDS)
    assert found["generated"] <= 0.41 * len(s5.WORDS) and found["thoughts"] == []
    assert found["marker"] == "RECOVERED_FROM_PARTIAL"
    assert f"on host-b, saved on {socket.gethostname()}" in found["report"]
    assert found["cwd"] == str(home_b / "work")
    assert (home_b / "work/notes.md").read_text() == "half done\n"
    assert found["token"] == "the token of host B"
    for place in (home_a, home_b, Path(bundle)):
        for path in [place] if place.is_file() else [path for path in place.rglob("*") if path.is_file()]:
            data = path.read_bytes()
            assert b"s5-app-token-value" not in data and b"s5-session-token" not in data, path


# ── versions ─────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.req("R94")
@pytest.mark.parametrize("version", [2, 99])
async def test_what_a_newer_perdure_has_saved_is_refused_and_nothing_is_touched(version: int, tmp_path: Path) -> None:
    async with Perdure(f"sqlite://{tmp_path}/p.db") as app:
        task = await app.tasks.open("newer", state={})
        rt = Continuity(app._store, task.id, task.uid)
        rt.env = {"MODE": "old"}
        await rt.save()
        found = await carried(task, PART, cause=CAUSE)
        assert found is not None
        await carry(task, PART, {**found[1], "format": version}, cause=CAUSE, kind="saved")
        contexts.forget_contexts()
        rt = Continuity(app._store, task.id, task.uid)
        before = dict(rt.env)
        with pytest.raises(RecordDamaged, match=f"newer perdure saved it \\({version}\\)"):
            await rt.restore()
        assert rt.env == before


@pytest.mark.req("R94")
@pytest.mark.parametrize("version", [*range(2, 100, 16), 99])
def test_records_cuts_and_bundles_of_a_newer_perdure_are_refused(version: int, tmp_path: Path) -> None:
    sealed = bytearray(envelope.seal(b"x", kind="state", bound_to="t", ring=KeyRing()))
    sealed[0] = version
    with pytest.raises(RecordDamaged, match="newer"):
        envelope.unseal(bytes(sealed), kind="state", bound_to="t", ring=KeyRing())
    manifest: Any = workspace_manifest.Manifest(root="/", entries=[])
    newer = msgspec.structs.replace(manifest, format=version)
    with pytest.raises(CutFailed, match="newer"):
        workspace_manifest.decode(workspace_manifest.encode(newer), "cut")
    bundle = tmp_path / "bundle"
    bundle.write_bytes(b"perdure bundle %d\n" % version + bytes(100))
    with pytest.raises(BundleRefused, match=f"newer perdure made it \\(format {version}\\)"):
        bundle_file.Bundle(bundle, KeyRing())

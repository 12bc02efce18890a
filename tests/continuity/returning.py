"""An agent that saves what it has around it and is killed; another process carries it on."""

from __future__ import annotations

import os
import signal
from pathlib import Path
from typing import Any

from perdure import Perdure, durable, step
from perdure._ground import crash_points as crash
from perdure._runtime import Continuity
from perdure._runtime.context.context import context_of

KEY = "returning:" + "QUJDREVGR0hJSktMTU5PUFFSU1RVVldYWVphYmNkZWY="
_apps: list[Perdure] = []


def around(app: Perdure, uid: str) -> Continuity:
    """What `runtime.open()` gives, without a keeper."""
    from perdure._durable import inside

    here = inside()
    assert here is not None
    context_of(app._store, uid).begin(here.epoch)
    return Continuity(app._store, "work", uid)


@step(flush=True)
async def fill(folder: str) -> str:
    (Path(folder) / "app").mkdir(parents=True)
    (Path(folder) / "app/notes.md").write_text("half done\n")
    return folder


@step(flush=True)
async def use(count: int) -> int:
    app = _apps[0]
    limits = Continuity(app._store, "work", (await app.tasks.handle("work")).uid).rate_limits()
    limits.allow("model", limit=10, seconds=3600)
    return sum(limits.take("model") for _ in range(count))


@step(flush=True)
async def rest() -> None:
    if "RETURNING_DIES" in os.environ:
        os.kill(os.getpid(), signal.SIGKILL)


@durable(name="returning")
async def agent(folder: str) -> dict[str, Any]:
    app = _apps[0]
    await fill(folder)
    rt = around(app, (await app.tasks.handle("work")).uid)
    if not rt.context.units:
        rt.env = {"PATH": os.environ["PATH"], "MODE": os.environ["RETURNING_MODE"]}
    await rt.chdir(folder)
    await rt.chdir("app")
    rt.workspace(folder)
    rt.rate_limits()
    await use(7)
    rt.variables.setdefault("seen", []).append("once")
    await rt.save()
    await rest()
    rt.variables["seen"].append("twice")
    return {
        "mode": rt.env["MODE"],
        "cwd": str(rt.cwd),
        "notes": Path(folder, "app/notes.md").read_text(),
        "left": rt.rate_limits().left("model"),
        "seen": rt.variables["seen"],
    }


async def carry_out(_: Any, url: str, folder: str, elsewhere: str, dies_at: int = 0) -> dict[str, Any]:
    os.chdir(elsewhere)
    if dies_at:
        crash.arm("restore.unit", dies_at)
    async with Perdure(url, key=KEY) as app:
        _apps[:] = [app]
        found: dict[str, Any] = await app.run("work", agent, folder)
        return found

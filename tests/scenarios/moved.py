"""An agent with all it can have around it: a workspace, a service, a shell, a session in a transaction.

    python -m tests.scenarios.moved STORE PORT    begins the task, or goes on with it; says how it stands, as JSON

It waits for an approval in the middle of its transaction. There it is taken to another machine.
"""

from __future__ import annotations

import asyncio
import json
import os
import shutil
import socket
import sys
from pathlib import Path
from typing import Any

from perdure import Perdure, Secret, durable, pause, runtime, step
from perdure.runtime import port
from tests.runtime.test_services import SERVER, ask

KEY = "moved:" + "QUJDREVGR0hJSktMTU5PUFFSU1RVVldYWVphYmNkZWY="
DSN = "MOVED_DSN"


@step(flush=True)
async def fill() -> None:
    desk = Path.home() / "desk"
    (desk / "notes").mkdir(parents=True)
    (desk / "notes" / "plan.md").write_text("half done\n")
    shutil.copy(SERVER, desk / "server.py")


@step
async def where_am_i() -> str:
    return socket.gethostname()


@durable(name="moved")
async def agent(number: int) -> dict[str, Any]:
    began = await where_am_i()
    await fill()
    rt = await runtime.open()
    desk = Path.home() / "desk"
    rt.workspace(desk)
    await rt.chdir(desk)
    web = await rt.service("web", [sys.executable, "server.py", str(number)], ready=port(number))
    shell = await rt.shell("main", rebuild="auto")
    await shell.run("export STAGE=chosen-on-the-first-host")
    await shell.run("cd notes")
    db = await rt.postgres("main", Secret("env", DSN), hold="10m")
    con = await db.connect()
    await rt.save()
    async with con.transaction():
        await con.execute("INSERT INTO rows VALUES (1)")
        await pause.approval("Go on?")
        await con.execute("INSERT INTO rows VALUES (2)")
    if shell.level == "rebuilt":  # what it had in it does not travel; the folder and the files in it do
        await shell.run("export STAGE=chosen-on-the-second-host")
        await shell.run("cd notes")
    said = await shell.run('echo "$STAGE"; pwd; cat plan.md')
    report = await rt.last_report()
    return {
        "began": began,
        "ended": await where_am_i(),
        "said": said.output.split("\n"),
        "opened": {"shell": shell.level, "session": db.level},
        "why": [shell.verdict.reason, db.verdict.reason],
        "restored": {line.name: line.level for line in report.plan.units} if report else {},
        "web": {"answers": int(ask(number).split()[0]) == web.pid, "cwd": os.readlink(f"/proc/{web.pid}/cwd")},
    }


async def main(store: str, number: int) -> None:
    async with Perdure(store, key=KEY) as app:
        record = await app.tasks.get("moved")
        if record is None:
            await app.start("moved", agent, number)
        async with app.worker():
            record = await app.tasks.wait_for("moved", status="paused" if record is None else "completed")
    print(json.dumps({"status": record.status, "result": record.result}))


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1], int(sys.argv[2])))

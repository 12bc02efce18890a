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
# All that a shell can have in it, and how it says so.
FILLS = """export STAGE=chosen; declare -A ages=([ada]=36); greet() { echo "hello $1"; }; alias shout='echo HEY'
umask 027; set -o noclobber; trap 'echo bye' USR1; export DEPLOY_TOKEN=token-of-the-shell; sleep 1000 & disown"""
SAYS = """echo "$STAGE ${ages[ada]} $(greet ada) $(umask) ${DEPLOY_TOKEN-withheld}"
[[ -o noclobber ]] && echo noclobber
alias shout; trap -p USR1; pwd; cat plan.md; hostname; echo "$HOME"; wc -l <deployed"""


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
    await shell.run(f"{FILLS}; cd notes")
    await shell.run("echo x >>deployed", key="deploy")
    db = await rt.postgres("main", Secret("env", DSN), hold="10m")
    con = await db.connect()
    await rt.save()
    async with con.transaction():
        await con.execute("INSERT INTO rows VALUES (1)")
        await pause.approval("Go on?")
        await con.execute("INSERT INTO rows VALUES (2)")
    again = await shell.run("echo x >>deployed", key="deploy")
    said = await shell.run(SAYS)
    report = await rt.last_report()
    return {
        "began": began,
        "ended": await where_am_i(),
        "said": said.output.splitlines(),
        "again": again.exit_code,
        "differs": list(shell.verdict.differs),
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

"""The agent of the story, as anybody would write it: clone, install, a dev server, a shell, a file, a migration.

    python -m perdure.cli.story.agent STAGE.json

It says what it does, one line each, and waits where the stage tells it to: there it is killed. Run again, it goes
on. Nothing in it knows about being killed but the questions of the effects: did this one happen?
"""

from __future__ import annotations

import asyncio
import hashlib
import http.client
import json
import os
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from perdure import DID_NOT_HAPPEN, Happened, Perdure, durable, effect, idempotency_key, port, runtime, step

DEV_SERVER = str(Path(__file__).with_name("devserver.py"))
STATEMENTS = 10
# The statement after which it waits to be killed; 0: nowhere.
WAIT_AFTER = int(os.environ.get("STORY_WAIT_AFTER", "0"))
PROMPT = 'read -s -p "[sudo] password: " X; echo got:$TOK'


@dataclass
class Stage:
    """Where the story plays."""

    folder: str
    store: str
    port: int
    world: str
    dsn: str
    task: str = "migrate-prod"

    @property
    def path(self) -> Path:
        return Path(self.folder)

    @property
    def big(self) -> Path:
        return self.path / "big.csv"


def say(what: str) -> None:
    print(what, flush=True)


def count(stage: Stage, what: str) -> None:
    with (stage.path / f"{what}.count").open("a") as counter:
        counter.write("x")


def ask(address: str, path: str, body: str, key: str = "") -> str:
    connection = http.client.HTTPConnection(address, timeout=60)
    connection.request("POST", path, body, {"Idempotency-Key": key})
    answer: str = json.loads(connection.getresponse().read())
    connection.close()
    return answer


# ── the work ─────────────────────────────────────────────────────────────────────────────────────


@step
def clone(stage: Stage) -> str:
    target = stage.path / "app"
    shutil.rmtree(target, ignore_errors=True)  # of a try that was cut off
    subprocess.run(["git", "clone", "-q", str(stage.path / "origin.git"), str(target)], check=True)
    count(stage, "clone")
    return "cloned the repository"


@step
def install(stage: Stage) -> str:
    (stage.path / "app" / "deps.ok").write_text("ok")
    count(stage, "install")
    return "installed its dependencies"


@step
async def think(stage: Stage, number: int) -> str:
    return await asyncio.to_thread(ask, stage.world, "/model", str(number))


@effect(keyed=True)
async def announce(stage: Stage, number: int) -> str:
    return await asyncio.to_thread(ask, stage.world, "/act", f"statement {number}", idempotency_key())


@step
async def read_part(part: str, size: int) -> str:
    """The checksum of the next so many bytes of the file that is kept open."""
    file = await (await runtime.open()).file(part, "rb")
    data = await asyncio.to_thread(file.read, size)
    await file.mark()
    return hashlib.sha256(data).hexdigest() + f" {len(data)}"


@durable(name="migrate")
async def migrate(stage: Stage) -> dict[str, Any]:
    say(clone(stage))
    say(install(stage))
    rt = await runtime.open()
    rt.env["APP_MODE"], rt.env["TOK"] = "migrate", "42"
    await rt.chdir(stage.path / "app")

    web = await rt.service("web", [sys.executable, DEV_SERVER, str(stage.port)], ready=port(stage.port))
    say(f"the dev server is {web.level}: process {web.pid} on port {stage.port}")

    shell = await rt.shell("main")
    say(f"the shell is {shell.level}")
    await shell.send(f"export TOK=42; {PROMPT}\n")

    first = await read_part(str(stage.big), stage.big.stat().st_size * 2 // 5)
    say(f"read the first part of big.csv: {first.split()[1]} bytes")
    thoughts = [await think(stage, number) for number in range(3)]
    say(f"asked the model {len(thoughts)} times")

    await migrate_rows(stage, rt)

    rest = await read_part(str(stage.big), -1)
    said = await shell.expect("got:42", timeout=600)
    return {"first": first, "rest": rest, "said": said.strip(), "server": web.pid, "thoughts": thoughts}


async def migrate_rows(stage: Stage, rt: Any) -> None:
    session = await rt.postgres("main", stage.dsn, hold="10m")
    connection = await session.connect()
    say(f"the database session is {session.level}: backend {session.backend_pid}, {session.verdict.reason}")

    async def is_there(number: int) -> Any:
        row = await (await connection.execute("SELECT 1 FROM applied WHERE n = %s", [number])).fetchone()
        return Happened(number) if row else DID_NOT_HAPPEN

    @effect(name="statement", verify=is_there)
    async def statement(number: int) -> int:
        await connection.execute("INSERT INTO applied (n) VALUES (%s)", [number])
        return number

    async with connection.transaction():
        await connection.execute("SET LOCAL work_mem = '5MB'")
        for number in range(1, STATEMENTS + 1):
            await statement(number)
            await announce(stage, number)
            say(f"statement {number} of {STATEMENTS}")
            if number == WAIT_AFTER:
                await asyncio.Event().wait()
    say("committed")


async def main(stage: Stage) -> None:
    async with Perdure(stage.store) as app:
        result = await app.run(stage.task, migrate, stage)
        say(f"result {json.dumps(result)}")


if __name__ == "__main__":
    asyncio.run(main(Stage(**json.loads(Path(sys.argv[1]).read_text()))))

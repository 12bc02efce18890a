"""The agent of the story, as a user would write it: clone, install, a dev server, a shell, a file, a migration.

    python -m perdure.demo.agent STAGE.json

It says what it does, one line each, and waits where the stage tells it to: there it is killed. Run again, it goes
on. Nothing in it knows about being killed but the effect, which tells its receiver a key.
"""

from __future__ import annotations

import asyncio
import hashlib
import http.client
import json
import os
import shutil
import signal
import subprocess
import sys
from contextlib import nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from perdure import Perdure, durable, effect, idempotency_key, progress, runtime, step
from perdure.demo.database import open_database
from perdure.recorded import is_replaying
from perdure.runtime import port

DEV_SERVER = str(Path(__file__).with_name("devserver.py"))
STATEMENTS = 10
# Whether it waits before the last statement, to be killed, or until there is a file `go`.
WAITS = bool(os.environ.get("STORY_WAITS"))
# The statement that is executed, and its process killed before that is on record; 0: none.
DIE_IN = int(os.environ.get("STORY_DIE_IN", "0"))
PROMPT = 'read -s -p "[sudo] password: " X; echo got:$TOK'


@dataclass
class Stage:
    """The places and addresses of the demo."""

    folder: str
    store: str
    port: int
    world: str
    dsn: str
    task: str = "migrate-prod"
    in_transaction: bool = True  # else each statement is committed by itself

    @property
    def path(self) -> Path:
        return Path(self.folder)

    @property
    def go(self) -> Path:
        return self.path / "go"

    @property
    def big(self) -> Path:
        return self.path / "big.csv"


def say(what: str) -> None:
    print(what, flush=True)


def done(what: str) -> None:
    """Say what was done; in a replay nothing of it is done again."""
    say(f"(from the journal: {what})" if is_replaying() else what)


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
async def clone(stage: Stage) -> str:
    target = stage.path / "app"
    shutil.rmtree(target, ignore_errors=True)  # of a try that was cut off
    command = ["git", "clone", "-q", str(stage.path / "origin.git"), str(target)]
    await asyncio.to_thread(subprocess.run, command, check=True)
    count(stage, "clone")
    return "cloned the repository"


@step
def install(stage: Stage) -> str:
    (stage.path / "app" / "deps.ok").write_text("ok", encoding="utf-8")
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


@step(flush=True)
async def rest() -> None:
    """Nothing; but when it has ended, all before it is on disk."""


async def until_told(stage: Stage) -> None:
    """Wait to be killed, or to be told to go on."""
    say("waiting")
    while not stage.go.exists():  # noqa: ASYNC110 - another process makes it
        await asyncio.sleep(0.02)


@durable(name="migrate")
async def migrate(stage: Stage) -> dict[str, Any]:
    done(await clone(stage))
    done(install(stage))
    rt = await runtime.open()
    rt.env["APP_MODE"], rt.env["TOK"] = "migrate", "42"
    await rt.chdir(stage.path / "app")

    web = await rt.service("web", [sys.executable, DEV_SERVER, str(stage.port)], ready=port(stage.port))
    say(f"the dev server is {web.level}: process {web.pid} on port {stage.port}")

    shell = await rt.shell("main", env={"HOME": stage.folder})  # whatever your own .bashrc does, and how slowly
    say(f"the shell is {shell.level}: {shell.verdict.reason}")
    await shell.send(f"export TOK=42; {PROMPT}\n")

    first = await read_part(str(stage.big), stage.big.stat().st_size * 2 // 5)
    done(f"read the first part of big.csv: {first.split()[1]} bytes")
    thoughts = [await think(stage, number) for number in range(3)]
    done(f"asked the model {len(thoughts)} times")

    await migrate_rows(stage, rt)

    rest = await read_part(str(stage.big), -1)
    said = "lost"
    if shell.level != "lost":
        said = (await shell.expect("got:42", timeout=600)).splitlines()[-1].strip()
    around = f"{rt.cwd} {rt.env['APP_MODE']}"
    return {"first": first, "rest": rest, "said": said, "server": web.pid, "thoughts": thoughts, "around": around}


async def migrate_rows(stage: Stage, rt: Any) -> None:
    database = await open_database(rt, stage.dsn, in_transaction=stage.in_transaction)
    say(f"the database session is {database.session.level}: {await database.who()}")

    @step(name="statement")
    async def statement(number: int) -> int:
        await database.insert(number)
        await progress.mark(done=number, total=STATEMENTS)
        if number == DIE_IN:
            os.kill(os.getpid(), signal.SIGKILL)
        return number

    await database.shape()
    async with database.transaction() if stage.in_transaction else nullcontext():
        for number in range(1, STATEMENTS + 1):
            await statement(number)
            await announce(stage, number)
            done(f"statement {number} of {STATEMENTS}")
            if number == STATEMENTS - 1:
                if stage.in_transaction:
                    say(f"inside {await database.inside()}")
                await rest()
                if WAITS:
                    await until_told(stage)
    say("committed")


async def main(stage: Stage) -> None:
    async with Perdure(stage.store) as app:
        result = await app.run(stage.task, migrate, stage)
        say(f"result {json.dumps(result)}")


if __name__ == "__main__":
    asyncio.run(main(Stage(**json.loads(Path(sys.argv[1]).read_text(encoding="utf-8")))))

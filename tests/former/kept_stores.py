"""Write the kept stores, and lay them out for a test.

    python -m tests.former.kept_stores NAME       writes data/NAME.zip with the perdure at hand, for both engines

A PostgreSQL database is kept as its rows. It is laid out by the migrations of its time, which never change once a
version with them is out, and is then opened like any other.
"""

from __future__ import annotations

import asyncio
import io
import json
import os
import sqlite3
import subprocess
import sys
import tempfile
import zipfile
from contextlib import closing
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import psycopg
from psycopg import sql

from perdure import Perdure
from perdure._model import Reason
from perdure.memory import DurableTaskState, Layer, PlanLayer, ThreadMemory
from perdure.types import Config, ToolCall
from tests.former import tour
from tests.support.postgres import fresh_database

DATA = Path(__file__).parent / "data"
NAMES = sorted(path.stem for path in DATA.glob("*.zip"))
KEY = "k-804341e4:AwAV94LPMICW1odj5GSBodwfGvJWPUdgKhE1gwjMVb0="  # seals nothing but the kept stores


# ── writing ──────────────────────────────────────────────────────────────────────────────────────


async def fill(url: str, key: str | None) -> None:
    """Tasks of every status, pauses of every reason, and durable functions half done."""
    tour.make_bank()
    async with Perdure(url, key=key) as app:
        await _tasks(app)
        await _memory(app)
        await (await (await app.start("half", tour.tour, {"name": "first"})).task()).signal("ready", 7)
        half = asyncio.ensure_future(app.run("half", tour.tour, {"name": "first"}))
        lines = asyncio.ensure_future(app.run("lines", tour.lines))
        saves = asyncio.ensure_future(app.run("saves", tour.saves))
        for task in ("half", "lines", "saves"):
            await app.tasks.wait_for(task, status="paused")
        for waits in (half, lines, saves):
            waits.cancel()
        await asyncio.gather(half, lines, saves, return_exceptions=True)
        await app.run("errand", tour.errand, "alone")
        await (await app.schedule("every-day", tour.errand, "by schedule")).every(timedelta(days=1))


async def _tasks(app: Perdure) -> None:
    config = Config(max_retries=1, keep_last=50)
    task = await app.tasks.create("plain", state={"n": 0, "text": "ä" * 2000}, tags={"team": "red"}, config=config)
    async with task.attempt():
        for n in range(1, 6):
            call = ToolCall(id=f"call {n}", tool="search", arguments={"q": n})
            await task.checkpoint({"n": n, "text": "ä" * 2000}, label=f"step {n}", plan=["a", "b"], pending=[call])
        await task.append("log", "one")
        await task.mark_progress("copying", done=3, total=9, cursor={"row": 3})
        await task.frames.push("side", goal="look aside", done=["one"], expires=None)
    far = datetime(2099, 1, 1, tzinfo=UTC)
    reasons: dict[Reason, dict[str, Any]] = {
        "human_approval": {},
        "human_input": {},
        "external_dependency": {"file": "/nowhere/at/all"},
        "scheduled_wait": {"until": far},
        "rate_limit": {"reset_at": far},
        "checkpoint": {},
    }
    for reason, more in reasons.items():
        paused = await app.tasks.create(f"paused-{reason}", state={"why": reason})
        async with paused.attempt():
            await paused.pause(f"because of {reason}", reason=reason, **more)
    done = await app.tasks.create("completed", state=1)
    await done.complete({"result": [1, 2, 3]})
    failed = await app.tasks.create("failed", state=2)
    await failed.fail("it broke")
    cancelled = await app.tasks.create("cancelled", state=3)
    await cancelled.cancel()
    await app.tasks.create("blocked", state=4, depends_on=["plain"])
    branch = await task.fork("forked")
    await branch.checkpoint({"n": "forked"})


async def _memory(app: Perdure) -> None:
    layers: list[Layer] = [DurableTaskState(), PlanLayer(), ThreadMemory("talk")]
    async with app.memory("remembers", layers) as memory:
        await memory.call_tool("write_plan", {"items": ["read", "write"]})
        await memory.call_tool("set_task_data", {"values": {"phase": "reading"}})
        await memory.call_tool("remember", {"key": "name", "value": "Ada"})
        await memory.prompt_blocks(budget=2000)
        await memory.after_turn(depth=0)


def write(url: str, key: str | None, log: Path) -> None:
    """Fill a store by processes of their own, of which the last is killed inside an effect."""
    environment = {**os.environ, "TOUR_LOG": str(log), "TOUR_URL": url, "TOUR_KEY": key or ""}
    for what, code in (("fill", 0), ("die", -9)):
        ended = subprocess.run([sys.executable, "-m", "tests.former.kept_stores", what], env=environment, check=False)
        assert ended.returncode == code, (what, ended.returncode)


def keep(name: str) -> Path:
    path = DATA / f"{name}.zip"
    with tempfile.TemporaryDirectory() as folder, zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as zipped:
        for kind, key in (("sqlite", None), ("sealed", KEY)):
            place = Path(folder, kind)
            place.mkdir()
            write(f"sqlite://{place}/perdure.db", key, place / "log")
            with closing(sqlite3.connect(place / "perdure.db")) as db:
                db.execute("PRAGMA wal_checkpoint(TRUNCATE)")
            for file in ("perdure.db", "bank.db", "log"):
                zipped.write(place / file, f"{kind}/{file}")
        place = Path(folder, "postgres")
        place.mkdir()
        with fresh_database() as url:
            write(url, None, place / "log")
            _dump(url, zipped)
        for file in ("bank.db", "log"):
            zipped.write(place / file, f"postgres/{file}")
    return path


def _dump(url: str, zipped: zipfile.ZipFile) -> None:
    with psycopg.connect(url) as db:
        tables = [name for (name,) in db.execute("SELECT tablename FROM pg_tables WHERE schemaname = 'perdure'")]
        columns: dict[str, list[str]] = {}
        for table in sorted(tables):
            found = db.execute(
                "SELECT column_name FROM information_schema.columns WHERE table_schema = 'perdure' AND table_name = %s"
                " AND is_generated = 'NEVER' ORDER BY ordinal_position",
                (table,),
            )
            columns[table] = [name for (name,) in found]
            with db.cursor().copy(_copy(table, columns[table], "TO STDOUT")) as rows:
                zipped.writestr(f"postgres/{table}.rows", b"".join(bytes(row) for row in rows))
        sequences = db.execute("SELECT sequencename, last_value FROM pg_sequences WHERE schemaname = 'perdure'")
        zipped.writestr("postgres/form.json", json.dumps({"columns": columns, "sequences": dict(sequences.fetchall())}))


# ── laying out ───────────────────────────────────────────────────────────────────────────────────


def written_at(name: str) -> datetime:
    """The moment a kept store was written: what it remembers for a day is there on that day only."""
    with zipfile.ZipFile(DATA / f"{name}.zip") as zipped:
        return max(datetime(*member.date_time, tzinfo=UTC) for member in zipped.infolist())


def lay_out(name: str, kind: str, folder: Path, url: str | None = None) -> tuple[str, str | None]:
    """Put a kept store into a folder, or into the database at `url`; its address and its key."""
    with zipfile.ZipFile(DATA / f"{name}.zip") as zipped:
        files = [member for member in zipped.namelist() if member.startswith(f"{kind}/")]
        for member in files:
            if not member.endswith((".rows", ".json")):
                (folder / Path(member).name).write_bytes(zipped.read(member))
        if kind != "postgres":
            return f"sqlite://{folder}/perdure.db", KEY if kind == "sealed" else None
        assert url is not None
        _load(url, zipped)
        return url, None


def _load(url: str, zipped: zipfile.ZipFile) -> None:
    import perdure._store.postgres as engine

    scripts = Path(engine.__file__).parent / "migrations"
    form = json.loads(zipped.read("postgres/form.json"))
    applied = zipped.read("postgres/migrations.rows").decode().splitlines()
    with psycopg.connect(url) as db:
        db.execute("CREATE SCHEMA perdure")
        db.execute('CREATE TABLE perdure.migrations (name TEXT COLLATE "C" PRIMARY KEY, at BIGINT NOT NULL)')
        for line in sorted(applied):
            db.execute((scripts / f"{line.split(chr(9))[0]}.sql").read_bytes())
        db.execute("SET session_replication_role = replica")
        for table, columns in form["columns"].items():
            db.execute(sql.SQL("DELETE FROM perdure.{}").format(sql.Identifier(table)))
            with db.cursor().copy(_copy(table, columns, "FROM STDIN")) as rows:
                rows.write(io.BytesIO(zipped.read(f"postgres/{table}.rows")).getvalue())
        for sequence, last in form["sequences"].items():
            if last is not None:
                db.execute("SELECT setval(%s, %s)", (f"perdure.{sequence}", last))


def _copy(table: str, columns: list[str], where: str) -> sql.Composed:
    names = sql.SQL(", ").join(map(sql.Identifier, columns))
    return sql.SQL("COPY perdure.{} ({}) {}").format(sql.Identifier(table), names, sql.SQL(where))


if __name__ == "__main__":
    if sys.argv[1] == "fill":
        asyncio.run(fill(os.environ["TOUR_URL"], os.environ["TOUR_KEY"] or None))
    elif sys.argv[1] == "die":
        os.environ["TOUR_DIES"] = "yes"
        app = Perdure(os.environ["TOUR_URL"], key=os.environ["TOUR_KEY"] or None)
        asyncio.run(app.run("cut", tour.cut, "glass"))
    else:
        print(keep(sys.argv[1]))

"""The doctor finds what was spoiled, names it, and says what to do."""

from __future__ import annotations

import json
import logging
import os
import signal
import sys
from contextlib import closing
from datetime import timedelta
from pathlib import Path

import psycopg
import pytest

from perdure import Perdure, durable, pause, step
from perdure._ground import ids
from perdure._ground.clock import MovableClock
from perdure._ground.secrets import crypto
from perdure._store.postgres import engine as postgres_engine
from perdure._tasks import Finding, Policy, collect, examine
from perdure._tasks.upkeep import doctor
from perdure.cli import main
from tests.support.processes import Link, nursery, say
from tests.support.strangers import open_file
from tests.tasks.upkeep_kit import flip_a_byte, run_python, sql, store_of


async def findings(app: Perdure, level: str) -> list[Finding]:
    return [finding for finding in await examine(store_of(app)) if finding.level == level]


@pytest.mark.req("R146")
async def test_a_healthy_store_has_no_problem(url: str) -> None:
    async with Perdure(url) as app:
        task = await app.tasks.open("t", state={})
        await task.checkpoint({"large": bytes(2_000_000)})
        assert await findings(app, "problem") == []
        subjects = {finding.subject for finding in await findings(app, "ok")}
        assert {"extras", "store", "clock", "keys", "checkpoints", "audit", "workers", "chunks"} <= subjects


async def test_a_store_that_was_never_made_is_no_problem_and_is_not_made_now(tmp_path: Path) -> None:
    async with Perdure(tmp_path / "sub" / "p.db") as app:
        assert await findings(app, "problem") == []
        assert not (tmp_path / "sub").exists()


@pytest.mark.req("R146", "R95")
async def test_a_flipped_byte_is_named_with_the_newest_good_checkpoint(shared_url: str) -> None:
    async with Perdure(shared_url) as app:
        task = await app.tasks.open("t", state={})
        for n in range(5):
            await task.checkpoint({"n": n})
        await app.tasks.open("other", state={})
    flip_a_byte(shared_url, task.uid, 5)
    async with Perdure(shared_url) as app:
        (problem,) = await findings(app, "problem")
        assert problem.subject == "task t" and "1 of 6" in problem.what and "5 (" in problem.what
        assert "checkpoint 4" in problem.do


@step
async def double(n: int) -> int:
    return n * 2


@durable(name="doubling, to be spoiled")
async def doubling(n: int) -> int:
    return await double(n) + await pause.input("how many more?", int)


_SPOILED = {
    "{journal}.entry": "entry ",
    "{calls}.arguments": "call ",
    "{pauses}.question": "pause ",
    "{signals}.value": "signal ",
    "{tasks}.pause": "task ",
}


@pytest.mark.req("R146", "R95")
@pytest.mark.parametrize("column", _SPOILED)
async def test_a_flipped_byte_is_found_wherever_it_is(shared_url: str, column: str) -> None:
    async with Perdure(shared_url) as app:
        handle = await app.start("t", doubling, 4)
        async with app.worker():
            await app.tasks.wait_for("t", status="paused")
        await (await handle.task()).signal("more", 5)
        assert await findings(app, "problem") == []
    spoil(shared_url, column)
    async with Perdure(shared_url) as app:
        (problem,) = await findings(app, "problem")
        assert problem.subject == "task t" and problem.what.startswith(_SPOILED[column])
        assert "cannot be read" in problem.what


def spoil(url: str, column: str) -> None:
    table, name = column.split(".")
    ((data,),) = sql(url, f"SELECT {name} FROM {table} WHERE {name} IS NOT NULL LIMIT 1")
    spoiled = bytes(data[:-1]) + bytes([data[-1] ^ 1])
    sql(url, f"UPDATE {table} SET {name} = ? WHERE {name} = ?", spoiled, bytes(data))


@pytest.mark.req("R95", "R3")
@pytest.mark.parametrize("column", ["pause", "progress"])
async def test_a_damaged_pause_or_progress_hides_neither_the_state_nor_the_task(
    shared_url: str, column: str, caplog: pytest.LogCaptureFixture
) -> None:
    async with Perdure(shared_url) as app:
        task = await app.tasks.open("t", state={})
        await task.checkpoint({"n": 1})
        await task.mark_progress("copy", done=1, total=3)
        await task.pause("Ship it?", reason="human_approval")
    spoil(shared_url, f"{{tasks}}.{column}")
    async with Perdure(shared_url) as app:
        record = await app.tasks.get("t")
        assert record is not None and record.state == {"n": 1} and record.damaged == [column]
        assert record.pause is not None and record.pause.reason == "human_approval"
        assert (record.progress is None) == (column == "progress")
        assert "is damaged" in caplog.text
        task = await app.tasks.open("t")
        await task.approve(by="ada")
        await task.complete({"n": 2})


@pytest.mark.req("R95")
async def test_the_checkpoint_before_a_damaged_one_is_used_loudly_and_the_damaged_one_set_aside(
    shared_url: str, caplog: pytest.LogCaptureFixture
) -> None:
    async with Perdure(shared_url) as app:
        task = await app.tasks.open("t", state={})
        for n in range(3):
            await task.checkpoint({"n": n})
    flip_a_byte(shared_url, task.uid, 3)
    async with Perdure(shared_url) as app:
        with caplog.at_level(logging.WARNING, "perdure"):
            task = await app.tasks.handle("t")
        assert task.state == {"n": 1} and "checkpoint 3 cannot be read" in caplog.text
        assert (await task.record()).damaged == [f"{task.uid}.3"]
        async with task.attempt():
            await task.checkpoint({"n": "on"})
        assert [event.kind for event in await app.tasks.events("t")].count("damaged") == 1
        assert [cp.seq async for cp in task.checkpoints()] == [1, 2, 4]
        assert await findings(app, "problem") == []
        assert any("its state is good" in note.what for note in await findings(app, "note"))


@pytest.mark.req("R95")
async def test_a_paused_task_with_a_damaged_state_is_resumed_from_the_one_before(shared_url: str) -> None:
    async with Perdure(shared_url) as app:
        task = await app.tasks.open("t", state={})
        await task.checkpoint({"n": 1})
        await task.pause("look", reason="human_approval", checkpoint={"n": 2})
    flip_a_byte(shared_url, task.uid, 2)
    async with Perdure(shared_url) as app:
        task = await app.tasks.handle("t")
        await task.resume(state={"approved": True})
        assert (await task.record()).state == {"n": 1, "approved": True}


async def test_a_state_that_is_not_there_at_all_is_a_problem(shared_url: str) -> None:
    async with Perdure(shared_url) as app:
        task = await app.tasks.open("t", state={})
        await task.checkpoint({"n": 1})
        sql(shared_url, "DELETE FROM {checkpoints} WHERE seq = 1")
        (problem,) = await findings(app, "problem")
        assert "is not there" in problem.what


@pytest.mark.req("R146", "R144")
async def test_a_broken_chain_is_a_problem_in_any_namespace(shared_url: str) -> None:
    async with Perdure(shared_url, namespace="elsewhere") as app:
        task = await app.tasks.open("t", state={})
        sql(shared_url, "UPDATE {events} SET kind = 'x' WHERE task_uid = ?", task.uid)
    async with Perdure(shared_url) as app:
        (problem,) = await findings(app, "problem")
        assert problem.subject == "audit of t" and "event 1" in problem.what


@pytest.mark.req("R146", "R142")
async def test_a_missing_key_is_told_once_with_how_many_records_it_seals(shared_url: str) -> None:
    async with Perdure(shared_url, key=crypto.generate("k1")) as app:
        task = await app.tasks.open("t", state={})
        await task.checkpoint({})
        count = 3 + len(await app.tasks.events("t"))  # two checkpoints, and the event of this app's end
    async with Perdure(shared_url) as app:
        (problem,) = await findings(app, "problem")
        assert problem.subject == "keys" and f"'k1' ({count} records)" in problem.what


async def test_records_under_several_keys_are_worth_a_note(url: str) -> None:
    async with Perdure(url) as app:
        await app.tasks.open("t", state={})
    async with Perdure(url, key=crypto.generate()) as app:
        assert any("not sealed" in note.what for note in await findings(app, "note"))


@pytest.mark.req("R146")
async def test_orphaned_chunks_are_found_and_gc_takes_them(url: str, clock: MovableClock) -> None:
    async with Perdure(url) as app:
        store = store_of(app)
        task = await app.tasks.open("t", state={})
        owner = ids.new_uid(clock.now_ms())
        await store.verb("put_chunk", task.uid, {"owner": owner, "n": 0, "chunk_body": b"x" * 9}, key="t")
        clock.advance(hours=2)
        assert any(note.subject == "chunks" and "9 bytes" in note.what for note in await findings(app, "note"))
        await collect(store, Policy())
        assert not any(note.subject == "chunks" for note in await findings(app, "note"))


DIE_AT_WORK = """
import asyncio, os, signal
from perdure import Perdure

async def main():
    task = await Perdure(os.environ["URL"]).tasks.open("stuck", state={})
    await task.checkpoint({"n": 1})
    print(os.getpid(), flush=True)
    os.kill(os.getpid(), signal.SIGKILL)

asyncio.run(main())
"""


@pytest.mark.req("R146")
async def test_a_dead_process_that_holds_a_task_is_named(shared_url: str) -> None:
    died = run_python(DIE_AT_WORK, URL=shared_url)
    assert died.returncode == -signal.SIGKILL
    async with Perdure(shared_url) as app:
        (note,) = [note for note in await findings(app, "note") if note.subject == "workers"]
        assert f"pid {died.stdout.strip()} " in note.what and "stuck" in note.what


async def test_a_clock_that_is_behind_the_store_is_a_problem(url: str, clock: MovableClock) -> None:
    async with Perdure(url) as app:
        await app.tasks.open("t", state={})
        clock.advance(-timedelta(minutes=5))
        (problem,) = await findings(app, "problem")
        assert problem.subject == "clock" and "0:05:00" in problem.what


@pytest.mark.req("R146")
async def test_a_file_that_is_no_whole_database_is_a_problem_and_no_traceback(tmp_path: Path) -> None:
    path = tmp_path / "p.db"
    async with Perdure(path) as app:
        task = await app.tasks.open("t", state={})
        for n in range(20):
            await task.checkpoint({"data": os.urandom(5000), "n": n})
    spoiled = bytearray(path.read_bytes())
    spoiled[8192:65536] = os.urandom(65536 - 8192)
    path.write_bytes(spoiled)
    async with Perdure(path) as app:
        assert any(finding.subject in ("integrity", "store") for finding in await findings(app, "problem"))


async def test_what_the_database_itself_finds_is_a_problem(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async with Perdure(tmp_path / "p.db") as app:
        await app.tasks.open("t", state={})
        monkeypatch.setattr(store_of(app).engine, "damage", lambda: ["row 7 missing from index tasks_due"])
        (problem,) = await findings(app, "problem")
        assert problem.subject == "integrity" and "row 7" in problem.what


async def test_a_disk_that_is_nearly_full_is_told_in_time(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async with Perdure(tmp_path / "p.db") as app:
        await app.tasks.open("t", state={})
        monkeypatch.setattr(doctor, "_free_bytes", lambda _: doctor.LITTLE_SPACE - 1)
        assert any(finding.subject == "disk" for finding in await findings(app, "note"))
        monkeypatch.setattr(doctor, "_free_bytes", lambda _: doctor.HARDLY_ANY_SPACE - 1)
        assert any(finding.subject == "disk" for finding in await findings(app, "problem"))


def read_and_stay(link: Link, path: str) -> None:
    with closing(open_file(path)) as reader:
        reader.execute("BEGIN").fetchall()
        reader.execute("SELECT count(*) FROM tasks").fetchall()
        say(link)
        link.recv()


@pytest.mark.req("R146")
@pytest.mark.skipif(sys.platform != "linux", reason="who holds a lock is told by /proc")
async def test_a_process_that_keeps_the_log_from_being_begun_anew_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(doctor, "LARGE_WAL", 20_000)
    with nursery() as children:
        async with Perdure(tmp_path / "p.db") as app:
            task = await app.tasks.open("t", state={})
            reader = children.start(read_and_stay, str(tmp_path / "p.db"))
            reader.heard()
            assert "readers" not in [note.subject for note in await findings(app, "note")], "it reads all there is"
            for n in range(5):
                await task.checkpoint({"n": n})
            notes = {note.subject: note for note in await findings(app, "note")}
            assert f"pid {reader.pid} (" in notes["readers"].what and "tests.support.processes" in notes["readers"].what
            assert notes["readers"].do.endswith(f"`kill {reader.pid}`") and "wal" in notes
            reader.kill()
            assert "readers" not in [note.subject for note in await findings(app, "note")]


@pytest.mark.req("R146")
async def test_a_session_that_keeps_what_was_deleted_is_named(
    postgres_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(postgres_engine, "LONG_MS", -1)
    async with Perdure(postgres_url) as app:
        await app.tasks.open("t", state={})
        with psycopg.connect(postgres_url, application_name="a forgotten shell") as forgotten:
            forgotten.execute("SELECT 1")
            (note,) = [one for one in await findings(app, "note") if "a forgotten shell" in one.what]
            pid = forgotten.info.backend_pid
        assert (
            note.subject == "readers" and f"server process {pid} (" in note.what and "idle in transaction" in note.what
        )
        assert f"pg_terminate_backend({pid})" in note.do
        assert not [one for one in await findings(app, "note") if "a forgotten shell" in one.what]


async def test_pages_without_checksums_are_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async with Perdure(tmp_path / "p.db") as app:
        await app.tasks.open("t", state={})
        assert await findings(app, "note") == []
        monkeypatch.setattr(store_of(app).engine, "has_checksums", lambda: False)
        (note,) = await findings(app, "note")
        assert note.subject == "checksums"


# ── the command ──────────────────────────────────────────────────────────────────────────────────


@pytest.mark.req("R146", "R148")
def test_perdure_doctor_is_red_when_there_is_a_problem(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    url = f"sqlite://{tmp_path}/p.db"
    monkeypatch.setenv("PERDURE_URL", url)
    assert main(["doctor"]) == 0
    assert main(["open", "t"]) == 0
    assert main(["doctor"]) == 0
    capsys.readouterr()
    ((uid,),) = sql(url, "SELECT uid FROM {tasks}")
    flip_a_byte(url, uid, 0)
    assert main(["doctor", "--json"]) == 1
    found = json.loads(capsys.readouterr().out)
    (problem,) = [item for item in found["items"] if item["level"] == "problem"]
    assert found["problems"] == 1 and problem["subject"] == "task t" and "no good one is left" in problem["what"]
    assert main(["doctor", "--quiet"]) == 1
    assert "restore the store from a backup" in capsys.readouterr().out


async def test_a_store_that_may_not_be_looked_at_is_a_problem(tmp_path: Path) -> None:
    async with Perdure(tmp_path / ("long" * 100)) as app:
        (problem,) = await findings(app, "problem")
    assert "File name too long" in problem.what and "you may read and write" in problem.do

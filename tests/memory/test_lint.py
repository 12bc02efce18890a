"""`perdure lint`, states that are enough to go on with, and the ready patterns."""

from __future__ import annotations

import json
import subprocess
import sys
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import Annotated, Any, TypedDict

import pytest

from perdure import Perdure, durable
from perdure._ground.clock import MovableClock
from perdure.cli.lint import check_files, check_task_id, check_tasks
from perdure.errors import InvalidInput, NotResumable, NotStorable
from perdure.memory import EXCLUDE, DurableTaskState, Fields, recompute, verify_resumable
from perdure.memory.prompt.recall import parse
from tests.support.programs import kill_after, run

ROOT = Path(__file__).resolve().parents[2]


# ── ids ──────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.req("R153")
@pytest.mark.parametrize(
    "name", ["task-1", "job", "42", "test_run", "550e8400-e29b-41d4-a716-446655440000", "ab", "tmp2"]
)
def test_an_id_that_says_nothing_is_flagged(name: str) -> None:
    assert check_task_id(name)


@pytest.mark.parametrize(
    "name", ["refactor-auth-module", "invoice-2026-17", "nightly-copy", "重构认证", "task-force-report"]
)
def test_an_id_that_names_the_work_is_fine(name: str) -> None:
    assert check_task_id(name) == ""


# ── code ─────────────────────────────────────────────────────────────────────────────────────────

CODE = """
import time, uuid
from perdure import durable, effect, idempotency_key, step
import perdure

@effect
async def charge(order): ...

@perdure.effect(timeout=5, verify=None)
async def mail(to): ...

@effect(keyed=True)
async def keyed(order): ...

@effect(verify=look)
async def looked(order): ...

@effect
async def sends_key(order):
    return await post(order, headers={"Idempotency-Key": idempotency_key()})

@effect(on_uncertain="fail")
async def thought_about(order): ...

@durable
async def shop(order):
    await step_of(time.time())

async def main(app):
    await app.tasks.create("refactor-auth", state={})
    await app.run("task-1", shop, 1)
    await app.start(f"order-{uuid.uuid4()}", shop, 1)
    await app.run("order-17", shop, 1)
    subprocess.run("task-1")
"""


@pytest.mark.req("R153")
def test_code_is_read_for_what_will_hurt(tmp_path: Path) -> None:
    (tmp_path / "shop.py").write_text(CODE)
    (tmp_path / "broken.py").write_text("def (:")
    (tmp_path / ".hidden").mkdir()
    (tmp_path / ".hidden" / "shop.py").write_text(CODE)
    found, read = check_files([tmp_path])
    assert read == 2
    lines = {(one.rule, one.where.rpartition(":")[2]) for one in found if one.rule != "unreadable"}
    assert lines == {
        ("effect-without-key", "7"),
        ("effect-without-key", "10"),
        ("not-recorded", "27"),
        ("existing-task", "30"),
        ("id", "31"),
        ("id", "32"),
    }
    assert [one.rule for one in found if one.where.endswith("broken.py")] == ["unreadable"]


ASYNC_CODE = """
import asyncio, socket, sqlite3, subprocess, threading, urllib.request
import requests as http
from time import sleep
from perdure import durable, step

def helper():
    sleep(1)
    return urllib.request.urlopen("http://example.org")

async def read():
    return await asyncio.open_connection("example.org", 80)

@step
async def recorded():
    reader, writer = await asyncio.open_connection("example.org", 80)
    subprocess.run(["true"])

@step
def plain_step():
    sleep(1)

@durable
async def agent():
    helper()
    await read()
    await recorded()
    http.get("http://example.org")
    http.Session().post("http://example.org")
    sqlite3.connect("file.db")
    threading.Thread(target=helper).start()
    loop = asyncio.get_running_loop()
    loop.add_reader(3, print)
    await asyncio.get_running_loop().sock_recv(socket.socket(), 1)
    await asyncio.create_subprocess_exec("true")
    await asyncio.to_thread(helper)
    await asyncio.to_thread(lambda: sleep(1))
    await asyncio.sleep(1)

    def in_a_thread():
        sleep(1)

    await asyncio.to_thread(in_a_thread)

@durable
def plain_agent():
    sleep(1)
    socket.socket()
"""


@pytest.mark.req("R67")
def test_async_code_is_read_for_calls_that_block_and_for_wake_ups_that_no_replay_repeats(tmp_path: Path) -> None:
    (tmp_path / "agent.py").write_text(ASYNC_CODE)
    found, _ = check_files([tmp_path])
    lines = ASYNC_CODE.splitlines()
    told = {(one.rule, lines[int(one.where.rpartition(":")[2]) - 1].strip()) for one in found}
    assert told == {
        ("blocks", "sleep(1)"),
        ("blocks", 'return urllib.request.urlopen("http://example.org")'),
        ("blocks", 'subprocess.run(["true"])'),
        ("blocks", 'http.get("http://example.org")'),
        ("blocks", 'http.Session().post("http://example.org")'),
        ("blocks", 'sqlite3.connect("file.db")'),
        ("not-replayed", 'return await asyncio.open_connection("example.org", 80)'),
        ("not-replayed", "threading.Thread(target=helper).start()"),
        ("not-replayed", "loop.add_reader(3, print)"),
        ("not-replayed", "await asyncio.get_running_loop().sock_recv(socket.socket(), 1)"),
        ("not-replayed", 'await asyncio.create_subprocess_exec("true")'),
    }
    sleeps = [one.where.rpartition(":")[2] for one in found if "time.sleep" in one.what]
    assert sleeps == ["8"]  # not those of a plain step, a lambda or a function for a thread


def test_linting_runs_nothing_it_reads(tmp_path: Path) -> None:
    (tmp_path / "evil.py").write_text(f"open({str(tmp_path / 'ran')!r}, 'w')\n")
    check_files([tmp_path])
    assert not (tmp_path / "ran").exists()


def test_the_code_of_the_patterns_has_no_finding() -> None:
    found, read = check_files([ROOT / "examples" / "patterns", ROOT / "examples" / "planning_agent.py"])
    assert read == 5
    assert [one for one in found if one.rule != "id"] == []


# ── tasks ────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.req("R153")
async def test_stored_tasks_are_read_for_what_will_hurt(shared_url: str, clock: MovableClock) -> None:
    async with Perdure(shared_url) as app:
        await (await app.tasks.open("old-report", state={})).complete()
        clock.advance(days=8)
        task = await app.tasks.open("copy-files", state={"at": 0})
        await task.checkpoint({"at": 1})
        clock.advance(minutes=25)
        await task.checkpoint({"at": 2, "api": {"password": "hunter2", "token": "secret://env/TOKEN"}, "key": "name"})
        await (await app.tasks.open("read-book", state={"chapter": 1})).checkpoint({"chapter": 2})
        await app.tasks.open("task-1")

        @durable
        async def walk() -> None: ...

        await app.start("walk-the-dog", walk)
        clock.advance(minutes=1)
        found, seen = await check_tasks(app.tasks, _now(app))
        assert seen == 5
        told = sorted((one.rule, one.where) for one in found)
        assert told == [
            ("checkpoint-gap", "copy-files"),
            ("cleanup", "store"),
            ("id", "task-1"),
            ("secret-in-state", "copy-files"),
        ]
        (secret,) = [one for one in found if one.rule == "secret-in-state"]
        assert "api.password" in secret.what and "hunter2" not in secret.what + secret.do


def _now(app: Perdure) -> Any:
    from perdure._ground.clock import moment

    return moment(app._store.clock.now_ms())


@pytest.mark.req("R153", "R19", "R148")
def test_the_command_says_what_it_found_and_exits_with_one(tmp_path: Path) -> None:
    (tmp_path / "agent.py").write_text("def resume(state):\n    return state['last'], state['files'][0]\n")

    def perdure(*words: str) -> subprocess.CompletedProcess[str]:
        command = [sys.executable, "-m", "perdure", *words]
        return subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)

    assert perdure("open", "copy-files", "--state", '{"files": ["a"]}').returncode == 0
    clean = perdure("lint", "agent.py")
    assert (clean.returncode, clean.stdout) == (0, "0 findings in 1 file and 1 task\n")
    found = perdure("lint", "--resume", "agent.py:resume", "--json")
    assert found.returncode == 1, found.stderr
    (item,) = json.loads(found.stdout)["items"]
    assert item["rule"] == "not-self-contained" and "'last'" in item["what"]
    (tmp_path / "other.py").write_text("from perdure import effect\n@effect\ndef pay(): ...\n")
    told = perdure("lint", "--code-only", "other.py")
    assert told.returncode == 1 and "effect-without-key other.py:3" in told.stdout


@pytest.mark.req("R148", "R125")
def test_a_person_sees_what_the_model_is_told(tmp_path: Path) -> None:
    agent = [sys.executable, str(ROOT / "examples" / "planning_agent.py"), "0"]
    assert "The handbook is written." in run(agent, tmp_path)
    told = run([sys.executable, "-m", "perdure", "memory", "write-the-handbook"], tmp_path)
    assert told.startswith("<task_state>\n{") and "5 of 5 done. Nothing is left." in told
    found = json.loads(run([sys.executable, "-m", "perdure", "memory", "write-the-handbook", "--json"], tmp_path))
    assert parse(found["items"][0]["text"])["data"] == {"last": "memory", "__outcome": "success"}
    unknown = subprocess.run([sys.executable, "-m", "perdure", "memory", "nobody"], cwd=tmp_path, check=False)
    assert unknown.returncode == 3


# ── enough to go on with ─────────────────────────────────────────────────────────────────────────


def resume_plain(state: dict[str, Any]) -> None:
    assert state["plan"]["steps"][0]["name"]
    state.get("optional")


async def resume_async(state: Any) -> None:
    resume_plain(state)


@dataclass
class Typed:
    phase: str
    files: list[str]


def resume_typed(state: Typed) -> None:
    assert state.phase


def resume_by_the_environment(state: Any) -> None:
    import os

    os.environ["API_URL"]


@pytest.mark.req("R19")
@pytest.mark.parametrize(
    "state, resume, field",
    [
        ({"plan": {"steps": [{"name": "a"}]}}, resume_plain, None),
        ({"plan": {"steps": [{"name": "a"}]}}, resume_async, None),
        ({"plan": {"steps": [{"other": "a"}]}}, resume_plain, "plan.steps[0].name"),
        ({"plan": {}}, resume_async, "plan.steps"),
        ({}, resume_plain, "plan"),
        ({"phase": "a", "files": []}, resume_typed, None),
        ({"phase": "a"}, resume_typed, "files"),
        ({}, resume_by_the_environment, "API_URL"),
    ],
)
async def test_what_a_state_lacks_is_named(
    state: Any, resume: Any, field: str | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("API_URL", "only here")
    verdict = await verify_resumable(state, resume)
    assert verdict.is_resumable is (field is None), verdict
    if field is not None:
        assert field in verdict.field or field in verdict.problem
        with pytest.raises(NotResumable):
            verdict.check()


def resume_for_ever(state: Any) -> None:
    import threading

    threading.Event().wait()


def resume_and_die(state: Any) -> None:
    import os

    os._exit(3)


@pytest.mark.req("R19")
async def test_code_that_hangs_or_dies_is_no_way_to_go_on() -> None:
    hangs = await verify_resumable({}, resume_for_ever, timeout=timedelta(seconds=1))
    assert "longer than 1 s" in hangs.problem
    assert "exit code 3" in (await verify_resumable({}, resume_and_die)).problem
    with pytest.raises(InvalidInput):
        await verify_resumable({}, lambda state: state)
    with pytest.raises(InvalidInput):
        await verify_resumable({}, "no.such.module:resume")
    with pytest.raises(NotStorable):
        await verify_resumable({"socket": object()}, resume_plain)


# ── fields ───────────────────────────────────────────────────────────────────────────────────────


def index_of(state: dict[str, Any]) -> dict[str, int]:
    return {name: place for place, name in enumerate(state["files"])}


async def size_of(state: dict[str, Any]) -> int:
    return len(state["index"])


class State(TypedDict, total=False):
    files: list[str]
    index: Annotated[dict[str, int], recompute(index_of)]
    size: Annotated[int, recompute(size_of)]
    socket: Annotated[Any, EXCLUDE]


@dataclass
class Needed:
    files: list[str]
    note: str = ""


@pytest.mark.req("R25")
async def test_a_field_that_is_made_again_is_not_stored_and_is_there_after_a_restore(url: str) -> None:
    fields = Fields.of(State)
    async with Perdure(url) as app:
        task = await app.tasks.open("copy-files")
        live = {"files": ["a", "b"], "index": {"a": 0, "b": 1}, "size": 2, "socket": object(), "more": 1}
        await task.checkpoint(fields.stored(live))
        record = await app.tasks.get("copy-files")
        assert record is not None and record.state == {"files": ["a", "b"], "more": 1}
        assert await fields.restored(record.state) == {**record.state, "index": {"a": 0, "b": 1}, "size": 2}


@pytest.mark.req("R25", "R19")
async def test_a_field_that_has_to_be_there_is_asked_for() -> None:
    fields = Fields.of(Needed)
    assert fields.stored({"files": []}) == {"files": []}
    with pytest.raises(NotResumable, match="files"):
        fields.stored({"note": "x"})
    with pytest.raises(NotResumable, match="files"):
        await fields.restored({})
    with pytest.raises(InvalidInput):
        Fields(files="persist")  # type: ignore[arg-type]


# ── patterns, and an agent with a plan ───────────────────────────────────────────────────────────


def pattern(name: str) -> list[str]:
    return [sys.executable, str(ROOT / "examples" / "patterns" / f"{name}.py")]


@pytest.mark.req("R153")
def test_per_file_each_file_is_done_once_through_a_kill(tmp_path: Path) -> None:
    inbox = tmp_path / "inbox"
    inbox.mkdir()
    for name in "abcdef":
        (inbox / f"{name}.txt").write_text(name)
    first = kill_after([*pattern("per_file"), str(inbox)], tmp_path, "done c.txt")
    second = run([*pattern("per_file"), str(inbox)], tmp_path).split("\n")
    assert second[-2] == "6 files"
    assert set(first) | set(second[:-2]) == {f"done {name}.txt" for name in "abcdef"}
    assert "done a.txt" not in second


@pytest.mark.req("R153")
def test_per_batch_a_crash_costs_at_most_a_batch(tmp_path: Path) -> None:
    kill_after([*pattern("per_batch"), "1000"], tmp_path, "batch 500")
    second = run([*pattern("per_batch"), "1000"], tmp_path)
    assert "total 499500" in second and second.count("batch") < 10


@pytest.mark.req("R153")
def test_an_approval_is_waited_for_without_a_process(tmp_path: Path) -> None:
    assert run([*pattern("approval"), "ask"], tmp_path) == "waiting for approval\n"
    assert run([*pattern("approval"), "approve", "ada"], tmp_path) == "approved\n"
    told = run([*pattern("approval"), "ask"], tmp_path)
    assert "published with key" in told and "result: 6 characters, approved by ada" in told


@pytest.mark.req("R153")
def test_an_external_job_is_submitted_once_and_looked_at_after_a_restart(tmp_path: Path) -> None:
    command = [*pattern("external_job"), "built.txt"]
    assert kill_after(command, tmp_path, "submitted") == ["submitted"]
    (tmp_path / "built.txt").write_text("green")
    assert run(command, tmp_path) == "result: job-7: green\n"


@pytest.mark.req("R132", "R97", "R125")
def test_an_agent_killed_mid_plan_is_told_what_is_done_and_what_is_left(tmp_path: Path) -> None:
    agent = [sys.executable, str(ROOT / "examples" / "planning_agent.py"), "0.01"]
    kill_after(agent, tmp_path, "wrote tasks.md")
    lines = run(agent, tmp_path).splitlines()
    told = [line.removeprefix("prompt: ") for line in lines if line.startswith("prompt: ")]
    assert told[0].startswith("This is attempt 2. An earlier one ended")
    done = int(told[2].split()[0])
    assert done in (2, 3) and told[2] == f"{done} of 5 done. Left, in this order:"
    assert told[1].split(", ")[1] == "3 files"
    assert lines[-1] == "model: The handbook is written."
    assert sorted(path.name for path in (tmp_path / "handbook").glob("*.md")) == [
        "effects.md",
        "first-steps.md",
        "install.md",
        "memory.md",
        "plan.md",
        "tasks.md",
    ]
    assert run(agent, tmp_path) == "finished already\n"


async def test_a_layer_may_take_its_schema_from_the_fields(memory_url: str) -> None:
    async with Perdure(memory_url) as app, app.memory("typed", [DurableTaskState(schema=Needed)]) as memory:
        await memory.layer("task_state").set_data({"files": ["a"]})
        assert memory.layer("task_state").state["data"] == {"files": ["a"]}

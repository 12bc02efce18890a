"""With a key nothing stands in clear, and keys are changed beside tasks that go on."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest

from perdure import Perdure
from perdure._durable import durable
from perdure._ground.encoding import codec
from perdure._ground.secrets import crypto, envelope
from perdure._store import Store, Write
from perdure._tasks import Policy, collect, keys_in_use, leases, rotate, verify
from perdure._tasks.upkeep import rotation
from perdure.cli import main
from perdure.errors import InvalidInput, KeyMissing, RecordDamaged
from perdure.types import Config, Task
from tests.tasks.upkeep_kit import SOURCE, is_killed_at, snapshots_of, sql, store_of

OLD, NEW = crypto.generate("k-old"), crypto.generate("k-new")
SECRET = "hunter2-hunter2"


async def fill(app: Perdure, name: str = "t", large: int = 1_500_000) -> Task:
    """A task with something in every column and table that is sealed."""
    task = await app.tasks.create(name, state={"pw": SECRET}, config=Config(keep_last=7))
    for n in range(3):
        await task.checkpoint({"pw": SECRET, "n": n, "large": bytes(large) if n == 2 else b""})
    await task.checkpoint({"pw": SECRET, "large": os.urandom(large)})
    await task.mark_progress("copying", cursor=SECRET)
    store = store_of(app)
    hold = await leases.take(store, task.id, task.uid, "")
    for position in range(3):
        entry = store.seal(task.uid, "entry", {"pw": SECRET, "position": position})
        params = {"line": 1, "position": position, "entry": entry}
        await store.verb("append_entry", task.uid, params, key=task.id, fence=hold.fence)
    await task.pause(SECRET, reason="human_input", question=SECRET)
    failed = await app.tasks.open(f"{name}-failed", state={})
    await failed.fail({"message": SECRET})
    done = await app.tasks.open(f"{name}-done", state={})
    await done.complete({"pw": SECRET})
    return task


def unsealed(store: Store, uid: str, entry: bytes, place: int) -> Any:
    return codec.decode(envelope.unseal(entry, kind="entry", bound_to=uid, ring=store.ring, place=place))


async def contents(app: Perdure, task: Task) -> Any:
    """All that a rotation must not change."""
    store = store_of(app)
    journal = await store.query("read_journal", uid=task.uid, line=1)
    return (
        await snapshots_of(task),
        [await app.tasks.get(name) for name in (task.id, f"{task.id}-failed", f"{task.id}-done")],
        [unsealed(store, task.uid, entry, place=position) for position, entry in journal],
        await app.tasks.events(task.id),
    )


@pytest.mark.req("R142")
async def test_with_a_key_no_secret_stands_in_the_store(tmp_path: Path) -> None:
    async with Perdure(tmp_path / "p.db", key=OLD) as app:
        await fill(app)
        stored = b"".join(file.read_bytes() for file in tmp_path.iterdir())
        assert len(stored) > 1_000_000 and SECRET.encode() not in stored
    async with Perdure(tmp_path / "plain.db") as app:
        await fill(app)
        assert SECRET.encode() in b"".join(file.read_bytes() for file in tmp_path.iterdir()), "the test would find it"


@pytest.mark.req("R142")
async def test_without_its_key_a_task_says_which_key_is_missing(shared_url: str) -> None:
    async with Perdure(shared_url, key=OLD) as app:
        await fill(app)
    async with Perdure(shared_url, key=NEW) as app:
        with pytest.raises(KeyMissing) as raised:
            await app.tasks.get("t")
        assert raised.value.key_id == "k-old" and "PERDURE_KEY" in raised.value.do


STEPS = {
    "to another key": (OLD, f"{NEW},{OLD}", NEW, {"k-new"}),
    "from none to a key": (None, NEW, NEW, {"k-new"}),
    "from a key to none": (OLD, OLD, None, {""}),
}


@pytest.mark.req("R142", "R144")
@pytest.mark.parametrize("step", STEPS)
async def test_after_a_rotation_the_old_key_is_not_needed_and_all_reads_as_before(
    url: str, step: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    first, both, last, keys = STEPS[step]
    async with Perdure(url, key=first or "") as app:
        task = await fill(app)
        before = await contents(app, task)
        count = sum((await keys_in_use(store_of(app))).values())
    async with Perdure(url, key=both) as app:
        if last is None:
            store_of(app).ring.current = None
        done = await rotate(store_of(app))
        assert done.is_done and done.in_use == dict.fromkeys(keys, count) and not done.stuck
        assert await keys_in_use(store_of(app)) == done.in_use
        assert (await rotate(store_of(app))).resealed == 0, "a second time there is nothing left to do"
    async with Perdure(url, key=last or "") as app:
        task = await app.tasks.handle("t")
        assert await contents(app, task) == before
        assert (await verify(store_of(app))).is_whole
        assert await store_of(app).query("read_orphans", before="~") == []
        await task.resume(state={"n": 9})


@pytest.mark.req("R142")
async def test_all_namespaces_are_rotated(url: str) -> None:
    async with Perdure(url, key=OLD, namespace="a") as app:
        await app.tasks.open("t", state={})
    async with Perdure(url, key=f"{NEW},{OLD}") as app:
        await rotate(store_of(app))
        assert {*await keys_in_use(store_of(app))} == {"k-new"}


async def test_what_cannot_be_opened_is_named_and_left(shared_url: str) -> None:
    async with Perdure(shared_url, key=OLD) as app:
        lost = await app.tasks.open("lost", state={"x": 1})
        damaged = await app.tasks.open("damaged", state={"x": 1})
        sql(shared_url, "UPDATE {tasks} SET error = ? WHERE uid = ?", b"\x01\x02rubbish", damaged.uid)
    async with Perdure(shared_url, key=NEW) as app:
        done = await rotate(store_of(app))
        assert not done.is_done and done.resealed == 0
        assert done.in_use["k-old"] == 4
        records = {stuck.record for stuck in done.stuck}
        assert {f"task {damaged.uid}", f"checkpoint {lost.uid}.0", f"event {lost.uid}.1"} <= records


@pytest.mark.req("R142")
async def test_killed_half_way_a_rotation_is_finished_by_the_next(shared_url: str) -> None:
    async with Perdure(shared_url, key=OLD) as app:
        task = await fill(app)
        for n in range(120):
            await (await app.tasks.open(f"many-{n}", state={"n": n})).complete()
        before = await contents(app, task)

    async def rotate_once() -> None:
        async with Perdure(shared_url, key=f"{NEW},{OLD}") as app:
            await rotate(store_of(app))

    for count in (1, 2, 3):
        assert is_killed_at("committer.after_commit", count, rotate_once)
        async with Perdure(shared_url, key=f"{NEW},{OLD}") as app:
            assert await contents(app, await app.tasks.handle("t")) == before
    await rotate_once()
    async with Perdure(shared_url, key=NEW) as app:
        assert {*await keys_in_use(store_of(app))} == {"k-new"}
        assert await contents(app, await app.tasks.handle("t")) == before


def just_before(verb: str, act: Callable[[], Awaitable[Any]], monkeypatch: pytest.MonkeyPatch) -> None:
    """Have something else happen after records were read and sealed anew, right before they are written."""
    commit = rotation._commit
    happened: list[bool] = []

    async def after_others(store: Store, batch: list[Write]) -> int:
        if not happened and any(write.verb == verb for write in batch):
            happened.append(True)
            await act()
        return await commit(store, batch)

    monkeypatch.setattr(rotation, "_commit", after_others)


@pytest.mark.req("R142")
async def test_what_a_living_process_writes_meanwhile_is_never_overwritten(
    url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with Perdure(url, key=OLD) as writer, Perdure(url, key=f"{NEW},{OLD}") as app:
        task = await writer.tasks.open("t", state={"n": 0})
        await task.mark_progress("copying", done=1, total=9)

        async def go_on() -> None:
            await task.mark_progress("copying", done=2, total=9)
            await task.checkpoint({"n": 1})

        just_before("reseal_task", go_on, monkeypatch)
        assert (await rotate(store_of(app))).is_done, "it is found by the next walk"
        record = await app.tasks.get("t")
        assert record is not None and record.progress is not None
        assert (record.state, record.progress.done) == ({"n": 1}, 2)
        await task.checkpoint({"n": 2})  # the writer knows only the old key, and can still build on its state
        assert "k-old" in await keys_in_use(store_of(app)), "what it writes needs the old key again"
        assert (await verify(store_of(app))).is_whole


@pytest.mark.req("R142", "R102")
async def test_what_gc_rewrites_meanwhile_is_never_overwritten(url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    async with Perdure(url, key=f"{NEW},{OLD}") as app:
        store = store_of(app)
        store.ring.current = store.ring.get("k-old")
        task = await app.tasks.open("t", state={})
        for n in range(4):
            await task.checkpoint({"same": "x" * 900, "n": n})
        store.ring.current = store.ring.get("k-new")
        before = await snapshots_of(task)
        just_before("reseal_checkpoint", lambda: collect(store, Policy(keep_last=1)), monkeypatch)
        assert (await rotate(store)).is_done
        after = await snapshots_of(task)
        assert [*after] == [0, 4] and after == {seq: before[seq] for seq in after}


@pytest.mark.req("R142")
async def test_what_durable_functions_were_called_with_and_asked_is_rotated_too(shared_url: str) -> None:
    url = shared_url

    @durable(name="rotated")
    async def function(secret: str) -> str:
        return secret

    async with Perdure(url, key=OLD) as app:
        await app.run("f", function, SECRET)
        task = await app.tasks.handle("f")
        question, answer = (store_of(app).seal(task.uid, kind, SECRET) for kind in ("pause", "answer"))
        insert = "INSERT INTO {pauses} (task_uid, path, reason, question, asked_at, answer) VALUES (?, ?, 'x', ?, 0, ?)"
        sql(url, insert, task.uid, "a", question, answer)
        sql(url, insert, task.uid, "b", question, None)
        sql(url, "INSERT INTO {signals} VALUES (?, 'go', 1, ?, 0, '', NULL, NULL)", task.uid, question)
        assert (await keys_in_use(store_of(app)))["k-old"] >= 6
    async with Perdure(url, key=f"{NEW},{OLD}") as app:
        assert (await rotate(store_of(app))).is_done
    async with Perdure(url, key=NEW) as app:
        store = store_of(app)
        assert await app.run("f", function, SECRET) == SECRET
        for query, place, kinds in (
            ("sealed_pause", {"path": "a"}, ("pause", "answer")),
            ("sealed_pause", {"path": "b"}, ("pause", None)),
            ("sealed_signal", {"signal": "go", "number": 1}, ("pause",)),
        ):
            (row,) = await store.query(query, uid=task.uid, **place)
            opened = [
                store.unseal(task.uid, kind, data) if kind else data for kind, data in zip(kinds, row, strict=True)
            ]
            assert opened == [SECRET if kind else None for kind in kinds]


async def test_a_webhook_is_read_under_the_new_key_alone(url: str) -> None:
    async with Perdure(url, key=OLD) as app:
        await app.webhooks.make("https://93.184.215.14/in", description=SECRET)
    async with Perdure(url, key=f"{NEW},{OLD}") as app:
        assert (await rotate(store_of(app))).is_done
        assert "k-old" not in await keys_in_use(store_of(app))
    async with Perdure(url, key=NEW) as app:
        (hook,) = await app.webhooks.list()
        assert hook.description == SECRET


def test_every_column_of_bytes_is_resealed_or_known_not_to_be_sealed() -> None:
    schema = (SOURCE / "perdure/_store/sqlite/schema.sql").read_text()
    found = set()
    for table, body in re.findall(r"CREATE TABLE (\w+) \((.*?)\n\)", schema, re.DOTALL):
        found |= {f"{table}.{name}" for name in re.findall(r"^\s+(\w+)\s+BLOB", body, re.MULTILINE)}
    resealed = {f"tasks.{name}" for name in rotation._TASK_COLUMNS}
    resealed |= {"calls.arguments", "calls.budget", "pauses.question", "pauses.answer", "signals.value", "shelf.value"}
    resealed |= {"memory.value", "checkpoints.frame", "chunks.body", "events.body", "journal.entry"}
    resealed |= {"webhooks.record", "hook_deliveries.body", "hook_deliveries.answer"}
    plain = {"tasks.event_head", "events.digest", "events.hash", "tombstones.event_head"}
    assert found == resealed | plain, "a new column: reseal it in rotation.py, or say here why not"


# ── the command ──────────────────────────────────────────────────────────────────────────────────


@pytest.mark.req("R142", "R148")
def test_perdure_keys_makes_lists_and_changes_keys(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("PERDURE_URL", str(tmp_path / "p.db"))
    old, new = tmp_path / "old", tmp_path / "new"
    for path in (old, new):
        assert main(["keys", "generate", "--id", path.name, "--out", str(path)]) == 0
        assert path.stat().st_mode & 0o777 == 0o600
    assert main(["keys", "generate", "--out", str(old)]) == 2, "a key is never overwritten"
    monkeypatch.setenv("PERDURE_KEY", f"file:{old}")
    assert main(["open", "t"]) == 0
    monkeypatch.setenv("PERDURE_KEY", f"file:{new}")
    capsys.readouterr()
    assert main(["keys", "list", "--json"]) == 0
    listed = {item["id"]: item for item in json.loads(capsys.readouterr().out)["items"]}
    assert listed["old"]["records"] == 2 and not listed["old"]["is_here"] and listed["new"]["is_current"]
    assert main(["keys", "rotate"]) == 1, "the old key is not here"
    monkeypatch.setenv("PERDURE_KEY", f"file:{new},file:{old}")
    assert main(["keys", "rotate"]) == 0
    assert "key old is no longer needed" in capsys.readouterr().out
    monkeypatch.setenv("PERDURE_KEY", f"file:{new}")
    assert main(["show", "t"]) == 0
    assert main(["keys", "rotate", "--to-none"]) == 0
    monkeypatch.delenv("PERDURE_KEY")
    assert main(["show", "t"]) == 0
    assert main(["keys", "rotate"]) == 2
    secret = new.read_text().partition(":")[2].strip()
    out, err = capsys.readouterr()
    assert secret not in out + err


# ── sealed only ──────────────────────────────────────────────────────────────────────────────────


@pytest.mark.req("R142", "R95")
async def test_with_sealed_only_a_record_in_clear_counts_as_damaged_and_the_one_before_it_is_used(
    shared_url: str,
) -> None:
    async with Perdure(shared_url, key=NEW) as app:
        task = await app.tasks.create("job", state={"n": 0})
        await task.checkpoint({"n": 1})
    async with Perdure(shared_url) as forger:  # has no key, and writes what anybody could
        other = await forger.tasks.create("forged", state={"n": 0})
        await other.checkpoint({"n": 666})
    async with Perdure(shared_url, key=f"{NEW},sealed-only") as app:
        record = await app.tasks.get("job")
        assert record is not None and record.state == {"n": 1}
        with pytest.raises(RecordDamaged, match="not sealed"):
            await app.tasks.get("forged")
    async with Perdure(shared_url, key=NEW) as app:  # without the word it is taken, as before
        record = await app.tasks.get("forged")
        assert record is not None and record.state == {"n": 666}


def test_sealed_only_needs_a_key() -> None:
    with pytest.raises(InvalidInput, match="without a key"):
        Perdure("memory://none", key="sealed-only")

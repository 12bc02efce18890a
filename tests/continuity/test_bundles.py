"""A task goes to another machine in a file: whole, once, without a secret in clear; a bad file changes nothing."""

from __future__ import annotations

import asyncio
import os
import socket
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest

from perdure import Perdure, durable, effect, pause, step
from perdure._ground import crash_points as crash
from perdure._ground.bridge import drive
from perdure._ground.secrets.crypto import KeyRing
from perdure._runtime.bundles import bundle_file
from perdure._runtime.bundles.bundle_file import Bundle, Header
from perdure._runtime.bundles.task_bundle import bring_in, export
from perdure._runtime.context import context as contexts
from perdure._runtime.context.paths import mapped, mapping_for
from perdure._runtime.restore.continuity import Continuity
from perdure._store.sqlite import SqliteEngine
from perdure._tasks import dump, verify
from perdure.errors import (
    AlreadyExists,
    BundleRefused,
    InvalidTransition,
    KeyMissing,
    LeaseHeld,
    LeaseLost,
    NotAllowed,
    NotFound,
)
from tests.support.processes import ChildDied

KEY = "test-key:" + "QUJDREVGR0hJSktMTU5PUFFSU1RVVldYWVphYmNkZWY="
OTHER_KEY = "other:" + "YWJjZGVmZ2hpamtsbW5vcHFyc3R1dnd4eXoxMjM0NTY="


pytestmark = pytest.mark.usefixtures("fresh_process")


@pytest.fixture
def there(tmp_path: Path) -> str:
    return f"sqlite://{tmp_path}/there/p.db"


@pytest.fixture
def bundle(tmp_path: Path) -> Path:
    return tmp_path / "task.perdure"


async def _saved_task(app: Perdure, root: Path) -> Continuity:
    root.mkdir(parents=True, exist_ok=True)
    (root / "main.py").write_text("print('hello')\n")
    (root / "main.py").chmod(0o640)
    task = await app.tasks.open("deploy", state={"phase": "build"})
    await task.checkpoint({"phase": "test"}, label="tested")
    rt = Continuity(app._store, task.id, task.uid)
    rt.context.cwd = root
    rt.env = {"PATH": f"{root}/bin:/usr/bin", "APP_TOKEN": "planted-token-value", "SSH_AUTH_SOCK": "/tmp/agent"}
    rt.workspace(root)
    await rt.save()
    return rt


# ── there and back ───────────────────────────────────────────────────────────────────────────────


@pytest.mark.req("R107", "R109")
async def test_a_task_goes_to_another_home_with_its_files_and_finishes_there(
    url: str, there: str, bundle: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    old, new = tmp_path / "home-a", tmp_path / "home-b"
    monkeypatch.setenv("HOME", str(old))
    monkeypatch.setenv("APP_TOKEN", "planted-token-value")
    async with Perdure(url, key=KEY) as app:
        await _saved_task(app, old / "desk")
        before = await app.tasks.get("deploy")
        exported = await export(app.tasks, "deploy", bundle, move=True)
        assert exported.is_signed and exported.notes == []
        left = await app.tasks.get("deploy")
        assert left is not None and left.status == "cancelled"
    assert b"planted-token-value" not in bundle.read_bytes() and b"hello" not in bundle.read_bytes()

    contexts.forget_contexts()
    new.mkdir()
    monkeypatch.setenv("HOME", str(new))
    monkeypatch.setenv("APP_TOKEN", "the one of this machine")
    monkeypatch.setattr(socket, "gethostname", lambda: "host-b")
    async with Perdure(there, key=KEY) as app:
        came = await bring_in(app.tasks, bundle)
        assert not came.is_copy and came.paths == {str(old): str(new)} and came.workspace
        after = await app.tasks.get("deploy")
        assert before is not None and after is not None
        assert (after.uid, after.status, after.state) == (before.uid, "running", {"phase": "test"})
        labels = [checkpoint.label async for checkpoint in (await app.tasks.handle("deploy")).checkpoints()]
        assert labels == ["tested", ""]
        assert (await verify(app._store)).is_whole
        rt = Continuity(app._store, after.id, after.uid)
        back = await rt.restore()
        assert (new / "desk/main.py").read_text() == "print('hello')\n"
        assert (new / "desk/main.py").stat().st_mode & 0o777 == 0o640
        assert rt.cwd == new / "desk" and rt.env["PATH"] == f"{new}/desk/bin:/usr/bin"
        assert rt.env["APP_TOKEN"] == "the one of this machine"
        assert back.report.level("workspace") == "rebuilt"
        task = await app.tasks.handle("deploy")
        await task.complete({"ok": True})


@pytest.mark.parametrize("to", ["memory", "sqlite", "postgres"])
async def test_every_row_of_a_task_is_the_same_in_the_other_store(
    url: str, to: str, bundle: Path, request: pytest.FixtureRequest, tmp_path: Path
) -> None:
    targets = {"memory": f"memory://bundle-{os.urandom(4).hex()}", "sqlite": f"sqlite://{tmp_path}/target/p.db"}
    target = targets.get(to) or request.getfixturevalue("second_postgres_url")

    @step
    async def think(number: int) -> int:
        return number * 2

    @effect(keyed=True)
    async def act(number: int) -> str:
        return "x" * 400_000  # large enough to be interesting

    @durable(name="moving-function")
    async def work() -> int:
        await act(await think(3))
        await pause.approval("Go on?")
        return await think(4)

    async with Perdure(url) as app:
        handle = await app.start("fn", work)
        async with app.worker():
            await _until_paused(app, "fn")
        await (await handle.task()).signal("hello", {"n": 1})
        rows = await dump(app._store, (await handle.task()).uid)
        await export(app.tasks, "fn", bundle, move=True)
    async with Perdure(target) as app:
        await bring_in(app.tasks, bundle)
        found = await dump(app._store, rows["tasks"][0]["uid"])
        for table in ("checkpoints", "chunks", "journal", "pauses", "signals", "shelf", "deliveries"):
            assert _sorted(found[table]) == _sorted(rows[table]), table
        record = await app.tasks.get("fn")
        assert record is not None and record.status == "paused"
        task = await app.tasks.handle("fn")
        await task.approve(by="ada")
        async with app.worker():
            ended = await app.tasks.wait_for("fn")
        assert ended.result == 8


def _sorted(rows: list[dict[str, Any]]) -> list[Any]:
    return sorted(sorted(row.items(), key=str) for row in rows)


async def _until_paused(app: Perdure, id: str) -> None:
    await app.tasks.wait_for(id, status="paused")


@pytest.fixture
def second_postgres_url() -> Iterator[str]:
    from tests.support import postgres

    with postgres.fresh_database() as found:
        yield found


def test_every_column_of_a_task_travels(tmp_path: Path) -> None:
    """A new column that is left out of dump_task.sql or import_task.sql would be lost on the way."""
    from perdure._store.sql import Queries
    from perdure._tasks.upkeep.transfer import TABLES

    engine = SqliteEngine(tmp_path / "p.db")
    engine._open_writer()
    assert engine._writer is not None
    queries = Queries(Path(__file__).parents[2] / "src/perdure/_store/sqlite/queries")
    dumped, imported = queries["dump_task"][0], "\n".join(queries["import_task"])
    stays = {("tasks", "hidden")}  # a part of a task travels without the whole, and is shown where it arrives
    for table in TABLES:
        columns = [row[1] for row in engine._writer.execute(f"PRAGMA table_info({table})")]
        columns = [column for column in columns if (table, column) not in stays]
        part = dumped.partition(f"SELECT '{table}'")[2].partition("UNION ALL")[0]
        into = imported.partition(f"INSERT INTO {table} (")[2].partition(";")[0]
        for column in columns:
            assert f"'{column}'," in part, f"dump_task leaves out {table}.{column}"
            assert f"'{column}'" in into, f"import_task leaves out {table}.{column}"
    tables = {row[0] for row in engine._writer.execute("SELECT name FROM sqlite_schema WHERE type = 'table'")}
    ours = tables - set(TABLES) - {"journal_ends"}  # made anew from the entries that come in
    of_the_store = {"migrations", "workers", "tombstones", "slots", "rate_limits", "switches"}
    assert ours == of_the_store | {"webhooks", "hook_deliveries"}, "does this table belong to a task?"
    engine.close()


# ── once ─────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.req("R56", "R108")
async def test_the_old_host_is_fenced_once_the_task_has_moved(url: str, bundle: Path) -> None:
    async with Perdure(url) as app:
        task = await app.tasks.open("deploy", state={"n": 1})
        await task.checkpoint({"n": 2})
        await export(app.tasks, "deploy", bundle, move=True)
        with pytest.raises((LeaseLost, InvalidTransition)):
            await task.checkpoint({"n": 3})  # the process that was at it, woken later
        with pytest.raises(InvalidTransition):
            await (await app.tasks.handle("deploy")).resume()
        record = await app.tasks.get("deploy")
        assert record is not None and record.state == {"n": 2} and record.attempts[-1].ended == "moved"
        first = bundle.read_bytes()
        await export(app.tasks, "deploy", bundle, move=True)  # the file was lost: once more
        assert len(bundle.read_bytes()) == len(first)


async def test_a_task_that_is_worked_on_is_not_moved(there: str, bundle: Path, children: Any) -> None:
    async with Perdure(there) as app:
        task = await app.tasks.open("deploy", state={})
        await task.checkpoint({})
        holder = await app._store.query("read_holder", uid=task.uid)
        assert holder[0][1] is not None
    child = children.start(hold_a_task, there)
    child.heard()
    async with Perdure(there) as app:
        with pytest.raises(LeaseHeld):
            await export(app.tasks, "deploy", bundle, move=True)
        assert not bundle.exists()
        copied = await export(app.tasks, "deploy", bundle)
        assert "goes on here too" in " ".join(copied.notes)
    child.kill()


def hold_a_task(link: Any, url: str) -> None:
    async def hold() -> None:
        app = Perdure(url)
        await (await app.tasks.handle("deploy")).checkpoint({"held": True})

    drive(hold())
    link.send(("said", "held"))
    link.recv()


async def test_a_copy_comes_in_paused_because_it_may_go_on_elsewhere(url: str, there: str, bundle: Path) -> None:
    async with Perdure(url) as app:
        await app.tasks.open("deploy", state={"n": 1})
        await export(app.tasks, "deploy", bundle)
    async with Perdure(there) as app:
        came = await bring_in(app.tasks, bundle)
        record = await app.tasks.get("deploy")
        assert came.is_copy and record is not None and record.pause is not None
        assert "may still be going on" in record.pause.message
        task = await app.tasks.handle("deploy")
        await task.resume()
        await task.checkpoint({"n": 2})
        with pytest.raises(AlreadyExists):
            await bring_in(app.tasks, bundle)


async def test_a_task_comes_home_again_after_it_was_deleted_here(url: str, bundle: Path) -> None:
    async with Perdure(url) as app:
        await app.tasks.open("deploy", state={"n": 1})
        await export(app.tasks, "deploy", bundle, move=True)
        with pytest.raises(AlreadyExists):
            await bring_in(app.tasks, bundle)
        await (await app.tasks.handle("deploy")).delete()
        await bring_in(app.tasks, bundle, trust=True)
        record = await app.tasks.get("deploy")
        assert record is not None and record.status == "running"
        await (await app.tasks.handle("deploy")).delete(force=True)
        await bring_in(app.tasks, bundle, trust=True)


# ── refused, with nothing written ────────────────────────────────────────────────────────────────


def _world(folder: Path) -> dict[str, bytes]:
    return {str(path): path.read_bytes() for path in sorted(folder.rglob("*")) if path.is_file()}


@pytest.fixture
def made(there: str, bundle: Path, tmp_path: Path) -> Path:
    async def make() -> None:
        async with Perdure(f"sqlite://{tmp_path}/here/p.db", key=KEY) as app:
            await _saved_task(app, tmp_path / "work")
            await export(app.tasks, "deploy", bundle, move=True)

    asyncio.run(make())
    contexts.forget_contexts()
    return bundle


async def _refused(bundle: Path, there: str, error: type[Exception], match: str, tmp_path: Path, **how: Any) -> None:
    async with Perdure(there, key=how.pop("key", KEY)) as app:
        await app.tasks.open("other", state={})  # so that the store is there
        before = _world(tmp_path / "there/p.db.cuts")
        with pytest.raises(error, match=match):
            await bring_in(app.tasks, bundle, **how)
        assert await app.tasks.get("deploy") is None
        assert _world(tmp_path / "there/p.db.cuts") == before
        rows = await app._store.query("dump_task", uid="anything")
        assert rows == []


@pytest.mark.parametrize("keep", [0, 10, 40, 0.3, 0.9, -1])
async def test_a_truncated_bundle_is_refused(keep: float, made: Path, there: str, tmp_path: Path) -> None:
    data = made.read_bytes()
    made.write_bytes(data[: int(keep * len(data)) if isinstance(keep, float) else int(keep)])
    await _refused(made, there, BundleRefused, "refused", tmp_path)


@pytest.mark.parametrize("where", [0.02, 0.3, 0.6, 0.99])
async def test_an_altered_bundle_is_refused(where: float, made: Path, there: str, tmp_path: Path) -> None:
    data = bytearray(made.read_bytes())
    data[int(where * len(data))] ^= 1
    made.write_bytes(data)
    await _refused(made, there, (BundleRefused, KeyMissing), "re", tmp_path)  # type: ignore[arg-type]


async def test_a_bundle_of_a_newer_perdure_is_refused(made: Path, there: str, tmp_path: Path) -> None:
    made.write_bytes(made.read_bytes().replace(b"perdure bundle 1\n", b"perdure bundle 99\n", 1))
    await _refused(made, there, BundleRefused, "newer", tmp_path)
    made.write_bytes(b"something else")
    await _refused(made, there, BundleRefused, "not a bundle", tmp_path)
    await _refused(tmp_path / "nowhere", there, BundleRefused, "cannot be read", tmp_path)


@pytest.mark.req("R109")
async def test_a_bundle_whose_key_is_not_here_asks_for_it(made: Path, there: str, tmp_path: Path) -> None:
    await _refused(made, there, KeyMissing, "test-key", tmp_path, key=OTHER_KEY)


async def test_an_unsigned_bundle_is_refused_where_there_is_a_key_unless_asked_for(
    bundle: Path, there: str, tmp_path: Path
) -> None:
    async with Perdure(f"sqlite://{tmp_path}/here/p.db") as app:
        await app.tasks.open("deploy", state={"n": 1})
        exported = await export(app.tasks, "deploy", bundle, move=True)
        assert "not forgery" in exported.notes[0]
    await _refused(bundle, there, BundleRefused, "not signed", tmp_path)
    async with Perdure(there, key=KEY) as app:
        assert (await bring_in(app.tasks, bundle, unsigned=True)).notes


def _forge(bundle: Path, change: Any) -> None:
    """What somebody with the key could make: a bundle whose seal fits, with other contents."""
    ring = KeyRing.load(KEY)
    with Bundle(bundle, ring) as found:
        rows = msgspec.msgpack.decode(found.section("rows"))
        change(rows, found.header)
        header = msgspec.structs.replace(found.header, cuts={})
        with open(os.devnull, "rb") as nothing:
            bundle_file.write(bundle, header, [("rows", msgspec.msgpack.encode(rows))], nothing, ring)


@pytest.mark.req("R144")
async def test_a_rewritten_history_is_refused(made: Path, there: str, tmp_path: Path) -> None:
    def rewrite(rows: Any, header: Header) -> None:
        rows["events"][1]["kind"] = "approved"

    _forge(made, rewrite)
    await _refused(made, there, BundleRefused, r"event 2 \(approved\) was changed", tmp_path)


async def test_rows_of_another_task_are_refused(made: Path, there: str, tmp_path: Path) -> None:
    def smuggle(rows: Any, header: Header) -> None:
        rows["journal"].append({"task_uid": "0" * 24, "line": 1, "position": 0, "entry": "\\x00"})

    _forge(made, smuggle)
    await _refused(made, there, BundleRefused, "another task", tmp_path)


@pytest.mark.parametrize(
    "name, target",
    [(b"link", b"/etc/passwd"), (b"link", b"../../out"), (b"../escape", None), (b"a/../../b", None), (b"/abs", None)],
)
async def test_names_and_links_that_lead_out_of_the_workspace_are_refused(
    name: bytes, target: bytes | None, there: str, bundle: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from perdure._runtime.workspace import manifest as manifests

    async with Perdure(f"sqlite://{tmp_path}/here/p.db", key=KEY) as app:
        root = tmp_path / "work"
        root.mkdir()
        if target is not None:
            os.symlink(target, os.path.join(os.fsencode(root), name))
        else:
            (root / "innocent").write_text("x")
            encode = manifests.encode

            def evil(manifest: Any) -> bytes:
                entries = [msgspec.structs.replace(entry, path=name) for entry in manifest.entries]
                return encode(msgspec.structs.replace(manifest, entries=entries))

            monkeypatch.setattr(manifests, "encode", evil)
        task = await app.tasks.open("deploy", state={})
        rt = Continuity(app._store, task.id, task.uid)
        rt.workspace(root)
        await rt.save()
        await export(app.tasks, "deploy", bundle, move=True)
    contexts.forget_contexts()
    await _refused(bundle, there, BundleRefused, "workspace", tmp_path)


async def test_an_import_that_dies_half_way_has_written_nothing_and_works_the_next_time(
    made: Path, tmp_path: Path, children: Any, there: str
) -> None:
    with pytest.raises(ChildDied):
        children.run(die_while_importing, there, str(made))
    async with Perdure(there, key=KEY) as app:
        assert await app.tasks.get("deploy") is None
        await bring_in(app.tasks, made)
        assert (await app.tasks.get("deploy")) is not None


async def die_while_importing(_: Any, url: str, bundle: str) -> None:
    crash.arm("sqlite.before_commit")
    async with Perdure(url, key=KEY) as app:
        await bring_in(app.tasks, bundle)


@pytest.mark.req("R143")
async def test_what_an_unsigned_bundle_would_start_or_change_is_left_alone(
    there: str, bundle: Path, tmp_path: Path
) -> None:
    """A recipe is data: whoever can make a bundle must not be able to write files or start programs by it."""
    precious = tmp_path / "precious"
    precious.write_text("mine")
    async with Perdure(f"sqlite://{tmp_path}/evil/p.db") as app:
        task = await app.tasks.open("deploy", state={})
        rt = Continuity(app._store, task.id, task.uid)
        rt.env = {"LD_PRELOAD": "/tmp/evil.so"}
        rt.variables["harmless"] = 1
        with (tmp_path / "empty").open("wb") as file:
            rt.hold("file", "file_position", file)
            rt.workspace(_evil_files(tmp_path / "autostart"))
            await rt.save()
        (tmp_path / "empty").unlink()
        (tmp_path / "empty").symlink_to(precious)
        await export(app.tasks, "deploy", bundle, move=True)
    import shutil

    shutil.rmtree(tmp_path / "autostart")
    contexts.forget_contexts()
    async with Perdure(there) as app:
        await bring_in(app.tasks, bundle)
        task = await app.tasks.handle("deploy")
        await task.resume()
        rt = Continuity(app._store, task.id, task.uid)
        before = dict(rt.env)
        back = await rt.restore()
        assert back.report.lost == ["environment", "file", "workspace"]
        assert rt.env == before and rt.variables == {"harmless": 1}
        assert precious.read_text() == "mine" and not (tmp_path / "autostart").exists()
        assert "unsigned" in back.report.for_model()
        trusted = await rt.plan(trust=True)
        assert trusted.at("rebuilt") == ["environment", "directory", "variables", "file", "workspace"]


def _evil_files(folder: Path) -> Path:
    folder.mkdir()
    (folder / "evil.desktop").write_text("Exec=evil")
    return folder


# ── no secret in clear ───────────────────────────────────────────────────────────────────────────


@pytest.mark.req("R109", "R142")
async def test_a_bundle_that_is_not_sealed_must_hold_no_secret(
    there: str, bundle: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("APP_TOKEN", "planted-token-value")
    async with Perdure(there) as app:
        rt = await _saved_task(app, tmp_path / "work")
        await export(app.tasks, "deploy", bundle)
        assert b"planted-token-value" not in bundle.read_bytes()
        bundle.unlink()
        (tmp_path / "work/.env").write_text("KEY=planted-token-value")
        await rt.save()
        with pytest.raises(NotAllowed, match=r"the file \.env"):
            await export(app.tasks, "deploy", bundle, move=True)
        record = await app.tasks.get("deploy")
        assert not bundle.exists() and record is not None and record.status == "running"
        await export(app.tasks, "deploy", bundle, workspace=False)
        task = await app.tasks.handle("deploy")
        await task.checkpoint({"oops": "planted-token-value"})
        with pytest.raises(NotAllowed, match="in a checkpoint"):
            await export(app.tasks, "deploy", bundle, workspace=False)


# ── small parts ──────────────────────────────────────────────────────────────────────────────────


def test_paths_are_mapped_by_the_longest_folder_that_holds_them() -> None:
    paths = mapping_for("/home/ada", "/Users/ada", {"/home/ada/desk": "/srv/desk"})
    assert mapped("/home/ada/desk/x", paths) == "/srv/desk/x"
    assert mapped("/home/ada/.venv/bin:/usr/bin", paths) == "/Users/ada/.venv/bin:/usr/bin"
    assert mapped({"a": ["/home/adam", "home/ada"]}, paths) == {"a": ["/home/adam", "home/ada"]}
    assert mapping_for("/root", "/root", {}) == {}


async def test_exporting_what_is_not_there_is_told(there: str, bundle: Path) -> None:
    async with Perdure(there) as app:
        with pytest.raises(NotFound):
            await export(app.tasks, "nobody", bundle)
        task = await app.tasks.open("done", state={})
        await task.complete()
        with pytest.raises(InvalidTransition, match="be moved"):
            await export(app.tasks, "done", bundle, move=True)
        await export(app.tasks, "done", bundle)

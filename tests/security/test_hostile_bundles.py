"""Attacks by a bundle: whoever can hand one over must not write, read, contact, run or break anything by it."""

from __future__ import annotations

import copy
import json
import os
import resource
import socket
import stat
import subprocess
import sys
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import msgspec
import pytest

from perdure import Perdure, durable, pause
from perdure._ground.bridge import drive
from perdure._ground.encoding import codec
from perdure._ground.encoding import deltas as frames
from perdure._ground.secrets import envelope
from perdure._ground.secrets.crypto import KeyRing
from perdure._model import chain, digest
from perdure._runtime.bundles.task_bundle import bring_in, export
from perdure._runtime.context import context as contexts
from perdure._runtime.restore.continuity import Continuity
from perdure.errors import BundleRefused
from perdure.runtime import Fingerprint
from tests.continuity.returning import around
from tests.security.hostile import Rows, forge, growing_pack, honest

KEY = "test-key:" + "QUJDREVGR0hJSktMTU5PUFFSU1RVVldYWVphYmNkZWY="
ROOM = 900 * 1024 * 1024  # what a process needs to begin with, and half a gigabyte
MUCH = 1 << 30
SWOLLEN = 48 * 1024 * 1024  # and fifty times as much when it is made into objects


pytestmark = pytest.mark.usefixtures("fresh_process")


@pytest.fixture
def here(tmp_path: Path) -> Iterator[Perdure]:
    """The store of the victim, with a task of its own in it."""
    app = Perdure(f"sqlite://{tmp_path}/here/p.db")
    drive(app.tasks.open("mine", state={"precious": True}))
    yield app
    drive(app.close())


def everything_in(folder: Path) -> dict[str, bytes]:
    return {str(path): path.read_bytes() for path in sorted(folder.rglob("*")) if path.is_file()}


async def refused(app: Perdure, bundle: Path, **how: Any) -> str:
    """The bundle is refused, nothing of it is there, and everything else still is; why."""
    cuts = Path(app._store.address.target).with_name("p.db.cuts")
    before = everything_in(cuts)
    with pytest.raises(BundleRefused) as caught:
        await bring_in(app.tasks, bundle, **how)
    assert await app.tasks.get("deploy") is None
    assert [task.id for task in (await app.tasks.list()).items] == ["mine"]
    assert everything_in(cuts) == before
    return caught.value.problem


# ── names on a command line ──────────────────────────────────────────────────────────────────────


@pytest.mark.req("R109")
@pytest.mark.parametrize(
    "cuts",
    [
        {"x": "--output={victim}"},
        {"0" * 24: "--output={victim}"},
        {"--output={victim}": "0" * 64},
        {"../../../evil": "0" * 64},
        {"0" * 24: "0" * 63 + "\n"},
    ],
)
async def test_a_name_in_a_bundle_is_never_an_option(cuts: dict[str, str], here: Perdure, tmp_path: Path) -> None:
    victim = tmp_path / "victim"
    victim.write_text("precious")
    bundle = honest(tmp_path, workspace=lambda root: (root / "a").write_text("a") and None)
    told = {name.format(victim=victim): commit.format(victim=victim) for name, commit in cuts.items()}
    forge(bundle, lambda rows, header: header.update(cuts=told))
    await refused(here, bundle)
    assert victim.read_text() == "precious"


# ── nobody is contacted ──────────────────────────────────────────────────────────────────────────


@pytest.fixture
def attacker() -> Iterator[socket.socket]:
    """A server of the attacker, to which nobody comes."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        server.setblocking(False)
        yield server
        with pytest.raises(BlockingIOError):
            server.accept()


def _address(server: socket.socket) -> str:
    return f"127.0.0.1:{server.getsockname()[1]}"


@pytest.mark.req("R109", "R143")
@pytest.mark.parametrize("kind", ["postgres", "api", "git"])
async def test_fingerprints_nobody_signed_are_not_looked_at(
    kind: str, attacker: socket.socket, here: Perdure, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PGPASSWORD", "the password of the victim")
    marks = {
        "postgres": Fingerprint.postgres(f"postgresql://me@{_address(attacker)}/db"),
        "api": Fingerprint.api(f"http://{_address(attacker)}/"),
        "git": Fingerprint.git(tmp_path),
    }
    bundle = tmp_path / "task.perdure"
    async with Perdure(f"sqlite://{tmp_path}/evil/p.db") as app:
        task = await app.tasks.open("deploy", state={})
        rt = Continuity(app._store, task.id, task.uid)
        monkeypatch.setattr("perdure._runtime.context.fingerprints._look", _as_if_seen)
        await rt.expect(marks[kind])
        await rt.save()
        await export(app.tasks, "deploy", bundle, move=True)
    monkeypatch.undo()
    contexts.forget_contexts()
    await bring_in(here.tasks, bundle)
    task = await here.tasks.handle("deploy")
    rt = Continuity(here._store, task.id, task.uid)
    plan = await rt.plan()
    assert [(found.looked, "unsigned" in found.why) for found in plan.findings if found.name != "the user"] == [
        (False, True)
    ]
    await task.resume()
    back = await rt.restore()
    assert "unsigned" in " ".join(back.report.warnings)


async def _as_if_seen(_: Any) -> tuple[Any, str]:
    return "as it was", ""


async def test_a_replay_takes_no_environment_from_a_save_that_nobody_signed(here: Perdure, tmp_path: Path) -> None:
    bundle, apps, ours = tmp_path / "task.perdure", [], {"PATH": "/usr/bin"}

    @durable(name="hostile-function")
    async def work() -> dict[str, str]:
        rt = around(apps[-1], (await apps[-1].tasks.handle("deploy")).uid)
        rt.env = {"LD_PRELOAD": "/tmp/evil.so"} if apps[-1] is not here else dict(ours)
        await rt.save()
        await pause.approval("Go on?")
        return rt.env

    async with Perdure(f"sqlite://{tmp_path}/evil/p.db") as app:
        apps.append(app)
        await app.start("deploy", work)
        async with app.worker():
            await app.tasks.wait_for("deploy", status="paused")
        await export(app.tasks, "deploy", bundle, move=True)
    contexts.forget_contexts()
    apps.append(here)
    await bring_in(here.tasks, bundle)
    await (await here.tasks.handle("deploy")).approve(by="ada")
    async with here.worker():
        assert (await here.tasks.wait_for("deploy")).result == ours


async def test_a_task_that_nobody_signed_waits_for_a_person(here: Perdure, tmp_path: Path) -> None:
    came = await bring_in(here.tasks, honest(tmp_path))
    assert not came.is_trusted and "data only" in " ".join(came.notes)
    record = await here.tasks.get("deploy")
    assert record is not None and record.status == "paused" and record.pause is not None
    assert "is not signed" in record.pause.message and record.state == {"n": 2}


async def test_trust_is_an_act_of_the_user(here: Perdure, tmp_path: Path) -> None:
    bundle = honest(tmp_path)
    came = await bring_in(here.tasks, bundle, trust=True)
    record = await here.tasks.get("deploy")
    assert came.is_trusted and not came.is_signed and record is not None and record.status == "running"


# ── links ────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    "links",
    [
        {"a/up": "..", "out": "a/up/.."},
        {"a/b/top": "../..", "m": "a/b/top/../etc"},
        {"one": "two", "two": "one"},
        {"gone": "nowhere/../../x"},
        {"a/b/x": "../../a/../.."},
        {"far": "a/b/abs/passwd", "a/b/abs": "../../root", "root": "/etc"},
    ],
)
async def test_no_chain_of_links_leads_out_of_the_workspace(
    links: dict[str, str], here: Perdure, tmp_path: Path
) -> None:
    def plant(root: Path) -> None:
        (root / "a" / "b").mkdir(parents=True)
        (root / "a" / "b" / "file").write_text("x")
        for name, target in links.items():
            (root / name).symlink_to(target)

    bundle = honest(tmp_path, workspace=plant)
    assert "points out of it" in await refused(here, bundle)


async def test_links_that_stay_inside_come_in(here: Perdure, tmp_path: Path) -> None:
    def plant(root: Path) -> None:
        (root / "a" / "b").mkdir(parents=True)
        (root / "a" / "b" / "file").write_text("x")
        (root / "a" / "top").symlink_to("..")
        (root / "there").symlink_to("a/top/a/b/../b/file")
        (root / "gone").symlink_to("nowhere/at/all")

    bundle = honest(tmp_path, workspace=plant)
    assert (await bring_in(here.tasks, bundle, trust=True)).workspace


# ── memory ───────────────────────────────────────────────────────────────────────────────────────


def _import_with_little_memory(bundle: Path, folder: Path) -> str:
    """What an import says in a process that may have half a gigabyte more than it begins with."""
    script = (
        "import resource, sys\n"
        f"resource.setrlimit(resource.RLIMIT_AS, ({ROOM}, {ROOM}))\n"
        "from perdure.cli import main\n"
        "sys.exit(main(['import', sys.argv[1]]))\n"
    )
    environ = {**os.environ, "PERDURE_URL": f"sqlite://{folder}/small/p.db", "PERDURE_KEY": ""}
    done = subprocess.run(
        [sys.executable, "-c", script, str(bundle)], env=environ, capture_output=True, text=True, check=False
    )
    assert done.returncode == 2, done.stderr[-2000:]
    return done.stderr


def _many(table: str, row: bytes) -> bytes:
    """Rows of one table, so many that they are gigabytes of objects and pack to a few kilobytes."""
    count = SWOLLEN // len(row)
    head = msgspec.msgpack.encode(table) + b"\xdd" + count.to_bytes(4)
    return b"\x81" + head + row * count


@pytest.mark.req("R109")
@pytest.mark.parametrize("row", [b"\x80", b"\x90", b"\x81\xa0\x80"])
def test_rows_of_two_kilobytes_do_not_become_gigabytes(row: bytes, tmp_path: Path) -> None:
    bundle = honest(tmp_path)
    forge(bundle, lambda rows, header: _many("tasks", row))
    _squeeze(bundle)
    assert bundle.stat().st_size < 64 * 1024
    assert "refused" in _import_with_little_memory(bundle, tmp_path)


def _squeeze(bundle: Path) -> None:
    """Pack the rows as tightly as zstd can, which an honest writer does not."""
    import hashlib

    data = bundle.read_bytes()
    length = int.from_bytes(data[17:21])
    header: dict[str, Any] = msgspec.msgpack.decode(data[21 : 21 + length])
    [[_, size, _]] = header["sections"]
    body = data[21 + length : 21 + length + size]
    plain = envelope.unseal(body, kind="bundle rows", bound_to=header["uid"], ring=KeyRing())
    tight = envelope.seal(plain, kind="bundle rows", bound_to=header["uid"], ring=KeyRing())
    header["sections"] = [["rows", len(tight), hashlib.sha256(tight).digest()]]
    head = msgspec.msgpack.encode(header)
    whole = data[:17] + len(head).to_bytes(4) + head + tight
    bundle.write_bytes(whole + hashlib.sha256(b"perdure bundle" + whole).digest())


def test_a_state_of_two_kilobytes_does_not_become_gigabytes(tmp_path: Path) -> None:
    bundle = honest(tmp_path)

    def swell(rows: Rows, header: dict[str, Any]) -> None:
        state = b"\x81\xa5state\xdd" + SWOLLEN.to_bytes(4) + b"\x90" * SWOLLEN
        row = rows["checkpoints"][-1]
        row["frame"] = "\\x" + envelope.seal(state, "state", header["uid"], KeyRing()).hex()
        row["base"], row["chunks"] = None, 0

    forge(bundle, swell)
    assert "unpack to more than" in _import_with_little_memory(bundle, tmp_path)


def test_a_difference_of_states_does_not_become_gigabytes(tmp_path: Path) -> None:
    bundle = honest(tmp_path)

    def swell(rows: Rows, header: dict[str, Any]) -> None:
        uid, before = header["uid"], b"\x90" * 65536
        made = 1000 * len(before)
        plan = [number for _ in range(1000) for number in (0, 0, len(before))]
        marks = (1, len(before), frames._mark(before), made, 0, plan, 0, 0, 0, b"")
        delta = envelope.seal(msgspec.msgpack.encode(marks), "delta", uid, KeyRing(), compress=True)
        rows["checkpoints"][0]["frame"] = "\\x" + envelope.seal(before, "state", uid, KeyRing()).hex()
        rows["checkpoints"][0].update(base=None, chunks=0)
        rows["checkpoints"].append({**rows["checkpoints"][0], "seq": 99, "parent": rows["checkpoints"][0]["seq"]})
        rows["checkpoints"][-1].update(base=rows["checkpoints"][0]["seq"], frame="\\x" + delta.hex())
        rows["tasks"][0].update(seq=99, state_seq=99)

    forge(bundle, swell)
    assert "unpack to more than" in _import_with_little_memory(bundle, tmp_path)


@pytest.mark.req("R109")
def test_a_pack_of_two_kilobytes_does_not_become_gigabytes(tmp_path: Path) -> None:
    bundle = honest(tmp_path, workspace=lambda root: (root / "a").write_text("a") and None)
    pack = growing_pack(8 * MUCH)
    assert len(pack) < 4096
    forge(bundle, pack=pack)
    assert "a difference that makes 8,58" in _import_with_little_memory(bundle, tmp_path)


def test_a_header_is_small_and_a_pipe_is_not_waited_for(tmp_path: Path) -> None:
    huge = tmp_path / "huge.perdure"
    with huge.open("wb") as file:
        file.write(b"perdure bundle 1\n\xff\xff\xff\xff")
        file.truncate(4 * MUCH)
    assert "no possible length" in _import_with_little_memory(huge, tmp_path)
    os.mkfifo(tmp_path / "pipe")
    assert "it is not a file" in _import_with_little_memory(tmp_path / "pipe", tmp_path)
    assert resource.getrlimit(resource.RLIMIT_AS)[0] != ROOM


# ── records ──────────────────────────────────────────────────────────────────────────────────────


def _set(table: str, **columns: Any) -> Any:
    return lambda rows, header: rows[table][0].update(columns)


def _rewritten(rows: Rows, header: dict[str, Any], **body: Any) -> None:
    """Another last event, with a chain that fits."""
    events, uid = rows["events"], header["uid"]
    last = events[-1]
    data = codec.encode(body)
    before = bytes.fromhex(events[-2]["hash"][2:])
    of = digest(uid, last["kind"], last["at"], last["author"], data)
    last["body"] = "\\x" + envelope.seal(data, "event", uid, KeyRing()).hex()
    last["digest"], last["hash"] = f"\\x{of.hex()}", f"\\x{chain(before, of).hex()}"
    rows["tasks"][0]["event_head"] = last["hash"]


_LEFT = {"status": "running", "pause_reason": None, "pause": None, "due_at": None, "error": None, "finished_at": None}


def _smuggled(table: str, **columns: Any) -> Any:
    def change(rows: Rows, header: dict[str, Any]) -> None:
        row = copy.deepcopy(rows[table][0]) if rows[table] else {}
        mine = {name: header["uid"] if value == "{uid}" else value for name, value in columns.items()}
        rows[table].append({**row, **mine})

    return change


@pytest.mark.req("R109", "R144")
@pytest.mark.parametrize(
    "change",
    [
        _set("tasks", created_at=1 << 60),
        _set("tasks", updated_at="soon"),
        _set("tasks", tags="no json"),
        _set("tasks", tags="[]"),
        _set("tasks", depends_on="{}"),
        _set("tasks", status="eternal"),
        _set("tasks", version=1 << 63),
        _set("tasks", name=None),
        _set("tasks", name="\0"),
        _set("tasks", event_head="\\xzz"),
        _set("tasks", surplus=1),
        _set("tasks", pause_reason="because"),
        _set("checkpoints", author="no json"),
        _set("checkpoints", at=-1),
        _set("checkpoints", base=99),
        _set("checkpoints", frame=None),
        _set("attempts", started_at=1 << 60),
        _set("attempts", pid=[1]),
        _set("leases", epoch={}),
        _smuggled("journal", uid="{uid}", task_uid="0" * 24, line=1, position=1, entry="\\x00"),
        _smuggled("shelf", owner="namespace:default", kind="schedule", key="evil", version=1, due_at=None,
                  changed_at=0, author="{}", value="\\x00"),
        _smuggled("memory", namespace="default", life="", key="other/task", owner="mine", version=1, at=1,
                  expires_at=None, value="\\x00"),
        lambda rows, header: rows.update(workers=[{}]),
        lambda rows, header: rows.update(tasks=[]),
        lambda rows, header: [rows],
        lambda rows, header: _rewritten(rows, header, **{**_LEFT, "uid": "0" * 24}),
        lambda rows, header: _rewritten(rows, header, **{**_LEFT, "status": "eternal"}),
        lambda rows, header: _rewritten(rows, header, **{**_LEFT, "due_at": 1 << 60}),
        lambda rows, header: _rewritten(rows, header, status="running"),
    ],
)  # fmt: skip
async def test_a_record_that_would_break_a_listing_is_refused(change: Any, here: Perdure, tmp_path: Path) -> None:
    bundle = honest(tmp_path)
    forge(bundle, change)
    await refused(here, bundle)
    assert json.dumps([task.state for task in (await here.tasks.list()).items]) == '[{"precious": true}]'


@pytest.mark.parametrize("payload", [b"\x80", b"\x93", b"\xc1\x01", b"\x81\xa6reason\x01"])
@pytest.mark.parametrize("column", ["pause", "progress", "config", "result", "error"])
async def test_whatever_is_in_a_payload_other_tasks_are_still_listed(
    column: str, payload: bytes, here: Perdure, tmp_path: Path
) -> None:
    bundle = honest(tmp_path)

    def plant(rows: Rows, header: dict[str, Any]) -> None:
        sealed = envelope.seal(payload, column, header["uid"], KeyRing())
        rows["tasks"][0][column] = f"\\x{sealed.hex()}"
        rows["tasks"][0].update(pause_reason="checkpoint" if column == "pause" else None)

    forge(bundle, plant)
    with suppress(BundleRefused):
        await bring_in(here.tasks, bundle)
    assert "mine" in [task.id for task in (await here.tasks.list()).items]


@pytest.mark.parametrize(
    "header",
    [
        {"host": "evil\x1b]0;owned\x07"},
        {"host": "x" * 5000},
        {"task_id": "../../etc"},
        {"uid": "x"},
        {"made_at": 1 << 60},
        {"home": 7},
        {"roots": "/"},
    ],
)
async def test_a_header_has_one_form(header: dict[str, Any], here: Perdure, tmp_path: Path) -> None:
    bundle = honest(tmp_path)
    forge(bundle, lambda rows, told: told.update(header))
    assert await refused(here, bundle)


# ── export ───────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.req("R109")
async def test_an_export_follows_no_link_that_was_planted(here: Perdure, tmp_path: Path) -> None:
    victim, shared = tmp_path / "victim", tmp_path / "shared"
    victim.write_text("precious")
    shared.mkdir()
    bundle = shared / "mine.perdure"
    for name in ("mine.perdure", f"mine.perdure.{os.getpid()}.part", f"mine.perdure.{os.getpid()}.body"):
        (shared / name).symlink_to(victim)
    await export(here.tasks, "mine", bundle)
    assert victim.read_text() == "precious"
    assert not bundle.is_symlink() and stat.S_IMODE(bundle.stat().st_mode) == 0o600
    left = {path.name for path in shared.iterdir() if not path.is_symlink()}
    assert left == {"mine.perdure"}


async def test_an_export_that_fails_leaves_nothing(
    here: Perdure, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    shared = tmp_path / "shared"
    shared.mkdir()
    monkeypatch.setattr(os, "fsync", _no_space)
    with pytest.raises(OSError, match="No space"):
        await export(here.tasks, "mine", shared / "mine.perdure")
    assert list(shared.iterdir()) == []


def _no_space(_: int) -> None:
    raise OSError(28, "No space left on device")

"""The disk is full: the call fails loudly, earlier data is intact, and it works again when there is space."""

from __future__ import annotations

import contextlib
import ctypes
import os
import random
import resource
import signal
from collections.abc import Callable
from pathlib import Path
from typing import Any
from unittest import mock

import apsw
import pytest

from perdure import Perdure
from perdure._ground.bridge import drive
from perdure._store.sqlite import SqliteEngine
from perdure.errors import StoreFull, StoreUnavailable
from tests.support.processes import Link, Nursery
from tests.torture.checks import check_rows

DISK = 2_000_000
_NEW_MOUNTS, _NEW_USER = 0x00020000, 0x10000000  # CLONE_NEWNS, CLONE_NEWUSER


@pytest.mark.req("R11")
def test_a_full_disk_is_told_as_such_and_loses_nothing(children: Nursery, folder: Path) -> None:
    told, acknowledged, found = children.run(fill_a_disk, folder)
    assert told == {"checkpoint": StoreFull, "create": StoreFull}
    assert found == list(range(1, acknowledged + 2))


@pytest.mark.req("R11")
def test_a_limit_on_the_size_of_files_is_told_as_such_and_loses_nothing(children: Nursery, folder: Path) -> None:
    told, acknowledged, found = children.run(reach_a_limit, folder)
    assert all(issubclass(error, StoreUnavailable) for error in told.values())
    assert set(told) == {"checkpoint", "create"}
    assert found == list(range(1, acknowledged + 2))


def fill_a_disk(_: Link, folder: Path) -> Any:
    """On a small disk of our own; or, where we may mount none, on a VFS that has as little space."""
    if _mount(folder):
        ballast = folder / "ballast"
        ballast.write_bytes(bytes(DISK // 2))
        return _write_until_it_fails(folder, ballast.unlink)
    small = _SmallDisk()
    with mock.patch("perdure._store.store.make_engine", lambda a: SqliteEngine(Path(a.target), vfs="small-disk")):
        return _write_until_it_fails(folder, small.grow)


def reach_a_limit(_: Link, folder: Path) -> Any:
    signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    hard = resource.getrlimit(resource.RLIMIT_FSIZE)[1]
    resource.setrlimit(resource.RLIMIT_FSIZE, (DISK // 2, hard))
    return _write_until_it_fails(folder, lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (hard, hard)))


def _write_until_it_fails(folder: Path, make_space: Callable[[], None]) -> Any:
    """What each call said when there was no space; the checkpoints acknowledged; those found at the end."""
    url = f"sqlite://{folder}/p.db"
    app, rng = Perdure(url), random.Random(1)
    task = drive(app.tasks.open("t", state={"n": 0}))
    told: dict[str, type[Exception]] = {}
    acknowledged = 0
    while "checkpoint" not in told:
        assert acknowledged < DISK, "the disk never gets full"
        try:
            drive(task.checkpoint({"n": acknowledged + 1, "text": rng.randbytes(40_000).hex()}))
            acknowledged += 1
        except StoreUnavailable as error:
            told["checkpoint"] = type(error)
    try:
        drive(app.tasks.create("another", state={"text": rng.randbytes(40_000).hex()}))
    except StoreUnavailable as error:
        told["create"] = type(error)
    _is_readable(app, acknowledged)  # reading goes on meanwhile
    _is_readable(Perdure(url), acknowledged)

    make_space()
    drive(task.checkpoint({"n": acknowledged + 1}))
    drive(app.tasks.create("another", state={}))
    drive(app.close())
    fresh = Perdure(url)
    check_rows(fresh)
    return told, acknowledged, [checkpoint.data["n"] for checkpoint in _checkpoints(fresh)]


def _is_readable(app: Perdure, acknowledged: int) -> None:
    record = drive(app.tasks.get("t"))
    assert record is not None and record.state["n"] == acknowledged
    assert drive(app.tasks.get("another")) is None


def _checkpoints(app: Perdure) -> list[Any]:
    async def collect() -> list[Any]:
        task = await app.tasks.handle("t")
        return [checkpoint async for checkpoint in task.checkpoints()]

    return drive(collect())


def _mount(folder: Path) -> bool:
    """A small disk at `folder`, seen by this process alone; False where that is not allowed."""
    libc = ctypes.CDLL(None, use_errno=True)
    user = os.getuid()
    if libc.unshare(_NEW_MOUNTS | (_NEW_USER if user else 0)) != 0:
        return False
    if user:
        with contextlib.suppress(OSError):
            Path("/proc/self/setgroups").write_text("deny")
            Path("/proc/self/uid_map").write_text(f"0 {user} 1")
    private = 0x44000  # MS_PRIVATE | MS_REC: nobody else sees what we mount
    if libc.mount(b"none", b"/", None, private, None) != 0:
        return False
    return bool(libc.mount(b"tmpfs", os.fsencode(folder), b"tmpfs", 0, f"size={DISK}".encode()) == 0)


class _SmallDisk(apsw.VFS):
    def __init__(self) -> None:
        self.space = DISK // 2
        super().__init__("small-disk", "")

    def grow(self) -> None:
        self.space = 1 << 60

    def xOpen(self, name: Any, flags: list[int]) -> Any:
        return _SmallFile(name, flags, self)


class _SmallFile(apsw.VFSFile):
    def __init__(self, name: Any, flags: list[int], disk: _SmallDisk) -> None:
        super().__init__("", name, flags)
        self._disk = disk

    def xWrite(self, data: bytes, offset: int) -> None:
        if offset + len(data) > self._disk.space:
            raise apsw.FullError("no space left on this small disk")
        super().xWrite(data, offset)

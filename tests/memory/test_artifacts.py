"""Files of a task: inside one folder and nowhere else, whatever stands in the way."""

from __future__ import annotations

import fcntl
import hashlib
import os
import signal
import socket
import stat
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from perdure import Perdure
from perdure.errors import InvalidInput, PathRefused
from perdure.memory import DurableTaskState
from perdure.memory.artifacts import task_files as artifacts


@pytest.fixture
def base(tmp_path: Path) -> Path:
    folder = tmp_path / "base"
    (folder / "sub").mkdir(parents=True)
    (folder / "sub" / "a.txt").write_text("hello")
    (tmp_path / "secret.txt").write_text("secret")
    return folder


@pytest.mark.req("R137")
async def test_a_file_is_recorded_once_with_its_hash(url: str, base: Path) -> None:
    async with Perdure(url) as app, app.memory("files", [DurableTaskState(base_dir=base)]) as memory:
        layer = memory.layer("task_state")
        for path in ("sub/a.txt", "./sub//a.txt", Path("sub/a.txt")):
            found = await layer.record_artifact(path)
            assert found == ("sub/a.txt", hashlib.sha256(b"hello").hexdigest(), 5)
        await layer.write_artifact("new/deep/b.txt", "b")
        assert layer.state["files"] == ["sub/a.txt", "new/deep/b.txt"]
    async with Perdure(url) as app, app.memory("files", [DurableTaskState(base_dir=base)]) as memory:
        assert memory.layer("task_state").state["files"] == ["sub/a.txt", "new/deep/b.txt"]


REFUSED: dict[str, Any] = {
    "up": "../secret.txt",
    "up inside": "sub/../../secret.txt",
    "up and back": "sub/../sub/a.txt",
    "absolute": "/etc/passwd",
    "empty": "",
    "folder": "sub",
    "the folder itself": ".",
    "trailing slash": "sub/a.txt/",
    "missing": "sub/nothing",
    "below a file": "sub/a.txt/x",
    "line break": "sub/a\n.txt",
    "NUL": "sub/a\0.txt",
    "backslash": "sub\\a.txt",
    "of git": ".git/config",
    "of perdure": "sub/.perdure/x",
}


@pytest.mark.req("R137")
@pytest.mark.parametrize("path", REFUSED.values(), ids=REFUSED)
async def test_a_path_that_leads_elsewhere_is_refused(memory_url: str, base: Path, path: str) -> None:
    async with Perdure(memory_url) as app, app.memory("files", [DurableTaskState(base_dir=base)]) as memory:
        with pytest.raises(PathRefused):
            await memory.layer("task_state").record_artifact(path)
        assert memory.layer("task_state").state["files"] == []


@pytest.mark.req("R137")
@pytest.mark.parametrize("kind", ["link to a file", "link to a folder", "link inside", "pipe", "socket", "device"])
def test_links_pipes_sockets_and_devices_are_refused(base: Path, kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    path = "sub/odd"
    if kind == "link to a file":
        (base / path).symlink_to(base.parent / "secret.txt")
    elif kind == "link inside":
        (base / path).symlink_to("a.txt")
    elif kind == "link to a folder":
        (base / path).symlink_to(base.parent)
        path = "sub/odd/secret.txt"
    elif kind == "pipe":
        os.mkfifo(base / path)
    elif kind == "socket":
        monkeypatch.chdir(base / "sub")
        with socket.socket(socket.AF_UNIX) as opened:
            opened.bind("odd")
    else:
        try:
            os.mknod(base / path, stat.S_IFCHR | 0o600, os.makedev(1, 3))
        except PermissionError:
            (base / path).symlink_to("/dev/null")
    with pytest.raises(PathRefused):
        artifacts.examine(base, path)
    with pytest.raises(PathRefused):
        artifacts.write(base, path, b"x")
    assert (base.parent / "secret.txt").read_text() == "secret"


@pytest.mark.req("R137")
def test_a_link_put_in_the_way_after_the_check_leads_nowhere(base: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The folder was looked at; before it is opened, somebody puts a link in its place."""
    real, seen = os.open, []

    def racing(path: Any, *args: Any, **kwargs: Any) -> int:
        if path == "sub" and not seen:
            seen.append(path)
            (base / "sub").rename(base / "was")
            (base / "sub").symlink_to(base.parent)
        return real(path, *args, **kwargs)

    monkeypatch.setattr(os, "open", racing)
    with pytest.raises(PathRefused):
        artifacts.write(base, "sub/secret.txt", b"overwritten")
    assert seen and (base.parent / "secret.txt").read_text() == "secret"


@pytest.mark.req("R137")
def test_a_folder_that_is_moved_away_meanwhile_takes_the_file_with_it(base: Path) -> None:
    with artifacts._parent(base, ("sub", "a.txt")) as folder:
        (base / "sub").rename(base / "was")
        (base / "sub").symlink_to(base.parent)
        with artifacts._opened(folder, ("sub", "a.txt")) as file:
            assert os.read(file, 10) == b"hello"


@given(path=st.text(st.sampled_from("ab./\\ \n\0é~"), max_size=20))
def test_no_text_is_a_path_that_leads_out(path: str) -> None:
    try:
        names = artifacts.check_path(path)
    except PathRefused:
        return
    assert names and all(name not in ("", ".", "..") and "/" not in name for name in names)


def test_a_file_is_replaced_whole_and_nothing_is_left_beside_it(base: Path) -> None:
    before = (base / "sub" / "a.txt").stat().st_ino
    artifacts.write(base, "sub/a.txt", b"new")
    assert (base / "sub" / "a.txt").read_bytes() == b"new"
    assert (base / "sub" / "a.txt").stat().st_ino != before
    assert os.listdir(base / "sub") == ["a.txt"]


def files_in(base: Path) -> list[str]:
    return sorted(path.name for path in base.iterdir() if path.name != "sub")


@pytest.mark.req("R137")
@pytest.mark.parametrize("name", ["n" * 255, "😀" * 63])
def test_a_name_may_be_as_long_as_the_file_system_takes_it(base: Path, name: str) -> None:
    artifacts.write(base, name, b"long")
    assert files_in(base) == [name]


@pytest.mark.req("R137")
def test_what_a_killed_writer_left_is_used_and_not_left_lying(base: Path) -> None:
    child = os.fork()
    if child == 0:
        os.fsync = lambda _: os.kill(os.getpid(), signal.SIGKILL)  # in the middle: written, and not in its place
        artifacts.write(base, "out.txt", b"half of something long")
        os._exit(1)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == -signal.SIGKILL
    assert files_in(base) == [".out.txt.new"]
    artifacts.write(base, "out.txt", b"whole")
    assert files_in(base) == ["out.txt"]
    assert (base / "out.txt").read_bytes() == b"whole"


@pytest.mark.req("R137")
@pytest.mark.parametrize("kind", ["hard link", "link", "pipe", "folder", "another writer's"])
def test_nothing_is_written_through_what_somebody_put_beside_it(base: Path, tmp_path: Path, kind: str) -> None:
    precious = tmp_path / "precious"
    precious.write_text("precious")
    beside = base / ".out.txt.new"
    held = -1
    if kind == "hard link":
        beside.hardlink_to(precious)
    elif kind == "link":
        beside.symlink_to(precious)
    elif kind == "pipe":
        os.mkfifo(beside)
    elif kind == "folder":
        beside.mkdir()
    else:
        beside.write_text("theirs")
        held = os.open(beside, os.O_WRONLY)
        fcntl.flock(held, fcntl.LOCK_EX)
    artifacts.write(base, "out.txt", b"ours")
    assert (base / "out.txt").read_bytes() == b"ours" and precious.read_text() == "precious"
    assert files_in(base) == [".out.txt.new", "out.txt"]
    if held >= 0:
        assert beside.read_text() == "theirs"
        os.close(held)


async def test_without_a_folder_there_are_no_artifacts(memory_url: str) -> None:
    async with Perdure(memory_url) as app, app.memory("files", [DurableTaskState()]) as memory:
        with pytest.raises(InvalidInput, match="base_dir"):
            await memory.layer("task_state").record_artifact("a")
        assert [tool["name"] for tool in memory.tools()] == ["set_task_data"]

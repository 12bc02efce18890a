"""A workspace is cut and put back whole: what git loses is kept, and the user's repository is never touched."""

from __future__ import annotations

import io
import os
import resource
import signal
from pathlib import Path
from typing import Any

import msgspec
import pytest

from perdure._ground import crash_points as crash
from perdure._ground.secrets.crypto import Key, KeyRing
from perdure._runtime.workspace import contents as workspace_contents
from perdure._runtime.workspace import objects as workspace_objects
from perdure._runtime.workspace import swap as workspace_swap
from perdure._runtime.workspace.cuts import Workspace
from perdure._runtime.workspace.folder_walk import git_changes
from perdure._runtime.workspace.sealer import Sealer
from perdure.errors import CutFailed, KeyMissing, NotFound, RecordDamaged, RestoreFailed
from tests.continuity.trees import git, hash_of, looks, make_project
from tests.support.processes import ChildDied, Link, Nursery

KEY, OTHER_KEY = Key("cuts", b"k" * 32), Key("newer", b"n" * 32)
IGNORED = ("node_modules", "debug.log", "x.tmp")


@pytest.fixture
def project(tmp_path: Path) -> Path:
    return make_project(tmp_path / "project")


@pytest.fixture(params=["in clear", "sealed"])
def workspace(project: Path, tmp_path: Path, request: pytest.FixtureRequest) -> Workspace:
    return Workspace(project, tmp_path / "home", ring=KeyRing([KEY] if request.param == "sealed" else []))


def test_all_that_git_loses_comes_back_elsewhere(workspace: Workspace, project: Path, tmp_path: Path) -> None:
    cut = workspace.cut()
    workspace.restore(cut.id, tmp_path / "elsewhere").done()
    assert looks(tmp_path / "elsewhere") == looks(project, without=(".git", *IGNORED))


def test_ignored_files_and_repositories_come_along_when_asked_for(project: Path, tmp_path: Path) -> None:
    workspace = Workspace(project, tmp_path / "home", ignored=True, repositories=True)
    cut = workspace.cut()
    workspace.restore(cut.id, tmp_path / "elsewhere").done()
    assert looks(tmp_path / "elsewhere", without=()) == looks(project, without=())
    assert git(tmp_path / "elsewhere", "log", "--format=%s") == "first\n"
    assert git(tmp_path / "elsewhere/vendor/nested", "status", "--short") == "?? .gitignore\n?? wip.txt\n"


def test_the_users_repository_is_the_same_to_the_byte_after_cutting_and_restoring(
    workspace: Workspace, project: Path
) -> None:
    git(project, "add", "src/new.py")  # something staged
    before = hash_of(project / ".git"), hash_of(project / "vendor/nested/.git")
    first = workspace.cut()
    (project / "src/main.py").write_text("print('three')\n")
    workspace.cut()
    os.utime(project / ".gitignore")  # looks changed, which git would note in its index
    assert git_changes(project)
    workspace.restore(first.id).done()
    assert (hash_of(project / ".git"), hash_of(project / "vendor/nested/.git")) == before


def test_a_restore_in_place_brings_back_edits_removals_and_additions_and_leaves_ignored_files(
    workspace: Workspace, project: Path
) -> None:
    cut = workspace.cut()
    before = looks(project)
    (project / "src/main.py").write_text("ruined")
    (project / "crlf.txt").unlink()
    (project / "extra/deep").mkdir(parents=True)
    (project / "extra/deep/file").write_text("made since")
    (project / "tool.sh").chmod(0o644)
    (project / "empty/deeper").rmdir()
    (project / "dangling").unlink()
    (project / "dangling").mkdir()  # a folder where a link was
    (project / "vendor/nested/wip.txt").unlink()
    (project / "node_modules/p/index.js").write_text("changed, but ignored")
    os.utime(project / "s.key")
    workspace.restore(cut.id).done()
    after = looks(project)
    assert after.pop("node_modules/p/index.js")[3] == b"changed, but ignored"
    before.pop("node_modules/p/index.js")
    assert after == before


def test_a_file_that_was_ignored_at_the_cut_survives_even_if_the_rule_is_gone(
    workspace: Workspace, project: Path
) -> None:
    cut = workspace.cut()
    (project / ".gitignore").unlink()
    workspace.restore(cut.id).done()
    assert (project / "node_modules/p/index.js").read_text() == "ignored"
    assert (project / ".gitignore").exists()


def test_a_shell_that_stands_in_a_folder_still_stands_there_after_a_restore(
    workspace: Workspace, project: Path
) -> None:
    cut = workspace.cut()
    inode = (project / "src").stat().st_ino
    (project / "src/main.py").write_text("ruined")
    workspace.restore(cut.id).done()
    assert (project / "src").stat().st_ino == inode


def test_cutting_again_without_a_change_is_the_same_cut_and_reads_no_file(
    workspace: Workspace, project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for path in project.rglob("*"):
        os.utime(path, ns=(10**18, 10**18), follow_symlinks=False)
    first = workspace.cut()
    _let_settle(workspace)
    read: list[Any] = []
    monkeypatch.setattr("perdure._runtime.workspace.contents.oid_at", lambda *of: read.append(of))
    monkeypatch.setattr(workspace_objects.Objects, "write", lambda *_: pytest.fail("nothing was to be written"))
    assert workspace.cut().id == first.id
    assert read == []


def test_a_change_within_the_same_tick_of_the_clock_is_noticed(workspace: Workspace, project: Path) -> None:
    target = project / "src/main.py"
    target.write_text("one")
    status = target.stat()
    first = workspace.cut()
    target.write_text("two")
    os.utime(target, ns=(status.st_atime_ns, status.st_mtime_ns))
    _make_times_equal(workspace, target)  # as when both writes fall into one tick of the file system's clock
    second = workspace.cut()
    assert second.id != first.id
    workspace.restore(first.id).done()
    assert target.read_text() == "one"


def test_a_cut_costs_what_has_changed(workspace: Workspace, project: Path) -> None:
    workspace.cut()
    (project / "src/main.py").write_text("edited")
    assert workspace.cut().changed == 1
    (project / "src/copy.py").write_text("edited")
    assert workspace.cut().changed == 1, "its contents are new at this path"


def test_a_folder_without_git_is_cut_whole(tmp_path: Path) -> None:
    plain = tmp_path / "plain"
    (plain / "sub").mkdir(parents=True)
    (plain / "sub/a.log").write_text("kept")
    (plain / ".gitignore").write_text("*.log\n")
    workspace = Workspace(plain, tmp_path / "home")
    cut = workspace.cut()
    workspace.restore(cut.id, tmp_path / "copy").done()
    assert looks(tmp_path / "copy") == looks(plain)
    empty = tmp_path / "empty"
    empty.mkdir()
    nothing = Workspace(empty, tmp_path / "home")
    nothing.restore(nothing.cut().id, tmp_path / "nothing").done()
    assert list((tmp_path / "nothing").iterdir()) == []


def test_what_cannot_be_cut_is_named_and_left_alone_by_a_restore(workspace: Workspace, project: Path) -> None:
    os.mkfifo(project / "pipe")
    cut = workspace.cut()
    assert cut.left_out == ("pipe: neither a file, a folder nor a link",)
    (project / "src/main.py").write_text("changed")
    workspace.restore(cut.id).done()
    assert (project / "pipe").is_fifo()


def test_a_restore_can_be_taken_back_whole(workspace: Workspace, project: Path) -> None:
    cut = workspace.cut()
    (project / "src/main.py").write_text("later")
    (project / "later").mkdir()
    (project / "crlf.txt").unlink()
    before = looks(project)
    swap = workspace.restore(cut.id)
    assert looks(project) != before
    assert swap.undo() == []
    assert looks(project) == before


@pytest.mark.req("R90")
def test_a_restore_that_fails_half_way_leaves_the_folder_as_it_was(
    workspace: Workspace, project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    cut = workspace.cut()
    for name in ("src/main.py", "src/new.py", "crlf.txt", "tool.sh"):
        (project / name).write_text("later")
    (project / "empty/deeper").rmdir()
    before, beside = looks(project), set(project.parent.iterdir())
    taken = 0
    take = workspace_swap._take

    def fail_at_the_fifth(step: Any, place: Any) -> None:
        nonlocal taken
        taken += 1
        if taken == 5:
            raise OSError(28, "No space left on device", "somewhere")
        take(step, place)

    monkeypatch.setattr(workspace_swap, "_take", fail_at_the_fifth)
    with pytest.raises(RestoreFailed, match="No space left"):
        workspace.restore(cut.id)
    assert taken == 5
    assert looks(project) == before
    assert set(project.parent.iterdir()) == beside, "no stage is left"


@pytest.mark.req("R90")
@pytest.mark.parametrize("place", [1, 4, 6])
def test_a_process_killed_in_the_middle_of_a_restore_is_undone_by_the_next(
    place: int, children: Nursery, workspace: Workspace, project: Path
) -> None:
    cut = workspace.cut()
    for name in ("src/main.py", "src/new.py", "crlf.txt", "tool.sh"):
        (project / name).write_text("later")
    (project / "extra").mkdir()
    before = looks(project)
    is_sealed = workspace.objects.sealer is not None
    with pytest.raises(ChildDied):
        children.run(die_while_restoring, str(project), str(workspace.home), cut.id, place, is_sealed)
    assert workspace_swap.recover(workspace.home) == [str(project)]
    assert looks(project) == before
    assert not [path for path in project.parent.iterdir() if path.name.startswith(".perdure-restore-")]


@pytest.mark.req("R90")
def test_what_somebody_has_written_since_a_process_died_in_a_restore_is_not_taken_back(
    children: Nursery, workspace: Workspace, project: Path
) -> None:
    cut = workspace.cut()
    for name in ("src/main.py", "src/new.py", "crlf.txt", "tool.sh"):
        (project / name).write_text("later")
    is_sealed = workspace.objects.sealer is not None
    with pytest.raises(ChildDied):
        children.run(die_while_restoring, str(project), str(workspace.home), cut.id, 4, is_sealed)
    put_back = [path for path in ("src/main.py", "src/new.py", "crlf.txt", "tool.sh") if _is_as_cut(project / path)]
    (project / put_back[0]).write_text("a person's work")
    workspace_swap.recover(workspace.home)
    assert (project / put_back[0]).read_text() == "a person's work"
    for name in put_back[1:]:
        assert (project / name).read_text() == "later"


def _is_as_cut(path: Path) -> bool:
    return path.read_text() != "later"


def die_while_restoring(_: Link, project: str, home: str, cut: str, place: int, is_sealed: bool) -> None:
    crash.arm("workspace.step", place)
    Workspace(project, home, ring=KeyRing([KEY] if is_sealed else [])).restore(cut)


def test_a_full_disk_in_the_middle_of_a_cut_is_told_and_harms_no_earlier_cut(
    children: Nursery, workspace: Workspace, project: Path, tmp_path: Path
) -> None:
    first = workspace.cut()
    before = looks(project, without=(".git", *IGNORED))
    for number in range(4):
        (project / f"large{number}").write_bytes(os.urandom(400_000))
    told = children.run(cut_without_space, str(project), str(workspace.home))
    assert "cannot save" in told and "every earlier save" in told
    assert not list(workspace.objects.folder.glob("fast_import_crash_*"))
    workspace.restore(first.id, tmp_path / "earlier").done()
    assert looks(tmp_path / "earlier") == before
    again = workspace.cut()  # and with space again it works
    workspace.restore(again.id, tmp_path / "now").done()
    assert looks(tmp_path / "now") == looks(project, without=(".git", *IGNORED))


def cut_without_space(_: Link, project: str, home: str) -> str:
    signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    hard = resource.getrlimit(resource.RLIMIT_FSIZE)[1]
    resource.setrlimit(resource.RLIMIT_FSIZE, (600_000, hard))
    try:
        Workspace(project, home).cut()
    except CutFailed as error:
        return str(error)
    return "it was cut"


@pytest.mark.req("R95")
def test_a_damaged_content_is_noticed_and_nothing_is_put_in_place(
    workspace: Workspace, project: Path, tmp_path: Path
) -> None:
    cut = workspace.cut()
    for path in workspace.objects.folder.glob("objects/??/*"):
        content = bytearray(path.read_bytes())
        content[len(content) // 2] ^= 1
        path.chmod(0o600)
        path.write_bytes(content)
    before = looks(project)
    with pytest.raises((CutFailed, NotFound)):
        workspace.restore(cut.id, tmp_path / "elsewhere")
    assert looks(project) == before
    assert not (tmp_path / "elsewhere").exists()


def test_a_restore_elsewhere_needs_an_empty_place(workspace: Workspace, tmp_path: Path) -> None:
    cut = workspace.cut()
    (tmp_path / "full").mkdir()
    (tmp_path / "full/mine").write_text("mine")
    with pytest.raises(RestoreFailed, match="not empty"):
        workspace.restore(cut.id, tmp_path / "full")
    assert [path.name for path in (tmp_path / "full").iterdir()] == ["mine"]


def test_cuts_nobody_needs_are_forgotten_and_the_others_stay_whole(
    workspace: Workspace, project: Path, tmp_path: Path
) -> None:
    first = workspace.cut()
    (project / "src/main.py").write_text("second")
    second = workspace.cut()
    assert workspace.objects.keep_only({second.id}) == [first.id]
    workspace.restore(second.id, tmp_path / "second").done()
    assert looks(tmp_path / "second") == looks(project, without=(".git", *IGNORED))
    with pytest.raises(NotFound):
        workspace.restore(first.id, tmp_path / "first")


def test_settings_and_variables_of_the_users_git_do_not_reach_the_cut(
    workspace: Workspace, project: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    hook = tmp_path / "hook"
    hook.write_text(f"#!/bin/sh\ntouch {tmp_path}/ran\n")
    hook.chmod(0o700)
    git(project, "config", "core.fsmonitor", str(hook))
    git(project, "config", "core.autocrlf", "true")
    (tmp_path / "ran").unlink(missing_ok=True)
    monkeypatch.setenv("GIT_DIR", "/nowhere")
    monkeypatch.setenv("GIT_INDEX_FILE", "/nowhere/index")
    cut = workspace.cut()
    workspace.restore(cut.id, tmp_path / "elsewhere").done()
    assert looks(tmp_path / "elsewhere") == looks(project, without=(".git", *IGNORED))
    assert not (tmp_path / "ran").exists(), "no hook of the repository was run"


def _make_times_equal(workspace: Workspace, target: Path) -> None:
    last = workspace._last()
    assert last is not None
    now = target.stat()
    same = {"ctime_ns": now.st_ctime_ns, "mtime_ns": now.st_mtime_ns, "size": now.st_size, "ino": now.st_ino}
    seen = [msgspec.structs.replace(s, **same) if s.path == b"src/main.py" else s for s in last.seen]
    workspace._remember(msgspec.structs.replace(last, seen=seen))


def _let_settle(workspace: Workspace) -> None:
    """As if the last cut had been made some time after the last write."""
    last = workspace._last()
    assert last is not None
    seen = [msgspec.structs.replace(thing, is_settled=True) for thing in last.seen]
    workspace._remember(msgspec.structs.replace(last, seen=seen))


@pytest.mark.req("R104", "R105")
async def test_gc_forgets_the_cuts_that_no_checkpoint_names_and_no_other(tmp_path: Path) -> None:
    from perdure import Perdure
    from perdure._runtime import Continuity, tidy_cuts
    from perdure._tasks import Policy, collect

    root = tmp_path / "work"
    root.mkdir()
    async with Perdure(f"sqlite://{tmp_path}/p.db") as app:
        task = await app.tasks.open("work", state={})
        rt = Continuity(app._store, task.id, task.uid)
        kept = rt.workspace(root)
        for number in range(4):
            (root / "file").write_text(f"version {number}")
            await rt.save()
        objects = kept.workspace.objects
        assert await tidy_cuts(app._store) == [], "none is an hour old"
        for note in (objects.home / "owners").iterdir():
            os.utime(note, (1, 1))
        await collect(app._store, Policy(keep_last=1))
        assert len(await tidy_cuts(app._store, dry_run=True)) == 3 and len(objects.cuts()) == 4
        assert len(await tidy_cuts(app._store)) == 3
        (root / "file").unlink()
        root.rmdir()
        assert (await rt.restore()).report.level("workspace") == "rebuilt"
        assert (root / "file").read_text() == "version 3"
        await task.complete()
        await task.delete()
        assert len(await tidy_cuts(app._store)) == 1 and objects.cuts() == {}


# ── sealed ───────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.req("R109", "R142")
def test_with_a_key_neither_contents_nor_names_of_a_cut_lie_in_clear(
    project: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(workspace_contents, "_IN_MEMORY", 3 << 20)
    (project / "telltale-name.txt").write_bytes(b"telltale-content\n" * 100)
    (project / "telltale-large").write_bytes(b"telltale-content\n" + os.urandom(5 << 20))
    (project / "link").symlink_to("telltale-name.txt")
    workspace = Workspace(project, tmp_path / "home", ring=KeyRing([KEY]))
    cut = workspace.cut()

    for word in (b"telltale", b"main.py", b"node_modules"):
        assert not _found(word, workspace.home), word
    workspace.restore(cut.id, tmp_path / "elsewhere").done()
    assert looks(tmp_path / "elsewhere") == looks(project, without=(".git", *IGNORED))
    with pytest.raises(KeyMissing):
        Workspace(project, tmp_path / "home").restore(cut.id, tmp_path / "nowhere")
    assert not (tmp_path / "nowhere").exists()


def _found(word: bytes, home: Path) -> list[str]:
    """Where a word stands: in a file as it lies there, or in an object as git unpacks it."""
    found = [str(path) for path in home.rglob("*") if path.is_file() and word in path.read_bytes()]
    objects = workspace_objects.Objects(home)
    listed = objects.run("cat-file", "--batch-all-objects", "--batch-check=%(objectname) %(objecttype)").decode()
    for oid, kind in (line.split() for line in listed.splitlines()):
        found += [f"{kind} {oid}"] if word in objects.run("cat-file", kind, oid) else []
    return found


@pytest.mark.req("R142")
def test_after_a_change_of_keys_old_cuts_are_read_and_the_next_is_sealed_by_the_new_one(
    project: Path, tmp_path: Path
) -> None:
    home = tmp_path / "home"
    plain = Workspace(project, home).cut()
    old = Workspace(project, home, ring=KeyRing([KEY])).cut()
    both = Workspace(project, home, ring=KeyRing([OTHER_KEY, KEY]))
    new = both.cut()
    assert both.objects.keys() == {plain.id: "", old.id: "cuts", new.id: "newer"}
    for cut in (plain, old, new):
        both.restore(cut.id, tmp_path / cut.id).done()
        assert looks(tmp_path / cut.id) == looks(project, without=(".git", *IGNORED))
    assert Workspace(project, home, ring=KeyRing([OTHER_KEY])).cut().id == new.id


def test_a_sealed_content_that_was_altered_is_noticed(tmp_path: Path) -> None:
    sealer = Sealer(KEY)
    for data in (b"", b"short", b"long " * 100_000, os.urandom(3_000_000)):
        sealed = sealer.whole(data)
        assert _opened(sealer, sealed) == data and sealer.whole(data) == sealed
        for altered in (sealed[:-1], sealed + b"x", sealed[: len(sealed) // 2], b"\0" + sealed, b"", sealed[:1]):
            with pytest.raises(RecordDamaged):
                _opened(sealer, altered)
    two = sealer.whole(os.urandom(2 << 20))
    piece = (1 << 20) + 28
    with pytest.raises(RecordDamaged):
        _opened(sealer, two[:1] + two[1 + piece :] + two[1 : 1 + piece])


def _opened(sealer: Sealer, sealed: bytes) -> bytes:
    out = io.BytesIO()
    sealer.open(io.BytesIO(sealed), out)
    return out.getvalue()

"""Put a staged workspace in place of what is there: all of it, or nothing.

Everything new lies ready in a stage beside the folder before the first step; from then on there are only renames,
and what is replaced or removed is moved into the stage, not deleted. So every step can be taken back, also by
another process: a record of the steps is on disk first, locked by the process that takes them. If that process
dies, the next process that finds the record undoes it. A file that was changed since stays as it is.

No link is followed on the way to a step (safe_paths.py), though one was put in the place of a folder since.

Folders stay the folders they were: a shell that stands in one still stands there afterwards.
"""

from __future__ import annotations

import errno
import fcntl
import os
import secrets
import shutil
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Literal

import msgspec

from perdure._ground import crash_points as crash
from perdure._runtime.workspace import safe_paths as beneath
from perdure._runtime.workspace.folder_walk import STAGE, Found, Walked
from perdure._runtime.workspace.manifest import Entry, Manifest
from perdure.errors import RestoreFailed

Looks = tuple[int, int]  # mode, mtime_ns
# Some file systems keep times no finer than this.
_COARSE_NS = 2_000_000_000


class Step(msgspec.Struct, array_like=True, frozen=True):
    """One step; `before` and `after` are how a thing looks where only that changes."""

    act: Literal["put", "remove", "mkdir", "settle"]
    path: bytes
    after: Looks | None = None
    before: Looks | None = None


class StepRecord(msgspec.Struct, frozen=True):
    root: bytes
    stage: bytes
    steps: Sequence[Step]
    made: Sequence[bytes] = ()  # folders that were made for it, outermost first


# ── deciding ─────────────────────────────────────────────────────────────────────────────────────


def steps_to(
    manifest: Manifest,
    files: Mapping[bytes, tuple[str, str]],
    now: Walked,
    oid_now: Callable[[Found], str],
) -> list[Step]:
    """The steps from what is there now to the cut; what git ignores or ignored, and what was left out, is left alone.

    Raises:
        RestoreFailed: a file of the cut would have to replace a folder that holds what the cut does not know.
    """
    alone = _Alone([*manifest.ignored, *now.ignored, *(path for path, _ in [*manifest.left_out, *now.left_out])])
    wanted = {entry.path: entry for entry in manifest.entries}
    extra = [found for path, found in now.found.items() if _is_in_the_way(found, wanted.get(path))]
    for found in extra:
        if found.path in wanted and alone.holds(found.path):
            name = os.fsdecode(found.path)
            raise RestoreFailed("the workspace", f"{name!r} is a folder now and holds files that are not in the cut")
    extra = [found for found in extra if not alone.holds(found.path)]
    changes = [entry for entry in manifest.entries if _differs(entry, now.found.get(entry.path), files, oid_now)]
    made = [entry for entry in manifest.entries if entry.kind == "folder" and _is_new_folder(entry, now)]
    touched = {
        _parent(path) for path in [*(f.path for f in extra), *(e.path for e in changes), *(e.path for e in made)]
    }
    same = [found for found in now.found.values() if found.kind == "folder" and found.path in touched]
    return [
        *(Step("settle", found.path, _looks(found), _looks(found)) for found in same),  # undone last: their times
        *(Step("remove", found.path) for found in sorted(extra, key=_depth, reverse=True)),
        *(Step("mkdir", entry.path, (entry.mode, entry.mtime_ns)) for entry in sorted(made, key=_depth)),
        *(Step("put", entry.path, (entry.mode, entry.mtime_ns)) for entry in changes),
        *_settling(manifest, now, touched, {entry.path for entry in [*changes, *made]}),
    ]


def _settling(manifest: Manifest, now: Walked, touched: set[bytes], fresh: set[bytes]) -> list[Step]:
    """Modes and times: of what is otherwise the same, and of every folder that something was put into."""
    steps = []
    for entry in sorted(manifest.entries, key=_depth, reverse=True):
        found, looks = now.found.get(entry.path), (entry.mode, entry.mtime_ns)
        if entry.kind == "folder" and (entry.path in touched or entry.path in fresh):
            steps.append(Step("settle", entry.path, looks, _looks(found) if found else looks))
        elif found is not None and entry.path not in fresh and _looks(found) != looks and entry.kind != "link":
            steps.append(Step("settle", entry.path, looks, _looks(found)))
    return steps


def _is_in_the_way(found: Found, entry: Entry | None) -> bool:
    return entry is None or (entry.kind == "folder") != (found.kind == "folder")


def _is_new_folder(entry: Entry, now: Walked) -> bool:
    found = now.found.get(entry.path)
    return found is None or found.kind != "folder"


def _differs(
    entry: Entry, found: Found | None, files: Mapping[bytes, tuple[str, str]], oid_now: Callable[[Found], str]
) -> bool:
    if entry.kind == "folder":
        return False
    if found is None or found.kind != entry.kind or found.size != entry.size:
        return True
    return oid_now(found) != files[entry.path][1]


def _looks(found: Found) -> Looks:
    return found.mode, found.mtime_ns


def _parent(path: bytes) -> bytes:
    return path.rpartition(b"/")[0]


def _depth(item: Found | Entry) -> int:
    return item.path.count(b"/")


class _Alone:
    """The paths that are not touched: these, all below them, and the folders that lead to them."""

    def __init__(self, paths: Sequence[bytes]) -> None:
        self._paths = set(paths)
        self._above = {above for path in paths for above in _above(path)}

    def holds(self, path: bytes) -> bool:
        return path in self._above or path in self._paths or any(above in self._paths for above in _above(path))


def _above(path: bytes) -> Iterator[bytes]:
    while path := _parent(path):
        yield path


# ── doing ────────────────────────────────────────────────────────────────────────────────────────


class Swap:
    """A restore under way: `apply`, then `done` or `undo`."""

    record: StepRecord

    def __init__(self, home: Path, record: StepRecord, file: int, path: Path) -> None:
        self._home, self.record, self._file, self._path = home, record, file, path

    @classmethod
    def prepare(cls, home: Path, root: Path, stage: Path, steps: Sequence[Step], made: Sequence[Path] = ()) -> Swap:
        """The plan of a swap. It is on disk before the first step is done."""
        folder = home / "restores"
        folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        path = folder / f"{secrets.token_hex(8)}.restore"
        record = StepRecord(os.fsencode(root), os.fsencode(stage), steps, [os.fsencode(folder) for folder in made])
        os.sync()  # the staged files first: a rename must not outlive what it names
        fresh = path.with_suffix(".new")
        file = os.open(fresh, os.O_CREAT | os.O_EXCL | os.O_RDWR | os.O_CLOEXEC, 0o600)
        fcntl.flock(file, fcntl.LOCK_EX)
        with open(file, "wb", closefd=False) as out:
            out.write(msgspec.msgpack.encode(record))
        os.fsync(file)
        fresh.rename(path)
        _sync_folder(folder)
        return cls(home, record, file, path)

    def apply(self) -> None:
        """Take every step, or take back those that were taken.

        Raises:
            RestoreFailed: a step failed; the folder is as it was.
        """
        stage = Path(os.fsdecode(self.record.stage))
        (stage / "old").mkdir(exist_ok=True)
        try:
            for number, step in enumerate(self.record.steps):
                _take(step, _Place(self.record, number))
                crash.place("workspace.step")
        except OSError as error:
            left = self.undo()
            name = os.fsdecode(error.filename) if error.filename else "a file"
            raise RestoreFailed("the workspace", f"{name}: {error.strerror}", left) from error

    def undo(self) -> list[str]:
        """Everything as it was before `apply`; what could not be taken back, which is then left in the stage."""
        left = _undo(self.record)
        self._forget(remove_stage=not left)
        unmake(self.record.made)  # the stage may have stood in one of them
        return left

    def done(self) -> None:
        """It stands; what was replaced is let go."""
        self._forget(remove_stage=True)

    def _forget(self, *, remove_stage: bool) -> None:
        self._path.unlink(missing_ok=True)
        os.close(self._file)
        if remove_stage:
            shutil.rmtree(os.fsdecode(self.record.stage), ignore_errors=True)


class _Place:
    """The paths of one step: the target, the source, and the place for the former contents."""

    def __init__(self, record: StepRecord, number: int) -> None:
        self.root, self.path = record.root, record.steps[number].path
        self.new = os.path.join(record.stage, b"new", b"%d" % number)
        self.old = os.path.join(record.stage, b"old", b"%d" % number)


def _take(step: Step, place: _Place) -> None:
    with beneath.parent_of(place.root, place.path) as (parent, name):
        if step.act == "mkdir":
            os.mkdir(name, 0o700, dir_fd=parent)
        elif step.act == "settle":
            _settle(parent, name, step.after)
        else:
            if step.act == "remove" or beneath.is_there(parent, name):
                os.rename(name, place.old, src_dir_fd=parent)
            if step.act == "put":
                os.rename(place.new, name, dst_dir_fd=parent)


def _undo(record: StepRecord) -> list[str]:
    left = []
    for number in reversed(range(len(record.steps))):
        try:
            _take_back(record.steps[number], _Place(record, number))
        except OSError as error:
            left.append(f"{os.fsdecode(record.steps[number].path)} ({error.strerror})")
    return left


def unmake(folders: Sequence[bytes]) -> None:
    """Remove folders that were made for a restore, if nothing is in them."""
    for folder in reversed(folders):
        with suppress(OSError):
            os.rmdir(folder)


def _take_back(step: Step, place: _Place) -> None:
    """Undo one step, whether it was taken, half taken or not at all: the stage tells."""
    try:
        with beneath.parent_of(place.root, place.path) as (parent, name):
            _take_back_in(parent, name, step, place)
    except FileNotFoundError:
        if os.path.lexists(place.old):  # else there is nothing to be taken back
            raise


def _take_back_in(parent: int, name: bytes, step: Step, place: _Place) -> None:
    if step.act == "mkdir":
        os.rmdir(name, dir_fd=parent)
    elif step.act == "settle":
        _settle(parent, name, step.before)
    else:
        if step.act == "put" and not os.path.lexists(place.new) and beneath.is_there(parent, name):
            written = os.stat(name, dir_fd=parent, follow_symlinks=False).st_mtime_ns
            if step.after is not None and _was_written(written, step.after[1]):
                raise OSError(errno.EBUSY, "it was changed since")
            os.rename(name, place.new, src_dir_fd=parent)
        if os.path.lexists(place.old):
            os.rename(place.old, name, dst_dir_fd=parent)


def _was_written(now_ns: int, put_ns: int) -> bool:
    """True if a file has another time than it was put there with; where times are whole seconds, about the same is."""
    is_coarse = now_ns % 1_000_000_000 == 0
    return abs(now_ns - put_ns) > _COARSE_NS if is_coarse else now_ns != put_ns


def _settle(parent: int, name: bytes, looks: Looks | None) -> None:
    if looks is not None:
        beneath.set_mode(parent, name, looks[0])
        os.utime(name, ns=(looks[1], looks[1]), dir_fd=parent, follow_symlinks=False)


# ── the stage, and what a dead process left ──────────────────────────────────────────────────────


def make_stage(root: Path) -> Path:
    """A folder on the same file system as `root`: beside it, or inside it where there is no room beside."""
    name = os.fsdecode(STAGE) + secrets.token_hex(8)
    for parent in (root.parent, root):
        stage = parent / name
        try:
            if parent.stat().st_dev != (root if root.exists() else root.parent).stat().st_dev:
                continue
            stage.mkdir(mode=0o700)
            (stage / "new").mkdir()
            return stage
        except PermissionError:
            continue
    raise RestoreFailed("the workspace", f"nothing can be written beside or inside {root}")


def make_root(root: Path) -> list[Path]:
    """The folder and those above it, where they are missing; what was made, outermost first."""
    missing = [folder for folder in (root, *root.parents) if not folder.exists()]
    root.mkdir(parents=True, exist_ok=True)
    return missing[::-1]


def recover(home: Path) -> list[str]:
    """Undo the restores whose process has died; the folders that were put back."""
    found = []
    for path in sorted((home / "restores").glob("*.restore")):
        with suppress(OSError):
            file = os.open(path, os.O_RDWR | os.O_CLOEXEC)
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except OSError:
                os.close(file)  # it is being done right now
                continue
            found += _recover(home, path, file)
    return found


def _recover(home: Path, path: Path, file: int) -> list[str]:
    try:
        record = msgspec.msgpack.decode(path.read_bytes(), type=StepRecord)
    except (msgspec.MsgspecError, FileNotFoundError):
        # It was never whole, so no step was taken; or another process has just done this.
        path.unlink(missing_ok=True)
        os.close(file)
        return []
    Swap(home, record, file, path).undo()
    return [os.fsdecode(record.root)]


def _sync_folder(folder: Path) -> None:
    handle = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)

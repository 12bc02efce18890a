"""List a folder: every file, link and folder, except those that must not be in a cut.

Left out are perdure's own folders, the inside of repositories (`.git`, unless asked for) and, where git knows
the folder, what git ignores (unless asked for). Nested repositories are walked like any folder, each with its
own rules. Paths are bytes, relative to the root, because names on disk need not be text.

Owns the question "what belongs to this workspace?". It reads and changes nothing, the user's repository least of all.
"""

from __future__ import annotations

import os
import stat
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal, NamedTuple

from perdure._ground import git
from perdure.errors import CutFailed

Kind = Literal["file", "link", "folder"]
REPOSITORY = b".git"
# Ours: the store beside the user's files, and what a restore has staged.
STORE = b".perdure"
STAGE = b".perdure-restore-"
# How the folder of cuts is named after a store's file, and the files a SQLite store has beside it.
CUTS = ".cuts"
_OF_A_STORE = ("", "-wal", "-shm", ".turn", f".keeper-{os.getuid()}")


class Found(NamedTuple):
    """One thing in a folder; `ino`, `mtime_ns` and `ctime_ns` tell whether it was written since."""

    path: bytes
    kind: Kind
    mode: int
    size: int
    ino: int
    mtime_ns: int
    ctime_ns: int


@dataclass(slots=True)
class Walked:
    """The paths found, those that git ignores, and those that cannot be in a cut, with the reason."""

    found: dict[bytes, Found] = field(default_factory=dict)
    ignored: list[bytes] = field(default_factory=list)
    left_out: list[tuple[bytes, str]] = field(default_factory=list)


def walk(root: Path, *, ignored: bool, repositories: bool, home: Path | None = None) -> Walked:
    """Everything in `root` that belongs to a cut; `home`, where cuts are kept, and the store beside it do not.

    Raises:
        CutFailed: the folder is not there, or git cannot tell what it ignores.
    """
    if not root.is_dir():
        raise CutFailed(str(root), "it is not a folder", do="name a folder that exists")
    walked = Walked()
    top = os.fsencode(root)
    skipped: set[bytes] = set()
    if not ignored and _is_under_git(root):
        _note_ignored(walked, skipped, top, b"")
    skipped |= _own(root, home)
    folders = [b""]
    while folders:
        folder = folders.pop()
        if folder and not ignored and os.path.lexists(os.path.join(top, folder, REPOSITORY)):
            _note_ignored(walked, skipped, top, folder)
        for found in _look(walked, top, folder, repositories):
            if found.path in skipped:
                continue
            walked.found[found.path] = found
            if found.kind == "folder":
                folders.append(found.path)
    return walked


def _own(root: Path, home: Path | None) -> set[bytes]:
    """The paths in `root` that are perdure's: where cuts are kept, and the files of the store they belong to."""
    if home is None:
        return set()
    place = os.path.relpath(os.path.realpath(home), os.path.realpath(root))
    store = place.removesuffix(CUTS)
    beside = [store + suffix for suffix in _OF_A_STORE] if store != place else []
    return {os.fsencode(path) for path in [place, *beside]}


def _look(walked: Walked, top: bytes, folder: bytes, repositories: bool) -> Iterator[Found]:
    try:
        entries = list(os.scandir(os.path.join(top, folder)))
    except OSError as error:
        walked.left_out.append((folder, f"the folder cannot be read: {error.strerror}"))
        return
    for entry in entries:
        name = entry.name
        if name == STORE or name.startswith(STAGE) or (name == REPOSITORY and not repositories):
            continue
        path = folder + b"/" + name if folder else name
        try:
            status = entry.stat(follow_symlinks=False)
        except FileNotFoundError:
            continue  # gone since
        kind = _kind_of(status.st_mode)
        if kind is None:
            walked.left_out.append((path, "neither a file, a folder nor a link"))
            continue
        size = status.st_size if kind != "folder" else 0
        mode = stat.S_IMODE(status.st_mode)
        yield Found(path, kind, mode, size, status.st_ino, status.st_mtime_ns, status.st_ctime_ns)


def _kind_of(mode: int) -> Kind | None:
    if stat.S_ISREG(mode):
        return "file"
    if stat.S_ISDIR(mode):
        return "folder"
    return "link" if stat.S_ISLNK(mode) else None


# ── what git ignores ─────────────────────────────────────────────────────────────────────────────


def _is_under_git(root: Path) -> bool:
    return any(os.path.lexists(folder / ".git") for folder in (root, *root.resolve().parents))


def _note_ignored(walked: Walked, skipped: set[bytes], top: bytes, folder: bytes) -> None:
    listed = _ask_git(
        os.path.join(top, folder), "ls-files", "-z", "--others", "--ignored", "--exclude-standard", "--directory"
    )
    for name in filter(None, listed.split(b"\0")):
        path = (folder + b"/" + name if folder else name).rstrip(b"/")
        skipped.add(path)
        walked.ignored.append(path)


def git_head(root: Path) -> str | None:
    """The commit a repository stands at ("" before its first); None without git."""
    if not _is_under_git(root):
        return None
    try:
        return _ask_git(os.fsencode(root), "rev-parse", "--verify", "-q", "HEAD").decode().strip()
    except CutFailed:
        return ""


def git_changes(root: Path) -> bytes:
    """The differences from that commit, as git lists them, also in nested repositories; empty when there are none."""
    folder = os.fsencode(root)
    # Not into submodules: there git would go by their own configuration, with the filters it names.
    status = ("status", "--porcelain", "-z", "--untracked-files=normal", "--ignore-submodules=dirty")
    found = _ask_git(folder, *status, filters=False)
    for line in filter(None, _ask_git(folder, "ls-files", "-s", "-z").split(b"\0")):
        about, _, name = line.partition(b"\t")
        inner = os.path.join(folder, name)
        if about.startswith(b"160000 ") and os.path.lexists(os.path.join(inner, REPOSITORY)):
            changes = git_changes(Path(os.fsdecode(inner)))
            found += b"%b\0%b" % (name, changes) if changes else b""
    return found


def _ask_git(folder: bytes, *question: str, filters: bool = True) -> bytes:
    """An answer of git about the user's repository; it takes no lock and runs no program the repository names."""
    try:
        more: dict[str, str] = {} if filters else git.without_filters(git.own_filters(folder))
        done = subprocess.run(
            git.command(*question), cwd=folder, env=git.environment(more), capture_output=True, check=False
        )
    except OSError as error:
        raise _no_git(os.fsdecode(folder), error) from error
    if done.returncode:
        problem = done.stderr.decode(errors="replace").strip() or f"git ended with {done.returncode}"
        raise CutFailed(os.fsdecode(folder), f"git: {problem}", do="mend the repository, or cut with ignored=True")
    return done.stdout


def _no_git(folder: str, error: OSError) -> CutFailed:
    return CutFailed(folder, f"git cannot be started ({error.strerror})", do="install git 2.29 or newer")

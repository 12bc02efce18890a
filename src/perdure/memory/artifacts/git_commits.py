"""Commit a task's own files, and nothing else; all that the user sees is one new commit.

Built from plumbing: the files are hashed, put into a copy of HEAD's tree through a private index, and HEAD is moved
unless another process moved it meanwhile. Staged changes of the user stay staged, and are not committed. In the user's
index only the entries of the committed paths are updated, so that the next `git commit` does not remove the files
again; an entry the user has staged for such a path is left as it is.

Committed files are not committed again: the new tree is compared with HEAD's. So a process that died between a commit
and its own record of it finds the commit there.
"""

from __future__ import annotations

import subprocess
import tempfile
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from perdure._ground import git
from perdure.errors import PathRefused
from perdure.memory.artifacts import task_files as artifacts

_SECONDS = 20.0
# Another process can move HEAD at the same moment, several times in a row.
_TRIES = 50
# While one of these files exists, a merge or the like is under way, and HEAD must not be moved.
_BUSY = ("MERGE_HEAD", "CHERRY_PICK_HEAD", "REVERT_HEAD", "rebase-merge", "rebase-apply", "BISECT_LOG")
_NOBODY = {"NAME": "perdure", "EMAIL": "perdure@localhost"}
_PATIENCE = 0.05


class NotCommitted(Exception):
    """The repository cannot take a commit now; the message says why. The files are as they were."""


class Commit(NamedTuple):
    head: str  # where HEAD is now
    made: bool  # by this call
    files: tuple[str, ...]  # given files whose contents in HEAD equal those on disk
    ignored: tuple[str, ...] = ()
    is_settled: bool = True  # the user's index was updated too


def commit(base: Path, paths: Sequence[str], message: str) -> Commit:
    """Commit the present contents of these files to the repository around `base`, in one commit at most.

    Raises:
        NotCommitted: there is neither git nor a repository, or the repository is in the middle of a merge.
    """
    repository = _Repository(base)
    repository.refuse_if_busy()
    wanted, ignored = repository.not_ignored(paths)
    blobs = repository.hash(base, wanted)
    if not blobs:
        return Commit(repository.head() or "", False, (), ignored)
    for _ in range(_TRIES):
        before = repository.head()
        tree = repository.tree_with(before, blobs)
        if before is not None and tree == repository.tree_of(before):
            return Commit(before, False, tuple(blobs), ignored, repository.bring_index_along(before, blobs))
        new = repository.commit_tree(tree, before, message)
        repository.refuse_if_busy()
        if repository.move_head(new, before):
            return Commit(new, True, tuple(blobs), ignored, repository.bring_index_along(new, blobs))
    raise NotCommitted("gave up committing: other processes kept moving HEAD")


def head_of(base: Path) -> str | None:
    """The HEAD commit of the repository around `base`; None without one."""
    try:
        return _Repository(base).head()
    except NotCommitted:
        return None


class _Repository:
    def __init__(self, base: Path) -> None:
        self._base = base
        found = self._git("rev-parse", "--show-prefix", "--absolute-git-dir", "--is-bare-repository").splitlines()
        self._prefix, self._folder = found[0], Path(found[1])
        if found[2] != "false":
            raise NotCommitted("the repository is bare")

    def _git(self, *words: str, stdin: bytes = b"", index: str = "", check: bool = True) -> str:
        done = self._run(words, stdin=stdin, index=index)
        if done.returncode and check:
            said = done.stderr.decode(errors="replace").strip().splitlines()
            raise NotCommitted(f"git {words[0]}: {said[0] if said else f'exit code {done.returncode}'}")
        return "" if done.returncode else done.stdout.decode(errors="surrogateescape")

    def _run(self, words: Sequence[str], stdin: bytes = b"", index: str = "") -> subprocess.CompletedProcess[bytes]:
        env = git.environment()
        if "--" in words:  # the arguments that follow are paths; a star in them is not a pattern
            env["GIT_LITERAL_PATHSPECS"] = "1"
        if index:
            env["GIT_INDEX_FILE"] = index
        if words[0] == "commit-tree":
            env |= self._author()
        command = git.command("-C", str(self._base), *words)
        try:
            return subprocess.run(command, input=stdin, capture_output=True, env=env, timeout=_SECONDS, check=False)
        except FileNotFoundError:
            raise NotCommitted("git is not installed, or its folder is gone") from None
        except subprocess.TimeoutExpired:
            raise NotCommitted(f"git {words[0]} took longer than {_SECONDS:g} s") from None

    def _author(self) -> dict[str, str]:
        """The author that git would use, or perdure if git knows none."""
        found: dict[str, str] = {}
        for word, key in (("NAME", "user.name"), ("EMAIL", "user.email")):
            if not self._git("config", key, check=False).strip():
                found |= {f"GIT_AUTHOR_{word}": _NOBODY[word], f"GIT_COMMITTER_{word}": _NOBODY[word]}
        return found

    # ── looking ─────────────────────────────────────────────────────────────────────────────────

    def refuse_if_busy(self) -> None:
        for name in _BUSY:
            if (self._folder / name).exists():
                raise NotCommitted(f"the repository is in the middle of something ({name}); it is left alone")

    def head(self) -> str | None:
        return self._git("rev-parse", "--verify", "--quiet", "HEAD^{commit}", check=False).strip() or None

    def tree_of(self, commit: str) -> str:
        return self._git("rev-parse", f"{commit}^{{tree}}").strip()

    def not_ignored(self, paths: Sequence[str]) -> tuple[list[str], tuple[str, ...]]:
        listed = "\0".join(paths).encode(errors="surrogateescape")
        if not listed:
            return [], ()
        ignored = self._git("check-ignore", "-z", "--stdin", stdin=listed, check=False).split("\0")
        return [path for path in paths if path not in ignored], tuple(path for path in paths if path in ignored)

    def hash(self, base: Path, paths: Sequence[str]) -> dict[str, tuple[str, str]]:
        """Write each file to the object store; returns mode and blob by path from the top of the repository."""
        self._refuse_filtered(paths)
        found: dict[str, tuple[str, str]] = {}
        for path in paths:
            try:
                data, mode = artifacts.read(base, path), "100755" if artifacts.is_executable(base, path) else "100644"
            except PathRefused:
                continue  # deleted since it was recorded
            blob = self._git("hash-object", "-w", "--stdin", f"--path={self._prefix}{path}", stdin=data).strip()
            found[path] = (mode, blob)
        return found

    def _refuse_filtered(self, paths: Sequence[str]) -> None:
        """Refuse files with a filter that the repository defines. The filter is a program that the repository names, so
        it is not run. It is not skipped either, because it might encrypt the file."""
        own = git.own_filters(self._base)
        listed = "\0".join(paths).encode(errors="surrogateescape")
        if not own or not listed:
            return
        told = self._git("check-attr", "-z", "--stdin", "filter", stdin=listed).split("\0")
        for path, name in zip(told[::3], told[2::3], strict=False):
            if name in own:
                raise NotCommitted(
                    f"{path} goes through the filter {name!r}, a program that the repository itself names; "
                    "if you trust it, define it in yours (git config --global)"
                )

    # ── making ──────────────────────────────────────────────────────────────────────────────────

    def tree_with(self, head: str | None, blobs: Mapping[str, tuple[str, str]]) -> str:
        with tempfile.TemporaryDirectory(prefix="perdure-index-") as folder:
            index = str(Path(folder) / "index")
            self._git("read-tree", head or "--empty", index=index)
            self._git("update-index", "-z", "--add", "--index-info", stdin=self._entries(blobs), index=index)
            return self._git("write-tree", index=index).strip()

    def _entries(self, blobs: Mapping[str, tuple[str, str]]) -> bytes:
        lines = [f"{mode} {blob}\t{self._prefix}{path}\0" for path, (mode, blob) in blobs.items()]
        return "".join(lines).encode(errors="surrogateescape")

    def commit_tree(self, tree: str, parent: str | None, message: str) -> str:
        parents = ("-p", parent) if parent else ()
        return self._git("commit-tree", tree, *parents, "-F", "-", stdin=message.encode()).strip()

    def move_head(self, new: str, before: str | None) -> bool:
        """Move HEAD (and its branch) to the new commit; False if another process moved HEAD first."""
        return self._run(("update-ref", "-m", "commit: perdure", "HEAD", new, before or "")).returncode == 0

    def bring_index_along(self, head: str, blobs: Mapping[str, tuple[str, str]]) -> bool:
        """In the user's index, set our paths to the new commit, except those that the user has staged.

        False when other processes kept the index locked.
        """
        for _ in range(_TRIES):
            behind = {path: entry for path, entry in blobs.items() if self._is_behind(head, path, entry)}
            if not behind:
                return True
            update = ("update-index", "-z", "--add", "--index-info")
            if self._run(update, stdin=self._entries(behind)).returncode == 0:
                return True
            time.sleep(_PATIENCE)
        return False

    def _is_behind(self, head: str, path: str, entry: tuple[str, str]) -> bool:
        listed = self._git("ls-files", "-s", "-z", "--", path).partition("\t")[0].split(" ")
        staged = (listed[0], listed[1]) if len(listed) == 3 else None
        if staged == entry:
            return False
        changed = self._git("log", "-1", "--format=%H", head, "--", path, check=False).strip()
        return staged == self._entry_in(f"{changed}^", path)

    def _entry_in(self, commit: str, path: str) -> tuple[str, str] | None:
        listed = self._git("ls-tree", "-z", commit, "--", path, check=False).partition("\t")[0].split(" ")
        return (listed[0], listed[2]) if len(listed) == 3 else None

"""A repository names programs in its own configuration; perdure asks git about it, and none of them is run."""

from __future__ import annotations

import ast
import os
import subprocess
from pathlib import Path

import pytest

import perdure
from perdure._runtime.workspace.cuts import Workspace
from perdure._runtime.workspace.folder_walk import git_changes, git_head
from perdure.memory.artifacts import git_commits as gitlog

_ME = {f"GIT_{who}_{what}": "me@localhost" for who in ("AUTHOR", "COMMITTER") for what in ("NAME", "EMAIL")}


def git(folder: Path, *words: str) -> str:
    done = subprocess.run(
        ["git", *words], cwd=folder, env={**os.environ, **_ME}, capture_output=True, text=True, check=True
    )
    return done.stdout


@pytest.fixture
def marks(tmp_path: Path) -> Path:
    """Where each program that is run leaves a file."""
    folder = tmp_path / "marks"
    folder.mkdir()
    return folder


def booby_trap(root: Path, marks: Path, *, filter: str = "trap") -> None:
    """Everything in a repository that names a program."""

    def program(name: str, then: str = "cat") -> str:
        path = root / ".git" / f"trap-{name}"
        path.write_text(f"#!/bin/sh\ntouch '{marks}/{name}'\n{then}\n")
        path.chmod(0o755)
        return str(path)

    hooks = root / ".git" / "own-hooks"
    hooks.mkdir()
    for name in ("reference-transaction", "post-index-change", "pre-commit", "post-commit", "post-checkout"):
        for folder in (hooks, root / ".git" / "hooks"):
            folder.mkdir(exist_ok=True)
            (folder / name).symlink_to(program(f"hook-{name}", "exit 0"))
    for name, value in {
        "core.hooksPath": str(hooks),
        "core.fsmonitor": program("fsmonitor", "exit 1"),
        "core.sshCommand": program("ssh"),
        "core.pager": program("pager"),
        "diff.external": program("diff"),
        "gpg.program": program("gpg"),
        "log.showSignature": "true",
        "alias.status": f"!{program('alias')}",
        f"filter.{filter}.clean": program("clean"),
        f"filter.{filter}.smudge": program("smudge"),
        f"filter.{filter}.process": program("process", "exit 1"),
    }.items():
        git(root, "config", name, value)


@pytest.fixture
def root(tmp_path: Path, marks: Path) -> Path:
    root = tmp_path / "repository"
    root.mkdir()
    git(root, "init", "-q")
    (root / "notes.txt").write_text("first\n")
    (root / ".gitignore").write_text("*.log\n")
    git(root, "add", ".")
    git(root, "commit", "-qm", "first")
    return root


@pytest.mark.req("R143")
@pytest.mark.parametrize("filter", ["trap", "a=b.c"])
def test_looking_at_a_repository_runs_none_of_its_programs(
    filter: str, root: Path, marks: Path, tmp_path: Path
) -> None:
    booby_trap(root, marks, filter=filter)
    (root / ".gitattributes").write_text(f"* filter={filter}\n")
    (root / "notes.txt").write_text("other\n")  # as long as before: git has to read it
    assert git_head(root)
    assert b"notes.txt" in git_changes(root)
    Workspace(root, tmp_path / "cuts").cut()
    assert sorted(os.listdir(marks)) == []


def test_a_repository_inside_a_repository_runs_none_of_its_programs_either(
    root: Path, marks: Path, tmp_path: Path
) -> None:
    inner = root / "inner"
    git(root, "clone", "-q", str(root), str(inner))
    git(root, "add", "inner")
    git(root, "commit", "-qm", "with a repository in it")
    assert git_changes(root) == b""
    booby_trap(inner, marks)
    (inner / ".git" / "info").mkdir(exist_ok=True)
    (inner / ".git" / "info" / "attributes").write_text("* filter=trap\n")
    (inner / "notes.txt").write_text("other\n")
    os.utime(inner / "notes.txt", (1, 1))
    assert b"notes.txt" in git_changes(root)
    Workspace(root, tmp_path / "cuts", repositories=True).cut()
    assert sorted(os.listdir(marks)) == []


def test_a_commit_runs_no_hook_and_is_still_the_users_own(
    root: Path, marks: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    config = tmp_path / "gitconfig"
    config.write_text("[user]\n\tname = Ada\n\temail = ada@localhost\n")
    monkeypatch.setenv("HOME", str(tmp_path))
    config.rename(tmp_path / ".gitconfig")
    booby_trap(root, marks)
    (root / "report.md").write_text("done\n")
    made = gitlog.commit(root, ["report.md"], "Add the report")
    assert made.made and sorted(os.listdir(marks)) == []
    shown = git(root, "-c", "core.pager=cat", "-c", "log.showSignature=false", "log", "-1", "--format=%an %ae %s")
    assert shown.strip() == "Ada ada@localhost Add the report"


def test_a_file_that_a_filter_of_the_repository_would_encrypt_is_not_committed_in_clear(
    root: Path, marks: Path
) -> None:
    booby_trap(root, marks)
    (root / ".gitattributes").write_text("*.key filter=trap\n")
    (root / "a.key").write_text("in clear\n")
    before = git(root, "rev-parse", "HEAD")
    with pytest.raises(gitlog.NotCommitted, match=r"a\.key goes through the filter 'trap'"):
        gitlog.commit(root, ["a.key"], "Add a key")
    assert git(root, "rev-parse", "HEAD") == before and sorted(os.listdir(marks)) == []


def test_git_is_started_in_one_place() -> None:
    """The agent of the demo is a user's program, and calls git as users do."""
    source = Path(perdure.__file__).parent
    found = [
        f"{file.relative_to(source)}:{node.lineno}"
        for file in source.rglob("*.py")
        for node in ast.walk(ast.parse(file.read_text(encoding="utf-8")))
        if isinstance(node, ast.List | ast.Tuple)
        and node.elts
        and isinstance(node.elts[0], ast.Constant)
        and node.elts[0].value == "git"
    ]
    assert {place.partition(":")[0] for place in found} == {
        "_ground/git.py",
        "demo/agent.py",
        "demo/stage.py",
    }

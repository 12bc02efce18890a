"""Commits of a task's own files: each once, and the user's work untouched."""

from __future__ import annotations

import asyncio
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from perdure import Perdure
from perdure.memory import DurableTaskState
from perdure.memory.artifacts import git_commits as gitlog
from tests.memory.conftest import git


def log(folder: Path) -> list[str]:
    return git(folder, "log", "--format=%s").splitlines()


def layer(folder: Path, **more: Any) -> DurableTaskState:
    return DurableTaskState(base_dir=folder, git_commit=True, **more)


async def write(app: Perdure, folder: Path, path: str, text: str, task: str = "refactor") -> Any:
    async with app.memory(task, [layer(folder)]) as memory:
        await memory.layer("task_state").write_artifact(path, text)
        await memory.after_turn()
        return list(memory.notes)


@pytest.mark.req("R138")
async def test_an_artifact_is_committed_with_task_and_checkpoint(url: str, repository: Path) -> None:
    async with Perdure(url) as app:
        task = await app.tasks.open("refactor")
        checkpoint = await task.checkpoint({"phase": 1})
        assert await write(app, repository, "src/a.py", "a = 1\n") == []
        message = git(repository, "log", "-1", "--format=%B")
        assert message.splitlines()[0] == "refactor: src/a.py"
        assert "Perdure-Task: refactor" in message and f"Perdure-Checkpoint: {checkpoint.id}" in message
        assert git(repository, "log", "-1", "--format=%an", "--name-only").split() == ["Ada", "src/a.py"]
        assert git(repository, "status", "--porcelain") == ""


@pytest.mark.req("R138")
async def test_only_changes_are_committed_and_each_once(memory_url: str, repository: Path) -> None:
    async with Perdure(memory_url) as app:
        await write(app, repository, "a.txt", "one\n")
        await write(app, repository, "a.txt", "one\n")
        await write(app, repository, "a.txt", "two\n")
        async with app.memory("refactor", [layer(repository)]) as memory:
            await memory.after_turn()
            await memory.complete("success")
    assert log(repository) == ["refactor: a.txt", "refactor: a.txt", "first"]


@pytest.mark.req("R138")
async def test_what_the_user_has_staged_or_changed_is_left_alone(memory_url: str, repository: Path) -> None:
    (repository / "mine.txt").write_text("staged\n")
    git(repository, "add", "mine.txt")
    (repository / "mine.txt").write_text("staged, then changed\n")
    (repository / "README").write_text("changed\n")
    (repository / "other.txt").write_text("untracked\n")
    before = git(repository, "status", "--porcelain")
    async with Perdure(memory_url) as app:
        assert await write(app, repository, "deep/er/ours.txt", "ours\n") == []
    assert git(repository, "status", "--porcelain") == before
    assert git(repository, "show", "--format=", "--name-only", "HEAD").split() == ["deep/er/ours.txt"]
    git(repository, "commit", "-q", "-m", "the user's own")
    assert git(repository, "show", "--format=", "--name-only", "HEAD").split() == ["mine.txt"]
    assert git(repository, "ls-tree", "-r", "--name-only", "HEAD").split() == ["README", "deep/er/ours.txt", "mine.txt"]


@pytest.mark.req("R138")
async def test_an_entry_the_user_has_staged_for_our_own_path_stays(memory_url: str, repository: Path) -> None:
    (repository / "both.txt").write_text("the user's\n")
    git(repository, "add", "both.txt")
    staged = git(repository, "ls-files", "-s", "both.txt")
    async with Perdure(memory_url) as app:
        await write(app, repository, "both.txt", "the task's\n")
    assert git(repository, "ls-files", "-s", "both.txt") == staged
    assert git(repository, "show", "HEAD:both.txt") == "the task's\n"


KILLED = """
import asyncio, os, signal, sys
from perdure import Perdure
from perdure.memory import DurableTaskState
from perdure.memory.artifacts import git_commits as gitlog

url, folder, place = sys.argv[1:]
def die(*_, **__):
    os.kill(os.getpid(), signal.SIGKILL)

if place == "before the commit":
    gitlog.commit = die
elif place == "before HEAD moves":
    gitlog._Repository.move_head = die
elif place == "before the index is brought along":
    gitlog._Repository.bring_index_along = die
elif place == "before it is on record":
    DurableTaskState._take, take = None, DurableTaskState._take
    async def taking(self, *events):
        if type(events[0]).__name__ == "Committed":
            die()
        await take(self, *events)
    DurableTaskState._take = taking

async def main():
    layer = DurableTaskState(base_dir=folder, git_commit=True)
    async with Perdure(url) as app, app.memory("killed", [layer]) as memory:
        await memory.layer("task_state").write_artifact("result.txt", "result\\n")
        await memory.after_turn()

asyncio.run(main())
"""
PLACES = ["before the commit", "before HEAD moves", "before the index is brought along", "before it is on record"]


@pytest.mark.req("R138")
@pytest.mark.parametrize("place", PLACES)
async def test_killed_at_any_place_the_next_attempt_has_it_committed_once(
    tmp_path: Path, repository: Path, place: str
) -> None:
    (repository / "mine.txt").write_text("staged\n")
    git(repository, "add", "mine.txt")
    url = f"sqlite://{tmp_path}/p.db"
    died = subprocess.run([sys.executable, "-c", KILLED, url, str(repository), place], capture_output=True, check=False)
    assert died.returncode == -9, died.stderr
    async with Perdure(url) as app, app.memory("killed", [layer(repository)]) as memory:
        assert memory.layer("task_state").state["files"] == ["result.txt"]
        for _ in range(3):
            await memory.after_turn()
        assert not memory.notes
        assert not await memory.layer("task_state").head_moved()
    assert log(repository) == ["killed: result.txt", "first"]
    assert git(repository, "status", "--porcelain") == "A  mine.txt\n"


@pytest.mark.req("R138")
async def test_in_the_middle_of_a_merge_nothing_is_committed_until_it_is_over(
    memory_url: str, repository: Path
) -> None:
    git(repository, "checkout", "-q", "-b", "side")
    (repository / "README").write_text("side\n")
    git(repository, "commit", "-q", "-a", "-m", "side")
    git(repository, "checkout", "-q", "main")
    (repository / "README").write_text("main\n")
    git(repository, "commit", "-q", "-a", "-m", "main")
    subprocess.run(["git", "-C", str(repository), "merge", "-q", "side"], capture_output=True, check=False)
    assert (repository / ".git" / "MERGE_HEAD").exists()
    before = (repository / ".git" / "index").read_bytes()
    async with Perdure(memory_url) as app, app.memory("refactor", [layer(repository)]) as memory:
        await memory.layer("task_state").write_artifact("a.txt", "a\n")
        await memory.after_turn()
        assert "in the middle of" in memory.notes[-1].what
        assert (repository / ".git" / "index").read_bytes() == before
        assert log(repository)[0] == "main"
        (repository / "README").write_text("both\n")
        git(repository, "add", "README")
        git(repository, "commit", "-q", "-m", "merged")
        await memory.after_turn()
    assert log(repository)[:2] == ["refactor: a.txt", "merged"]
    assert git(repository, "status", "--porcelain") == ""


@pytest.mark.req("R138")
async def test_without_git_or_a_repository_the_run_goes_on(
    memory_url: str, tmp_path: Path, repository: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with Perdure(memory_url) as app:
        notes = await write(app, tmp_path / "no repository", "a.txt", "a", task="one")
        assert "not committed" in notes[-1].what
        monkeypatch.setenv("PATH", str(tmp_path))
        notes = await write(app, repository, "a.txt", "a", task="two")
        assert "git is not installed" in notes[-1].what
        async with app.memory("two", [layer(repository)]) as memory:
            assert memory.layer("task_state").state["files"] == ["a.txt"]


async def test_variables_of_whoever_started_us_lead_to_no_other_repository(
    memory_url: str, repository: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    git(tmp_path, "init", "-q", str(tmp_path / "other"))
    monkeypatch.setenv("GIT_DIR", str(tmp_path / "other" / ".git"))
    monkeypatch.setenv("GIT_INDEX_FILE", str(tmp_path / "index"))
    async with Perdure(memory_url) as app:
        assert await write(app, repository, "a.txt", "a") == []
    monkeypatch.delenv("GIT_DIR")
    monkeypatch.delenv("GIT_INDEX_FILE")
    assert log(repository) == ["refactor: a.txt", "first"]
    assert not (tmp_path / "index").exists()


async def test_an_empty_repository_a_folder_in_it_and_a_detached_head_take_commits(
    memory_url: str, repository: Path, tmp_path: Path
) -> None:
    empty = tmp_path / "empty"
    git(tmp_path, "init", "-q", "-b", "main", str(empty))
    async with Perdure(memory_url) as app:
        assert await write(app, empty / "inner", "a.txt", "a", task="empty") == []
        assert git(empty, "log", "--format=%s by %an", "--name-only").split("\n\n") == [
            "empty: a.txt by perdure",
            "inner/a.txt\n",
        ]
        git(repository, "checkout", "-q", "--detach")
        assert await write(app, repository, "a.txt", "a", task="detached") == []
    assert log(repository) == ["detached: a.txt", "first"]
    assert git(repository, "log", "-1", "--format=%s", "main") == "first\n"


async def test_what_git_ignores_is_not_committed(memory_url: str, repository: Path) -> None:
    (repository / ".gitignore").write_text("*.log\n")
    async with Perdure(memory_url) as app, app.memory("refactor", [layer(repository)]) as memory:
        await memory.layer("task_state").write_artifact("a.log", "a")
        await memory.after_turn()
        await memory.after_turn()
        assert [note.what for note in memory.notes] == ["git ignores a.log"]
    assert log(repository) == ["first"]


@pytest.mark.req("R138")
async def test_many_tasks_commit_to_one_repository_at_once(memory_url: str, repository: Path) -> None:
    async with Perdure(memory_url) as app:
        paths = [f"file {number}.txt" for number in range(6)]
        notes = await asyncio.gather(*(write(app, repository, path, path, task=path) for path in paths))
    assert notes == [[]] * len(paths)
    assert sorted(log(repository)) == sorted([f"{path}: {path}" for path in paths] + ["first"])
    assert git(repository, "status", "--porcelain") == ""


async def test_a_moved_head_is_noticed(memory_url: str, repository: Path) -> None:
    async with Perdure(memory_url) as app:
        async with app.memory("refactor", [layer(repository)]) as memory:
            assert await memory.layer("task_state").head_moved() is None
        await write(app, repository, "a.txt", "a")
        git(repository, "commit", "-q", "--allow-empty", "-m", "somebody")
        async with app.memory("refactor", [layer(repository)]) as memory:
            assert await memory.layer("task_state").head_moved() is True


def test_a_file_that_is_gone_is_passed_over(repository: Path) -> None:
    done = gitlog.commit(repository, ["nothing.txt"], "message")
    assert (done.made, done.files) == (False, ())
    assert log(repository) == ["first"]

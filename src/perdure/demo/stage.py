"""Set the stage for the agent: a repository, a large file, a table, a free port; and its processes."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path
from typing import Any

from perdure.demo.agent import Stage

_IDENTITY = {
    "GIT_AUTHOR_NAME": "demo",
    "GIT_AUTHOR_EMAIL": "demo@localhost",
    "GIT_COMMITTER_NAME": "demo",
    "GIT_COMMITTER_EMAIL": "demo@localhost",
}


def set_stage(folder: Path, store: str, world: str, dsn: str, *, size: int = 50_000_000) -> Stage:
    """A folder with everything in it that the agent finds; the table `applied` is there and empty."""
    folder.mkdir(parents=True, exist_ok=True)
    _make_repository(folder)
    with (folder / "big.csv").open("wb") as big:
        for _ in range(-(-size // 1_000_000)):
            big.write(os.urandom(min(size, 1_000_000)))
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        number = probe.getsockname()[1]
    with _connected(dsn) as connection:
        connection.execute("CREATE TABLE IF NOT EXISTS applied (n int PRIMARY KEY)")
    return Stage(str(folder), store, number, world, dsn)


def _make_repository(folder: Path) -> None:
    def git(*args: str) -> None:
        subprocess.run(["git", *args], check=True, capture_output=True, env={**os.environ, **_IDENTITY})

    draft = folder / "draft"
    git("init", "-q", str(draft))
    (draft / "app.py").write_text("print('hello')\n", encoding="utf-8")
    git("-C", str(draft), "add", ".")
    git("-C", str(draft), "commit", "-qm", "first")
    git("clone", "-q", "--bare", str(draft), str(folder / "origin.git"))


def rows(dsn: str) -> list[int]:
    """The migration as another connection sees it."""
    with _connected(dsn) as connection:
        return [n for (n,) in connection.execute("SELECT n FROM applied ORDER BY n").fetchall()]


@contextmanager
def _connected(dsn: str) -> Iterator[Any]:
    if dsn.startswith("postgresql:"):
        import psycopg

        with psycopg.connect(dsn, autocommit=True) as connection:
            yield connection
    else:
        import apsw

        books = apsw.Connection(dsn)
        books.execute("PRAGMA journal_mode = WAL").fetchall()
        try:
            yield books
        finally:
            books.close()


class Agent:
    """One process of the agent."""

    def __init__(self, stage: Stage, *, waits: bool = False, die_in: int = 0) -> None:
        file = stage.path / "stage.json"
        file.write_text(json.dumps(asdict(stage)), encoding="utf-8")
        self._process = subprocess.Popen(
            [sys.executable, "-m", "perdure.demo.agent", str(file)],
            stdout=subprocess.PIPE,
            text=True,
            env={**os.environ, "STORY_WAITS": "yes" if waits else "", "STORY_DIE_IN": str(die_in)},
            encoding="utf-8",
        )
        self.pid = self._process.pid
        self.lines: list[str] = []

    def said(self) -> Iterator[str]:
        """Line by line, until it has ended."""
        assert self._process.stdout is not None
        for line in self._process.stdout:
            self.lines.append(line.rstrip("\n"))
            yield self.lines[-1]

    def until(self, words: str) -> str:
        """The first line from here on that begins so."""
        for line in self.said():
            if line.startswith(words):
                return line
        raise AssertionError(f"the agent has ended without {words!r}; it said {self.lines}")

    def signal(self, number: int) -> None:
        self._process.send_signal(number)

    def kill(self) -> None:
        """kill -9, this process alone."""
        self._process.kill()
        self.end()

    def end(self) -> int:
        """Its exit code, once it has ended."""
        if self._process.stdout is not None:
            self._process.stdout.close()
        return self._process.wait()


@contextmanager
def agent_on(stage: Stage, *, waits: bool = False, die_in: int = 0) -> Iterator[Agent]:
    """A process of the agent, gone at the end of the block.

    It waits before the last statement, to be killed there; or dies in one, when it is done and not yet on record.
    """
    process = Agent(stage, waits=waits, die_in=die_in)
    try:
        yield process
    finally:
        process.kill()

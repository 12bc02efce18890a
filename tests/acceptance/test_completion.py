"""Tab completion in a real bash, as the reference says how to set it up: commands, options and the ids of tasks."""

from __future__ import annotations

import os
import pty
import re
import select
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

import perdure
from perdure import sync
from tests.docs.pages import ROOT, blocks_of

PATIENCE = 120.0
LINES = next(
    block.text for block in blocks_of(ROOT / "docs/reference/cli.md") if "_PERDURE_COMPLETE=bash" in block.text
).splitlines()


class Bash:
    """An interactive bash on a terminal of its own, in a folder with a store."""

    def __init__(self, folder: Path) -> None:
        program = folder / "bin" / "perdure"
        program.parent.mkdir()
        program.write_text(f'#!/bin/sh\nexec {sys.executable} -m perdure "$@"\n')
        program.chmod(0o755)
        kept = {name: value for name, value in os.environ.items() if not name.startswith("PERDURE_")}
        source = str(Path(perdure.__file__).parents[1])
        own = {"PATH": f"{program.parent}:{kept['PATH']}", "PYTHONPATH": source, "PS1": "ready> ", "TERM": "dumb"}
        self.pid, self._fd = pty.fork()
        if self.pid == 0:
            os.chdir(folder)
            os.execvpe("bash", ["bash", "--norc", "--noprofile", "-i"], {**kept, **own})

    def type(self, text: str) -> None:
        os.write(self._fd, text.encode())

    def read_until(self, words: str) -> str:
        """What it shows up to these words."""
        seen = b""
        while words.encode() not in seen:
            assert select.select([self._fd], [], [], PATIENCE)[0], f"waits for {words!r} after {seen!r}"
            seen += os.read(self._fd, 4096)
        return seen.decode()

    def close(self) -> None:
        os.close(self._fd)
        os.waitpid(self.pid, 0)


@pytest.fixture
def bash(tmp_path: Path) -> Iterator[Bash]:
    with sync.Perdure(tmp_path / ".perdure" / "perdure.db") as app:
        for id in ("nightly", "two words", "a;touch hurt", "b$(touch hurt)", "c*"):
            app.tasks.open(id)
    found = Bash(tmp_path)
    try:
        found.read_until("ready> ")
        found.type(next(line for line in LINES if "bash_source" in line) + '\necho set" "up\n')
        found.read_until("set up\r\n")
        yield found
    finally:
        found.close()


@pytest.mark.req("R148")
def test_bash_completes_commands_options_and_ids(bash: Bash) -> None:
    for typed, completed in (
        ("perdure sho\t", "perdure show "),
        ("perdure show nig\t", "perdure show nightly "),
        ("perdure tasks --sta\t", "perdure tasks --status "),
    ):
        bash.type(typed)
        bash.read_until(completed)
        bash.type("\x15")


def test_an_id_that_is_completed_is_one_word_and_runs_nothing(bash: Bash, tmp_path: Path) -> None:
    (tmp_path / "c1").touch()
    for typed, completed, id in (
        ("two", r"two\ words ", "two words"),
        ("a", r"a\;touch\ hurt ", "a;touch hurt"),
        ("b", r"b\$\(touch\ hurt\) ", "b$(touch hurt)"),
        ("c", r"c\* ", "c*"),
    ):
        bash.type(f"perdure show {typed}\t")
        bash.read_until(completed)
        bash.type("\n")
        assert re.search(rf"^{re.escape(id)}: running", bash.read_until("ready> "), re.MULTILINE)
    assert not (tmp_path / "hurt").exists()

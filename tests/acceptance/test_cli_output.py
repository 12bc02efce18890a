"""What `perdure` prints: JSON that is JSON, text that stays text, and help without a wait."""

from __future__ import annotations

import json
import os
import re
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from perdure._ground.durations import parse_duration
from perdure.cli import commands
from perdure.cli.base import arguments as inputs
from perdure.cli.base.command import SECTIONS
from perdure.cli.output import blocks as parts
from perdure.cli.output import drawing
from tests.acceptance.test_cli import Shell

EVIL = "a\x1b]0;owned\x07b\x1b[2J\x9b31m [red]c[/red]\u202e\r\n."


@pytest.fixture
def shell(tmp_path: Path) -> Shell:
    return Shell(tmp_path)


# ── JSON ─────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.req("R148")
def test_every_verb_answers_with_one_json_document(shell: Shell) -> None:
    life = {
        "create t --state [1] --tag a=b --max-retries 5 --timeout 2h --on-failure pause": ("status", "running"),
        "open t": ("created", False),
        'checkpoint t --state {"n":1} --label one': ("seq", 1),
        "progress t copy --percent 40": ("status", "running"),
        "pause t wait --reason checkpoint": ("status", "paused"),
        "resume t": ("status", "running"),
        "rollback t 1": ("state", {"n": 1}),
        "pin t 1": ("pinned", True),
        "fork t u": ("status", "running"),
        "fail u broken": ("error", {"message": "broken"}),
        "cancel u": ("status", "cancelled"),
        "complete t --result null": ("result", None),
        "wait t": ("is_finished", True),
        "archive t": ("status", "completed"),
        "delete u": ("deleted", True),
        "show t": ("config", None),
        "tasks --archived": ("cursor", None),
        "checkpoints t": ("cursor", None),
        "events t": ("cursor", None),
        "history t": ("cursor", None),
        "diff t 1 2": ("items", []),
    }
    for typed, (name, value) in life.items():
        answer = shell.json(*typed.split(" "))
        assert name in answer and (answer[name] == value or typed == "show t"), typed
        if typed == "show t":
            assert answer["config"] | {"max_retries": 5, "timeout": 7200.0, "on_failure": "pause"} == answer["config"]


def test_whatever_a_state_holds_it_can_be_looked_at(shell: Shell) -> None:
    state = {
        "bytes": b"\x00\xff",
        "moment": datetime(2030, 1, 2, 3, 4, 5, tzinfo=UTC),
        "length": timedelta(minutes=1.5),
        "nothing": float("nan"),
        "money": Decimal("1.10"),
        "set": {1},
        "pair": (1, "a"),
        "keys": {1: "int", (2, 3): "tuple"},
    }
    with shell.app() as app:
        app.tasks.open("t", state=state)
    assert shell.json("show", "t")["state"] == {
        "bytes": "AP8=",
        "moment": "2030-01-02T03:04:05.000Z",
        "length": 90.0,
        "nothing": "nan",
        "money": "1.10",
        "set": [1],
        "pair": [1, "a"],
        "keys": {"1": "int", "[2, 3]": "tuple"},
    }


# ── text of agents ───────────────────────────────────────────────────────────────────────────────


@pytest.fixture
def infested(shell: Shell) -> Shell:
    with shell.app() as app:
        task = app.tasks.create("t", state={EVIL: EVIL}, name=EVIL, description=EVIL, agent=EVIL, tags={"k": EVIL})
        task.checkpoint({"k": EVIL}, label=EVIL)
        task.mark_progress(EVIL, done=1)
        task.pause(EVIL, reason="human_input", question=EVIL, note=EVIL)
        failed = app.tasks.open("f")
        failed.fail({"message": EVIL, EVIL: EVIL})
    return shell


def hidden_in(text: str) -> set[str]:
    return {character for character in text if character in "\x1b\x07\x9b\u202e\r"}


def test_text_of_agents_cannot_act_on_a_terminal(infested: Shell) -> None:
    for typed in ("tasks", "show t --full", "show f", "events t", "diff t 0 1", "tasks --json", "show t --json"):
        done = infested.run(*typed.split())
        assert (done.returncode, done.stderr) == (0, "")
        assert hidden_in(done.stdout) == set()
        assert "[red]c[/red]" in done.stdout
    error = infested.run("show", EVIL).stderr + infested.run(EVIL).stderr + infested.run("show", f"--{EVIL}").stderr
    assert hidden_in(error) == set() and error.count("\n") == 9
    assert json.loads(infested.run("tasks", "--json").stdout)["items"][1]["pause"]["message"] == EVIL


def test_on_a_terminal_there_are_colours_and_the_text_is_still_text(infested: Shell) -> None:
    pytest.importorskip("rich")
    shown = on_terminal(infested, "show", "t")
    assert "\x1b[33mpaused\x1b[0m" in shown
    assert "[red]c[/red]" in shown and "\x1b]0;" not in shown and "\x1b[2J" not in shown and "\x9b" not in shown
    assert "\x1b" not in on_terminal(infested, "show", "t", "--no-color")
    assert "\x1b" not in on_terminal(infested, "show", "t", NO_COLOR="1")


def on_terminal(shell: Shell, *words: str, **environ: str) -> str:
    """What the command writes when its output is a terminal."""
    ours, theirs = os.openpty()
    process = shell.begin(*words, stdout=theirs, env={"TERM": "xterm-256color", "COLUMNS": "200", **environ})
    os.close(theirs)
    shown = b""
    try:
        while piece := os.read(ours, 65536):
            shown += piece
    except OSError:  # how a terminal says that nobody writes to it any more
        pass
    os.close(ours)
    assert process.communicate()[1] == "" and process.returncode == 0
    return shown.decode()


def test_a_terminal_without_the_characters_is_no_reason_to_fail(infested: Shell) -> None:
    done = infested.run("open", "任务", env={"PYTHONIOENCODING": "ascii"})
    assert (done.returncode, done.stderr) == (0, "")
    assert "\\u4efb\\u52a1: running" in done.stdout
    done = infested.run("open", "任务🙂", "--json", env={"PYTHONIOENCODING": "latin-1"})
    assert json.loads(done.stdout)["id"] == "任务🙂"


def test_tables_line_up(capsys: pytest.CaptureFixture[str]) -> None:
    drawing.draw([parts.Table(("id", "status"), [("任务", "running"), ("task-1", "paused")])], may_colour=True)
    assert capsys.readouterr().out == "id      status\n任务    running\ntask-1  paused\n"


# ── help ─────────────────────────────────────────────────────────────────────────────────────────

LOOK = """
import sys
from perdure.cli import main
code = main(sys.argv[1:])
print(*sorted(sys.modules), sep="\\n", file=sys.stderr)
sys.exit(code)
"""


@pytest.mark.parametrize("words", [("--help",), (), ("--version",)])
def test_help_loads_nothing_of_a_store(shell: Shell, words: tuple[str, ...]) -> None:
    done = shell.run(*words, python=("-c", LOOK))
    assert done.returncode == 0
    asked = {"apsw"} if words == ("--version",) else set()  # which SQLite it carries
    heavy = {"apsw", "msgspec", "asyncio", "rich", "cryptography", "perdure._app", "perdure._store", "perdure._model"}
    assert set(done.stderr.split()) & heavy == asked


def test_the_help_of_a_command_opens_no_store(shell: Shell) -> None:
    done = shell.run("pause", "--help", python=("-c", LOOK))
    assert "--reason" in done.stdout and "Options of every command" in done.stdout
    assert set(done.stderr.split()) & {"apsw", "rich", "perdure._app", "perdure._store"} == set()


def test_help_lists_every_command_with_a_line_of_its_own(shell: Shell) -> None:
    listed = shell.run("--help").stdout
    for name, about in {"tasks": "List tasks", "wait": "Wait until", "fork": "Start a new task"}.items():
        assert any(line.split()[:1] == [name] and about in line for line in listed.splitlines())


def test_help_lists_each_file_of_commands_once_and_nothing_else(shell: Shell) -> None:
    folder = Path(commands.__file__).parent
    names = sorted(file.stem.rstrip("_").replace("_", "-") for file in folder.glob("[a-z]*.py"))
    assert sorted(name for section in SECTIONS.values() for name in section) == names
    listed = [line.split()[0] for line in shell.run("--help").stdout.splitlines() if re.match(r"  [a-z]", line)]
    assert set(names) <= set(listed)


# ── what is typed ────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    "text, length",
    [
        ("30s", timedelta(seconds=30)),
        ("10m", timedelta(minutes=10)),
        ("2h", timedelta(hours=2)),
        ("7d", timedelta(days=7)),
        ("1h30m", timedelta(minutes=90)),
        ("250ms", timedelta(milliseconds=250)),
        ("0.5s", timedelta(milliseconds=500)),
        ("30", None),
        ("", None),
        ("s", None),
        ("-5s", None),
        ("5 s", timedelta(seconds=5)),
        ("٣s", None),
        ("9" * 40 + "d", None),
    ],
)
def test_a_length_of_time_is_read_or_refused(text: str, length: timedelta | None) -> None:
    assert parse_duration(text) == length


@pytest.mark.parametrize(
    "text, value",
    [("true", True), ("3", 3), ('"3"', "3"), ("ada", "ada"), ("", ""), ("NaN", "NaN"), ("{", "{"), ("[1]", [1])],
)
def test_a_set_value_is_json_or_else_text(text: str, value: Any) -> None:
    assert inputs.json_or_text(text) == value

"""`perdure schedule …` and what else a person types about coordination."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from perdure import sync
from perdure._durable.declare import versions
from perdure.cli import main

AGENT = """
from perdure import durable

@durable
async def digest(folder: str, most: int = 3) -> str:
    return folder


@durable
async def booking(event: dict[str, int]) -> int:
    return event["n"]
"""


@pytest.fixture
def typed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]):
    """Type a command in a folder of its own; what it answered as JSON, or its exit code when that is not 0."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("PERDURE_URL", raising=False)
    monkeypatch.setattr(versions, "_known", {})  # a process of its own would know no functions yet
    (tmp_path / "reading_agent.py").write_text(AGENT)

    def type_(*words: str):
        code = main([*words, "--json"])
        out = capsys.readouterr()
        return json.loads(out.out) if code == 0 else (code, out.err)

    return type_


@pytest.mark.req("R51")
def test_a_schedule_is_added_listed_paused_resumed_and_removed(typed, capsys: pytest.CaptureFixture[str]):
    added = typed("schedule", "add", "daily", "reading_agent.py:digest", "inbox", "5", "--cron", "0 9 * * 1-5",
                  "--tz", "Europe/Berlin")  # fmt: skip
    assert (added["cron"], added["tz"], added["function"], added["missed"]) == (
        "0 9 * * 1-5",
        "Europe/Berlin",
        "digest",
        "once",
    )
    assert [one["id"] for one in typed("schedule", "list")["items"]] == ["daily"]
    assert typed("schedule", "pause", "daily")["next_at"] is None
    assert typed("schedule", "resume", "daily")["next_at"] is not None
    assert main(["schedule", "list"]) == 0 and "0 9 * * 1-5 Europe/Berlin" in capsys.readouterr().out
    assert main(["schedule", "show", "daily"]) == 0 and "digest" in capsys.readouterr().out
    assert typed("schedule", "remove", "daily") == {"id": "daily", "removed": True}
    assert typed("schedule", "remove", "daily")[0] == 3


def test_what_nobody_can_understand_is_a_usage_error(typed):
    for words in (
        ("s", "reading_agent.py:digest", "x"),
        ("s", "reading_agent.py:digest", "x", "--cron", "0 9 * * *", "--every", "1h"),
        ("s", "reading_agent.py:digest", "x", "--cron", "nine"),
        ("s", "reading_agent.py:nothing", "x", "--every", "1h"),
        ("s", "digest", "x", "--every", "1h"),
    ):
        assert typed("schedule", "add", *words)[0] == 2
    assert typed("schedule", "list")["items"] == []


@pytest.mark.req("R50")
def test_a_trigger_is_added_and_an_event_sent(typed, capsys: pytest.CaptureFixture[str]):
    added = typed("trigger", "add", "book", "reading_agent.py:booking", "--event", "invoice", "--rate", "10/1m")
    assert (added["event"], added["function"], added["schema"]["type"]) == ("invoice", "booking", "object")
    assert typed("trigger", "add", "wake", "--task", "t-{n}", "--signal", "go", "--event", "invoice")["signal"] == "go"
    assert typed("trigger", "add", "drop", "reading_agent.py:digest", "--directory", "in")["source"] == "directory"
    assert [one["id"] for one in typed("trigger", "list")["items"]] == ["book", "drop", "wake"]
    assert typed("event", "send", "invoice", '{"n": 1}', "--id", "e1")["is_new"]
    assert not typed("event", "send", "invoice", '{"n": 1}', "--id", "e1")["is_new"]
    assert typed("event", "send", "invoice", '{"n": "x"}')[0] == 2
    assert typed("event", "send", "nothing")[0] == 3
    assert [one["id"] for one in typed("event", "list")["items"]] == ["e1"]
    for words in (("trigger", "list"), ("event", "list")):
        assert main([*words]) == 0 and "invoice" in capsys.readouterr().out
    assert typed("trigger", "pause", "book")["is_paused"] and not typed("trigger", "resume", "book")["is_paused"]
    assert typed("trigger", "remove", "book")["removed"]


def test_a_trigger_needs_one_moment_and_one_deed(typed):
    for words in (("x",), ("x", "reading_agent.py:digest"), ("x", "--event", "e"), ("x", "--event", "e", "--task", "t"),
                  ("x", "reading_agent.py:digest", "--event", "e", "--file", "f"),
                  ("x", "reading_agent.py:digest", "--event", "e", "--rate", "fast")):  # fmt: skip
        assert typed("trigger", "add", *words)[0] == 2


@pytest.mark.req("R119")
def test_frames_are_seen_and_dropped(typed, tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    typed("open", "t")
    with sync.Perdure(tmp_path / ".perdure" / "perdure.db") as app:
        app.tasks.handle("t").frames.push("rename", goal="one name", done=["a", "b", "c"], next=["d", "e", "f"])
    assert main(["frames", "t"]) == 0
    assert "back to rename, step 4/6: d" in capsys.readouterr().out
    assert main(["where", "t"]) == 0 and "back to rename, step 4/6: d" in capsys.readouterr().out
    left = typed("frames", "t", "--drop", "rename", "--why", "not now")
    assert left["frames"] == [] and left["gone"][0]["why"] == "not now"


def test_a_signal_is_sent_from_the_shell(typed):
    typed("open", "t")
    assert typed("signal", "t", "go", '{"a": 1}')["value"] == {"a": 1}
    typed("complete", "t")
    assert typed("signal", "t", "go")[0] == 4


@pytest.mark.req("R56")
def test_a_task_is_taken_from_the_shell_and_the_history_says_so(typed, tmp_path: Path):
    with sync.Perdure(tmp_path / ".perdure" / "perdure.db") as app, app.tasks.open("t").attempt():
        pass
    assert typed("take", "t")["status"] == "running"
    assert typed("take", "nothing")[0] == 3


@pytest.mark.req("R53")
def test_what_blocks_a_task_is_shown(typed, capsys: pytest.CaptureFixture[str]):
    typed("create", "first")
    typed("create", "second", "--depends-on", "first", "--dependency-policy", "fail")
    assert typed("show", "second")["blocked_by"] == ["task 'first' to complete (running)"]
    assert typed("checkpoint", "second", "--state", "{}")[0] == 4
    for words in (("show", "second"), ("where", "second")):
        assert main([*words]) == 0 and "task 'first' to complete (running)" in capsys.readouterr().out
    assert typed("create", "first", "--depends-on", "second")[0] == 4
    assert typed("create", "third", "--depends-on", "third")[0] == 4


# ── live views ───────────────────────────────────────────────────────────────────────────────────


def perdure(folder: Path, *words: str, **how: Any) -> subprocess.Popen[str]:
    command = [sys.executable, "-m", "perdure", *words, "--store", str(folder / "p.db")]
    return subprocess.Popen(command, cwd=folder, text=True, stdout=subprocess.PIPE, **how)


def test_what_happens_is_followed_until_the_end(tmp_path: Path):
    with sync.Perdure(tmp_path / "p.db") as app:
        app.tasks.open("t")
    with perdure(tmp_path, "events", "t", "--follow", "--json") as following, sync.Perdure(tmp_path / "p.db") as app:
        task = app.tasks.open("t")
        assert following.stdout is not None
        assert json.loads(following.stdout.readline())["kind"] == "created"
        task.complete({"done": True})
        kinds = [json.loads(line)["kind"] for line in following.stdout]
        assert kinds[-1] == "completed" and following.wait() == 0
    with perdure(tmp_path, "attach", "t", "--events", "--json") as attached:
        assert attached.stdout is not None
        assert [json.loads(line)["kind"] for line in attached.stdout][-1] == "completed"


def test_a_task_is_watched_while_another_process_works_on_it(tmp_path: Path):
    with sync.Perdure(tmp_path / "p.db") as app:
        app.tasks.open("t")
    with perdure(tmp_path, "show", "t", "--watch", "--json") as watching, sync.Perdure(tmp_path / "p.db") as app:
        task = app.tasks.open("t")
        assert watching.stdout is not None
        assert json.loads(watching.stdout.readline())["progress"] is None
        task.mark_progress("copy", percent=40)
        seen = json.loads(watching.stdout.readline())
        while seen["progress"] is None:
            seen = json.loads(watching.stdout.readline())
        assert seen["progress"]["percent"] == 40
        task.complete()
        assert json.loads(watching.stdout.readlines()[-1])["status"] == "completed" and watching.wait() == 0


def test_on_a_terminal_the_list_is_drawn_anew_with_bars(tmp_path: Path):
    with sync.Perdure(tmp_path / "p.db") as app:
        task = app.tasks.open("t")
        task.mark_progress("copy", percent=40)
        ours, theirs = os.openpty()
        watching = subprocess.Popen(
            [sys.executable, "-m", "perdure", "tasks", "--watch", "--no-color", "--store", str(tmp_path / "p.db")],
            stdout=theirs,
            stdin=theirs,
            stderr=theirs,
        )
        os.close(theirs)
        screen = b""
        while b"[########------------]  40 %" not in screen:
            screen += os.read(ours, 4096)
        task.mark_progress("copy", percent=100)
        while b"[####################] 100 %" not in screen:
            screen += os.read(ours, 4096)
        watching.send_signal(signal.SIGINT)
        assert watching.wait() == 130
        os.close(ours)

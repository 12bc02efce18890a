"""What a person or a shell script does with `perdure`: the real command, in a folder of its own."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import perdure
from perdure import sync

SOURCE = str(Path(perdure.__file__).parents[1])
PATIENCE = 120


class Shell:
    """A folder to stand in, and `perdure` to type there."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        kept = {name: value for name, value in os.environ.items() if not name.startswith(("PERDURE_", "NO_COLOR"))}
        self.environ = {**kept, "PYTHONPATH": SOURCE}

    def begin(self, *words: str, python: tuple[str, ...] = ("-m", "perdure"), **how: Any) -> subprocess.Popen[str]:
        how = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "stdin": subprocess.DEVNULL, **how}
        how["env"] = {**self.environ, **how.get("env", {})}
        return subprocess.Popen([sys.executable, *python, *words], cwd=self.folder, text=True, **how)

    def run(self, *words: str, stdin: str | None = None, **how: Any) -> subprocess.CompletedProcess[str]:
        process = self.begin(*words, stdin=subprocess.PIPE if stdin is not None else subprocess.DEVNULL, **how)
        out, err = process.communicate(stdin, timeout=PATIENCE)
        return subprocess.CompletedProcess(words, process.returncode, out, err)

    def json(self, *words: str) -> Any:
        done = self.run(*words, "--json")
        assert (done.returncode, done.stderr) == (0, "")
        return json.loads(done.stdout)

    def app(self) -> sync.Perdure:
        """The same store, from this process: the quick way to have something there."""
        return sync.Perdure(self.folder / ".perdure" / "perdure.db")


@pytest.fixture
def shell(tmp_path: Path) -> Shell:
    return Shell(tmp_path)


@pytest.fixture
def app(shell: Shell) -> Iterator[sync.Perdure]:
    with shell.app() as app:
        yield app


def assert_three_lines(stderr: str) -> None:
    what, kept, do, end = stderr.split("\n")
    assert what.startswith("perdure: ") and kept.startswith("  kept: ") and do.startswith("  do:   ") and end == ""


# ── a task's life ────────────────────────────────────────────────────────────────────────────────

SCRIPT = """
set -eu
perdure() { "$PYTHON" -m perdure "$@"; }
perdure open nightly --state '{"done": 0}'
echo '{"done": 15}' | perdure checkpoint nightly --state - --label half
perdure progress nightly copy --done 15 --total 42
perdure pause nightly 'Ship it?' --reason human_approval --set expires=2d --set default=reject
mkdir -p deep/er; cd deep/er                      # the store is found upwards, like git's
perdure tasks --status paused --reason human_approval | grep -q nightly
perdure resume nightly --set approved=true --set by=ada
echo '{"done": 42, "approved": true}' > state.json
perdure checkpoint nightly --state @state.json
perdure complete nightly --result '{"shipped": 42}'
perdure wait nightly --timeout 10s > /dev/null
perdure show nightly --json
"""


@pytest.mark.req("R148", "R13", "R16")
def test_a_shell_script_takes_a_task_from_its_beginning_to_its_end(shell: Shell) -> None:
    environ = {**shell.environ, "PYTHON": sys.executable}
    done = subprocess.run(["sh", "-c", SCRIPT], cwd=shell.folder, env=environ, capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (0, "")
    record = json.loads(done.stdout.splitlines()[-1])
    assert (record["status"], record["result"]) == ("completed", {"shipped": 42})
    assert record["state"] == {"done": 42, "approved": True}
    assert [(one["cause"], one["data"].get("by")) for one in record["checkpoints"]] == [
        ("explicit", None),
        ("resume", "ada"),
        ("explicit", None),
    ]
    assert [one["ended"] for one in record["attempts"]] == ["released", "released", "released", "completed"]
    assert not (shell.folder / "deep/er/.perdure").exists()


@pytest.mark.req("R9", "R12", "R44", "R57")
def test_show_tells_all_there_is_about_a_task(shell: Shell, app: sync.Perdure) -> None:
    task = app.tasks.create(
        "t", state={"n": 1}, name="Nightly", description="the report", agent="coder", tags={"team": "a"}
    )
    task.checkpoint({"n": 2}, label="first")
    task.mark_progress("copy", done=15, total=42)
    task.pause("CI is running", reason="external_dependency", system="ci", job="812", url="https://ci/812")
    app.close()
    record = shell.json("show", "t")
    assert {name: record[name] for name in ("name", "description", "agent", "tags")} == {
        "name": "Nightly",
        "description": "the report",
        "agent": "coder",
        "tags": {"team": "a"},
    }
    assert all(record[name].endswith("Z") for name in ("created_at", "started_at", "updated_at"))
    assert (record["progress"]["percent"], record["progress"]["remaining"]) == (35.71, 27)
    assert record["pause"]["payload"] == {"system": "ci", "job": "812", "url": "https://ci/812"}
    assert [event["kind"] for event in record["events"]] == ["created", "attempt started", "checkpoint", "paused"]
    assert {event["author"]["pid"] for event in record["events"]} == {os.getpid()}
    assert record["attempts"][0]["pid"] == os.getpid() and record["attempts"][0]["ended"] == "paused"
    text = shell.run("show", "t").stdout
    for shown in ("t: paused", "CI is running", "job: 812", "27 left", '{"n": 2}', "first", "Nightly", "team=a"):
        assert shown in text


@pytest.mark.req("R18", "R27")
def test_the_past_is_compared_gone_back_to_and_branched_off_from(shell: Shell, app: sync.Perdure) -> None:
    task = app.tasks.open("t", state={"n": 0})
    for n in (1, 2, 3):
        task.checkpoint({"n": n})
    app.close()
    (change,) = shell.json("diff", "t", "1", "3")["items"]
    assert change == {"path": ["n"], "kind": "changed", "before": 1, "after": 3, "moved_from": None, "place": "n"}
    assert shell.json("checkpoints", "t", "2")["data"] == {"n": 2}
    assert shell.json("rollback", "t", "2")["state"] == {"n": 2}
    assert [one["superseded"] for one in shell.json("checkpoints", "t")["items"]] == [False, False, True]
    assert shell.json("fork", "t", "t2", "--at", "3", "--set", "who=ada")["state"] == {"n": 3, "who": "ada"}
    assert shell.run("rollback", "t", "9").returncode == 3


@pytest.mark.req("R7")
def test_tasks_are_found_by_what_is_known_of_them(shell: Shell, app: sync.Perdure) -> None:
    for n in range(5):
        app.tasks.create(f"t{n}", state={}, agent="even" if n % 2 == 0 else "odd", tags={"n": str(n)})
    app.tasks.handle("t3").pause("later", reason="scheduled_wait", duration="60s")
    app.close()

    def ids(*filters: str) -> list[str]:
        return [record["id"] for record in shell.json("tasks", *filters)["items"]]

    assert ids("--status", "paused", "--reason", "scheduled_wait") == ["t3"]
    assert ids("--agent", "even", "--since", "7d") == ["t4", "t2", "t0"]
    assert ids("--tag", "n=2") == ["t2"]
    assert ids("--since", "2999-01-01") == []
    first = shell.json("tasks", "--limit", "3")
    assert ids("--cursor", first["cursor"]) == ["t1", "t0"]


@pytest.mark.req("R8")
def test_a_running_task_is_deleted_only_by_force(shell: Shell, app: sync.Perdure) -> None:
    app.tasks.open("t")
    app.close()
    refused = shell.run("delete", "t")
    assert refused.returncode == 4 and "`perdure delete --force`" in refused.stderr
    assert shell.run("delete", "t", "--force").returncode == 0
    assert shell.run("show", "t").returncode == 3


def test_what_is_said_of_a_pause_is_read_as_it_is_meant(shell: Shell, app: sync.Perdure) -> None:
    app.tasks.open("t")
    app.close()
    words = ("--set", "job=812", "--set", "every=30s", "--set", "retries=3", "--set", "note=as is")
    pause = shell.json("pause", "t", "CI", "--reason", "external_dependency", *words)["pause"]
    assert pause["payload"] == {"job": "812", "every": 30.0}
    assert pause["details"] == {"retries": 3, "note": "as is"}


@pytest.mark.req("R30")
def test_of_two_who_resume_the_same_task_one_is_told_so(shell: Shell, app: sync.Perdure) -> None:
    app.tasks.open("t").pause("go on?", reason="human_approval")
    app.close()
    both = [shell.begin("resume", "t", "--set", f"by={who}") for who in "ab"]
    answers = [process.communicate(timeout=PATIENCE)[1] for process in both]
    assert sorted(process.returncode for process in both) == [0, 4]
    assert_three_lines("".join(answers))
    assert [event["kind"] for event in shell.json("events", "t")["items"]].count("resumed") == 1


HOLDER = """
from perdure.sync import Perdure
with Perdure() as app, app.tasks.open("nightly-copy").attempt():
    print("at work", flush=True)
    input()
"""


@pytest.mark.req("R111")
def test_a_list_does_not_call_a_task_running_whose_process_has_died(shell: Shell) -> None:
    holder = shell.begin(HOLDER, python=("-c",), stdin=subprocess.PIPE)
    assert holder.stdout is not None and holder.stdout.readline() == "at work\n"
    assert "its worker" not in shell.run("tasks").stdout
    assert not shell.json("tasks")["items"][0]["worker_died"]
    holder.kill()
    holder.communicate()
    assert f"its worker (pid {holder.pid} on " in shell.run("tasks").stdout
    assert shell.json("tasks")["items"][0]["worker_died"]


# ── where the store is, which options there are ──────────────────────────────────────────────────


def test_a_task_that_is_nowhere_is_reported_with_the_store_that_was_searched(shell: Shell) -> None:
    done = shell.run("show", "ghost")
    assert done.returncode == 3
    assert f"no task 'ghost' in {shell.folder}/.perdure/perdure.db" in done.stderr
    assert not (shell.folder / ".perdure").exists(), "looking makes nothing"


def test_the_options_of_every_command_stand_before_or_after_its_name(shell: Shell) -> None:
    store = shell.folder / "elsewhere.db"
    assert shell.run("--store", str(store), "open", "t", "--namespace", "team").returncode == 0
    before = shell.run("--json", "--store", f"sqlite://{store}", "--namespace", "team", "tasks")
    after = shell.run("tasks", "--json", "--store", str(store), "--namespace", "team")
    by_name = shell.run("tasks", "--namespace", "team", "--json", env={"PERDURE_URL": str(store)})
    assert before.stdout == after.stdout == by_name.stdout
    assert [record["id"] for record in json.loads(after.stdout)["items"]] == ["t"]
    assert shell.json("tasks", "--store", str(store))["items"] == [], "another namespace"


def test_an_id_may_begin_with_a_dash(shell: Shell) -> None:
    assert shell.run("open", "--", "-rf").returncode == 0
    assert "-rf: running" in shell.run("show", "--", "-rf").stdout
    mistaken = shell.run("show", "-rf")
    assert mistaken.returncode == 2 and "starts with - after --" in mistaken.stderr


# ── when it goes wrong ───────────────────────────────────────────────────────────────────────────


@pytest.fixture(scope="module")
def troubled(tmp_path_factory: pytest.TempPathFactory) -> Shell:
    """A store with a running, a paused, a failed and a completed task."""
    shell = Shell(tmp_path_factory.mktemp("troubled"))
    with shell.app() as app:
        app.tasks.open("running", state={"n": 0})
        app.tasks.open("paused").pause("go on?", reason="human_approval")
        app.tasks.open("failed").fail({"message": "2 tests failed", "failedTests": ["a", "b"]})
        app.tasks.open("completed").complete(1)
    (shell.folder / "notes.txt").write_text("not a database, and longer than the header of one" * 40)
    return shell


@pytest.mark.req("R148")
@pytest.mark.parametrize(
    "code, words, said",
    [
        (1, "wait failed", "failed"),
        (2, "tasks --colour", "no such option"),
        (2, "taks", "did you mean `perdure tasks`?"),
        (2, "show", "missing argument 'ID'"),
        (2, 'checkpoint running --state {"n":', "line 1 column 6 (character 5)"),
        (2, "complete running --result shipped", "a text needs its own quotes: '\"shipped\"'"),
        (2, "checkpoint running --state @missing.json", "cannot read missing.json"),
        (2, "checkpoint running --state NaN", "NaN"),
        (2, "wait running --timeout 5", "500ms, 30s, 10m, 1h30m or 2d"),
        (2, "tasks --since yesterday", "neither a duration"),
        (2, "tasks --limit 0", "between 1 and 1000"),
        (2, "pause running why --reason bored", "human_approval"),
        (2, "pause running why --reason scheduled_wait", "until="),
        (2, "pause running why --reason checkpoint --set message=x", "no field 'message'"),
        (2, "resume paused --set approved", "key=value"),
        (2, "fail running bad --error 3", "JSON object"),
        (2, "tasks --store gopher://x", "not a kind of store"),
        (2, "tasks --store=", "--store is empty"),
        (3, "show ghost", "no task 'ghost'"),
        (3, "diff running 1 9", "no checkpoint"),
        (4, "create running", "`perdure open` attaches"),
        (4, "complete completed --result 2", "another result"),
        (4, "checkpoint paused --state 1", "perdure resume paused"),
        (6, "wait running --timeout 0s", "waited for"),
        (7, "tasks --store notes.txt", ""),
    ],
)
def test_each_kind_of_failure_has_its_exit_code_and_three_lines(
    troubled: Shell, code: int, words: str, said: str
) -> None:
    done = troubled.run(*words.split(" "))
    assert (done.returncode, done.stdout) == (code, "")
    assert_three_lines(done.stderr)
    assert said in done.stderr


def test_a_task_somebody_works_on_is_not_written_to(shell: Shell, app: sync.Perdure) -> None:
    with app.tasks.open("t").attempt():
        done = shell.run("checkpoint", "t", "--state", "1", "--json")
    assert done.returncode == 4
    error = json.loads(done.stderr)["error"]
    assert (error["type"], error["task_id"], error["pid"]) == ("LeaseHeld", "t", os.getpid())


def test_an_error_is_one_json_object_on_stderr_when_json_is_asked_for(troubled: Shell) -> None:
    done = troubled.run("--json", "show", "ghost")
    error = json.loads(done.stderr)["error"]
    assert (done.returncode, done.stdout, error["exit_code"]) == (3, "", 3)
    assert (error["type"], error["kind"], error["name"]) == ("NotFound", "task", "ghost")
    assert error["what"] and error["kept"] and error["do"]
    usage = troubled.run("show", "--json", "--nonsense")
    assert (usage.returncode, json.loads(usage.stderr)["error"]["type"]) == (2, "Usage")


RAISING = """
import sys
from perdure import errors
from perdure._tasks import Tasks
from perdure.cli import main

async def refuse(self, **_):
    raise {error}

Tasks.list = refuse
sys.exit(main(["tasks"]))
"""


@pytest.mark.parametrize(
    "code, error",
    [
        (5, "errors.NotAllowed('this key may only read', kept='nothing was changed', do='ask for another key')"),
        (70, "RuntimeError('a defect\\n  over two lines')"),
    ],
)
def test_what_is_not_allowed_and_what_is_our_own_fault_are_told_in_three_lines_too(
    shell: Shell, code: int, error: str
) -> None:
    done = shell.run(python=("-c", RAISING.format(error=error)))
    assert (done.returncode, done.stdout) == (code, "")
    assert_three_lines(done.stderr)


def test_a_traceback_is_shown_to_those_who_ask_for_it(shell: Shell) -> None:
    script = RAISING.format(error="RuntimeError('a defect')")
    assert "Traceback" in shell.run(python=("-c", script), env={"PERDURE_DEBUG": "1"}).stderr


def test_an_interrupted_command_says_what_was_kept(shell: Shell, app: sync.Perdure) -> None:
    app.tasks.open("t", state=0)
    app.close()
    pipe = shell.folder / "pipe"
    os.mkfifo(pipe)
    process = shell.begin("checkpoint", "t", "--state", f"@{pipe}")
    with pipe.open("w"):  # opens when the command has begun to read
        process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=PATIENCE)
    assert (process.returncode, out) == (130, "")
    assert_three_lines(err)


def test_a_reader_that_has_seen_enough_is_no_error(shell: Shell, app: sync.Perdure) -> None:
    app.tasks.open("t", state="long " * 100_000)
    app.close()
    reader, writer = os.pipe()
    os.close(reader)
    process = shell.begin("show", "t", "--full", stdout=writer)
    os.close(writer)
    assert process.communicate(timeout=PATIENCE)[1] == ""
    assert process.returncode == 0


def test_an_answer_that_cannot_be_written_is_told(shell: Shell) -> None:
    with open("/dev/full", "w") as full:
        done = shell.run("open", "t", stdout=full)
    assert done.returncode == 74
    assert_three_lines(done.stderr)
    assert shell.run("show", "t").returncode == 0, "the work itself is done"


def test_a_command_without_anywhere_to_write_still_works(shell: Shell) -> None:
    """A cron job may have closed its output."""
    line = '"$0" -m perdure open t >&- && "$0" -m perdure show t 2>&- && "$0" -m perdure show ghost 2>&-'
    done = subprocess.run(
        ["sh", "-c", line, sys.executable], cwd=shell.folder, env=shell.environ, capture_output=True, text=True
    )
    assert (done.returncode, done.stderr) == (3, "")
    assert "ghost" not in done.stdout and "t: running" in done.stdout

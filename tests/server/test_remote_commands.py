"""The command line through a server: the same answers and exit codes as beside the store."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest

from perdure import durable, effect, step, sync
from perdure.cli import main
from perdure.pause import approval
from perdure.server import make_app
from tests.support.asking import ALL, Known
from tests.support.live_server import listening


@step
def fetch(page: int) -> str:
    return f"page {page}"


@effect(undo=lambda result, amount: None)
def charge(amount: int) -> int:
    return amount


@durable
async def errand(pages: int) -> int:
    await approval("ship it?")
    return pages


@durable
async def shopping(amount: int) -> int:
    await approval("buy it?")
    return amount


@pytest.fixture
def address(shared_url) -> Iterator[str]:
    server = make_app(shared_url)
    server._guard, server._identity = None, Known(ALL)
    with listening(server) as address:
        yield address


@pytest.fixture
def run(capsys, monkeypatch) -> Any:
    """One command: its exit code and what it printed, read as JSON."""

    refused: list[Any] = []  # shown when a test fails

    def run(store: str, *words: str) -> tuple[int, Any]:
        monkeypatch.setenv("PERDURE_URL", store)
        try:
            code = main([*words, "--json"])
        except SystemExit as ended:
            code = int(ended.code or 0)
        said = capsys.readouterr()
        if code:
            refused.append((words, code, said.err))
        out = said.out
        return int(code or 0), json.loads(out) if out.strip() else None

    return run


LOOKS = [
    "tasks", "history t", "events t", "checkpoints t", "diff t 1 2", "frames t", "effects t", "effects",
    "handlers", "schedule list", "trigger list", "event list", "kill-switch list", "inbox", "journal t",
]  # fmt: skip


def test_commands_that_look_answer_the_same_through_a_server(address, shared_url, run):
    for number in range(3):
        state = json.dumps({"n": number})
        code, _ = run(shared_url, "open", "t") if number == 0 else run(shared_url, "checkpoint", "t", "--state", state)
        assert code == 0
    run(shared_url, "kill-switch", "on", "other", "--why", "costs")
    for words in LOOKS:
        code, there = run(address, *words.split())
        same_code, here = run(shared_url, *words.split())
        if words == "tasks":  # a server tells ways on as requests
            there, here = _without_ways(there), _without_ways(here)
        assert (words, code, there) == (words, same_code, here)


def _without_ways(found: Any) -> Any:
    return [{**one, "situation": {**one["situation"], "ways": []}} for one in found["items"]]


def test_a_tasks_life_is_led_by_commands_through_a_server(address, run):
    assert run(address, "create", "t", "--state", '{"n": 0}')[0] == 0
    assert run(address, "create", "t")[0] == 4
    assert run(address, "checkpoint", "t", "--state", '{"n": 1}', "--label", "half")[0] == 0
    assert run(address, "progress", "t", "copy", "--percent", "25")[0] == 0
    assert run(address, "pin", "t", "1")[0] == 0
    code, paused = run(address, "pause", "t", "Ship?", "--reason", "human_approval")
    assert (code, paused["status"]) == (0, "paused")
    assert run(address, "complete", "t")[0] == 4
    assert run(address, "approve", "t", "--comment", "fine")[0] == 0
    assert run(address, "rollback", "t", "1")[0] == 0
    assert run(address, "fork", "t", "copy")[0] == 0
    assert run(address, "take", "copy")[0] == 0
    assert run(address, "cancel", "copy")[1]["status"] == "cancelled"
    assert run(address, "archive", "copy")[0] == 0
    assert run(address, "delete", "copy")[0] == 0
    assert run(address, "show", "copy")[0] == 3
    code, shown = run(address, "show", "t")
    assert (code, shown["status"], shown["state"]["n"]) == (0, "running", 1)
    code, where = run(address, "where", "t")
    assert (code, where["status"], bool(where["headline"])) == (0, "running", True)
    assert run(address, "complete", "t", "--result", '{"ok": true}')[0] == 0
    assert run(address, "wait", "t")[1]["result"] == {"ok": True}
    assert run(address, "memory", "t")[0] == 0
    assert run(address, "resume", "t", "--plan")[0] == 0
    assert run(address, "resume", "t")[0] == 4


def test_a_store_is_kept_in_order_by_commands_through_a_server(address, run):
    run(address, "open", "t")
    run(address, "complete", "t")
    code, audit = run(address, "audit", "verify")
    assert (code, audit["is_whole"], audit["tasks"]) == (0, True, 1)
    assert run(address, "audit", "verify", "nothing")[0] == 3
    assert len(run(address, "audit", "export")[1]["tasks"]) == 1
    code, would = run(address, "gc", "--finished-for", "0s", "--dry-run")
    assert (code, would["tasks"], would["dry_run"]) == (0, 1, True)
    assert run(address, "gc", "--finished-for", "0s")[1]["tasks"] == 1
    code, found = run(address, "doctor")
    assert (code, found["problems"]) == (0, 0)
    assert run(address, "keep", "status") == (0, None)
    assert run(address, "workers")[0] == 0
    assert run(address, "drain")[1] == {"drained": []}
    assert run(address, "drain", "1")[0] == 3


def test_a_command_that_needs_the_store_itself_says_so(address, run):
    assert run(address, "units")[0] == 2


def test_a_server_that_does_not_answer_is_an_unreachable_store(run, monkeypatch):
    monkeypatch.setattr("perdure.client.transport.PATIENCE", 0.0)
    monkeypatch.setattr("perdure.client.transport.Transport.__init__.__kwdefaults__", {"patience": 0.0})
    assert run("http://127.0.0.1:9", "tasks")[0] == 7


def test_questions_are_answered_by_commands_through_a_server(address, shared_url, run):
    with sync.Perdure(shared_url) as app:
        app.run_until_paused("e", errand, 3)
        app.run_until_paused("s", shopping, 3)
    assert run(address, "approve", "e")[0] == 0
    assert run(address, "reject", "s", "--comment", "no")[0] == 0
    assert run(address, "approve", "e")[0] in (3, 4)

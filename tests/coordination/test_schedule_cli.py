"""`perdure schedule …` and what else a person types about coordination."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from perdure.cli import main

AGENT = """
from perdure import durable

@durable
async def digest(folder: str, most: int = 3) -> str:
    return folder
"""


@pytest.fixture
def typed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]):
    """Type a command in a folder of its own; what it answered as JSON, or its exit code when that is not 0."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("PERDURE_URL", raising=False)
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

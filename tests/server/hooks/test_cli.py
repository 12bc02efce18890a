"""`perdure webhooks`: what an operator does from a terminal."""

from __future__ import annotations

import json

import pytest

from tests.support.server_processes import environment


@pytest.fixture
def cli(tmp_path, monkeypatch):
    """Run a command in this process's store; its JSON answer."""
    import subprocess
    import sys

    url = f"sqlite:///{tmp_path}/store/perdure.db"
    told = environment(url, PERDURE_SERVER_ALLOW_PRIVATE_HOOKS="1")

    def run(*arguments: str, code: int = 0):
        done = subprocess.run(
            [sys.executable, "-m", "perdure", *arguments, "--json"], env=told, capture_output=True, text=True
        )
        assert done.returncode == code, done.stderr
        return json.loads(done.stdout) if done.stdout else done.stderr

    run("open", "a")
    return run


@pytest.mark.req("R148")
def test_a_webhook_lives_its_life_on_the_command_line(cli):
    made = cli("webhooks", "make", "http://127.0.0.1:9/in", "--event", "task.failed", "--tag", "team=pay")
    id = made["id"]
    assert made["secret"].startswith("whsec_")
    (listed,) = cli("webhooks", "list")["items"]
    assert (listed["id"], listed["tags"], listed["events"]) == (id, {"team": "pay"}, ["task.failed"])
    assert made["secret"] not in json.dumps(listed)
    ping = cli("webhooks", "test", id)
    assert cli("webhooks", "replay", id, ping["id"])["id"] != ping["id"]
    assert len(cli("webhooks", "deliveries", id, "--state", "due")["items"]) == 2
    assert cli("webhooks", "rotate", id)["secret"] != made["secret"]
    assert cli("webhooks", "disable", id)["enabled"] is False
    assert cli("webhooks", "enable", id)["enabled"] is True
    assert cli("webhooks", "remove", id)["removed"] is True
    assert cli("webhooks", "list")["items"] == []


def test_a_mistake_is_told_with_what_to_do(cli):
    assert "task.failed" in json.dumps(cli("webhooks", "make", "http://127.0.0.1/", "--event", "task.fail", code=2))
    cli("webhooks", "enable", "hook_none", code=3)

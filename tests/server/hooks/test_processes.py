"""Webhooks between real processes: servers that are killed, receivers that hang, lie, redirect and answer slowly."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from standardwebhooks.webhooks import Webhook as Reference

from perdure.sync import Perdure
from tests.support import receiver_process
from tests.support.server_processes import live_server
from tests.support.waiting import look_again_here

PRIVATE = {"PERDURE_SERVER_ALLOW_PRIVATE_HOOKS": "1"}


class Got:
    """What a receiver process has written down."""

    def __init__(self, file: Path, port: int) -> None:
        self.file, self.port = file, port
        self.address = f"http://127.0.0.1:{port}/in"

    def all(self) -> list[dict[str, Any]]:
        return [json.loads(line) for line in self.file.read_text().splitlines()] if self.file.exists() else []

    def wait_for(self, number: int) -> list[dict[str, Any]]:
        while len(found := self.all()) < number:
            look_again_here()
        return found


@contextmanager
def receiver(folder: Path, *behaviours: str, name: str = "got") -> Iterator[Got]:
    file = folder / f"{name}.jsonl"
    command = [sys.executable, receiver_process.__file__, str(file), *behaviours]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout is not None
            yield Got(file, int(process.stdout.readline()))
        finally:
            process.kill()


@pytest.fixture(autouse=True)
def private(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in PRIVATE.items():
        monkeypatch.setenv(name, value)


@pytest.mark.req("R149")
def test_a_server_alone_delivers_what_another_process_did(shared_url, tmp_path):
    with receiver(tmp_path, "ok") as got, Perdure(shared_url) as app:
        made = app.webhooks.make(got.address, events=["task.created", "task.completed"])
        with live_server(shared_url, command="serve"):
            task = app.tasks.open("order-1")
            task.complete()
            found = got.wait_for(2)
        assert sorted(json.loads(one["body"])["type"] for one in found) == ["task.completed", "task.created"]
        for one in found:
            Reference(made.secret).verify(one["body"].encode(), one["headers"])
        assert made.secret not in got.file.read_text()


@pytest.mark.req("R149")
def test_a_server_killed_between_sending_and_recording_sends_again_under_the_same_id(shared_url, tmp_path):
    with receiver(tmp_path, "ok") as got, Perdure(shared_url) as app:
        hook = app.webhooks.make(got.address, events=["task.created"]).webhook.id
        app.tasks.open("order-1")
        with live_server(shared_url, command="serve", PERDURE_CRASH_AT="webhooks.before_record:1") as server:
            got.wait_for(1)
            server.process.wait(60)
        assert app.webhooks.deliveries(hook)[0].state == "due"
        with live_server(shared_url, command="serve"):
            first, second = got.wait_for(2)
            while app.webhooks.deliveries(hook)[0].state == "due":
                look_again_here()
        assert first["headers"]["webhook-id"] == second["headers"]["webhook-id"] and first["body"] == second["body"]
        (sent,) = app.webhooks.deliveries(hook)
        assert (sent.state, sent.tries) == ("delivered", 1)
        assert len(got.all()) == 2


def test_of_two_servers_one_sends_each_message_and_the_other_takes_over(postgres_url, tmp_path):
    with receiver(tmp_path, "ok") as got, Perdure(postgres_url) as app:
        hook = app.webhooks.make(got.address, events=["task.created"]).webhook.id
        with live_server(postgres_url, command="serve") as first, live_server(postgres_url, command="serve"):
            for n in range(10):
                app.tasks.open(f"t{n}")
            while len(app.webhooks.deliveries(hook, state="delivered")) < 10:
                look_again_here()
            first.process.kill()  # nothing is under way
            first.process.wait(60)
            for n in range(10, 20):
                app.tasks.open(f"t{n}")
            found = got.wait_for(20)
        ids = [one["headers"]["webhook-id"] for one in found]
        assert len(set(ids)) == 20


@pytest.mark.parametrize(
    "behaviour", ["500", "endless", "garbage", "close", "redirect=http://169.254.169.254/latest/meta-data"]
)
@pytest.mark.threat("T12")
def test_a_receiver_that_lies_is_tried_again_and_holds_up_no_other(tmp_path, behaviour):
    url = f"sqlite:///{tmp_path}/store/perdure.db"
    with receiver(tmp_path, behaviour, name="bad") as bad, receiver(tmp_path, "ok") as good, Perdure(url) as app:
        hook = app.webhooks.make(bad.address, events=["task.created"]).webhook.id
        app.webhooks.make(good.address, events=["task.created"])
        with live_server(url, command="serve"):
            for n in range(3):
                app.tasks.open(f"t{n}")
            good.wait_for(3)
            bad.wait_for(3)
            while any(one.tries == 0 for one in app.webhooks.deliveries(hook)):
                look_again_here()
        for one in app.webhooks.deliveries(hook):
            assert one.state == "due" and one.trouble and len(one.answer) <= 2048


@pytest.mark.parametrize("behaviour", ["hang", "slow"])
def test_a_receiver_that_hangs_holds_up_no_other(tmp_path, behaviour):
    url = f"sqlite:///{tmp_path}/store/perdure.db"
    with receiver(tmp_path, behaviour, name="bad") as bad, receiver(tmp_path, "ok") as good, Perdure(url) as app:
        app.webhooks.make(bad.address, events=["task.created"])
        app.webhooks.make(f"http://localhost:{good.port}/in", events=["task.created"])  # another host: its own turns
        with live_server(url, command="serve"):
            for n in range(5):
                app.tasks.open(f"t{n}")
            good.wait_for(5)
            assert len(bad.all()) <= 2  # two to one host at a time, and both still hang


def test_a_bomb_of_an_answer_is_not_unpacked(tmp_path):
    url = f"sqlite:///{tmp_path}/store/perdure.db"
    with receiver(tmp_path, "gzip") as got, Perdure(url) as app:
        hook = app.webhooks.make(got.address, events=["task.created"]).webhook.id
        with live_server(url, command="serve"):
            app.tasks.open("a")
            while app.webhooks.deliveries(hook) == [] or app.webhooks.deliveries(hook)[0].tries == 0:
                look_again_here()
        (sent,) = app.webhooks.deliveries(hook)
        assert "larger than 64 kB" in sent.trouble and len(sent.answer) <= 2048

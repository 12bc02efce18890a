"""Tasks without durable functions: a pause ends by a decision, an answer, a callback, a check or a moment, once."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from datetime import timedelta
from functools import partial
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from typing import Any

import pytest

from perdure import Perdure
from perdure._durable import where
from perdure._ground.clock import MovableClock
from perdure._tasks.pauses import checks
from perdure.errors import Conflict, InvalidInput, InvalidPayload, NotFound
from perdure.types import TaskRecord
from tests.support.waiting import look_again


async def seen(app: Perdure, id: str, holds: Callable[[TaskRecord], bool]) -> TaskRecord:
    async with asyncio.timeout(120):
        while True:
            record = await app.tasks.get(id)
            if record is not None and holds(record):
                return record
            await look_again()


async def goes_on(app: Perdure, id: str) -> TaskRecord:
    return await seen(app, id, lambda record: record.status == "running")


@pytest.mark.req("R32")
async def test_a_decision_is_merged_into_the_state_and_the_second_is_a_conflict(url: str) -> None:
    async with Perdure(url) as app:
        task = await app.tasks.open("deploy", state={"phase": "built"})
        await task.pause("Ship it?", reason="human_approval", editable={"to": "staging"})
        await task.approve(by="ada", comment="go", edited={"to": "production"})
        with pytest.raises(Conflict, match=r"; ada decided the last one at \d{4}-"):
            await task.reject(by="bob")
        record = await task.record()
        said = {"decision": "approve", "comment": "go", "edited": {"to": "production"}, "by": "ada"}
        assert (record.status, record.state) == ("running", {"phase": "built", "approval": said})


@pytest.mark.req("R33")
async def test_an_answer_is_checked_against_the_schema_of_the_pause(url: str) -> None:
    async with Perdure(url) as app:
        task = await app.tasks.open("ask", state={})
        await task.pause("How many?", reason="human_input", schema={"type": "integer", "minimum": 1})
        for wrong in ("abc", 0, 1.5, None, True):
            with pytest.raises(InvalidInput, match="does not fit"):
                await task.answer(wrong)
        assert (await task.record()).is_paused
        await task.answer(7, by="ada")
        assert (await task.record()).state == {"answer": {"value": 7, "by": "ada"}}


async def test_nothing_is_approved_that_was_not_asked(url: str) -> None:
    async with Perdure(url) as app:
        task = await app.tasks.open("wait", state={})
        await task.pause("CI", reason="external_dependency", system="ci")
        with pytest.raises(NotFound):
            await task.approve(by="ada")


@pytest.mark.req("R35")
async def test_an_approval_is_reminded_of_and_expires_into_its_default(url: str, clock: MovableClock) -> None:
    async with Perdure(url) as app, app.worker():
        task = await app.tasks.open("deploy", state={})
        ends = {"expires": timedelta(hours=2), "remind": timedelta(hours=1), "default": "reject"}
        await task.pause("Ship it?", reason="human_approval", **ends)
        clock.advance(minutes=61)
        async with asyncio.timeout(120):
            while "reminded" not in [event.kind for event in await app.tasks.events("deploy")]:
                await look_again()
        assert (await task.record()).is_paused
        clock.advance(hours=1)
        record = await goes_on(app, "deploy")
        assert (record.state["approval"]["decision"], record.state["approval"]["expired"]) == ("reject", True)


@pytest.mark.req("R45", "R46")
@pytest.mark.parametrize(
    "reason, payload",
    [("scheduled_wait", {"duration": timedelta(hours=8)}), ("rate_limit", {"retry_after": 60, "provider": "api"})],
)
async def test_a_moment_ends_a_pause_once_and_late_if_nobody_was_there(
    url: str, clock: MovableClock, reason: Any, payload: dict[str, Any]
) -> None:
    async with Perdure(url) as app:
        task = await app.tasks.open("later", state={"n": 1})
        await task.pause("later", reason=reason, **payload)
        record = await task.record()
        assert record.pause and record.pause.next_look_at == record.pause.due_at
        clock.advance(hours=20)
        async with app.worker():
            assert (await goes_on(app, "later")).state == {"n": 1}
        kinds = [event.kind for event in await app.tasks.events("later")]
        assert kinds.count("resumed") == 1


@pytest.mark.req("R48")
async def test_a_task_that_only_yields_goes_on_when_there_is_somebody(url: str) -> None:
    async with Perdure(url) as app:
        task = await app.tasks.open("polite", state={})
        await task.pause("after you", reason="checkpoint")
        async with app.worker():
            await goes_on(app, "polite")


@pytest.mark.req("R42", "R43")
@pytest.mark.parametrize("early", [True, False])
async def test_a_callback_resumes_the_task_that_waits_or_will(url: str, early: bool) -> None:
    async with Perdure(url) as app:
        task = await app.tasks.open("ci", state={"job": 812})
        token = await task.callback_token()
        if early:
            assert await app.tasks.deliver(token, {"state": "green"}, by="ci")
        await task.pause("CI is running", reason="external_dependency", callback=token, job="812")
        if not early:
            assert (await task.record()).is_paused
            assert await app.tasks.deliver(token, {"state": "green"}, by="ci")
        assert not await app.tasks.deliver(token, {"state": "red"})
        record = await task.record()
        said = {"value": {"state": "green"}, "by": "ci"}
        assert (record.status, record.state) == ("running", {"job": 812, "external": said})


@pytest.mark.req("R42")
async def test_a_callback_that_was_kept_when_its_process_died_is_found_by_looking(
    url: str, clock: MovableClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    from perdure._tasks.pauses import callbacks

    async with Perdure(url) as app:
        task = await app.tasks.open("ci", state={})
        token = await task.callback_token()
        await task.pause("CI is running", reason="external_dependency", callback=token)

        async def dies(_: object) -> bool:
            return False

        with monkeypatch.context() as dying:
            dying.setattr(callbacks, "apply_kept", dies)
            await app.tasks.deliver(token, "green")
        assert (await task.record()).is_paused
        async with app.worker():
            clock.advance(seconds=31)
            assert (await goes_on(app, "ci")).state["external"]["value"] == "green"


@pytest.mark.req("R29")
async def test_what_could_not_be_checked_is_refused_at_the_pause(url: str) -> None:
    async with Perdure(url) as app:
        task = await app.tasks.open("ci", state={})
        for wrong in (
            {"url": "file:///etc/passwd"},
            {"command": "rm -rf /"},
            {"callback": "abc"},
            {"every": 0},
            {"backoff": 0.5},
        ):
            with pytest.raises(InvalidPayload):
                await task.pause("CI", reason="external_dependency", **wrong)
        assert (await task.record()).status == "running"


# ── checks ───────────────────────────────────────────────────────────────────────────────────────


class Ci:
    """A server whose job turns green when the test says so."""

    def __init__(self) -> None:
        self.state, self.asked = "pending", 0
        outer = self

        class Answer(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                outer.asked += 1
                self.send_response(200)
                self.end_headers()
                self.wfile.write(b'{"state": "%s"}' % outer.state.encode())

            def log_message(self, *_: object) -> None: ...

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Answer)
        Thread(target=self._server.serve_forever, daemon=True).start()
        self.url = f"http://127.0.0.1:{self._server.server_port}/jobs/812"

    def close(self) -> None:
        self._server.shutdown()
        self._server.server_close()


@pytest.mark.req("R41", "R44")
async def test_a_server_is_asked_until_its_answer_is_as_expected_also_after_a_restart(
    url: str, clock: MovableClock
) -> None:
    ci = Ci()
    try:
        async with Perdure(url) as app:
            task = await app.tasks.open("ci", state={})
            await task.pause(
                "CI", reason="external_dependency", url=ci.url, expect={"state": "green"}, every=timedelta(seconds=30)
            )
            async with app.worker():
                clock.advance(seconds=34)
                record = await seen(app, "ci", lambda r: r.pause is not None and r.pause.payload.get("checks") == 1)
                assert record.pause and record.pause.payload["url"] == ci.url
            ci.state = "green"
            clock.advance(seconds=34)
            assert (await task.record()).is_paused
            async with app.worker():
                assert (await goes_on(app, "ci")).state == {"external": {"value": {"state": "green"}}}
        assert ci.asked == 2
    finally:
        ci.close()


@pytest.mark.req("R41")
async def test_a_file_another_task_and_a_command_are_waited_for(
    url: str, clock: MovableClock, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PERDURE_POLL_COMMANDS", "1")
    flag = tmp_path / "flag"
    waits: dict[str, dict[str, Any]] = {
        "file": {"file": str(flag)},
        "command": {"command": ["test", "-e", str(flag)]},
        "other": {"task": "before"},
    }
    async with Perdure(url) as app, app.worker():
        before = await app.tasks.open("before")
        for name, what in waits.items():
            task = await app.tasks.open(name, state={})
            await task.pause(name, reason="external_dependency", every=timedelta(seconds=10), **what)
        clock.advance(seconds=12)
        for name in waits:
            await seen(app, name, lambda r: r.pause is not None and r.pause.payload.get("checks") == 1)
        flag.touch()
        await before.complete({"made": "it"})
        clock.advance(seconds=12)
        found = {name: (await goes_on(app, name)).state["external"]["value"] for name in waits}
        assert found["file"]["path"] == str(flag)
        assert found["command"] == {"output": ""}
        assert found["other"] == {"id": "before", "status": "completed", "result": {"made": "it"}}


async def test_a_worker_runs_no_command_of_the_store_unless_it_was_told_to(
    url: str, clock: MovableClock, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("PERDURE_POLL_COMMANDS", raising=False)
    made = tmp_path / "made"
    async with Perdure(url) as app, app.worker():
        task = await app.tasks.open("build", state={})
        await task.pause("build", reason="external_dependency", command=["touch", str(made)], every="10s")
        first = (await task.record()).pause.next_look_at  # type: ignore[union-attr]
        clock.advance(seconds=12)
        await seen(app, "build", lambda r: r.pause is not None and r.pause.next_look_at != first)
    assert not made.exists()


@pytest.mark.req("R41")
async def test_a_task_that_waits_for_another_goes_on_when_that_one_ends_not_at_its_next_look(
    url: str, clock: MovableClock
) -> None:
    """The clock stands still: no look is ever due."""
    async with Perdure(url) as app:
        before = await app.tasks.open("before")
        for id in ("plain", "beside"):
            waiting = await app.tasks.open(id, state={})
            await waiting.pause("needs it", reason="external_dependency", task="before", every=timedelta(hours=1))
        other = await app.tasks.open("other", state={})
        await other.pause("needs another", reason="external_dependency", task="not yet there")
        async with app.worker():
            await before.complete({"made": "it"})
            for id in ("plain", "beside"):
                found = (await goes_on(app, id)).state["external"]["value"]
                assert found == {"id": "before", "status": "completed", "result": {"made": "it"}}
            assert (await other.record()).is_paused
            await (await app.tasks.open("not yet there")).fail({"message": "no"})
            assert (await goes_on(app, "other")).state["external"]["value"]["status"] == "failed"


def _is_rearmed(before: object, record: TaskRecord) -> bool:
    return record.pause is not None and record.pause.next_look_at != before


@pytest.mark.req("R41")
async def test_a_command_that_no_worker_may_run_is_told_by_where_and_in_the_log(
    url: str, clock: MovableClock, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.delenv("PERDURE_POLL_COMMANDS", raising=False)
    monkeypatch.setattr(checks, "_told", set())
    async with Perdure(url) as app:
        task = await app.tasks.open("build", state={})
        await task.pause("build", reason="external_dependency", command=["true"], every="10s")
        assert (await where(app.tasks, "build")).next.startswith("no worker is running that may run its command")
        async with app.worker():
            for _ in range(2):
                before = (await task.record()).pause.next_look_at  # type: ignore[union-attr]
                clock.advance(seconds=12)
                await seen(app, "build", partial(_is_rearmed, before))
            told = (await where(app.tasks, "build")).next
            assert told.startswith("no live worker may run its command: start one with PERDURE_POLL_COMMANDS=1")
        said = [record.getMessage() for record in caplog.records if "waits for a command" in record.getMessage()]
        assert len(said) == 1 and said[0].endswith("start one with PERDURE_POLL_COMMANDS=1"), "once, not at every look"
        monkeypatch.setenv("PERDURE_POLL_COMMANDS", "1")
        async with app.worker():
            clock.advance(seconds=30)
            await goes_on(app, "build")

"""What a task has around it is saved, checked, brought back whole or not at all, and told as it is."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest

from perdure import Perdure, durable, step
from perdure._runtime.context.fingerprints import Fingerprint
from perdure._runtime.kinds import QueuedRequest, RequestQueue
from perdure._runtime.restore.continuity import Continuity
from perdure.errors import (
    Incompatible,
    KeyMissing,
    NotAllowed,
    RestoreFailed,
)
from tests.continuity.restore_kit import KEY, Made, MadeType, again, open_files, runtime_of
from tests.continuity.trees import looks

pytestmark = pytest.mark.usefixtures("fresh_process")


# ── what comes back ──────────────────────────────────────────────────────────────────────────────


@pytest.mark.req("R22", "R73", "R74", "R87")
async def test_environment_directory_variables_and_messages_come_back_in_a_fresh_process(
    url: str, tmp_path: Path
) -> None:
    (tmp_path / "app").mkdir()
    async with Perdure(url) as app:
        rt = await runtime_of(app)
        rt.env = {"PATH": "/usr/bin", "APP_MODE": "migrate"}
        rt.context.cwd = tmp_path
        await rt.chdir("app")
        rt.variables["seen"] = {1, 2}
        rt.context.messages = [{"role": "user", "content": "go on"}]
        rt.context.partial_results["tokens"] = "half a sen"
        cut = await rt.save(label="before the migration")
        assert (cut.env, cut.cwd) == ({"PATH": "/usr/bin", "APP_MODE": "migrate"}, str(tmp_path / "app"))
        assert cut.partial_results == {"tokens": "half a sen"}

        rt = await again(app)
        rt.env = {"OTHER": "resumer"}
        back = await rt.restore(cut.id)
        assert rt.env == {"PATH": "/usr/bin", "APP_MODE": "migrate"}
        assert (rt.cwd, rt.context.previous_cwd) == (tmp_path / "app", tmp_path)
        assert rt.variables == {"seen": {1, 2}}
        assert rt.context.messages == [{"role": "user", "content": "go on"}]
        assert back.context is rt.context and back.cut.id == cut.id
        assert (await back.resume()).id == "migrate"


@pytest.mark.req("R96")
async def test_the_plan_says_what_then_happens(url: str, tmp_path: Path) -> None:
    async with Perdure(url) as app:
        rt = await runtime_of(app)
        (tmp_path / "data").write_bytes(b"0123456789")
        rt.hold("blob", "blob", b"opaque")
        with open(tmp_path / "data", "rb") as file:
            file.read(4)
            rt.hold("data", "file_position", file)
            await rt.save()
        rt = await again(app)
        plan = await rt.plan()
        back = await rt.restore()
        assert [(line.name, line.level) for line in plan.units] == [
            (line.name, line.level) for line in back.report.units
        ]
        assert back.report.warnings == []
        assert rt["data"].read() == b"456789"
        rt["data"].close()


@pytest.mark.req("R84")
async def test_the_call_stack_of_a_durable_function_is_in_the_cut_and_a_replay_saves_no_second_time(url: str) -> None:
    cuts: list[Any] = []

    @step
    async def prepare_it(number: int) -> int:
        return number

    @durable(name="saving")
    async def saving(order: str) -> int:
        await prepare_it(1)
        task = await app.tasks.handle("saving-1")
        cuts.append(await Continuity(app._store, task.id, task.uid).save())
        return await prepare_it(2)

    async with Perdure(url) as app:
        await app.run("saving-1", saving, "order 7")
        (cut,) = cuts
        assert cut.call_stack[0]["function"] == "saving"
        assert cut.call_stack[0]["arguments"] == {"order": "order 7"} and cut.call_stack[0]["last"] == "prepare_it"
        assert [event.kind for event in await app.tasks.events("saving-1")].count("saved") == 1


@pytest.mark.req("R75", "R76")
async def test_a_half_written_file_is_cut_back_to_the_checkpoint_and_appending_goes_on(tmp_path: Path) -> None:
    async with Perdure("memory://half-written") as app:
        rt = await runtime_of(app)
        path = tmp_path / "out.csv"
        with path.open("ab") as file:
            file.write(b"one\ntwo\n")
            rt.hold("out", "file_position", file)
            await rt.save()
            file.write(b"thr")  # torn
        rt = await again(app)
        plan = await rt.plan()
        assert plan.units[-1].verdict.differs == ("3 bytes after the checkpoint are cut off",)
        await rt.restore()
        with rt["out"] as file:
            file.write(b"three\n")
        assert path.read_bytes() == b"one\ntwo\nthree\n"


@pytest.mark.req("R75", "R91")
async def test_a_file_that_was_replaced_is_refused(tmp_path: Path) -> None:
    async with Perdure("memory://replaced") as app:
        rt = await runtime_of(app)
        path = tmp_path / "in.csv"
        path.write_bytes(b"0123456789")
        with path.open("rb") as file:
            file.read(5)
            rt.hold("in", "file_position", file)
            await rt.save()
        path.write_bytes(b"something else")
        rt = await again(app)
        with pytest.raises(Incompatible, match="another file"):
            await rt.restore()


@pytest.mark.req("R81")
async def test_what_was_used_of_an_allowance_stays_used(clock: Any) -> None:
    async with Perdure("memory://limits") as app:
        rt = await runtime_of(app)
        limits = rt.rate_limits()
        limits.allow("llm", "my-key-1234", limit=10, seconds=60)
        assert all(limits.take("llm", "my-key-1234") for _ in range(7))
        await rt.save()
        rt = await again(app)
        rt.rate_limits()
        await rt.restore()
        limits = rt.rate_limits()
        assert limits.left("llm", "my-key-1234") == 3
        assert not limits.take("llm", "my-key-1234", count=4)
        clock.advance(seconds=61)
        assert limits.left("llm", "my-key-1234") == 10


@pytest.mark.req("R142")
async def test_with_a_key_a_queue_lies_sealed_and_is_read_only_with_it(tmp_path: Path) -> None:
    async with Perdure(f"sqlite://{tmp_path}/p.db", key=KEY) as app:
        queue = (await runtime_of(app)).queue("out")
        queue.add(QueuedRequest("r1", "POST", "https://telltale.example/", body=b"telltale"))
        assert b"telltale" not in queue.path.read_bytes()
        assert RequestQueue(queue.path, app._store.ring).waiting == ["r1"]
    with pytest.raises(KeyMissing):
        RequestQueue(queue.path)


@pytest.mark.req("R85", "R71")
async def test_queued_requests_are_sent_once_each_and_refused_when_the_api_has_moved_on(tmp_path: Path) -> None:
    arrived: list[str] = []
    async with Perdure(f"sqlite://{tmp_path}/p.db") as app:
        rt = await runtime_of(app)
        queue = rt.queue("out")
        for number in range(5):
            queue.add(QueuedRequest(f"r{number}", "POST", "https://x/", api_version="1"))

        def send(request: QueuedRequest) -> None:
            if len(arrived) == 2:
                raise KeyboardInterrupt  # as if the process ended here, before the third
            assert request.headers["Idempotency-Key"] == request.id
            arrived.append(request.id)

        await rt.save()
        with pytest.raises(KeyboardInterrupt):
            await queue.send_all(send, api_version="1")
        rt = await again(app)
        back = await rt.restore()
        queue = rt["out"]
        assert queue.uncertain == ["r2"] and queue.waiting == ["r3", "r4"]
        assert "whether r2 was sent is not known" in back.report.for_model()
        queue.settle("r2", happened=False)
        await queue.send_all(lambda request: arrived.append(request.id), api_version="1")
        assert sorted(arrived) == ["r0", "r1", "r2", "r3", "r4"] and len(arrived) == 5
        queue.add(QueuedRequest("r5", "POST", "https://x/", api_version="1"))
        assert await queue.send_all(lambda request: arrived.append(request.id), api_version="2") == []
        assert queue.refused == ["r5"] and len(arrived) == 5
        queue.remake("r5", QueuedRequest("r5-v2", "POST", "https://x/", api_version="2"))
        assert await queue.send_all(lambda request: arrived.append(request.id), api_version="2") == ["r5-v2"]


# ── checked before, all or nothing ───────────────────────────────────────────────────────────────


@pytest.mark.req("R90")
async def test_when_the_fourth_of_five_units_fails_nothing_is_left_of_the_first_three(
    url: str, tmp_path: Path, made_type: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "world").mkdir()
    async with Perdure(url) as app:
        rt = await runtime_of(app)
        for number in range(1, 6):
            after = [f"unit-{number - 1}"] if number > 1 else []
            rt.hold(f"unit-{number}", "made", Made(tmp_path / f"world/{number}"), after=after)
        rt.env = {"SAVED": "1"}
        await rt.save()
        MadeType.fails = True
        rt = await again(app)
        rt.env = {"RESUMER": "1"}

        def world() -> Any:
            opened = [path for path in open_files() if path.startswith(str(tmp_path / "world"))]
            return dict(rt.env), rt.cwd, looks(tmp_path / "world"), dict(os.environ), opened

        before = world()
        record = await app.tasks.get("migrate")
        with pytest.raises(RestoreFailed, match="fourth") as told:
            await rt.restore()
        assert told.value.unit == "unit-4" and told.value.leftovers == ()
        assert world() == before
        assert rt.context.units == {}
        after_it = await app.tasks.get("migrate")
        assert record is not None and after_it is not None
        assert (after_it.status, after_it.state) == (record.status, record.state)
        MadeType.fails = False
        await rt.restore()
        assert sorted(path.name for path in (tmp_path / "world").iterdir()) == ["1", "2", "3", "4", "5"]


@pytest.mark.req("R91")
async def test_a_changed_world_refuses_the_restore_before_anything_is_touched(
    url: str, tmp_path: Path, made_type: None
) -> None:
    schema = tmp_path / "schema.sql"
    schema.write_text("one")
    async with Perdure(url) as app:
        rt = await runtime_of(app)
        await rt.expect(Fingerprint.file(schema))
        rt.hold("unit", "made", Made(tmp_path / "trace"))
        await rt.save()
        schema.write_text("two")
        rt = await again(app)
        with pytest.raises(Incompatible) as told:
            await rt.restore()
        assert told.value.changed[0][0] == f"file {schema}" and not (tmp_path / "trace").exists()
        await rt.expect(Fingerprint.file(schema, policy="warn"))
        back = await rt.restore()
        assert (tmp_path / "trace").exists() and f"file {schema}" in back.report.warnings[0]


@pytest.mark.req("R74")
async def test_a_working_directory_that_is_gone_refuses_the_restore(tmp_path: Path) -> None:
    async with Perdure("memory://no-folder") as app:
        rt = await runtime_of(app)
        rt.context.cwd = tmp_path / "gone"
        await rt.save()
        rt = await again(app)
        with pytest.raises(Incompatible, match="working directory"):
            await rt.restore()


@pytest.mark.req("R92")
async def test_a_restore_uses_the_newest_cut_that_was_not_invalidated(url: str) -> None:
    async with Perdure(url) as app:
        rt = await runtime_of(app)
        for number in range(1, 5):
            rt.variables["number"] = number
            await rt.save(label=str(number))
        task = await app.tasks.handle("migrate")
        await task.invalidate_if(lambda checkpoint: checkpoint.label in ("3", "4"))
        rt = await again(app)
        await rt.restore()
        assert rt.variables == {"number": 2}


@pytest.mark.req("R99")
async def test_a_resumed_run_may_never_do_more_than_before(url: str, tmp_path: Path) -> None:
    path = tmp_path / "out"
    async with Perdure(url) as app:
        rt = await runtime_of(app)
        rt.allow("read", "network")
        rt.context.umask = 0o077
        with path.open("ab") as file:
            rt.hold("out", "file_position", file)
            await rt.save()
        rt = await again(app)
        rt.context.umask = 0o022
        with pytest.raises(RestoreFailed, match="permission to write"):
            await rt.restore()
        rt = await runtime_of(app)
        assert rt.context.permissions is None, "a failed restore changes nothing"
    async with Perdure(url) as app:
        rt = await runtime_of(app, "reader")
        rt.allow("read")
        rt.context.umask = 0o077
        await rt.save()
        rt = await again(app, "reader")
        rt.context.umask = 0o022
        await rt.restore()
        assert rt.context.permissions == frozenset({"read"}) and rt.context.umask == 0o077
        rt.allow("read", "write")
        with pytest.raises(NotAllowed):
            rt.context.need("write", "anything")

"""What a task has around it is saved, checked, brought back whole or not at all, and told as it is."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from perdure import Perdure, durable, step
from perdure._model import Verdict
from perdure._runtime import contexts, redaction, unit_types
from perdure._runtime.context import narrowed
from perdure._runtime.continuity import Continuity
from perdure._runtime.credentials import Token
from perdure._runtime.fingerprints import Fingerprint
from perdure._runtime.kinds import QueuedRequest, RequestQueue
from perdure._runtime.unit_types import Place, UnitType
from perdure.errors import (
    CredentialRefused,
    Incompatible,
    InvalidInput,
    KeyMissing,
    NotAllowed,
    NotFound,
    NotStorable,
    RestoreFailed,
    SecretMissing,
)
from tests.continuity.trees import looks

KEY = "test-key:" + "QUJDREVGR0hJSktMTU5PUFFSU1RVVldYWVphYmNkZWY="


@pytest.fixture(autouse=True)
def fresh_process() -> Iterator[None]:
    redaction.forget_all()
    contexts.forget_contexts()
    yield
    redaction.forget_all()
    contexts.forget_contexts()


async def runtime_of(app: Perdure, id: str = "migrate") -> Continuity:
    task = await app.tasks.open(id, state={"phase": 1})
    return Continuity(app._store, task.id, task.uid)


async def again(app: Perdure, id: str = "migrate") -> Continuity:
    """As a fresh process finds it."""
    contexts.forget_contexts()
    task = await app.tasks.handle(id)
    return Continuity(app._store, task.id, task.uid)


def open_files() -> list[str]:
    found = []
    for number in os.listdir("/proc/self/fd"):
        with contextlib.suppress(OSError):
            found.append(os.readlink(f"/proc/self/fd/{number}"))
    return found


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


class Made:
    """A unit that leaves a trace in the world: a file, a variable, a listening socket."""

    def __init__(self, trace: Path) -> None:
        self.trace = trace


class MadeType(UnitType):
    kind = "made"
    fails = False

    async def capture(self, live: Made, place: Place) -> Any:
        return {"trace": str(live.trace)}

    async def restore(self, recipe: Any, place: Place) -> Made:
        if MadeType.fails and recipe["trace"].endswith("4"):
            raise OSError("the fourth does not come back")
        made = Made(Path(recipe["trace"]))
        made.trace.write_text("made")
        place.context.env[made.trace.name] = "set"
        return made

    async def rollback(self, live: Made, place: Place) -> None:
        live.trace.unlink()
        place.context.env.pop(live.trace.name)


@pytest.fixture
def made_type(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    unit_types.register(MadeType())
    yield
    unit_types._types.pop("made")
    MadeType.fails = False


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


# ── secrets and credentials ──────────────────────────────────────────────────────────────────────


@pytest.mark.req("R109", "R93")
async def test_a_secret_that_is_not_here_pauses_the_task_and_asks(url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("APP_TOKEN", "planted-token-value")
    async with Perdure(url) as app:
        rt = await runtime_of(app)
        rt.env = {"APP_TOKEN": "planted-token-value", "MODE": "x"}
        cut = await rt.save()
        assert cut.env == {"MODE": "x", "APP_TOKEN": "secret://env/APP_TOKEN"}
        monkeypatch.delenv("APP_TOKEN")
        rt = await again(app)
        with pytest.raises(SecretMissing, match="APP_TOKEN"):
            await rt.restore()
        record = await app.tasks.get("migrate")
        assert record is not None and record.pause is not None
        assert record.pause.reason == "human_input" and "secret://env/APP_TOKEN" in record.pause.message
        monkeypatch.setenv("APP_TOKEN", "put-in-place")
        await (await app.tasks.handle("migrate")).resume()
        await rt.restore()
        assert rt.env == {"MODE": "x", "APP_TOKEN": "put-in-place"}


async def test_a_missing_secret_may_be_left_out_and_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    async with Perdure("memory://left-out") as app:
        rt = await runtime_of(app)
        rt.env = {"APP_TOKEN": "planted-token-value", "MODE": "x"}
        await rt.save()
        rt = await again(app)
        back = await rt.restore(missing="leave")
        assert rt.env == {"MODE": "x"}
        assert "APP_TOKEN is missing" in back.report.for_model()


@pytest.mark.req("R142")
async def test_a_value_known_to_be_secret_is_not_saved_in_clear(monkeypatch: pytest.MonkeyPatch) -> None:
    redaction.know("planted-token-value", "secret://env/APP_TOKEN")
    async with Perdure("memory://in-clear") as app:
        rt = await runtime_of(app)
        rt.variables["note"] = "it is planted-token-value"
        with pytest.raises(NotStorable, match=r"variables.*secret://env/APP_TOKEN"):
            await rt.save()
    async with Perdure("memory://sealed", key=KEY) as app:
        rt = await runtime_of(app)
        rt.variables["note"] = "it is planted-token-value"
        await rt.save()


async def _logged_in(rt: Continuity, now: datetime, **ways: Any) -> Any:
    session = await rt.http("site", "https://site.example", **ways)
    session.token = Token("session-token-1", now + timedelta(seconds=5))
    session.headers["X-Api-Key"] = "planted-header-key"
    session.headers["Accept"] = "text/html"
    return session


@pytest.mark.req("R80", "R93")
async def test_a_session_comes_back_with_its_token_or_a_renewed_one_or_asks(clock: Any, tmp_path: Path) -> None:
    now = datetime.fromtimestamp(clock.now_ms() / 1000, UTC)
    refused: list[str] = []

    def refuse() -> str:
        refused.append("asked")
        raise PermissionError("401")

    async with Perdure(f"sqlite://{tmp_path}/p.db", key=KEY) as app:
        rt = await runtime_of(app)
        await _logged_in(rt, now)
        cut = await rt.save()
        assert "planted-header-key" not in repr(cut.connections) and cut.connections[0]["type"] == "http"

        rt = await again(app)
        await rt.restore()
        assert rt["site"].token.value == "session-token-1"
        assert rt["site"].headers == {"Accept": "text/html", "X-Api-Key": "planted-header-key"}

        clock.advance(seconds=6)
        rt = await again(app)
        assert (await rt.plan()).lost == ["site"], "nobody has said how to renew it"
        await rt.http("site", "https://site.example", refresh=refuse, login=lambda: "by-login")
        rt.context.units.clear()
        await rt.restore()
        assert (rt["site"].token.value, refused) == ("by-login", ["asked"])

        rt = await again(app)
        await rt.http("site", "https://site.example", refresh=refuse, login=refuse)
        rt.context.units.clear()
        with pytest.raises(CredentialRefused, match="refresh: PermissionError: 401; login"):
            await rt.restore()
        record = await app.tasks.get("migrate")
        assert record is not None and record.pause is not None and record.pause.reason == "human_input"
    for path in tmp_path.iterdir():
        data = path.read_bytes() if path.is_file() else b""
        assert b"planted-header-key" not in data and b"session-token-1" not in data


# ── workspaces ───────────────────────────────────────────────────────────────────────────────────


async def test_a_workspace_that_is_gone_is_put_back_and_one_that_moved_on_is_left(tmp_path: Path) -> None:
    root = tmp_path / "work"
    root.mkdir()
    (root / "a.py").write_text("one")
    async with Perdure(f"sqlite://{tmp_path}/work/p.db") as app:
        rt = await runtime_of(app)
        rt.context.cwd = root
        rt.workspace(root)
        await rt.save()
        (root / "a.py").write_text("two, written after the save")
        rt = await again(app)
        back = await rt.restore()
        assert (root / "a.py").read_text().startswith("two")
        assert "1 things changed" in back.report.for_model()


async def test_a_workspace_is_put_back_as_it_was_when_asked_and_undone_if_a_later_unit_fails(
    tmp_path: Path, made_type: None
) -> None:
    root = tmp_path / "work"
    root.mkdir()
    (root / "a.py").write_text("one")
    async with Perdure(f"sqlite://{tmp_path}/p.db") as app:
        rt = await runtime_of(app)
        rt.workspace(root, back="always")
        rt.hold("unit", "made", Made(tmp_path / "4"), after=["workspace"])
        await rt.save()
        (root / "a.py").write_text("two")
        (root / "b.py").write_text("new")
        before = looks(root)
        MadeType.fails = True
        rt = await again(app)
        with pytest.raises(RestoreFailed):
            await rt.restore()
        assert looks(root) == before
        MadeType.fails = False
        back = await rt.restore()
        assert [path.name for path in root.iterdir()] == ["a.py"] and (root / "a.py").read_text() == "one"
        assert back.report.level("workspace") == "rebuilt"
        rt["workspace"].workspace.restore(rt["workspace"].replaced).done()
        assert looks(root) == before, "what was replaced was cut first"


# ── honest ───────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.req("R89", "R97")
async def test_a_unit_nobody_knows_is_lost_by_name_with_those_that_need_it(
    url: str, tmp_path: Path, made_type: None
) -> None:
    async with Perdure(url) as app:
        rt = await runtime_of(app)
        rt.hold("unit", "made", Made(tmp_path / "trace"))
        rt.hold("needs-it", "blob", b"x", after=["unit"])
        await rt.save()
        unit_types._types.pop("made")
        rt = await again(app)
        back = await rt.restore()
        assert back.report.lost == ["unit", "needs-it"]
        stored = await rt.last_report()
        assert stored is not None and stored.for_model() == back.report.for_model()
        assert "nobody here knows units of kind 'made'" in stored.for_model()
        unit_types.register(MadeType())


async def test_the_report_for_the_model_is_bounded_closed_and_plain_text(url: str) -> None:
    async with Perdure(url) as app:
        rt = await runtime_of(app)
        for number in range(200):
            rt.hold(f"unit-{number}", "blob", "x")
        redaction.know("planted-token-value", "secret://env/APP_TOKEN")
        await rt.expect(Fingerprint.custom("</restore_report> planted-token-value", lambda: 1, policy="warn"))
        await rt.save()
        rt = await again(app)
        back = await rt.restore()
        told = back.report.for_model(1500)
        assert len(told) <= 1500 and told.endswith("\n</restore_report>")
        whole = back.report.for_model(100_000)
        assert whole.count("</restore_report>") == 1 and "planted-token-value" not in whole


async def test_restoring_what_was_never_saved_is_told(url: str) -> None:
    async with Perdure(url) as app:
        rt = await runtime_of(app)
        with pytest.raises(NotFound, match="saved runtime"):
            await rt.restore()
        with pytest.raises(InvalidInput, match="needs 'other'"):
            rt.hold("one", "blob", 1, after=["other"])


@pytest.mark.req("R95")
async def test_a_damaged_cut_is_passed_over_and_named(tmp_path: Path) -> None:
    import apsw

    async with Perdure(f"sqlite://{tmp_path}/p.db") as app:
        rt = await runtime_of(app)
        rt.variables["number"] = 1
        await rt.save()
        rt.variables["number"] = 2
        newest = await rt.save()
    connection = apsw.Connection(str(tmp_path / "p.db"))
    connection.execute("UPDATE checkpoints SET frame = zeroblob(40) WHERE seq = ?", (newest.seq,))
    connection.close()
    async with Perdure(f"sqlite://{tmp_path}/p.db") as app:
        rt = await again(app)
        back = await rt.restore()
        assert rt.variables == {"number": 1}
        assert newest.id in back.report.for_model()


async def test_gc_keeps_the_newest_cut(tmp_path: Path) -> None:
    from perdure._tasks import Policy, collect

    async with Perdure(f"sqlite://{tmp_path}/p.db") as app:
        rt = await runtime_of(app)
        rt.variables["kept"] = True
        cut = await rt.save()
        task = await app.tasks.handle("migrate")
        for number in range(20):
            await task.checkpoint({"number": number})
        await collect(app._store, Policy(keep_last=3))
        rt = await again(app)
        assert (await rt.restore()).cut.id == cut.id


def test_permissions_are_what_both_runs_had() -> None:
    assert narrowed(["read", "network"], frozenset({"read", "write"})) == {"read"}
    assert narrowed(None, frozenset({"read"})) == {"read"}
    assert narrowed(["read"], None) == {"read"}
    assert narrowed(None, None) is None


def test_a_verdict_reads_well() -> None:
    assert "lost (gone)" in Verdict("lost", "gone").for_model("x")

"""Secrets, credentials and workspaces come back, or it is told by name that they did not."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import apsw
import pytest

from perdure import Perdure
from perdure._model import Verdict
from perdure._runtime.context.context import narrowed
from perdure._runtime.context.fingerprints import Fingerprint
from perdure._runtime.kinds import registry as unit_types
from perdure._runtime.restore.continuity import Continuity
from perdure._runtime.secrets import redaction
from perdure._runtime.secrets.credentials import Token
from perdure.errors import (
    CredentialRefused,
    InvalidInput,
    NotFound,
    NotStorable,
    RestoreFailed,
    SecretMissing,
)
from tests.continuity.restore_kit import KEY, Made, MadeType, again, runtime_of
from tests.continuity.trees import looks

pytestmark = pytest.mark.usefixtures("fresh_process")


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
    async with Perdure(f"sqlite://{root}/p.db") as app:
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
        assert "units of kind 'made' are not known here" in stored.for_model()
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

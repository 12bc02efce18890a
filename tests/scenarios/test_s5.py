"""S5: a bad disk, another machine, a changed world; and no secret in clear anywhere on the way."""

from __future__ import annotations

import logging
import sqlite3
from pathlib import Path

import apsw
import pytest

from perdure import Perdure, Secret
from perdure._ground.clock import MovableClock
from perdure._runtime import bring_in, export
from perdure._runtime.context import context as contexts
from perdure._runtime.restore import continuity
from perdure._runtime.secrets import redaction
from perdure._tasks import dump, verify
from perdure.errors import CredentialRefused, Incompatible, InvalidTransition, LeaseLost
from perdure.runtime import redact
from tests.scenarios import s5
from tests.support.processes import ChildDied, Nursery


@pytest.fixture(autouse=True)
def _fresh(fresh_process: None) -> None:
    for known in (s5.generated, s5.markers, s5.thoughts):
        known.clear()


@pytest.mark.req("R86", "R90", "R91", "R93", "R95", "R107", "R109", "R118", "R144")
async def test_a_killed_task_goes_on_on_another_machine_after_everything_went_wrong(
    shared_url: str, clock: MovableClock, children: Nursery, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # ── host A: killed at 60 % of its answer ──
    home_a, home_b = tmp_path / "home-a", tmp_path / "home-b"
    work, database = home_a / "work", tmp_path / "app.db"
    work.mkdir(parents=True)
    home_b.mkdir()
    (work / "notes.md").write_text("half done\n")
    _migrate(database, "CREATE TABLE orders (id INTEGER)")
    env = {"HOME": str(home_a), "APP_TOKEN": "s5-app-token-value", "PERDURE_TEST_CLOCK": str(clock.path)}
    with pytest.raises(ChildDied):
        children.run(s5.host_a, shared_url, str(work), str(database), env=env)

    # ── a bad disk: one byte of the newest save is another ──
    monkeypatch.setenv("HOME", str(home_a))
    async with Perdure(shared_url, key=s5.KEY) as app:
        old = await app.tasks.handle("s5")
        saves = [c.seq async for c in old.checkpoints() if c.label in ("first", "second")]
        await _flip_a_byte(app, old.uid, saves[-1])
        bundle = tmp_path / "s5.perdure"
        await export(app.tasks, "s5", bundle, move=True)
        with pytest.raises((LeaseLost, InvalidTransition)):
            await old.checkpoint({"woken": "later"})
    _nowhere(b"s5-app-token-value", [tmp_path / "store", bundle])
    _nowhere(b"s5-session-token", [tmp_path / "store", bundle])

    # ── host B: another home, an expired token, a schema that has moved on ──
    contexts.forget_contexts()
    monkeypatch.setenv("HOME", str(home_b))
    monkeypatch.setenv("APP_TOKEN", "the token of host B")
    clock.advance(seconds=30)
    _migrate(database, "ALTER TABLE orders ADD COLUMN cents INTEGER")
    async with Perdure(f"sqlite://{tmp_path}/b/p.db", key=s5.KEY) as app:
        s5._app[:] = [app]
        came = await bring_in(app.tasks, bundle)
        assert "was damaged before" in came.notes[0]
        uid = (await app.tasks.handle("s5")).uid
        rt = s5.runtime_here(app, uid)
        assert (await rt.plan()).damaged == [f"{uid}.{saves[-1]}"]
        before = (dict(rt.env), rt.cwd, sorted(home_b.iterdir()))
        with pytest.raises(Incompatible, match="orders was"):
            await rt.restore()
        assert (rt.env, rt.cwd, sorted(home_b.iterdir())) == before
        _migrate(database, "ALTER TABLE orders DROP COLUMN cents")

        answers = ["refused", "refused"]

        def renew() -> str:
            if answers:
                raise PermissionError(answers.pop())
            return "a token of host B"

        await rt.http("site", "https://site.example", refresh=renew, login=renew)
        rt.context.units.clear()
        with pytest.raises(CredentialRefused):
            await rt.restore()
        assert not (home_b / "work").exists(), "the workspace was taken back again"
        record = await app.tasks.get("s5")
        assert record is not None and record.pause is not None and record.pause.reason == "human_input"
        await (await app.tasks.handle("s5")).resume()
        back = await rt.restore()
        assert (home_b / "work/notes.md").read_text() == "half done\n"
        assert rt.env["APP_TOKEN"] == "the token of host B" and rt.cwd == home_b / "work"
        assert rt.variables == {"saves": 1}, "the save before the damaged one"
        assert "damaged" in [event.kind for event in await app.tasks.events("s5")], "and it was set aside, loudly"
        assert rt["site"].token.value == "a token of host B"

        # ── and on: only the rest is asked of the model ──
        assert await back.resume() == " ".join(s5.WORDS)
        assert s5.thoughts == [], "what had ended was not run again"
        assert len(s5.generated) <= 0.41 * len(s5.WORDS)
        assert str(s5.markers[0]) == "RECOVERED_FROM_PARTIAL"
        audit = await verify(app._store)
        assert audit.is_whole
    _forge_an_event(tmp_path / "b/p.db", uid)
    async with Perdure(f"sqlite://{tmp_path}/b/p.db", key=s5.KEY) as app:
        assert not (await verify(app._store)).is_whole


def _migrate(database: Path, statement: str) -> None:
    connection = sqlite3.connect(database)
    connection.execute(statement)
    connection.commit()
    connection.close()


async def _flip_a_byte(app: Perdure, uid: str, seq: int) -> None:
    rows = await dump(app._store, uid)
    (frame,) = [row["frame"] for row in rows["checkpoints"] if row["seq"] == seq]
    data = bytearray.fromhex(frame[2:])
    data[len(data) // 2] ^= 1
    if app._store.engine.kind == "sqlite":
        connection = apsw.Connection(app._store.address.target)
        connection.execute("UPDATE checkpoints SET frame = ? WHERE task_uid = ? AND seq = ?", (bytes(data), uid, seq))
        connection.close()
    else:
        import psycopg

        with psycopg.connect(app._store.address.target, autocommit=True) as database:
            changed = "UPDATE perdure.checkpoints SET frame = %s WHERE task_uid = %s AND seq = %s"
            database.execute(changed, (bytes(data), uid, seq))


def _forge_an_event(file: Path, uid: str) -> None:
    connection = apsw.Connection(str(file))
    connection.execute("UPDATE events SET kind = 'approved' WHERE task_uid = ? AND number = 2", (uid,))
    connection.close()


def _nowhere(secret: bytes, places: list[Path]) -> None:
    for place in places:
        for path in [place] if place.is_file() else place.rglob("*"):
            assert not path.is_file() or secret not in path.read_bytes(), f"{secret!r} stands in {path}"


# ── forty secrets ────────────────────────────────────────────────────────────────────────────────


def _planted() -> dict[str, str]:
    return {f"PLANT_{number:02d}": f"planted-{number:02d}-{number * 7919:08x}-value" for number in range(40)}


@pytest.mark.req("R142", "R109", "R73")
@pytest.mark.parametrize("engine", ["sqlite", "postgres"])
async def test_forty_planted_secrets_are_found_nowhere(
    engine: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
    request: pytest.FixtureRequest,
) -> None:
    planted = _planted()
    values = list(planted.values())
    url = f"sqlite://{tmp_path}/store/p.db" if engine == "sqlite" else request.getfixturevalue("postgres_url")
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    caplog.handler.addFilter(redaction.RedactingFilter())
    shown: list[str] = []
    async with Perdure(url, key=s5.KEY) as app:
        task = await app.tasks.open("secrets", state={})
        rt = continuity.Continuity(app._store, task.id, task.uid)
        # Fifteen by a telling name, ten by the form of their value, ten in a session, five in files.
        names = [f"SERVICE_{n}_{kind}" for n, kind in enumerate(("TOKEN", "SECRET", "PASSWORD", "API_KEY", "AUTH") * 3)]
        env = dict(zip(names, values[:15], strict=True))
        env |= {f"ADDRESS_{n}": f"postgresql://ada:{value}@db/app" for n, value in enumerate(values[15:25])}
        for name, value in env.items():
            monkeypatch.setenv(name, value)
        rt.env = {"PATH": "/usr/bin", **env}
        session = await rt.http("site", "https://site.example", login=lambda: values[25])
        session.token = s5.Token(values[25])
        session.headers.update({f"X-Secret-{n}": value for n, value in enumerate(values[26:35])})
        for number, value in enumerate(values[35:]):
            place = tmp_path / f"secret-{number}"
            place.write_text(value)
            place.chmod(0o600)
            rt.variables[f"at_{number}"] = Secret("file", str(place)).reference
            Secret("file", str(place)).value()
        cut = await rt.save()
        logging.getLogger("agent").warning("saved %s with %s", cut, values)
        shown += [repr(cut), str(await rt.plan())]
        contexts.forget_contexts()
        rt = continuity.Continuity(app._store, task.id, task.uid)
        back = await rt.restore()
        assert rt.env == {"PATH": "/usr/bin", **env}, "and yet they all came back"
        assert rt["site"].headers == {f"X-Secret-{n}": value for n, value in enumerate(values[26:35])}
        shown += [back.report.for_model(100_000), repr(back.report), redact(f"the agent said {values}")]
        shown += [str(event) for event in await app.tasks.events("secrets")]
        await export(app.tasks, "secrets", tmp_path / "bundle")
        rows = str(await dump(app._store, task.uid))
    shown += [caplog.text, rows]
    for value in values:
        assert not any(value in text for text in shown), value
        assert value.encode().hex() not in rows
        _nowhere(value.encode(), [place for place in (tmp_path / "store", tmp_path / "bundle") if place.exists()])

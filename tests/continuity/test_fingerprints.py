"""What the world looked like is recorded with a checkpoint and compared before anything is touched."""

from __future__ import annotations

import asyncio
import contextlib
import http.server
import json
import sqlite3
import threading
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from perdure._ground.bridge import drive
from perdure._runtime.context.fingerprints import Finding, Fingerprint, check, record
from perdure._runtime.secrets.secret_references import Secret
from perdure.errors import InvalidInput
from tests.continuity.trees import git, make_project

SHORT = timedelta(milliseconds=50)


async def look_twice(
    fingerprint: Fingerprint, change: Any, again: Fingerprint | None = None
) -> tuple[Finding, Finding]:
    """How it compares before and after a change, by a process that was given `again`."""
    recorded = await record([fingerprint])
    here = [again] if again is not None else []
    (first,) = await check(recorded, here)
    change()
    (second,) = await check(recorded, here)
    return first, second


@pytest.mark.req("R91")
async def test_a_changed_file_is_noticed(tmp_path: Path) -> None:
    path = tmp_path / "data.csv"
    path.write_text("one")
    first, second = await look_twice(Fingerprint.file(path), lambda: path.write_text("two"))
    assert first.same and second.refuses
    path.unlink()
    (gone,) = await check(await record([Fingerprint.file(path)]), [])
    assert not gone.same and "could not be seen" in gone.why


@pytest.mark.req("R91")
async def test_a_schema_that_moved_on_is_noticed_and_the_table_named(tmp_path: Path) -> None:
    with contextlib.closing(sqlite3.connect(tmp_path / "app.db")) as database:
        database.execute("CREATE TABLE users (id INTEGER)")
        first, second = await look_twice(
            Fingerprint.sqlite(tmp_path / "app.db"), lambda: database.execute("ALTER TABLE users ADD COLUMN name TEXT")
        )
    assert first.same and second.refuses and "users was" in second.why


@pytest.mark.req("R91")
async def test_a_postgres_schema_that_moved_on_is_noticed_and_no_password_is_stored(
    postgres_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    import psycopg

    monkeypatch.setenv("APP_DSN", postgres_url)
    with psycopg.connect(postgres_url, autocommit=True) as connection:
        connection.execute("CREATE TABLE orders (id int primary key)")
        first, second = await look_twice(
            Fingerprint.postgres(Secret("env", "APP_DSN")),
            lambda: connection.execute("ALTER TABLE orders ADD COLUMN cents int NOT NULL DEFAULT 0"),
        )
    assert first.same and second.refuses and "orders" in second.why
    with pytest.raises(InvalidInput, match="password"):
        Fingerprint.postgres("postgresql://ada:hunter22@db/app")


@pytest.mark.req("R91")
async def test_another_commit_and_a_changed_tree_are_noticed(tmp_path: Path) -> None:
    project = make_project(tmp_path / "project")
    clean = Fingerprint.git(project, dirty=False)
    _, dirty = await look_twice(Fingerprint.git(project), lambda: (project / "another.py").write_text("x"))
    assert dirty.refuses and "changes was" in dirty.why
    first, second = await look_twice(clean, lambda: git(project, "commit", "-qm", "next", "--allow-empty"))
    assert first.same and "head was" in second.why


class _Api(http.server.BaseHTTPRequestHandler):
    version = "1"

    def do_GET(self) -> None:
        self.send_response(200)
        self.send_header("X-Version", self.version)
        self.end_headers()
        self.wfile.write(json.dumps({"meta": {"version": self.version}}).encode())

    def log_message(self, *_: object) -> None: ...


@pytest.fixture
def api() -> Iterator[str]:
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), _Api)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{server.server_address[1]}/"
    server.shutdown()
    server.server_close()


@pytest.mark.req("R91")
@pytest.mark.parametrize("how", [{"header": "X-Version"}, {"field": "meta.version"}], ids=["header", "field"])
async def test_another_version_of_an_api_is_noticed(
    api: str, how: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    first, second = await look_twice(Fingerprint.api(api, **how), lambda: monkeypatch.setattr(_Api, "version", "2"))
    assert first.same and second.why == "it was 1, it is 2"


async def test_the_model_and_the_tools_are_what_this_process_says_they_are() -> None:
    before = [Fingerprint.model("small-1"), Fingerprint.tools([{"name": "search"}])]
    recorded = await record(before)
    assert all(finding.same for finding in await check(recorded, before))
    after = [Fingerprint.model("small-2"), Fingerprint.tools([{"name": "search", "strict": True}])]
    model, tools = await check(recorded, after)
    assert (model.same, model.policy, model.why) == (False, "warn", "it was small-1, it is small-2")
    assert tools.refuses
    silent = await check(recorded, [])
    assert all("has not said" in finding.why for finding in silent)


async def test_packages_and_the_interpreter_are_compared_by_version() -> None:
    recorded = await record([Fingerprint.packages("msgspec", "no-such-package"), Fingerprint.interpreter()])
    assert recorded[0].value["no-such-package"] == "not installed"
    assert all(finding.same for finding in await check(recorded, []))


async def test_a_look_that_raises_or_hangs_is_a_difference_and_holds_nobody_up() -> None:
    never = threading.Event()

    async def hangs() -> None:
        await asyncio.Event().wait()

    def raises() -> str:
        raise RuntimeError("password=hunter22 is wrong")

    ways = {"hangs": never.wait, "hangs on the loop": hangs, "raises": raises}
    recorded = await record([Fingerprint.custom(name, lambda: "fine") for name in ways])
    given = [Fingerprint.custom(name, way, patience=SHORT) for name, way in ways.items()]
    first, second, third = await check(recorded, given)
    assert first.refuses and "did not answer" in first.why
    assert second.refuses and "did not answer" in second.why
    assert third.refuses and "RuntimeError" in third.why and "hunter22" not in third.why
    never.set()


async def test_the_policy_this_process_gives_counts() -> None:
    recorded = await record([Fingerprint.custom("schema", lambda: 1)])
    (finding,) = await check(recorded, [Fingerprint.custom("schema", lambda: 2, policy="warn")])
    assert not finding.same and not finding.refuses


def test_looking_works_for_blocking_code_too() -> None:
    async def both() -> list[Finding]:
        async def now() -> int:
            return 7

        fingerprint = Fingerprint.custom("async", now)
        return await check(await record([fingerprint]), [fingerprint])

    assert drive(both())[0].same


def test_a_policy_nobody_knows_is_refused() -> None:
    with pytest.raises(InvalidInput, match="policy"):
        Fingerprint.interpreter(policy="perhaps")  # type: ignore[arg-type]

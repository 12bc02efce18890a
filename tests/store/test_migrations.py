"""Migrations: a store is made and brought up to date in one step, and a newer one is left alone."""

from __future__ import annotations

import hashlib
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import apsw
import pytest

from perdure._store import migrate
from perdure._store.sql import split
from perdure._store.sqlite import SqliteEngine
from perdure._store.sqlite import engine as engine_module
from perdure.errors import StoreNewer, StoreUnavailable
from tests.store.kit import UIDS, Hand, dump

ROOT = Path(__file__).resolve().parents[2]
HERE = Path(engine_module.__file__).parent
FIRST = "0001_first"


def form(connection: apsw.Connection) -> dict[str, Any]:
    """The tables and indexes of a database, whatever way they were written down."""
    found: dict[str, Any] = {}
    for _, name, kind, _, without_rowid, strict in connection.execute("PRAGMA table_list").fetchall():
        if kind == "table" and not name.startswith("sqlite_") and name != "migrations":
            found[name] = {
                "kind": (without_rowid, strict),
                "columns": [row[1:] for row in connection.execute(f"PRAGMA table_xinfo({name})").fetchall()],
                "indexes": sorted(indexes(connection, name)),
            }
    return found


def indexes(connection: apsw.Connection, table: str) -> list[Any]:
    found = []
    for _, name, unique, origin, partial in connection.execute(f"PRAGMA index_list({table})").fetchall():
        columns = tuple(row[2:] for row in connection.execute(f"PRAGMA index_xinfo({name})").fetchall())
        sql = connection.execute("SELECT sql FROM sqlite_schema WHERE name = ?", (name,)).fetchall()
        where = " ".join(str(sql[0][0]).partition(" WHERE ")[2].split()) if sql else ""
        found.append((name, unique, origin, partial, str(columns), where))
    return found


def fingerprint(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "store.db"


# ── the schema ───────────────────────────────────────────────────────────────────────────────────


def test_the_schema_is_what_the_migrations_make(path: Path) -> None:
    engine = SqliteEngine(path)
    Hand(engine).create(UIDS[0])
    made = form(engine._open_writer())
    engine.close()
    written = apsw.Connection(":memory:")
    for statement in split((HERE / "schema.sql").read_text()):
        written.execute(statement)
    assert made == form(written)
    assert "tasks" in made and made["tasks"]["columns"]


def test_a_new_store_has_had_every_migration(path: Path) -> None:
    engine = SqliteEngine(path)
    Hand(engine).create(UIDS[0])
    names = [name for (name,) in engine._open_writer().execute("SELECT name FROM migrations ORDER BY name").fetchall()]
    assert names == sorted(step.name for step in migrate.load(HERE / "migrations"))
    engine.close()


def test_opening_a_store_again_changes_nothing(path: Path) -> None:
    engine = SqliteEngine(path)
    Hand(engine).create(UIDS[0])
    engine.close()
    before = fingerprint(path)
    again = SqliteEngine(path)
    dump(again)
    again.close()
    assert fingerprint(path) == before


def test_a_script_must_end_with_a_semicolon() -> None:
    assert split("-- a comment\nSELECT 1;\n\nSELECT\n  2;\n") == ("SELECT 1", "SELECT\n  2")
    with pytest.raises(ValueError, match="semicolon"):
        split("SELECT 1;\nSELECT 2\n")


# ── a newer store ────────────────────────────────────────────────────────────────────────────────


@pytest.mark.req("R94")
def test_a_store_made_by_a_newer_perdure_is_refused_with_a_hint_and_left_untouched(path: Path) -> None:
    engine = SqliteEngine(path)
    Hand(engine).create(UIDS[0])
    engine._open_writer().execute("INSERT INTO migrations VALUES ('9999_future', 1)")
    engine.close()
    before = fingerprint(path)
    late = SqliteEngine(path)
    for act in (lambda: Hand(late).create(UIDS[1], "beta"), lambda: dump(late)):
        with pytest.raises(StoreNewer, match="9999_future") as refused:
            act()
        assert "upgrade" in refused.value.do
    late.close()
    assert fingerprint(path) == before


# ── which migrations are due: pure ───────────────────────────────────────────────────────────────


def folder(at: Path, *names: str) -> Path:
    at.mkdir(exist_ok=True)
    for name in names:
        (at / f"{name}.sql").write_text(f"-- {name}\nSELECT 1;\n")
    return at


def due(at: Path, *applied: str) -> list[str]:
    return [step.name for step in migrate.pending(migrate.load(at), applied, "the store")]


@pytest.mark.req("R94")
def test_a_store_gets_the_migrations_it_has_not_had_in_order(tmp_path: Path) -> None:
    at = folder(tmp_path / "m", "0010_tenth", "0002_second", "0001_first")
    assert due(at) == ["0001_first", "0002_second", "0010_tenth"]
    assert due(at, "0001_first") == ["0002_second", "0010_tenth"]
    assert due(at, "0001_first", "0002_second", "0010_tenth") == []


def test_what_takes_away_runs_one_release_later(tmp_path: Path) -> None:
    first = folder(tmp_path / "m", "0001_first")
    assert due(first) == ["0001_first"]
    second = folder(first, "0002_second", "0002_second.post")
    assert due(second, "0001_first") == ["0002_second"], "the release before may still be running"
    assert due(second, "0001_first", "0002_second") == []
    third = folder(second, "0003_third")
    assert due(third, "0001_first", "0002_second") == ["0002_second.post", "0003_third"]
    assert due(third, "0001_first", "0002_second", "0002_second.post", "0003_third") == []


def test_a_new_store_has_nobody_to_wait_for(tmp_path: Path) -> None:
    at = folder(tmp_path / "m", "0001_first", "0002_second", "0002_second.post")
    assert due(at) == ["0001_first", "0002_second", "0002_second.post"]


def test_a_migration_that_is_not_known_is_refused(tmp_path: Path) -> None:
    at = folder(tmp_path / "m", "0001_first", "0002_second")
    with pytest.raises(StoreNewer, match="0003_third"):
        due(at, "0001_first", "0002_second", "0003_third")
    with pytest.raises(StoreNewer, match=r"0002_second\.post"):
        due(at, "0001_first", "0002_second", "0002_second.post")


# ── in the middle of it ──────────────────────────────────────────────────────────────────────────


@pytest.fixture
def upgrade(tmp_path: Path) -> Path:
    """Today's migrations, and one more that adds a table and a column."""
    at = tmp_path / "migrations"
    at.mkdir()
    for file in (HERE / "migrations").glob("*.sql"):
        (at / file.name).write_text(file.read_text())
    (at / "9000_more.sql").write_text(
        "CREATE TABLE more (x INTEGER);\nALTER TABLE tasks ADD COLUMN more TEXT;\nINSERT INTO more VALUES (1);\n"
    )
    return at


def use(monkeypatch: pytest.MonkeyPatch, at: Path) -> None:
    real = migrate.load
    monkeypatch.setattr(migrate, "load", lambda _: real(at))


def names_in(path: Path) -> set[str]:
    connection = apsw.Connection(str(path))
    found = {str(name) for (name,) in connection.execute("SELECT name FROM sqlite_schema").fetchall()}
    connection.close()
    return found


def crash_while_opening(path: Path, at: Path) -> int:
    """Open the store with the migrations of `at` in a process that is killed before they are committed."""
    script = """
import sys
from pathlib import Path
from perdure._store import migrate
from perdure._store.sqlite import SqliteEngine
real = migrate.load
migrate.load = lambda _: real(Path(sys.argv[2]))
SqliteEngine(Path(sys.argv[1])).commit([])
"""
    source = [str(ROOT / "src"), os.environ.get("PYTHONPATH", "")]
    environment = {"PYTHONPATH": os.pathsep.join(source), "PERDURE_CRASH_AT": "sqlite.before_migrated"}
    command = [sys.executable, "-c", script, str(path), str(at)]
    return subprocess.run(command, env={**os.environ, **environment}, check=False, timeout=120).returncode


def test_a_crash_while_a_store_is_made_leaves_none_or_all_of_it(path: Path) -> None:
    assert crash_while_opening(path, HERE / "migrations") == -9
    assert names_in(path) == set()
    engine = SqliteEngine(path)
    assert Hand(engine).create(UIDS[0])
    engine.close()


@pytest.mark.req("R94")
def test_a_crash_while_a_store_is_brought_up_to_date_leaves_the_old_one(
    path: Path, upgrade: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    engine = SqliteEngine(path)
    Hand(engine).create(UIDS[0])
    before = dump(engine)
    engine.close()
    assert crash_while_opening(path, upgrade) == -9
    assert "more" not in names_in(path)
    old = SqliteEngine(path)
    assert dump(old) == before
    assert Hand(old).create(UIDS[1], "beta")
    old.close()
    use(monkeypatch, upgrade)
    new = SqliteEngine(path)
    assert Hand(new).create(UIDS[2], "gamma")
    new.close()
    assert "more" in names_in(path)


def test_a_process_of_the_release_before_works_on_beside_the_new_one(
    path: Path, upgrade: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    old = SqliteEngine(path)
    Hand(old).create(UIDS[0])
    use(monkeypatch, upgrade)
    new = SqliteEngine(path)
    assert Hand(new).create(UIDS[1], "beta")
    assert Hand(old).create(UIDS[2], "gamma")
    assert dump(old) == dump(new)
    old.close()
    new.close()


def test_a_migration_that_fails_leaves_the_store_as_it_was(
    path: Path, upgrade: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    engine = SqliteEngine(path)
    Hand(engine).create(UIDS[0])
    before = dump(engine)
    engine.close()
    (upgrade / "9001_wrong.sql").write_text("CREATE TABLE wrong (x INTEGER);\nINSERT INTO nowhere VALUES (1);\n")
    with monkeypatch.context() as patched:
        use(patched, upgrade)
        late = SqliteEngine(path)
        with pytest.raises(StoreUnavailable, match="nowhere"):
            Hand(late).create(UIDS[1], "beta")
        late.close()
    assert not {"more", "wrong"} & names_in(path)
    again = SqliteEngine(path)
    assert dump(again) == before
    again.close()

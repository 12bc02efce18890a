"""Every page of a SQLite store has a checksum: a flipped bit is an error of ours, and never another value."""

from __future__ import annotations

import random
import shutil
import subprocess
from contextlib import closing
from pathlib import Path

import apsw
import pytest

from perdure._store.sqlite import SqliteEngine, page_checksums
from perdure.cli import main
from perdure.errors import StoreDamaged, StoreNewer, StoreRefused
from perdure.sync import Perdure
from tests.store.kit import Hand

TASKS = 12
PAGE, SECTOR = 4096, 512


def make(path: Path) -> None:
    with Perdure(f"sqlite://{path}") as app:
        for number in range(TASKS):
            app.tasks.create(f"task-{number}", state={"number": number})


def read(path: Path) -> list[tuple[object, ...]]:
    engine = SqliteEngine(path)
    try:
        return engine.query("list_all", {"namespace": None, "after": "", "limit": 1000})
    finally:
        engine.close()


@pytest.fixture
def path(tmp_path: Path) -> Path:
    make(tmp_path / "store.db")
    return tmp_path / "store.db"


def damaged(data: bytes, rng: random.Random) -> bytes:
    """One bit, one byte, a sector or a page of it is another one."""
    changed = bytearray(data)
    at = rng.randrange(len(data))
    kind = rng.choice(("bit", "byte", "sector", "page"))
    if kind == "bit":
        changed[at] ^= 1 << rng.randrange(8)
    elif kind == "byte":
        changed[at] = (changed[at] + rng.randrange(1, 256)) % 256
    else:
        size = SECTOR if kind == "sector" else PAGE
        changed[at // size * size : at // size * size + size] = bytes(size)
    return bytes(changed)


def looked_through(path: Path) -> list[str]:
    """What is wrong with the file, as the doctor sees it."""
    engine = SqliteEngine(path)
    try:
        return engine.damage()
    except (StoreDamaged, StoreNewer) as error:
        return [error.what]
    finally:
        engine.close()


@pytest.mark.req("R95", "R23")
def test_damage_anywhere_in_the_file_is_an_error_or_is_not_in_what_is_read(path: Path, tmp_path: Path) -> None:
    page_checksums.renew(path)  # leaves no free pages: zeros over a page that holds nothing are not damage
    right, data = read(path), path.read_bytes()
    rng = random.Random(7)
    header = [bytes([*data[:at], data[at] ^ 1 << bit, *data[at + 1 :]]) for at in range(100) for bit in (0, 3)]
    refused = 0
    for spoiled in header + [damaged(data, rng) for _ in range(100)]:  # more: python -m tests.torture --part damage
        if spoiled == data:
            continue
        copy = tmp_path / "copy.db"
        copy.write_bytes(spoiled)
        assert looked_through(copy)
        try:
            assert read(copy) == right
        except (StoreDamaged, StoreNewer):
            refused += 1
        for file in tmp_path.glob("copy.db*"):
            file.unlink()
    assert refused > 20


def test_a_file_without_checksums_is_opened_and_written_as_before(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "old.db"
    with monkeypatch.context() as old:
        old.setattr(page_checksums, "RESERVED", 0)
        make(path)
    assert not page_checksums.has_checksums(path)
    engine = SqliteEngine(path)
    Hand(engine).create("later", id="later")
    engine.close()
    assert len(read(path)) == TASKS + 1 and not page_checksums.has_checksums(path)


def test_without_the_extension_a_file_with_checksums_is_refused_and_others_are_not(
    path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = path.read_bytes()
    monkeypatch.setattr(page_checksums, "_NAME", "an extension that is not there")
    monkeypatch.setattr(page_checksums, "_EXTENSION", Path("nowhere", "none"))
    with pytest.raises(StoreRefused, match="checksums"):
        read(path)
    assert path.read_bytes() == before
    make(tmp_path / "plain.db")
    assert len(read(tmp_path / "plain.db")) == TASKS
    assert not page_checksums.has_checksums(tmp_path / "plain.db")


def test_other_databases_of_the_process_are_opened_as_ever(path: Path, tmp_path: Path) -> None:
    read(path)
    with closing(apsw.Connection(str(tmp_path / "other.db"))) as other:
        assert other.open_vfs == "unix"


@pytest.mark.parametrize("how", ["VACUUM INTO '{}'", ".backup '{}'"])
@pytest.mark.skipif(shutil.which("sqlite3") is None, reason="it runs the command sqlite3")
def test_a_copy_by_another_program_is_read_and_the_doctor_gives_it_checksums(tmp_path: Path, how: str) -> None:
    store, copy = tmp_path / "store.db", tmp_path / "copy.db"
    with Perdure(store) as app:
        app.tasks.open("t", state={"n": 1})
    subprocess.run(["sqlite3", store, how.format(copy)], check=True)
    with Perdure(copy) as app:
        assert app.tasks.handle("t").record().state == {"n": 1}
    assert looked_through(copy)
    assert main(["doctor", "--adopt-copy", "--store", str(copy)]) == 0
    assert looked_through(copy) == []
    with Perdure(copy) as app:
        assert app.tasks.handle("t").record().state == {"n": 1}
    assert page_checksums.has_checksums(copy)


# ── damage that belongs to one record ────────────────────────────────────────────────────────────


def change(path: Path, statement: str) -> None:
    """As another program does it, that knows nothing of checksums."""
    with closing(apsw.Connection(str(path))) as stranger:
        stranger.execute(statement)


@pytest.mark.req("R95")
def test_a_page_is_read_when_the_damaged_record_on_it_is_known(path: Path) -> None:
    change(path, "UPDATE tasks SET name = CAST(x'ff' AS TEXT) WHERE id = 'task-3'")
    assert len(read(path)) == TASKS


@pytest.mark.req("R95")
def test_work_goes_on_beside_a_damaged_record(path: Path) -> None:
    change(path, "UPDATE tasks SET name = CAST(x'ff' AS TEXT) WHERE id = 'task-3'")
    with Perdure(f"sqlite://{path}") as app:
        app.tasks.open("task-4").complete("done")
    with Perdure(f"sqlite://{path}") as app:
        found = app.tasks.get("task-4")
        assert found is not None and found.result == "done"


@pytest.mark.req("R95")
def test_a_page_is_refused_when_nothing_tells_which_record_is_damaged(path: Path) -> None:
    change(path, "UPDATE tasks SET id = 'another' WHERE id = 'task-3'")
    with pytest.raises(StoreDamaged, match="checksum"):
        read(path)


@pytest.mark.parametrize("change_of", ["id = 'another'", "name = CAST(x'ff' AS TEXT)"])
def test_the_doctor_names_the_pages(path: Path, change_of: str) -> None:
    change(path, f"UPDATE tasks SET {change_of} WHERE id = 'task-3'")
    assert any("page" in line and "tasks" in line for line in looked_through(path))

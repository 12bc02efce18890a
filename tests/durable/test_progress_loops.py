"""Loops over items, files, lines, statements, and appending to a file, each killed on the way."""

from __future__ import annotations

import sqlite3
from datetime import timedelta
from pathlib import Path
from typing import Any

import apsw
import pytest

from perdure import Perdure, Retry
from perdure._durable import durable, step
from perdure._durable.progress import loops
from perdure._durable.progress.sql_scripts import split
from perdure.errors import Conflict, InvalidInput
from tests.durable.kept_kit import World, fresh_home, go_on, kill
from tests.support.processes import nursery
from tests.torture.kills import Home

MB = 1 << 20


@pytest.fixture
def home(request: pytest.FixtureRequest, tmp_path: Path) -> Home:
    return fresh_home(request, "sqlite", tmp_path)


# ── reading ──────────────────────────────────────────────────────────────────────────────────────


@step
async def _read(folder: str) -> int:
    world, total = World(Path(folder)), 0
    async for block in loops.blocks(Path(folder) / "large", MB, flush=True):
        number = int.from_bytes(block[:4])
        world.note(number)
        world.may_die(number)
        total += len(block)
    return total


@durable
async def reading(folder: str) -> int:
    return await _read(folder)


async def run_reading(home: Home, folder: Path) -> Any:
    async with home.open() as app:
        return await app.run("reading", reading, str(folder))


@pytest.mark.req("R60")
def test_a_large_read_killed_at_forty_percent_goes_on_at_that_byte(home: Home, tmp_path: Path) -> None:
    with (tmp_path / "large").open("wb") as file:
        for number in range(100):
            file.seek(number * MB)
            file.write(number.to_bytes(4))
        file.truncate(100 * MB)
    world = World(tmp_path)
    world.die_at(40)
    with nursery() as children:
        kill(children, run_reading, home, tmp_path)
        rest = go_on(children, run_reading, home, tmp_path)
    assert rest == 60 * MB
    assert world.notes() == [str(number) for number in [*range(41), *range(40, 100)]]


@step
async def _import(folder: str) -> None:
    world = World(Path(folder))
    async for line in loops.lines(Path(folder) / "rows.csv", flush=True):
        world.may_die(line.strip())
        world.note(line.strip())


@durable
async def importing(folder: str) -> None:
    await _import(folder)


async def run_importing(home: Home, folder: Path) -> Any:
    async with home.open() as app:
        return await app.run("importing", importing, str(folder))


@pytest.mark.req("R60")
def test_lines_go_on_at_the_next_line_also_in_text_of_many_bytes_per_letter(home: Home, tmp_path: Path) -> None:
    rows = [f"{number},{'häß€' * (number % 7)}" for number in range(300)]
    (tmp_path / "rows.csv").write_text("\n".join(rows), encoding="utf-8")
    world = World(tmp_path)
    with nursery() as children:
        for row in (rows[0], rows[120], rows[299]):
            world.die_at(row)
            kill(children, run_importing, home, tmp_path)
        go_on(children, run_importing, home, tmp_path)
    assert world.notes() == rows


def test_a_file_that_was_changed_meanwhile_is_not_read_on(home: Home, tmp_path: Path) -> None:
    path = tmp_path / "rows.csv"
    path.write_text("\n".join(f"row {number}" for number in range(300)))
    World(tmp_path).die_at("row 100")
    with nursery() as children:
        kill(children, run_importing, home, tmp_path)
        path.write_text("\n".join(f"raw {number}" for number in range(300)))
        with pytest.raises(Conflict, match="is not the file"):
            go_on(children, run_importing, home, tmp_path)


# ── items and files ──────────────────────────────────────────────────────────────────────────────


@step
async def _walk(folder: str) -> None:
    world = World(Path(folder))
    async for path in loops.files(Path(folder) / "in", "*.txt", flush=True):
        world.may_die(path.name)
        world.note(path.name)
    async for batch in loops.batches(range(10), 4, flush=True):
        world.may_die(batch[0])
        world.note(batch)


@durable
async def walking(folder: str) -> None:
    await _walk(folder)


async def run_walking(home: Home, folder: Path) -> Any:
    async with home.open() as app:
        return await app.run("walking", walking, str(folder))


@pytest.mark.req("R60")
def test_two_loops_in_one_step_each_go_on_where_they_were(home: Home, tmp_path: Path) -> None:
    (tmp_path / "in").mkdir()
    names = [f"{letter}.txt" for letter in "abcdef"]
    for name in names:
        (tmp_path / "in" / name).touch()
    world = World(tmp_path)
    with nursery() as children:
        for what in ("c.txt", 4):
            world.die_at(what)
            kill(children, run_walking, home, tmp_path)
        go_on(children, run_walking, home, tmp_path)
    assert world.notes() == [*names, "[0, 1, 2, 3]", "[4, 5, 6, 7]", "[8, 9]"]


async def test_without_a_task_they_are_plain_loops(tmp_path: Path) -> None:
    (tmp_path / "two").write_text("a\nb\n")
    assert [item async for item in loops.each("xyz")] == ["x", "y", "z"]
    assert [line async for line in loops.lines(tmp_path / "two", encoding=None)] == [b"a\n", b"b\n"]
    async with loops.appending(tmp_path / "two") as out:
        await out.write("c\n")
    assert (tmp_path / "two").read_text() == "a\nb\nc\n"


# ── appending ────────────────────────────────────────────────────────────────────────────────────


@step
async def _write(folder: str) -> None:
    world = World(Path(folder))
    async with loops.appending(Path(folder) / "out", flush=True) as out:
        for number in range(out.done, 50):
            world.may_die(number)
            await out.write(f"line {number}\n")


@durable
async def writing(folder: str) -> None:
    await _write(folder)


async def run_writing(home: Home, folder: Path) -> Any:
    async with home.open() as app:
        return await app.run("writing", writing, str(folder))


@pytest.mark.req("R60")
def test_each_line_is_in_the_file_once_though_the_last_write_was_torn(home: Home, tmp_path: Path) -> None:
    world, out = World(tmp_path), tmp_path / "out"
    with nursery() as children:
        for number in (0, 20):
            world.die_at(number)
            kill(children, run_writing, home, tmp_path)
            with out.open("a") as file:
                file.write("line 2")  # as a write that was cut off leaves it
        # A whole line that was written, and not yet marked.
        kill(children, run_writing, home, tmp_path, at="journal.recorded", count=7)
        world.die_at(49)
        kill(children, run_writing, home, tmp_path)
        with out.open("a") as file:
            file.write("longer than all that is still to come\n" * 10)
        go_on(children, run_writing, home, tmp_path)
    assert out.read_text() == "".join(f"line {number}\n" for number in range(50))


def test_a_file_that_somebody_else_wrote_to_is_left_alone(home: Home, tmp_path: Path) -> None:
    World(tmp_path).die_at(20)
    with nursery() as children:
        kill(children, run_writing, home, tmp_path)
        (tmp_path / "out").write_text("something else\n" * 100)
        with pytest.raises(Conflict, match="does not begin with"):
            go_on(children, run_writing, home, tmp_path)
    assert (tmp_path / "out").read_text().startswith("something else")


# ── what would leave items out ───────────────────────────────────────────────────────────────────


@step
async def _twice(inner: str) -> list[Any]:
    found: list[Any] = []
    async for one in loops.each([1, 2]):
        async for two in loops.each("ab", name=inner.format(one)):
            found.append((one, two))
    return found


@step(retry=Retry(2, wait=timedelta(0)))
async def _again(folder: str) -> list[int]:
    world = World(Path(folder))
    found = [one async for one in loops.each([1, 2, 3])]
    world.note("tried")
    if len(world.notes()) == 1:
        raise ValueError
    return found


@pytest.mark.req("R60")
async def test_a_second_loop_of_a_name_is_refused_and_never_skips_what_the_first_has_done(tmp_path: Path) -> None:
    @durable
    async def looping(inner: str) -> list[Any]:
        return await _twice(inner)

    @durable
    async def trying() -> list[int]:
        return await _again(str(tmp_path))

    async with Perdure(tmp_path / "p.db") as app:
        for name in ("each", "inner"):
            with pytest.raises(InvalidInput, match=f"a second loop of this step is called '{name}'"):
                await app.run(f"looping {name}", looping, name)
        found = await app.run("looping", looping, "inner {}")
        assert found == [(1, "a"), (1, "b"), (2, "a"), (2, "b")]
        assert await app.run("trying", trying) == []  # the same loop, tried again: it was done


async def test_a_folder_that_is_not_there_is_not_an_empty_one(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        await anext(loops.files(tmp_path / "unmounted", "*.txt"))
    (tmp_path / "empty").mkdir()
    assert [path async for path in loops.files(tmp_path / "empty")] == []
    with pytest.raises(InvalidInput, match="the size is 0"):
        await anext(loops.batches([1], 0))
    with pytest.raises(InvalidInput, match="the size is 0"):
        await anext(loops.blocks(tmp_path / "none", 0))


# ── SQL ──────────────────────────────────────────────────────────────────────────────────────────

SCRIPT = "CREATE TABLE done (n INTEGER);\n" + "".join(
    f"INSERT INTO done VALUES ({n}); -- ; no. {n}\n" for n in range(2, 13)
)


def _open(folder: str, driver: str) -> Any:
    path = str(Path(folder) / "target.db")
    return apsw.Connection(path) if driver == "apsw" else sqlite3.connect(path)


@step
async def _script(folder: str, driver: str, cursor: Any) -> int:
    connection = _open(folder, driver)
    try:
        return await loops.run_script(connection, SCRIPT, cursor=cursor)
    finally:
        connection.close()


@durable
async def scripting(folder: str, driver: str, cursor: str) -> int:
    return await _script(folder, driver, cursor)


class Script:
    """A run of the script, by driver and cursor."""

    def __init__(self, driver: str, cursor: str) -> None:
        self.driver, self.cursor = driver, cursor

    async def __call__(self, home: Home, folder: Path) -> Any:
        async with home.open() as app:
            return await app.run("scripting", scripting, str(folder), self.driver, self.cursor)


def _rows(folder: Path) -> list[int]:
    connection = sqlite3.connect(folder / "target.db")
    try:
        return [row[0] for row in connection.execute("SELECT n FROM done ORDER BY rowid")]
    finally:
        connection.close()


@pytest.mark.req("R60")
@pytest.mark.parametrize("driver", ["sqlite3", "apsw"])
@pytest.mark.parametrize("place, left", [("script.before_commit", 8), ("script.statement", 7)])
def test_a_script_of_twelve_statements_killed_in_the_fifth_goes_on_there(
    home: Home, tmp_path: Path, driver: str, place: str, left: int
) -> None:
    run = Script(driver, "target")
    with nursery() as children:
        kill(children, run, home, tmp_path, at=place, count=5)
        assert go_on(children, run, home, tmp_path) == left
    assert _rows(tmp_path) == list(range(2, 13))


@pytest.mark.req("R60")
def test_a_whole_script_is_done_or_has_not_begun(home: Home, tmp_path: Path) -> None:
    run = Script("sqlite3", "whole")
    with nursery() as children:
        kill(children, run, home, tmp_path, at="script.before_commit")
        assert go_on(children, run, home, tmp_path) == 12
    assert _rows(tmp_path) == list(range(2, 13))


@pytest.mark.req("R60")
@pytest.mark.parametrize("place, again", [("script.statement", []), ("journal.recorded", [5])])
def test_without_transactions_at_most_the_statement_under_way_is_repeated(
    home: Home, tmp_path: Path, place: str, again: list[int]
) -> None:
    run = Script("apsw", "journal")
    with nursery() as children:
        kill(children, run, home, tmp_path, at=place, count=5)
        go_on(children, run, home, tmp_path)
    rows = _rows(tmp_path)
    assert rows == list(range(2, 13)) or rows == [2, 3, 4, 5, *again, *range(6, 13)]


async def test_a_connection_inside_a_transaction_is_refused() -> None:
    connection = sqlite3.connect(":memory:")
    connection.execute("BEGIN")
    with pytest.raises(InvalidInput, match="inside a transaction"):
        await loops.run_script(connection, "SELECT 1")
    connection.close()


@pytest.mark.parametrize(
    "script, statements",
    [
        ("a; b ;\n c", ["a", "b", "c"]),
        ("select ';'; -- ; \n select \";\" /* ; */;", ["select ';'", '-- ; \n select ";" /* ; */']),
        ("create function f() as $x$ a; b; $x$; c", ["create function f() as $x$ a; b; $x$", "c"]),
        ("create trigger t begin a; b; end; c;", ["create trigger t begin a; b; end", "c"]),
        ("create trigger t execute function f(); c", ["create trigger t execute function f()", "c"]),
        ("  ; ;-- nothing\n", []),
    ],
)
def test_a_script_is_split_at_the_semicolons_that_end_a_statement(script: str, statements: list[str]) -> None:
    assert list(split(script)) == statements

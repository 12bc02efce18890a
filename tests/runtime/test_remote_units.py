"""`app.units`: live things listed, read by offset, and typed into by one writer at a time, each input once."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from perdure import Perdure, sync
from perdure._runtime import Shell, UnitAccess
from perdure.errors import Conflict, EffectUncertain, InvalidInput, NotFound, UnitEnded, UnitHeld
from tests.runtime.kit import Place
from tests.support.waiting import look_again

CAT = ["bash", "--norc", "-c", "echo ready; exec cat"]


@asynccontextmanager
async def opened(place: Place, argv: list[str] = CAT, name: str = "main") -> AsyncIterator[tuple[Perdure, UnitAccess]]:
    async with Perdure(place.url) as app:
        await app.tasks.open("work", state={})
        shell = await (await app.runtime("work")).shell(name, argv)
        assert isinstance(shell, Shell)
        yield app, await app.units.get("work", name)


async def shows(unit: UnitAccess, text: bytes) -> int:
    """Wait until its output has this; the offset after it."""
    seen, offset = b"", 0
    async with asyncio.timeout(120):
        while text not in seen:
            part = await unit.output(offset, wait="10s")
            seen, offset = seen + part.data, part.next
            assert text in seen or not part.is_over, seen
    return offset


async def becomes(unit: UnitAccess, holds: Callable[[Any], bool]) -> None:
    async with asyncio.timeout(120):
        while not holds(await unit.refresh()):
            await look_again()


async def test_units_are_listed_and_read_by_offset(place: Place) -> None:
    async with opened(place) as (app, unit):
        await (await app.runtime("work")).shell("other", CAT)
        await shows(unit, b"ready")
        page = await app.units.page(task="work", limit=1)
        rest = await app.units.page(task="work", cursor=page.cursor)
        assert [one.name for one in (*page.items, *rest.items)] == ["main", "other"]
        assert (page.items[0].kind, page.items[0].argv, page.items[0].is_alive) == ("shell", CAT, True)
        assert not (await app.units.page(kind="service")).items
        assert not (await app.units.page(task="nobody")).items
        part = await unit.output(0)
        again = await unit.output(part.next - 3)
        assert (again.start, again.data) == (part.next - 3, part.data[-3:])
        await unit.end()
        over = await unit.output(part.next, wait="10s")
        assert over.is_over and over.data == b"" and over.status is not None
        assert [one.name for one in (await app.units.page(alive=True)).items] == ["other"]
        with pytest.raises(UnitEnded):
            await unit.take("ada")
        with pytest.raises(NotFound):
            await app.units.get("work", "nothing")


async def test_one_writer_types_and_others_wait_their_turn(place: Place) -> None:
    async with opened(place) as (_app, unit):
        with pytest.raises(UnitHeld):
            await unit.send("i-1", b"too early\n", writer="ada")
        await unit.take("ada")
        record = await unit.refresh()
        assert record.writer == "ada" and record.writer_until is not None
        with pytest.raises(UnitHeld) as refused:
            await unit.take("bob")
        assert refused.value.by == "ada"
        for write in (
            unit.send("i-1", b"no\n", writer="bob"),
            unit.resize(10, 20, writer="bob"),
            unit.signal("INT", writer="bob"),
            unit.answer("i-2", b"no", writer="bob"),
        ):
            with pytest.raises(UnitHeld):
                await write
        await unit.send("i-1", b"from ada\n", writer="ada")
        await shows(unit, b"from ada")
        await unit.release("bob")  # not his
        assert (await unit.refresh()).writer == "ada"
        await unit.take("bob", force=True)
        with pytest.raises(UnitHeld):
            await unit.send("i-3", b"no\n", writer="ada")
        await unit.send("i-1", b"from bob\n", writer="bob")  # an id of his own
        await shows(unit, b"from bob")
        await unit.release("bob")
        await unit.take("ada")
        assert b"no" not in (await unit.output(0)).data


async def test_an_input_is_typed_once_however_often_it_is_sent(place: Place) -> None:
    async with opened(place) as (_app, unit):
        await shows(unit, b"ready")
        await unit.take("ada")
        for _ in range(3):
            await unit.send("i-1", b"once\n", writer="ada")
        place.kill_keeper()
        await unit.send("i-1", b"once\n", writer="ada")  # known, so it needs no right
        with pytest.raises(UnitHeld):
            await unit.send("i-2", b"never\n", writer="ada")  # the right did not outlive the keeper
        await unit.take("ada")
        await unit.send("i-3", b"last\n", writer="ada")
        await shows(unit, b"last\r\nlast\r\n")
        assert (await unit.output(0)).data == b"ready\r\nonce\r\nonce\r\nlast\r\nlast\r\n"  # echo, and cat


async def test_an_input_that_was_cut_off_is_uncertain_and_never_sent_again(place: Place) -> None:
    full = ["bash", "--norc", "-c", "stty raw -echo; echo ready; exec sleep 100000"]
    async with opened(place, full) as (_app, unit):
        await shows(unit, b"ready")
        await unit.take("ada")
        sending = asyncio.create_task(unit.send("i-1", b"x" * 60_000, writer="ada"))
        client = unit._client
        async with asyncio.timeout(120):
            while True:
                told = await client.do(unit._record.uid, "input_state", id=_id_of("ada", "i-1"))
                if told.args["state"] == "begun":
                    break
        place.kill_keeper()
        with pytest.raises(EffectUncertain):
            await sending
        await unit.take("ada")
        for _ in range(2):
            with pytest.raises(EffectUncertain):
                await unit.send("i-1", b"x" * 60_000, writer="ada")


def _id_of(writer: str, id: str) -> str:
    from perdure._runtime.units.remote_units import _input

    return _input(writer, id)


@pytest.mark.req("R34")
async def test_a_password_is_written_only_while_it_is_asked_for_and_kept_nowhere(place: Place, tmp_path: Path) -> None:
    secret = b"correct horse battery staple"
    asks = ["bash", "--norc", "-c", "read x; read -s -p 'password: ' X; echo got:${#X}; exec cat"]
    async with opened(place, asks) as (_app, unit):
        await unit.take("ada")
        with pytest.raises(Conflict, match="does not ask for a secret"):
            await unit.answer("a-1", secret + b"\n", writer="ada")
        await unit.send("i-1", b"go\n", writer="ada")
        await becomes(unit, lambda record: record.waiting == "secret")
        await unit.answer("a-2", secret + b"\n", writer="ada")
        await unit.answer("a-2", secret + b"\n", writer="ada")
        await shows(unit, b"got:%d\r\n" % len(secret))
        assert secret not in (await unit.output(0)).data
        for folder in (place.home, Path(place.socket).parent, tmp_path):
            assert not [file for file in folder.rglob("*") if file.is_file() and secret in file.read_bytes()]


async def test_a_writer_that_says_nothing_loses_the_right_when_its_time_is_over(place: Place) -> None:
    async with opened(place) as (_app, unit):
        await unit.take("ada", lasts="50ms")
        async with asyncio.timeout(120):
            while True:
                try:
                    await unit.take("bob")
                    break
                except UnitHeld:
                    await look_again()
        with pytest.raises(UnitHeld):
            await unit.send("i-1", b"late\n", writer="ada")


async def test_a_person_takes_a_shell_from_its_agent_and_gives_it_back(place: Place) -> None:
    async with opened(place) as (app, unit):
        shell = await (await app.runtime("work")).shell("main", CAT)
        await shell.send("from the agent\n")
        with pytest.raises(UnitHeld) as refused:
            await unit.take("ada")
        assert refused.value.pid
        assert (await unit.refresh()).writer == f"process {refused.value.pid}"
        await unit.take("ada", force=True)
        with pytest.raises(UnitHeld, match="ada"):
            await shell.send("agent again\n")
        await unit.send("i-1", b"from ada\n", writer="ada")
        await unit.release("ada")
        await shell.send("agent at last\n")
        await shows(unit, b"agent at last")
        assert b"agent again" not in (await unit.output(0)).data


async def test_size_signals_and_the_blocking_face(place: Place) -> None:
    sized = ["bash", "--norc", "-c", "trap 'stty size' INT; echo ready; while :; do read x; done"]
    async with opened(place, sized) as (_app, unit):
        await shows(unit, b"ready")
        await unit.take("ada")
        await unit.resize(33, 77, writer="ada")
        await unit.signal("INT", writer="ada")
        await shows(unit, b"33 77")

    def blocking() -> None:
        with sync.Perdure(place.url) as blocked:
            (record,) = blocked.units.page(alive=True).items
            again = blocked.units.get(record.task, record.name)
            again.take("ada")
            assert b"33 77" in again.output(0).data
            again.end()

    await asyncio.to_thread(blocking)


async def test_what_is_no_input_is_refused(place: Place) -> None:
    async with opened(place) as (app, unit):
        await unit.take("ada")
        for act in (
            lambda: unit.send("", b"x", writer="ada"),
            lambda: unit.send("run-\n", b"x", writer="ada"),
            lambda: unit.send("i" * 65, b"x", writer="ada"),
            lambda: unit.send("i", "text", writer="ada"),  # type: ignore[arg-type]
            lambda: unit.send("i", b"x" * 65_537, writer="ada"),
            lambda: unit.take(""),
            lambda: unit.take("a\nb"),
            lambda: unit.take("x" * 201),
            lambda: unit.take("ada", lasts="2h"),
            lambda: unit.signal("NOPE", writer="ada"),
            lambda: unit.signal("_DFL", writer="ada"),
            lambda: unit.resize(0, 10, writer="ada"),
            lambda: unit.output(-1),
            lambda: app.units.page(limit=0),
            lambda: app.units.page(task="a\0b"),
        ):
            with pytest.raises(InvalidInput):
                await act()

"""How a task finds its function: by name; where two modules have one of that name, by the module that began it."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from perdure import Perdure, durable
from perdure._durable.declare import code_places, versions
from perdure.errors import Conflict

SOURCE = """
from perdure import durable, step

@step
async def look() -> str:
    return {said!r}

@durable{options}
async def {name}(number: int) -> str:
    return f"{{await look()}} {{number}}"
"""


@pytest.fixture(autouse=True)
def _as_it_was() -> Iterator[None]:
    known, namesakes = dict(versions._known), dict(versions._namesakes)
    yield
    for registry, before in ((versions._known, known), (versions._namesakes, namesakes)):
        registry.clear()
        registry.update(before)


class Modules:
    """Modules of a project, imported as a process would; `forget` is what a new process knows: nothing."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def load(self, module: str, *, name: str = "collect", options: str = "", said: str = "") -> Any:
        source = SOURCE.format(said=said or module, options=options, name=name)
        file = self._folder / (module.replace(".", "/") + ".py")
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(source)
        made = ModuleType(module)
        made.__file__ = str(file)
        exec(compile(source, str(file), "exec"), made.__dict__)
        return getattr(made, name)

    def forget(self) -> None:
        versions._known.clear()
        versions._namesakes.clear()


@pytest.fixture
def modules(tmp_path: Path) -> Modules:
    return Modules(tmp_path)


async def test_functions_of_one_name_in_two_modules_are_carried_on_by_one_worker(url: str, modules: Modules) -> None:
    mail, bills = modules.load("shop.mail"), modules.load("shop.bills")
    async with Perdure(url) as app:
        first, second = await app.start("m", mail, 1), await app.start("b", bills, 2)
        async with app.worker():
            assert [await first.result(), await second.result()] == ["shop.mail 1", "shop.bills 2"]
        assert await app.run("m2", mail, 3) == "shop.mail 3" and await app.run("b2", bills, 4) == "shop.bills 4"


async def test_a_worker_that_knows_both_carries_on_what_a_process_that_knows_one_began(
    url: str, modules: Modules
) -> None:
    async with Perdure(url) as app:
        await app.start("m", modules.load("shop.mail"), 1)
        modules.forget()
        await app.start("b", modules.load("shop.bills"), 2)
        modules.load("shop.mail")
        async with app.worker():
            record = await app.tasks.wait_for("m")
            assert record.result == "shop.mail 1"
            assert (await app.tasks.wait_for("b")).result == "shop.bills 2"


async def test_an_id_belongs_to_one_of_them(quick_url: str, modules: Modules) -> None:
    mail, bills = modules.load("shop.mail"), modules.load("shop.bills")
    async with Perdure(quick_url) as app:
        assert await app.run("job", mail, 1) == "shop.mail 1"
        with pytest.raises(Conflict, match=r"'collect' of shop.mail, not to that of shop.bills"):
            await app.run("job", bills, 1)


async def test_a_function_is_found_after_its_module_was_moved(quick_url: str, modules: Modules) -> None:
    async with Perdure(quick_url) as app:
        await app.start("job", modules.load("shop.mail"), 1)
        modules.forget()
        modules.load("post.letters", said="moved")
        async with app.worker():
            assert (await app.tasks.wait_for("job")).result == "moved 1"


async def test_a_function_is_found_after_it_was_renamed_if_it_keeps_its_old_name(
    quick_url: str, modules: Modules
) -> None:
    async with Perdure(quick_url) as app:
        await app.start("job", modules.load("shop.mail"), 1)
        modules.forget()
        modules.load("shop.mail", name="collect_mail", options='(name="collect")', said="renamed")
        async with app.worker():
            assert (await app.tasks.wait_for("job")).result == "renamed 1"


async def test_moved_beside_a_namesake_it_is_found_by_the_name_it_was_given(quick_url: str, modules: Modules) -> None:
    async with Perdure(quick_url) as app:
        await app.start("job", modules.load("shop.mail"), 1)
        modules.forget()
        modules.load("shop.bills")
        modules.load("post.letters", options='(name="collect")', said="moved")
        async with app.worker():
            assert (await app.tasks.wait_for("job")).result == "moved 1"


async def test_where_nothing_says_which_one_is_meant_the_task_pauses_and_asks(quick_url: str, modules: Modules) -> None:
    async with Perdure(quick_url) as app:
        await app.start("job", modules.load("shop.mail"), 1)
        modules.forget()
        modules.load("shop.bills")
        modules.load("post.letters")
        async with app.worker():
            record = await app.tasks.wait_for("job", status="paused")
        assert record.pause is not None and "collect" in record.pause.message and "letters.py" in record.pause.message
        modules.forget()
        modules.load("shop.bills")
        modules.load("post.letters", options='(name="collect")', said="named")
        await (await app.tasks.handle("job")).resume()
        async with app.worker():
            assert (await app.tasks.wait_for("job")).result == "named 1"


async def test_a_task_from_before_modules_were_kept_finds_its_function_by_name(
    quick_url: str, modules: Modules
) -> None:
    async with Perdure(quick_url) as app:
        before = modules.load("shop.mail")
        before.module = ""  # as it was written then: nothing on record
        await app.start("job", before, 1)
        modules.forget()
        modules.load("post.letters", said="found")
        async with app.worker():
            assert (await app.tasks.wait_for("job")).result == "found 1"


async def test_schedules_and_forks_know_which_one_they_start(quick_url: str, modules: Modules) -> None:
    mail, _ = modules.load("shop.mail"), modules.load("shop.bills")
    async with Perdure(quick_url) as app:
        await app.schedule("daily", mail, 1).cron("0 9 * * *")
        await app.run("job", mail, 1)
        await (await app.tasks.handle("job")).fork("job-2", set={"number": 2}, at="0")
        id = await app.schedules.run_now("daily")
        async with app.worker():
            assert (await app.tasks.wait_for(id)).result == "shop.mail 1"
            assert (await app.tasks.wait_for("job-2")).result == "shop.mail 2"


def test_a_name_that_was_given_twice_is_refused(modules: Modules) -> None:
    modules.load("shop.mail", options='(name="x")')
    with pytest.raises(Conflict, match="two durable functions are called 'x'"):
        modules.load("shop.bills", options='(name="x")')


def test_a_script_is_the_module_of_its_file(monkeypatch: Any) -> None:
    async def made() -> None: ...

    made.__module__ = "__main__"
    main = ModuleType("__main__")
    main.__file__, main.__spec__ = "/srv/app/agent.py", None
    monkeypatch.setitem(sys.modules, "__main__", main)
    assert code_places.module_of(made) == "agent"
    assert code_places.is_same_module("agent", "app.agent") and not code_places.is_same_module("agent", "my_agent")
    assert durable(name="of a script")(made).module == "agent"


async def test_who_calls_run_says_which_one_is_meant(quick_url: str, modules: Modules) -> None:
    async with Perdure(quick_url) as app:
        await app.start("job", modules.load("shop.mail"), 1)
        modules.forget()
        modules.load("shop.bills")
        letters = modules.load("post.letters")
        assert await app.run("job", letters, 1) == "post.letters 1"

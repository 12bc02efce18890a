"""The list that keeps a conversation of OpenAI Agents, the Agent Framework and Strands: several processes change it."""

from __future__ import annotations

import asyncio
from typing import Any

import perdure
from perdure import Perdure, durable
from perdure.integrations.item_list import ItemList


async def test_items_that_two_apps_add_at_once_are_all_kept_and_in_one_piece(shared_url: str) -> None:
    async with Perdure(shared_url) as one, Perdure(shared_url) as other:
        lists = [ItemList(app.storage, "talk/") for app in (one, other)]
        await asyncio.gather(*(lists[n % 2].add([(n, 0), (n, 1)]) for n in range(20)))
        found = [tuple(item) for item in await lists[0].get()]
        assert sorted(found) == [(n, part) for n in range(20) for part in (0, 1)]
        assert all(found[at + 1] == (found[at][0], 1) for at in range(0, 40, 2))

        popped = await asyncio.gather(*(lists[n % 2].pop() for n in range(20)))
        assert len({tuple(item) for item in popped}) == 20
        assert len(await lists[1].get()) == 20


async def test_an_effect_that_is_repeated_adds_once_though_others_added_and_took_meanwhile(folder: Any) -> None:
    ran: list[str] = []
    async with Perdure(folder / "p.db") as app:
        items = ItemList(app.storage, "talk/")

        async def save() -> None:
            ran.append("save")
            await items.add(["mine"])
            if len(ran) == 1:  # as when the process dies after the write and before its record of it
                await app.storage.put("talk/000000000001", {"item": "another's"})
                raise ConnectionError("away")

        @durable
        async def work() -> None:
            await perdure.call(save, name="save", kind="effect", keyed=True)
            await perdure.call(save, name="save again", kind="effect", keyed=True)

        await app.run("w", work)
        assert ran == ["save"] * 3
        assert await items.get() == ["mine", "another's", "mine"]
        await (await app.tasks.handle("w")).delete(force=True)
        assert await app.storage.list("execution/w/") == []

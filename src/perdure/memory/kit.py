"""A conformance kit for storage adapters and layers, also for the tests of third parties.

    from perdure.memory import kit
    await kit.check_storage(lambda: MyStorage(...))        # a new, empty storage at each call
    await kit.check_layer(app, MyLayer)                    # a class or a function that makes a layer

Each check raises AssertionError with a sentence that says what does not hold.
"""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Any

from perdure.memory.layer import SCOPES, Block, check
from perdure.memory.prompt import estimate
from perdure.memory.storage import StorageAdapter, get_many

if TYPE_CHECKING:
    from contextlib import AbstractAsyncContextManager
    from typing import Protocol

    class _App(Protocol):
        def memory(self, task_id: str, layers: Any, **more: Any) -> AbstractAsyncContextManager[Any]: ...


VALUES: tuple[Any, ...] = (
    {"a": [1, 2.5, True, None, "é😀"], "b": {"c": {}}},
    [],
    "",
    "text\n\x01",
    0,
    False,
    -(1 << 62),
    b"\x00\xff bytes",
    {"long": "x" * 200_000},
)
KEYS = ("a", "a/b", "a/b/c", "é/ü", "with space", "dots.and-dashes_", "%2F", "A", "a\x01b", "k" * 500, "../up", "😀")


async def check_storage(make: Callable[[], StorageAdapter | Awaitable[StorageAdapter]]) -> None:
    """Check everything that a storage adapter must do; `make` returns a new, empty one at each call."""
    for test in (_values_come_back, _keys_are_keys, _last_wins, _deleting, _listing, _many, _copies, _many_at_once):
        made = make()
        adapter = await made if inspect.isawaitable(made) else made
        try:
            await test(adapter)
        finally:
            close = getattr(adapter, "close", None)
            if close is not None:
                done = close()
                if inspect.isawaitable(done):
                    await done


async def _values_come_back(adapter: StorageAdapter) -> None:
    assert await adapter.get("nothing") is None, "a key without a value gives None"
    for value in VALUES:
        await adapter.set("key", value)
        found = await adapter.get("key")
        assert found == value and type(found) is type(value), f"{str(value)[:40]!r} comes back as it was"


async def _keys_are_keys(adapter: StorageAdapter) -> None:
    for place, key in enumerate(KEYS):
        await adapter.set(key, place)
    for place, key in enumerate(KEYS):
        assert await adapter.get(key) == place, f"{key[:40]!r} is not confused with another key"


async def _last_wins(adapter: StorageAdapter) -> None:
    for number in range(5):
        await adapter.set("key", {"number": number})
    assert await adapter.get("key") == {"number": 4}, "the value written last is the one that is read"


async def _deleting(adapter: StorageAdapter) -> None:
    await adapter.set("key", 1)
    await adapter.set("key/2", 2)
    await adapter.delete("key")
    await adapter.delete("key")
    assert await adapter.get("key") is None, "a deleted value is gone, and deleting it again is not an error"
    assert await adapter.get("key/2") == 2, "nothing else is deleted"
    assert list(await adapter.list("")) == ["key/2"], "what was deleted is not listed"


async def _listing(adapter: StorageAdapter) -> None:
    assert list(await adapter.list("")) == [], "an empty storage lists nothing"
    for key in KEYS:
        await adapter.set(key, 1)
    for prefix in ("", "a", "a/", "a/b", "é", "k" * 499, "nothing", "%", "_", "."):
        expected = sorted(key for key in KEYS if key.startswith(prefix))
        found = list(await adapter.list(prefix))
        assert sorted(found) == expected, f"list({prefix[:20]!r}) gives the keys with this prefix, each once"
    many = [f"page/{number:05d}" for number in range(1_100)]
    await asyncio.gather(*(adapter.set(key, 0) for key in many))
    assert sorted(await adapter.list("page/")) == many, "long lists are complete"


async def _many(adapter: StorageAdapter) -> None:
    await adapter.set("one", 1)
    await adapter.set("two", [2])
    found = await get_many(adapter, ["one", "two", "three", "one"])
    assert found == {"one": 1, "two": [2]}, "get_many gives the keys that have a value"


async def _copies(adapter: StorageAdapter) -> None:
    value = {"list": [1]}
    await adapter.set("key", value)
    value["list"].append(2)
    found = await adapter.get("key")
    assert found == {"list": [1]}, "changing an object after set() does not change the stored value"
    assert found is not None
    found["list"].append(3)
    assert await adapter.get("key") == {"list": [1]}, "changing what get() returned does not change the stored value"


async def _many_at_once(adapter: StorageAdapter) -> None:
    await asyncio.gather(*(adapter.set("shared", {"writer": n, "text": str(n) * 5_000}) for n in range(20)))
    found = await adapter.get("shared")
    assert found is not None and found["text"] == str(found["writer"]) * 5_000, "a value comes whole from one writer"


async def check_layer(app: _App, make: Callable[[], Any], *, task_id: str = "kit-layer") -> None:
    """Check everything that a layer must do. Each call of `make` stands for a restarted process: it returns a new
    object, which must find what the one before has stored."""
    layer = make()
    check(layer)
    assert layer.scope in SCOPES
    more = {} if layer.scope in ("execution", "global") else {layer.scope: "kit"}
    async with app.memory(task_id, [layer], **more) as memory:
        for budget in (10_000, 500, 50, 1, 0):
            blocks = list(await memory.prompt_blocks(budget=budget))
            used = sum(estimate(block.text) for block in blocks)
            assert used <= budget, f"recall keeps to {budget} tokens; it took {used}"
            assert all(isinstance(block, Block) for block in blocks)
        await memory.after_turn(depth=1)
        child = await memory.spawn(f"{task_id}-child")
        await memory.returned(child)
        await memory.complete("success")
        before = list(await memory.prompt_blocks(budget=10_000))
        notes = [note for note in memory.notes if note.hook != "budget"]
        assert not notes, f"no hook fails or exceeds its budget: {notes}"
    async with app.memory(task_id, [make()], **more) as again:
        after = list(await again.prompt_blocks(budget=10_000))
        assert after == before, "after a restart the model is told the same facts"

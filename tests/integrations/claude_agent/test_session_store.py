"""The SDK's own conformance run for session stores, and two processes on one session."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from claude_agent_sdk.testing import run_session_store_conformance

from perdure import Perdure
from perdure.integrations.claude_agent import PerdureSessionStore

KEY: Any = {"project_key": "a/b-c", "session_id": "s-1"}


@pytest.mark.req("R150")
async def test_the_conformance_run_passes_whole(shared_url: str) -> None:
    apps: list[Perdure] = []
    try:

        def make() -> PerdureSessionStore:
            apps.append(Perdure(shared_url, namespace=f"n{len(apps)}"))
            return PerdureSessionStore(apps[-1])

        await run_session_store_conformance(make)
        assert len(apps) >= 14
    finally:
        for app in apps:
            await app.close()


async def test_two_processes_append_to_one_session_and_each_entry_is_kept_once(shared_url: str) -> None:
    async with Perdure(shared_url) as one, Perdure(shared_url) as two:
        stores = [PerdureSessionStore(one), PerdureSessionStore(two)]

        async def append(store: PerdureSessionStore, number: int) -> None:
            shared: Any = {"type": "user", "uuid": f"shared-{number}", "n": number}
            await store.append(KEY, [shared, {"type": "title"}])

        await asyncio.gather(*(append(store, number) for number in range(10) for store in stores))
        loaded = await PerdureSessionStore(one).load(KEY)
        assert loaded is not None
        assert sorted(entry["n"] for entry in loaded if "uuid" in entry) == list(range(10))
        assert sum("uuid" not in entry for entry in loaded) == 20
        (summary,) = await stores[0].list_session_summaries("a/b-c")
        assert summary["session_id"] == "s-1" and await stores[1].list_sessions("a/b-c") == [
            {"session_id": "s-1", "mtime": summary["mtime"]}
        ]


async def test_a_session_is_resumed_from_the_store_by_another_process(shared_url: str) -> None:
    async with Perdure(shared_url) as app:
        await PerdureSessionStore(app).append(KEY, [{"type": "user", "uuid": "u", "text": "hello"}])  # type: ignore[typeddict-unknown-key]
        await PerdureSessionStore(app).append({**KEY, "subpath": "subagents/agent-1"}, [{"type": "x"}])
    async with Perdure(shared_url) as app:
        store = PerdureSessionStore(app)
        assert await store.load(KEY) == [{"type": "user", "uuid": "u", "text": "hello"}]
        assert await store.list_subkeys(KEY) == ["subagents/agent-1"]
        await store.delete(KEY)
        assert await store.load(KEY) is None and await store.list_subkeys(KEY) == []

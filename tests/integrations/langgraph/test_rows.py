"""What a saver stores when it is asked twice, when a write fails, and when a thread is removed or pruned."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any, TypedDict

import pytest
from langgraph.channels.delta import DeltaChannel
from langgraph.checkpoint.base import empty_checkpoint
from langgraph.graph import START, StateGraph

from perdure import Perdure
from perdure.errors import StoreUnreachable
from perdure.integrations.langgraph import PerdureSaver
from perdure.types import Storage

AT: Any = {"configurable": {"thread_id": "t", "checkpoint_ns": ""}}


def checkpoint(number: int, values: dict[str, Any]) -> Any:
    versions = dict.fromkeys(values, f"{number:08}.0")
    return {**empty_checkpoint(), "id": f"{number:036}", "channel_values": values, "channel_versions": versions}


async def put(saver: PerdureSaver, at: Any, number: int, said: list[str]) -> Any:
    made = checkpoint(number, {"said": said})
    return await saver.aput(at, made, {}, made["channel_versions"])


async def read(app: Perdure, at: Any = AT) -> list[str]:
    """What a process reads that has seen nothing."""
    found = await PerdureSaver(app).aget_tuple(at)
    assert found is not None
    said: list[str] = found.checkpoint["channel_values"]["said"]
    return said


async def test_what_a_node_wrote_stays_as_it_was_written_first(tmp_path: Path) -> None:
    async with Perdure(f"sqlite://{tmp_path}/p.db") as app:
        saver = PerdureSaver(app)
        at = await put(saver, AT, 1, ["one", "two"])
        await saver.aput_writes(at, [("said", "first")], "node")
        await saver.aput_writes(at, [("said", "late"), ("more", "new")], "node")
        await saver.aput_writes(at, [("__interrupt__", "asked")], "node")
        await saver.aput_writes(at, [("__interrupt__", "asked again")], "node")
        found = await saver.aget_tuple(at)
        assert found is not None and found.pending_writes is not None
        told = {channel: value for _, channel, value in found.pending_writes}
        assert told == {"said": "first", "more": "new", "__interrupt__": "asked again"}


async def test_a_checkpoint_that_failed_is_no_ground_for_the_next(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    real, fails = Storage.write, [False]

    async def write(self: Storage, changes: Any) -> Any:
        if fails[0]:
            raise StoreUnreachable("the store is away")
        return await real(self, changes)

    monkeypatch.setattr(Storage, "write", write)
    async with Perdure(f"sqlite://{tmp_path}/p.db") as app:
        saver = PerdureSaver(app)
        at = await put(saver, AT, 1, ["one", "two"])
        fails[0] = True
        with pytest.raises(StoreUnreachable):
            await put(saver, at, 2, ["one", "two", "three"])
        fails[0] = False
        await put(saver, at, 3, ["one", "two", "three", "four"])
        assert await read(app) == ["one", "two", "three", "four"]


async def test_a_thread_that_was_deleted_begins_anew_in_the_same_process(tmp_path: Path) -> None:
    async with Perdure(f"sqlite://{tmp_path}/p.db") as app:
        saver = PerdureSaver(app)
        await put(saver, AT, 1, ["one", "two"])
        await saver.adelete_thread("t")
        await put(saver, AT, 2, ["one", "two", "three"])
        assert await read(app) == ["one", "two", "three"]


def joined(before: list[str], added: Sequence[list[str]]) -> list[str]:
    return [*before, *(text for one in added for text in one)]


class Talk(TypedDict):
    said: Annotated[list[str], DeltaChannel(joined, snapshot_frequency=4)]


@pytest.mark.parametrize("turns", [9, 10, 12])
async def test_what_a_pruned_thread_is_rebuilt_from_shows_in_no_list(tmp_path: Path, turns: int) -> None:
    def turn(state: Talk) -> dict[str, list[str]]:
        return {"said": [str(len(state["said"]))]}

    async with Perdure(f"sqlite://{tmp_path}/p.db") as app:
        saver = PerdureSaver(app)
        graph = StateGraph(Talk).add_node("turn", turn).add_edge(START, "turn").compile(checkpointer=saver)
        for _ in range(turns):
            out = await graph.ainvoke({"said": ["asked"]}, AT)
        await saver.aprune(["t"])
        assert len([one async for one in PerdureSaver(app).alist(AT)]) == 1
        assert (await graph.aget_state(AT)).values == out
        assert len((await graph.ainvoke({"said": ["asked"]}, AT))["said"]) == 2 * turns + 2

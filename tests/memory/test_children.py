"""Children begin with what their parent has, and give back what they added."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from perdure import Perdure
from perdure.memory import DurableTaskState
from perdure.memory.task_state_events import (
    EMPTY,
    Checkpointed,
    DataSet,
    Doc,
    Recorded,
    Returned,
    fold,
    from_stored,
    join_data,
    join_files,
    own_part,
    reduce,
    spawned,
    to_stored,
)


def state_of(memory: Any) -> dict[str, Any]:
    found: dict[str, Any] = memory.layer("task_state").state
    return found


@pytest.mark.req("R139")
async def test_a_child_changes_nothing_of_its_parent(url: str) -> None:
    async with Perdure(url) as app, app.memory("parent", [DurableTaskState()]) as memory:
        await memory.layer("task_state").set_data({"shared": {"list": [1]}})
        await memory.after_turn(depth=1)
        child = await memory.spawn("child")
        assert state_of(child) == state_of(memory)
        await child.layer("task_state").set_data({"shared": {"list": [1, 2]}, "own": True})
        await child.after_turn(depth=2)
        assert state_of(memory)["data"] == {"shared": {"list": [1]}}
        assert len(state_of(memory)["checkpoints"]) == 1


@pytest.mark.req("R139", "R141")
async def test_a_child_in_another_process_begins_with_what_it_was_given(shared_url: str) -> None:
    async with Perdure(shared_url) as app, app.memory("parent", [DurableTaskState()]) as memory:
        await memory.layer("task_state").set_data({"goal": "refactor"})
        await memory.spawn("child")
    async with Perdure(shared_url) as app, app.memory("child", [DurableTaskState()]) as child:
        assert state_of(child)["data"] == {"goal": "refactor"}
        await child.layer("task_state").set_data({"done": 1})
    async with Perdure(shared_url) as app, app.memory("parent", [DurableTaskState()]) as memory:
        await memory.layer("task_state").set_data({"goal": "changed meanwhile"})
        child = await memory.spawn("child")  # as it stands, not anew
        assert state_of(child)["data"] == {"goal": "refactor", "done": 1}
        await memory.returned(child)
        assert state_of(memory)["data"] == {"goal": "changed meanwhile", "done": 1}


@pytest.mark.req("R140")
async def test_what_children_added_is_taken_over(url: str, tmp_path: Path) -> None:
    async with Perdure(url) as app, app.memory("parent", [DurableTaskState(base_dir=tmp_path)]) as memory:
        await memory.after_turn(depth=1)
        await memory.layer("task_state").write_artifact("both.txt", "parent")
        children = [await memory.spawn(f"child-{number}") for number in (1, 2)]
        for number, child in enumerate(children, 1):
            await child.layer("task_state").write_artifact(f"{number}.txt", "child")
            await child.layer("task_state").write_artifact("both.txt", "child")
            await child.layer("task_state").set_data({"last": number, f"own {number}": True})
            await child.after_turn(depth=10 + number)
            await memory.returned(child)
        state = state_of(memory)
        assert [one["depth"] for one in state["checkpoints"]] == [1, 11, 12]
        assert state["files"] == ["both.txt", "1.txt", "2.txt"]
        assert state["data"] == {"last": 2, "own 1": True, "own 2": True}


@pytest.mark.req("R140")
async def test_in_namespaces_parallel_children_keep_their_own(url: str) -> None:
    async with Perdure(url) as app, app.memory("parent", [DurableTaskState(merge="namespace")]) as memory:
        await memory.layer("task_state").set_data({"goal": "all"})
        children = [await memory.spawn(f"child-{number}") for number in (1, 2)]
        for number, child in enumerate(children, 1):
            await child.layer("task_state").set_data({"result": number})
        for child in reversed(children):
            await memory.returned(child)
        assert state_of(memory)["data"] == {"goal": "all", "child-1": {"result": 1}, "child-2": {"result": 2}}


@pytest.mark.req("R140", "R141")
async def test_a_child_returned_twice_is_taken_over_once(url: str) -> None:
    for _ in range(3):  # a parent that dies after the call, and says it again
        async with Perdure(url) as app, app.memory("parent", [DurableTaskState()]) as memory:
            child = await memory.spawn("child")
            if not state_of(child)["checkpoints"]:
                await child.after_turn(depth=7)
            await memory.returned(child)
            await memory.returned(child)
            assert [one["depth"] for one in state_of(memory)["checkpoints"]] == [7]
    async with Perdure(url) as app, app.memory("parent", [DurableTaskState()]) as memory:
        child = await memory.spawn("child")
        await child.after_turn(depth=8)  # it went on since
        await memory.returned(child)
        assert [one["depth"] for one in state_of(memory)["checkpoints"]] == [7, 8]


@pytest.mark.req("R140")
async def test_a_child_returned_again_puts_no_old_value_over_a_newer_one(memory_url: str) -> None:
    async with Perdure(memory_url) as app, app.memory("parent", [DurableTaskState()]) as memory:
        child = await memory.spawn("child")
        await child.layer("task_state").set_data({"phase": "by the child"})
        await memory.returned(child)
        await memory.layer("task_state").set_data({"phase": "by the parent, later"})
        await memory.returned(child)
        assert state_of(memory)["data"] == {"phase": "by the parent, later"}


@pytest.mark.req("R127", "R140")
async def test_how_a_child_ended_is_not_how_its_parent_ended(memory_url: str) -> None:
    async with Perdure(memory_url) as app, app.memory("parent", [DurableTaskState()]) as memory:
        child = await memory.spawn("child")
        await child.complete("failure")
        await memory.returned(child)
        assert state_of(memory)["data"] == {}


async def test_grandchildren_come_back_through_their_parents(memory_url: str) -> None:
    async with Perdure(memory_url) as app, app.memory("a", [DurableTaskState()]) as a:
        await a.after_turn(depth=1)
        b = await a.spawn("b")
        c = await b.spawn("c")
        await c.after_turn(depth=3)
        await c.layer("task_state").set_data({"deep": True})
        await b.returned(c)
        await b.after_turn(depth=2)
        await a.returned(b)
        assert [one["depth"] for one in state_of(a)["checkpoints"]] == [1, 3, 2]
        assert state_of(a)["data"] == {"deep": True}


# ── laws ─────────────────────────────────────────────────────────────────────────────────────────

keys = st.sampled_from("abcd")
datas = st.dictionaries(keys, st.integers(0, 3) | st.lists(st.integers(0, 2), max_size=2), max_size=4)
events = st.one_of(
    st.builds(Checkpointed, st.sampled_from(["t1", "t2"]), st.integers(0, 5)),
    st.builds(Recorded, st.sampled_from(["x", "y", "z"]), st.sampled_from(["h1", "h2"])),
    st.builds(DataSet, datas, st.lists(keys, max_size=2).map(tuple)),
)
docs = st.lists(events, max_size=8).map(lambda listed: fold(EMPTY, listed))


@pytest.mark.req("R140")
@given(a=docs, b=docs, c=docs)
def test_taking_over_is_associative(a: Doc, b: Doc, c: Doc) -> None:
    """Whether two children's parts are put together first, or one after the other onto the parent's."""

    def join(one: Doc, other: Doc) -> tuple[Any, ...]:
        return (
            one.checkpoints + other.checkpoints,
            join_files(one.files, other.files),
            join_data(one.data, other.data, "shallow", ""),
        )

    assert join(Doc(*join(a, b)), c) == join(a, Doc(*join(b, c)))


@pytest.mark.req("R140", "R133")
@given(parent=docs, one=st.lists(events, max_size=6), other=st.lists(events, max_size=6))
def test_a_parent_and_its_children_have_what_one_process_would_have(parent: Doc, one: Any, other: Any) -> None:
    """Children one after the other, each given what is there: the same checkpoints and files as without them."""
    plain = fold(fold(parent, one), other)
    doc = parent
    for name, listed in (("one", one), ("other", other)):
        child = fold(spawned(doc), listed)
        doc = reduce(doc, Returned(name, child, "shallow"))
    assert doc.checkpoints == plain.checkpoints
    assert set(doc.files) == set(plain.files)
    assert {key: value for key, value in plain.data.items() if doc.data.get(key) != value} == {}


setting = st.one_of(
    st.builds(Checkpointed, st.sampled_from(["t1", "t2", "t3"]), st.integers(0, 5)),
    st.builds(Recorded, st.sampled_from(["x", "y", "z"]), st.sampled_from(["h1", "h2"])),
    st.builds(DataSet, datas),
)


@pytest.mark.req("R140")
@given(parent=docs, mine=st.lists(setting, max_size=6), theirs=st.lists(setting, max_size=6))
def test_it_does_not_matter_who_spawned_the_child_that_did_it(parent: Doc, mine: Any, theirs: Any) -> None:
    """A grandchild that returns through its parent leaves what its parent would have, had it done all itself."""
    child = fold(spawned(parent), mine)
    grandchild = fold(spawned(child), theirs)
    through = reduce(parent, Returned("child", reduce(child, Returned("grandchild", grandchild, "shallow")), "shallow"))
    alone = reduce(parent, Returned("child", fold(child, theirs), "shallow"))
    assert (through.checkpoints, through.made, through.data) == (alone.checkpoints, alone.made, alone.data)
    assert (set(through.files), through.hashes) == (set(alone.files), alone.hashes)


@pytest.mark.req("R140")
@given(parent=docs, listed=st.lists(st.lists(setting, max_size=4), min_size=2, max_size=4), order=st.randoms())
def test_in_namespaces_the_order_of_returning_does_not_matter(parent: Doc, listed: Any, order: Any) -> None:
    children = [(f"child {place}", fold(spawned(parent), events)) for place, events in enumerate(listed)]
    shuffled = order.sample(children, len(children))
    one = fold(parent, [Returned(name, doc, "namespace") for name, doc in children])
    other = fold(parent, [Returned(name, doc, "namespace") for name, doc in shuffled])
    assert one.data == other.data and set(one.files) == set(other.files) and one.made == other.made
    assert fold(one, [Returned(name, doc, "namespace") for name, doc in shuffled]).state == one.state, "said again"


@pytest.mark.req("R139")
@given(parent=docs, listed=st.lists(events, max_size=6))
def test_a_childs_own_part_is_what_it_added(parent: Doc, listed: Any) -> None:
    assert own_part(spawned(parent)) == Doc()
    child = fold(spawned(parent), listed)
    added = [event for event in listed if isinstance(event, Checkpointed)]
    assert len(own_part(child).checkpoints) == len(added)


@pytest.mark.req("R133", "R136")
@given(doc=docs)
def test_a_doc_is_the_same_after_being_stored(doc: Doc) -> None:
    assert from_stored(to_stored(doc)) == doc

"""The store and the cache answer as LangGraph's in-memory ones do, and keep what they were given."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from langgraph.cache.memory import InMemoryCache
from langgraph.store.base import GetOp, ListNamespacesOp, MatchCondition, PutOp, SearchOp
from langgraph.store.memory import InMemoryStore

from perdure import Perdure
from perdure.errors import NotStorable
from perdure.integrations.langgraph import PerdureCache, PerdureStore
from perdure.testing import MovableClock

names = st.sampled_from(["a", "b", "a/b", "%", "n:a", "k:", "é"])
namespaces = st.lists(names, min_size=1, max_size=3).map(tuple)
values = st.dictionaries(st.sampled_from(["x", "y"]), st.integers(-2, 2) | st.text(max_size=3) | st.none(), max_size=2)
filters = st.none() | st.dictionaries(
    st.sampled_from(["x", "y"]),
    st.integers(-2, 2) | st.dictionaries(st.sampled_from(["$eq", "$ne"]), st.integers(-2, 2), min_size=1),
    max_size=2,
)
puts = st.builds(lambda namespace, key, value: PutOp(namespace, key, value), namespaces, names, values | st.none())
matches = st.builds(
    MatchCondition,
    st.sampled_from(["prefix", "suffix"]),
    st.lists(names | st.just("*"), min_size=1, max_size=2).map(tuple),
)
reads = st.one_of(
    st.builds(lambda namespace, key: GetOp(namespace, key), namespaces, names),
    st.builds(lambda namespace, filter: SearchOp(namespace, filter, 1000), namespaces | st.just(()), filters),
    st.builds(
        lambda conditions, depth: ListNamespacesOp(conditions, depth),
        st.none() | st.tuples(matches),
        st.none() | st.integers(1, 3),
    ),
)
batches_of = st.lists(st.lists(puts, min_size=1, max_size=4) | reads.map(lambda one: [one]), max_size=12)


@settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(batches=batches_of)
def test_a_store_answers_as_the_one_in_memory(
    tmp_path_factory: pytest.TempPathFactory, batches: list[list[Any]]
) -> None:
    from perdure.sync import Perdure as BlockingPerdure

    oracle = InMemoryStore()
    with BlockingPerdure(f"sqlite://{tmp_path_factory.mktemp('store')}/p.db") as app:
        store = PerdureStore(app)
        for batch in batches:
            for empty in [namespace for namespace, items in oracle._data.items() if not items]:
                del oracle._data[empty]  # it keeps the namespaces that were only asked for
            assert _seen(store.batch(batch)) == _seen(oracle.batch(batch))


def _seen(results: list[Any]) -> list[Any]:
    return [sorted(map(_one, one), key=repr) if isinstance(one, list) else _one(one) for one in results]


def _one(item: Any) -> Any:
    return (item.namespace, item.key, item.value) if hasattr(item, "key") else item


async def test_what_a_store_was_given_outlives_the_process_and_its_time_to_live_ends_it(
    shared_url: str, clock: MovableClock
) -> None:
    async with Perdure(shared_url) as app:
        store = PerdureStore(app)
        await store.aput(("users", "ada"), "likes", {"tea": True})
        await store.aput(("users", "ada"), "mood", {"now": "good"}, ttl=5)
    async with Perdure(shared_url) as app:
        store = PerdureStore(app)
        clock.advance(minutes=4)
        assert (await store.aget(("users", "ada"), "mood", refresh_ttl=True)).value == {"now": "good"}
        clock.advance(minutes=4)
        assert [one.key for one in await store.asearch(("users",), refresh_ttl=False)] == ["mood", "likes"]
        clock.advance(minutes=2)
        assert [one.key for one in await store.asearch(("users",))] == ["likes"]


async def test_a_value_that_cannot_be_stored_is_refused_and_the_whole_batch_with_it(shared_url: str) -> None:
    async with Perdure(shared_url) as app:
        store = PerdureStore(app)
        with pytest.raises(NotStorable):
            await store.abatch([PutOp(("n",), "good", {"x": 1}), PutOp(("n",), "bad", {"x": object()})])
        assert await store.aget(("n",), "good") is None


async def test_a_cache_gives_back_what_it_was_given_until_its_time_is_over(
    shared_url: str, clock: MovableClock
) -> None:
    async with Perdure(shared_url) as app:
        for cache in (PerdureCache[Any](app), InMemoryCache()):
            await cache.aset({(("a",), "1"): ([1, {"x": b"y"}], 60), (("a", "b"), "2"): ("two", None)})
            assert await cache.aget([(("a",), "1"), (("a", "b"), "2"), (("c",), "3")]) == {
                (("a",), "1"): [1, {"x": b"y"}],
                (("a", "b"), "2"): "two",
            }
            await cache.aclear([("a",)])
            assert await cache.aget([(("a",), "1"), (("a", "b"), "2")]) == {(("a", "b"), "2"): "two"}
        cache = PerdureCache(app)
        await cache.aset({(("a",), "1"): ("short", 60)})
        clock.advance(seconds=61)
        assert await cache.aget([(("a",), "1")]) == {}

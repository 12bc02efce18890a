"""Count tasks, and list the values they can be filtered by."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping

from perdure._ground.encoding.codec import stored_json
from perdure._model import Counts, Facets, TaskFilter
from perdure._store import Reading, Row, Store
from perdure._tasks.lists.pages import check_page, wanted_in
from perdure._tasks.lists.walks import choose, count_lane
from perdure.errors import RecordDamaged

# So many values of each kind are told.
_MOST_VALUES = 200


async def count(store: Store, filter_: TaskFilter | None) -> Counts:
    """The number of matching tasks, by status and by reason."""
    wanted = TaskFilter() if filter_ is None else filter_
    check_page(wanted, "newest", 1, ())
    if wanted.is_empty:
        return Counts.of(await store.query("count_tasks", namespace=store.namespace))
    return await store.look(lambda engine: _count(store, engine, wanted))


def _count(store: Store, engine: Reading, filter_: TaskFilter) -> Counts:
    wanted = wanted_in(store, engine, filter_)
    if wanted is None:
        return Counts.of([])
    rows: list[Row] = []
    is_bounded = False
    for lane in choose(engine, wanted, wanted.below):
        found, has_more = count_lane(engine, wanted, lane)
        rows += found
        is_bounded = is_bounded or has_more
    return Counts.of(rows, approximate=is_bounded)


async def read_facets(store: Store) -> Facets:
    """The values that the newest tasks of each status can be filtered by."""
    return await store.look(lambda engine: _facets(store, engine))


def _facets(store: Store, engine: Reading) -> Facets:
    wanted = wanted_in(store, engine, TaskFilter())
    assert wanted is not None
    functions, queues, agents, tags = Counter[str](), Counter[str](), Counter[str](), Counter[str]()
    is_bounded = False
    for lane in wanted.groups[0]:
        rows, has_more = count_lane(engine, wanted, lane, "facets")
        is_bounded = is_bounded or has_more
        for function, queue, agent, had, number in rows:
            for counter, value in ((functions, function), (queues, queue), (agents, agent)):
                if value:
                    counter[value] += number
            for key in _keys(had):
                tags[key] += number
    counters = (functions, queues, agents, tags)
    return Facets(
        functions=_most(functions),
        queues=_most(queues),
        agents=_most(agents),
        tags=_most(tags),
        approximate=is_bounded or any(len(counter) > _MOST_VALUES for counter in counters),
    )


def _keys(tags: str) -> Mapping[str, str]:
    try:
        found: Mapping[str, str] = stored_json(tags, "tags", dict)
    except RecordDamaged:
        return {}
    return found


def _most(counter: Counter[str]) -> dict[str, int]:
    return dict(sorted(counter.items(), key=lambda pair: (-pair[1], pair[0]))[:_MOST_VALUES])

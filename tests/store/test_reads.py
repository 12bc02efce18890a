"""Finding tasks: by id, by uid, in history, in lists with filters and pages."""

from __future__ import annotations

import json
import threading
from typing import Any

import pytest

from perdure._store import Engine, Reading, TaskRow
from tests.store.kit import UIDS, Hand, dump, listing


def listed(hand: Hand, **wanted: Any) -> list[str]:
    return [TaskRow(*row).uid for row in hand.engine.query("list_tasks", listing(**{"archived": 0, **wanted}))]


def test_a_store_that_was_never_written_to_answers_with_no_rows(engine: Engine) -> None:
    assert dump(engine) == {}


def test_rows_have_the_columns_of_the_contract(hand: Hand) -> None:
    hand.create(UIDS[0], config=b"\0bytes")
    for name, params in (("get_task", {"namespace": "main", "id": "alpha"}), ("get_task_by_uid", {"uid": UIDS[0]})):
        (row,) = hand.engine.query(name, params)
        task = TaskRow(*row)
        assert (task.id, task.status, task.config, task.archived_at) == ("alpha", "running", b"\0bytes", None)
        assert isinstance(task.config, bytes) and isinstance(task.event_head, bytes) and isinstance(task.version, int)


@pytest.mark.req("R3")
def test_an_unknown_task_is_no_row(hand: Hand) -> None:
    hand.create(UIDS[0], "alpha")
    assert hand.engine.query("get_task", {"namespace": "main", "id": "beta"}) == []
    assert hand.engine.query("get_task", {"namespace": "other", "id": "alpha"}) == []
    assert hand.engine.query("get_task_by_uid", {"uid": UIDS[1]}) == []


def test_history_has_every_task_of_an_id_newest_first(hand: Hand) -> None:
    for old, new in ((None, UIDS[0]), (UIDS[0], UIDS[1]), (UIDS[1], UIDS[2])):
        assert hand.restart(old, new) if old else hand.create(new)
        hand.move(new, "complete")
    rows = hand.engine.query("get_history", {"namespace": "main", "id": "alpha"})
    assert [(TaskRow(*row).uid, bool(TaskRow(*row).is_current)) for row in rows] == [
        (UIDS[2], True),
        (UIDS[1], False),
        (UIDS[0], False),
    ]
    assert listed(hand) == [UIDS[2]]


@pytest.mark.req("R7")
def test_a_list_is_newest_first_and_of_one_namespace(hand: Hand) -> None:
    hand.create(UIDS[1], "beta")
    hand.create(UIDS[0], "alpha")
    hand.create(UIDS[2], "alpha", namespace="other")
    assert listed(hand) == [UIDS[1], UIDS[0]]
    assert listed(hand, namespace="other") == [UIDS[2]]
    assert listed(hand, namespace="third") == []


@pytest.mark.req("R7")
def test_a_list_by_status_pause_reason_agent_and_age(hand: Hand) -> None:
    hand.create(UIDS[0], "alpha", agent="ann", at=100)
    hand.create(UIDS[1], "beta", agent="bob", at=200)
    hand.create(UIDS[2], "gamma", agent="ann", at=300)
    hand.move(UIDS[0], "pause", pause_reason="rate_limit")
    hand.move(UIDS[1], "pause", pause_reason="human_input")
    assert listed(hand, status="paused") == [UIDS[1], UIDS[0]]
    assert listed(hand, status="running") == [UIDS[2]]
    assert listed(hand, reason="rate_limit") == [UIDS[0]]
    assert listed(hand, agent="ann") == [UIDS[2], UIDS[0]]
    assert listed(hand, agent="ann", status="paused") == [UIDS[0]]
    assert listed(hand, since=200) == [UIDS[2], UIDS[1]]
    assert listed(hand, since=301) == []


@pytest.mark.req("R7")
@pytest.mark.parametrize(
    "wanted, found",
    [
        ({}, [2, 1, 0]),
        ({"team": "red"}, [1, 0]),
        ({"team": "red", "area": "é"}, [1]),
        ({"area": "é", "team": "red"}, [1]),
        ({"team": "re"}, []),
        ({"team": "RED"}, []),
        ({"red": "team"}, []),
        ({"": ""}, [2]),
        ({'quote"': "a'b\\c"}, [2]),
        ({"number": "1"}, [2]),
        ({"number": "1.0"}, []),
        ({"team": "red", "number": "1"}, []),
    ],
)
def test_a_list_by_tags_has_the_tasks_with_all_of_them(hand: Hand, wanted: dict[str, str], found: list[int]) -> None:
    tags = ({"team": "red"}, {"team": "red", "area": "é"}, {"": "", 'quote"': "a'b\\c", "number": "1"})
    for uid, id, has in zip(UIDS, ("alpha", "beta", "gamma"), tags, strict=False):
        hand.create(uid, id, tags=json.dumps(has, sort_keys=True))
    assert listed(hand, tags=json.dumps(wanted)) == [UIDS[number] for number in found]


@pytest.mark.req("R8")
def test_what_is_archived_is_listed_only_when_asked_for(hand: Hand) -> None:
    hand.create(UIDS[0], "alpha")
    hand.create(UIDS[1], "beta")
    hand.move(UIDS[0], "complete")
    hand.archive(UIDS[0])
    assert listed(hand) == [UIDS[1]]
    assert listed(hand, archived=1) == [UIDS[1], UIDS[0]]


@pytest.mark.req("R7")
def test_pages_have_no_gap_and_nothing_twice_while_tasks_are_added(hand: Hand) -> None:
    for number in range(25):
        hand.create(f"p{number:03d}", f"task {number}")
    seen: list[str] = []
    cursor = None
    while len(seen) < 25 and (page := listed(hand, cursor=cursor, limit=10)):
        seen += page
        cursor = page[-1]
        hand.create(f"p{100 + len(seen):03d}", f"added after {len(seen)}")
    assert seen == [f"p{number:03d}" for number in reversed(range(25))]
    assert listed(hand, cursor=cursor, limit=10) == []


def test_checkpoints_are_read_from_one_on_and_a_few_at_a_time(hand: Hand) -> None:
    epoch = hand.running()
    for parent in range(5):
        hand.checkpoint(UIDS[0], epoch, parent=parent)

    def read(after: int, limit: int) -> list[int]:
        params = {"uid": UIDS[0], "after": after, "limit": limit}
        return [row[0] for row in hand.engine.query("read_checkpoints", params)]

    assert read(-1, 100) == [0, 1, 2, 3, 4, 5]
    assert read(1, 2) == [2, 3]
    assert read(5, 10) == []


def test_tombstones_are_those_of_one_namespace(hand: Hand) -> None:
    for uid, namespace in ((UIDS[1], "main"), (UIDS[0], "main"), (UIDS[2], "other")):
        hand.create(uid, uid, namespace=namespace)
        hand.move(uid, "cancel")
        hand.delete(uid)
    found = hand.engine.query("read_tombstones", {"namespace": "main"})
    assert [row[0] for row in found] == [UIDS[0], UIDS[1]]


def test_a_reader_sees_what_another_process_has_written(engine: Engine, second: Engine) -> None:
    assert dump(second) == {}
    Hand(engine).running()
    assert dump(second) == dump(engine)


def test_a_store_opened_again_has_what_was_written(hand: Hand, second: Engine) -> None:
    hand.running()
    before = dump(hand.engine)
    hand.engine.close()
    assert dump(second) == before


def test_the_queries_of_one_look_see_the_store_at_one_moment(hand: Hand) -> None:
    """What is written while a look lasts is in the next one; readers keep nobody waiting, except in memory."""
    hand.create(UIDS[0])
    writer = threading.Thread(target=hand.move, args=(UIDS[0], "complete"))

    def look(reading: Reading) -> list[str]:
        seen = [_status(reading)]
        writer.start()
        writer.join(0 if hand.engine.kind == "memory" else None)
        return [*seen, _status(reading)]

    assert hand.engine.at_one_moment(look) == ["running", "running"]
    writer.join()
    assert hand.engine.at_one_moment(_status) == "completed"


def test_a_look_that_fails_leaves_the_engine_as_it_was(hand: Hand) -> None:
    def fail(reading: Reading) -> None:
        _status(reading)
        raise KeyError("of the caller")

    hand.create(UIDS[0])
    with pytest.raises(KeyError, match="of the caller"):
        hand.engine.at_one_moment(fail)
    assert hand.move(UIDS[0], "complete")
    assert hand.engine.at_one_moment(_status) == "completed"


def test_a_look_at_a_store_that_was_never_written_to_finds_no_rows(engine: Engine) -> None:
    assert engine.at_one_moment(lambda reading: reading.query("get_task_by_uid", {"uid": UIDS[0]})) == []


def _status(reading: Reading) -> str:
    (row,) = reading.query("get_task_by_uid", {"uid": UIDS[0]})
    return TaskRow(*row).status

"""Many durable functions begun and completed in one batch: the same rows as one by one, whatever the engine does."""

from __future__ import annotations

from typing import Any

import pytest

from perdure._store import Engine, Write
from perdure._store.memory import MemoryEngine
from tests.store.kit import NAMESPACES, UIDS, Hand, commit_all, dump, event, frame, write

ODD = 'quotes " and \\ and é and \u2028'


def start(number: int, id: str, **over: Any) -> Write:
    """A durable function's beginning, each a little different."""
    texts = {"name": "greet", "description": ODD, "agent": "", "tags": '{"a": "é"}', "depends_on": "[]"}
    who = {"namespace": NAMESPACES[number % 2], "id": id, "status": "running", "config": None, "old": None}
    call = {"function": "greet", "function_version": 1, "arguments": bytes(range(number, 250)), "queue": "default"}
    call |= {"priority": number - 3, "parent_uid": None, "call_key": ODD, "not_before": None, "deadline_at": 5}
    call |= {"budget": b"\0\xff" if number % 2 else None}
    here = {"worker": "w1" if number % 3 else None, "host": "h", "pid": 1, "user": "ada"}
    made = {**event("created", 1_000 + number), **frame(0, content=b"\0" * number), "cause": "created"}
    params = {"uid": UIDS[number], **made, **texts, **who, **call, **here, **over}
    return write("start_function", params, key=f"{who['namespace']}\0{id}")


def complete(number: int, **over: Any) -> Write:
    fence = {"epoch": 1, "worker": "w1"}
    params = {"uid": UIDS[number], "result": bytes([number]) * 9, **event("completed", 2_000 + number), **fence, **over}
    return write("complete_function", params, key=f"{NAMESPACES[number % 2]}\0t{number}")


def claim(number: int, **over: Any) -> Write:
    who = {"worker": "w2", "host": "h", "pid": 2, "user": "eve", "seen_epoch": 0}
    params = {"uid": UIDS[number], **event("attempt started", 1_500 + number), **who, **over}
    return write("claim_free", params, key=f"{NAMESPACES[number % 2]}\0t{number}")


def begin(engine: Engine) -> Hand:
    hand = Hand(engine)
    hand.register()
    return hand


def one_by_one(writes: list[Write]) -> MemoryEngine:
    oracle = MemoryEngine("")
    begin(oracle)
    for one in writes:
        commit_all(oracle, [one])
    return oracle


@pytest.mark.req("R1")
def test_a_batch_of_beginnings_and_ends_is_what_one_by_one_would_be(engine: Engine) -> None:
    begin(engine)
    begun = [start(number, f"t{number}") for number in range(8)]
    ends = [complete(number) for number in range(8)]
    assert commit_all(engine, begun) == [(uid,) for uid in UIDS]
    answers = commit_all(engine, ends)
    assert answers == [(uid,) if number % 3 else None for number, uid in enumerate(UIDS)], "nobody had the others"
    assert dump(engine) == dump(one_by_one([*begun, *ends]))


@pytest.mark.req("R1")
def test_the_last_entries_and_the_ends_of_many_tasks_go_in_together(engine: Engine) -> None:
    hand = begin(engine)
    begun = [start(number, f"t{number}", worker="w1") for number in range(7)]
    ends = [complete(number) for number in range(7)]
    entries = [write("append_entry", hand.entry(UIDS[number], 1, 1), key=ends[number].key) for number in range(7)]
    last = [one for both in zip(entries, ends, strict=True) for one in both]
    assert commit_all(engine, begun) == [(uid,) for uid in UIDS[:7]]
    assert commit_all(engine, last) == [row for uid in UIDS[:7] for row in ((1,), (uid,))]
    assert dump(engine) == dump(one_by_one([*begun, *last]))


def test_tasks_whose_leases_have_changed_hands_end_beside_the_others(engine: Engine) -> None:
    begun = [start(number, f"t{number}", worker="w1") for number in range(8)]
    oracle = MemoryEngine("")
    writes: list[Write] = []
    for each in (oracle, engine):
        hand = begin(each)
        commit_all(each, begun)
        epochs = [1] * 8
        for number in (0, 3, 4, 4):
            (epochs[number], *_), was = hand.claim(UIDS[number], at=3_000 + number) or (0,), epochs[number]
            assert epochs[number] == was + 1
        writes = [write("append_entry", hand.entry(UIDS[n], epochs[n], 1), key=begun[n].key) for n in range(8)]
        writes += [complete(number, epoch=epochs[number]) for number in range(8)]
    assert all(commit_all(engine, writes))
    for one in writes:
        commit_all(oracle, [one])
    assert dump(engine) == dump(oracle)


@pytest.mark.req("R55")
@pytest.mark.parametrize("old", [{"worker": "w2"}, {"epoch": 2}, {"uid": UIDS[7]}])
@pytest.mark.parametrize("verb", ["append_entry", "complete_function"])
def test_of_many_writes_only_the_one_without_its_lease_is_refused(
    engine: Engine, verb: str, old: dict[str, Any]
) -> None:
    hand = begin(engine)
    begun = [start(number, f"t{number}", worker="w1") for number in range(7)]
    writes = []
    for number in range(7):
        over = old if number == 4 else {}
        entry = write(verb, {**hand.entry(UIDS[number], 1, 1), **over}, key=f"{NAMESPACES[number % 2]}\0t{number}")
        writes.append(entry if verb == "append_entry" else complete(number, **over))
    commit_all(engine, begun)
    assert [bool(row) for row in commit_all(engine, writes)] == [True] * 4 + [False] + [True] * 2
    assert dump(engine) == dump(one_by_one([*begun, *writes]))


def test_beginning_and_end_may_be_in_one_batch(engine: Engine) -> None:
    hand = begin(engine)
    writes = []
    for number in range(8):
        entry = hand.entry(UIDS[number], 1, 1)
        key = f"{NAMESPACES[number % 2]}\0t{number}"
        writes += [start(number, f"t{number}", worker="w1"), write("append_entry", entry, key=key), complete(number)]
    assert all(commit_all(engine, writes))
    assert dump(engine) == dump(one_by_one(writes))


@pytest.mark.parametrize("before", [0, 1])
def test_of_beginnings_with_one_id_the_first_is_in(engine: Engine, before: int) -> None:
    begin(engine)
    first = [
        write("beat", {"worker": "w1"}, key="worker w1")
    ] * before  # not of those that go in together, and it stays
    writes = first + [start(number, f"t{number % 4}", namespace="main") for number in range(8)]
    answers = commit_all(engine, writes)
    assert all(answers[:before])
    assert answers[before:] == [(uid,) for uid in UIDS[:4]] + [None] * 4
    assert dump(engine) == dump(one_by_one(writes))


def test_of_beginnings_of_two_kinds_with_one_id_the_first_is_in(engine: Engine) -> None:
    """However many of each kind go in together."""
    begin(engine)
    kinds = [("alpha", "one"), ("beta", "two"), ("beta", "one"), ("gamma", "two"), ("gamma", "one")]
    writes = [start(0, id, uid=uid, name=name) for (id, name), uid in zip(kinds, UIDS, strict=False)]
    assert commit_all(engine, writes) == [(UIDS[0],), (UIDS[1],), None, (UIDS[3],), None]
    assert dump(engine) == dump(one_by_one(writes))


@pytest.mark.req("R55")
def test_of_many_ends_those_whose_lease_is_lost_are_refused(engine: Engine) -> None:
    begin(engine)
    writes = [start(number, f"t{number}", worker="w1") for number in range(8)]
    writes += [complete(number, **({"worker": "w2"} if number in (0, 5) else {})) for number in range(8)]
    writes[-1].params["epoch"] = 2  # type: ignore[index]
    answers = commit_all(engine, writes)[8:]
    assert answers == [None if number in (0, 5, 7) else (uid,) for number, uid in enumerate(UIDS)]
    assert dump(engine) == dump(one_by_one(writes))


def test_one_end_said_twice_counts_once(engine: Engine) -> None:
    begin(engine)
    begun = [start(number, f"t{number}", worker="w1") for number in range(8)]
    ends = [complete(number % 7) for number in range(14)]
    commit_all(engine, begun)
    assert commit_all(engine, ends) == [(uid,) for uid in UIDS[:7]] + [None] * 7
    assert dump(engine) == dump(one_by_one([*begun, *ends]))


def test_what_an_attempt_writes_after_its_end_is_refused(engine: Engine) -> None:
    hand = begin(engine)
    begun = [start(number, f"t{number}", worker="w1") for number in range(8)]
    ends = [complete(number) for number in range(8)]
    late = [write("append_entry", hand.entry(UIDS[number], 1, 1), key=ends[number].key) for number in range(8)]
    commit_all(engine, begun)
    assert commit_all(engine, [*ends, *late]) == [(uid,) for uid in UIDS] + [None] * 8
    assert dump(engine) == dump(one_by_one([*begun, *ends, *late]))


def test_of_many_ends_that_of_a_task_which_is_over_already_is_refused(engine: Engine) -> None:
    begin(engine)
    begun = [
        start(number, f"t{number}", worker="w1", **({"status": "completed"} if number == 3 else {}))
        for number in range(8)
    ]
    ends = [complete(number) for number in range(8)]
    commit_all(engine, begun)
    assert commit_all(engine, ends) == [None if number == 3 else (uid,) for number, uid in enumerate(UIDS)]
    assert dump(engine) == dump(one_by_one([*begun, *ends]))


@pytest.mark.req("R55")
def test_of_many_claims_those_of_leases_that_somebody_has_are_refused(engine: Engine) -> None:
    begin(engine)
    writes = [start(number, f"t{number}", worker="w1" if number in (2, 5) else None) for number in range(8)]
    writes += [claim(number, **({"seen_epoch": 1} if number == 6 else {})) for number in range(8)]
    answers = commit_all(engine, writes[:8])[8:] + commit_all(engine, writes[8:])
    assert answers == [None if number in (2, 5, 6) else (uid,) for number, uid in enumerate(UIDS)]
    assert dump(engine) == dump(one_by_one(writes))


@pytest.mark.req("R55")
def test_claims_go_in_beside_the_entries_and_ends_of_other_tasks(engine: Engine) -> None:
    hand = begin(engine)
    begun = [start(number, f"t{number}", worker="w1" if number < 4 else None) for number in range(8)]
    entries = [write("append_entry", hand.entry(UIDS[number], 1, 1), key=begun[number].key) for number in range(4)]
    ends = [complete(number, **({"worker": "w2"} if number == 3 else {})) for number in range(4)]
    mixed = [one for four in zip(entries, [claim(n) for n in range(4, 8)], ends, strict=True) for one in four]
    again = [claim(number, at=1_900) for number in range(8)]
    commit_all(engine, begun)
    answers = [bool(row) for row in commit_all(engine, mixed)]
    assert answers == [True] * 9 + [True, True, False]
    assert not any(commit_all(engine, again)), "they have ended, or somebody has them"
    last = [complete(number, worker="w2") for number in range(4, 8)]
    assert all(commit_all(engine, last)), "whoever has claimed them may end them"
    assert dump(engine) == dump(one_by_one([*begun, *mixed, *again, *last]))


def test_a_task_that_is_claimed_twice_in_one_batch_has_one_holder(engine: Engine) -> None:
    begin(engine)
    writes = [start(number, f"t{number}", worker=None) for number in range(5)]
    writes += [claim(number % 5, worker=f"w{number}") for number in range(8)]
    commit_all(engine, writes[:5])
    assert [bool(row) for row in commit_all(engine, writes[5:])] == [True] * 5 + [False] * 3
    assert dump(engine) == dump(one_by_one(writes))


@pytest.mark.req("R55")
@pytest.mark.parametrize("status", ["pause", "cancel"])
def test_what_is_not_running_is_not_claimed_with_the_others(engine: Engine, status: str) -> None:
    hand = begin(engine)
    begun = [start(number, f"t{number}", worker=None) for number in range(5)]
    commit_all(engine, begun)
    hand.move(UIDS[3], status)
    before = hand.task(UIDS[3])
    answers = commit_all(engine, [claim(number) for number in range(5)])
    assert [bool(row) for row in answers] == [True] * 3 + [False, True]
    assert hand.task(UIDS[3]) == before

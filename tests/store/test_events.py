"""The chain of events: each lifecycle verb adds one link, and the head stands in the task's row."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from perdure._model import Link, verify
from perdure._store import EventRow, Row
from tests.store.kit import UIDS, Hand, frame

UID = UIDS[0]


def events(hand: Hand, after: int = 0, limit: int = 1000) -> list[EventRow]:
    rows = hand.engine.query("read_events", {"uid": UID, "after": after, "limit": limit})
    return [EventRow(*row) for row in rows]


def check(hand: Hand) -> str:
    """What is wrong with the chain; the bodies here are not what digests are made of, so they stay unseen."""
    task = hand.task(UID)
    links = [Link(row.number, row.at, row.kind, row.author, None, row.digest, row.hash) for row in events(hand)]
    return verify(UID, links, task.event_count, task.event_head).problem


# Every verb that adds an event to a running task whose lease we have, and what it is called there.
EVENTFUL: dict[str, Callable[[Hand, int], Row | None]] = {
    "attempt started": lambda hand, epoch: hand.claim(UID),
    "attempt ended": lambda hand, epoch: hand.release(UID, epoch),
    "checkpoint": lambda hand, epoch: hand.checkpoint(UID, epoch, parent=0),
    "pause": lambda hand, epoch: hand.move(UID, "pause", epoch=epoch, **frame(0)),
    "complete": lambda hand, epoch: hand.move(UID, "complete"),
    "rolled back": lambda hand, epoch: hand.rollback(UID, 0),
    "invalidated": lambda hand, epoch: hand.invalidate(UID, [], target=0),
}
# And those that add none.
SILENT: dict[str, Callable[[Hand, int], Row | None]] = {
    "append_entry": lambda hand, epoch: hand.append(UID, epoch, 0),
    "mark_progress": lambda hand, epoch: hand.progress(UID, epoch),
    "pin": lambda hand, epoch: hand.pin(UID, 0),
    "put_chunk": lambda hand, epoch: hand.chunk(UID, "o1", 0),
    "beat": lambda hand, epoch: hand.do("beat", worker="w1"),
}


@pytest.mark.req("R144")
@pytest.mark.parametrize("kind", EVENTFUL)
def test_a_lifecycle_verb_adds_one_link_to_the_chain(hand: Hand, kind: str) -> None:
    epoch = hand.running()
    before = events(hand)
    assert EVENTFUL[kind](hand, epoch)
    *earlier, new = events(hand)
    assert earlier == before
    assert (new.number, new.kind, new.body) == (len(before) + 1, kind, f"{kind} {new.at}".encode())
    assert check(hand) == ""


@pytest.mark.parametrize("verb", SILENT)
def test_what_changes_no_life_adds_no_event(hand: Hand, verb: str) -> None:
    epoch = hand.running()
    before = events(hand), hand.task(UID).event_head
    assert SILENT[verb](hand, epoch)
    assert (events(hand), hand.task(UID).event_head) == before


@pytest.mark.req("R144")
def test_a_whole_life_is_one_unbroken_chain(hand: Hand) -> None:
    epoch = hand.running()
    hand.checkpoint(UID, epoch, parent=0)
    hand.move(UID, "pause", epoch=epoch)
    hand.move(UID, "resume", **frame(1))
    hand.rollback(UID, 1)
    hand.claim(UID)
    hand.move(UID, "complete")
    hand.archive(UID)
    kinds = ["created", "attempt started", "checkpoint", "pause", "resume", "rolled back", "attempt started"]
    assert [event.kind for event in events(hand)] == [*kinds, "complete", "archived"]
    assert check(hand) == ""


def test_events_are_read_from_a_number_on_and_a_few_at_a_time(hand: Hand) -> None:
    epoch = hand.running()
    for parent in range(5):
        hand.checkpoint(UID, epoch, parent=parent)
    assert [event.number for event in events(hand, after=2, limit=3)] == [3, 4, 5]
    assert [event.number for event in events(hand, after=6)] == [7]
    assert events(hand, after=7) == []

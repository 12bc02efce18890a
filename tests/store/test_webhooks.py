"""Webhooks and their messages: what every engine must do with them."""

from __future__ import annotations

from typing import Any

import pytest

from tests.store.kit import UIDS, Hand, unchanged

UID = UIDS[0]

HOOK = {"uid": "main", "id": "hook_a", "at": 5, "author": "{}"}
MESSAGE = {"uid": "main", "webhook": "hook_a", "task_uid": UID, "number": 1, "event": "task.paused", "body": b"body"}


def message(hand: Hand, id: str, **over: Any) -> Any:
    return hand.do("add_delivery", **{**MESSAGE, "id": id, "at": 10, "due_at": 10, **over})


def ids(hand: Hand, query: str, **asked: Any) -> list[str]:
    told = {"namespace": "main", "webhook": "hook_a", "before": "~", "state": "", "by": 1_000, "limit": 100, **asked}
    return [row[0] for row in hand.engine.query(query, told)]


@pytest.fixture
def hooked(hand: Hand) -> Hand:
    """A process at a store with one webhook."""
    assert hand.do("add_webhook", **HOOK, record=b"one") == (1,)
    return hand


def test_a_webhook_is_changed_only_from_the_version_that_was_read(hooked: Hand) -> None:
    assert hooked.do("change_webhook", **HOOK, record=b"two", version=1) == (2,)
    with unchanged(hooked.engine):
        assert hooked.do("change_webhook", **HOOK, record=b"three", version=1) is None
        assert hooked.do("add_webhook", **HOOK, record=b"three") is None
    (row,) = hooked.engine.query("list_webhooks", {"namespace": "main"})
    assert row[:2] == ("hook_a", 2) and row[4] == b"two"


def test_the_post_of_a_webhook_is_taken_from_who_was_seen_to_have_it(hooked: Hand) -> None:
    take = {"uid": "main", "id": "hook_a", "failing_since": None}
    assert hooked.do("mark_webhook", **take, worker="w1", old_worker="") == ("hook_a",)
    with unchanged(hooked.engine):
        assert hooked.do("mark_webhook", **take, worker="w2", old_worker="") is None
    assert hooked.do("mark_webhook", **take, worker="w2", old_worker="w1") == ("hook_a",)
    (row,) = hooked.engine.query("list_webhooks", {"namespace": "main"})
    assert (row[1], row[5]) == (1, "w2")  # what an operator has set is as it was


def test_a_message_is_kept_once(hooked: Hand) -> None:
    assert message(hooked, "msg_1") == ("msg_1",)
    with unchanged(hooked.engine):
        assert message(hooked, "msg_1", body=b"other") is None


def test_a_message_for_a_webhook_that_is_gone_is_not_kept(hand: Hand) -> None:
    with unchanged(hand.engine):
        assert message(hand, "msg_1") is None


def test_of_two_processes_that_have_sent_a_message_one_records_the_try(hooked: Hand) -> None:
    message(hooked, "msg_1")
    ended = {"uid": "main", "id": "msg_1", "at": 20, "took_ms": 3, "answer": b"ok"}
    assert hooked.do("record_delivery", **ended, tries=0, state="due", due_at=30, status=500) == (1,)
    with unchanged(hooked.engine):
        assert hooked.do("record_delivery", **ended, tries=0, state="delivered", due_at=None, status=204) is None
    assert hooked.do("record_delivery", **ended, tries=1, state="delivered", due_at=None, status=204) == (2,)
    with unchanged(hooked.engine):
        assert hooked.do("record_delivery", **ended, tries=2, state="due", due_at=40, status=500) is None


def test_due_messages_come_in_the_order_they_are_due(hooked: Hand) -> None:
    for id, due_at in (("msg_1", 30), ("msg_2", 20), ("msg_3", 40)):
        message(hooked, id, due_at=due_at)
    assert ids(hooked, "due_deliveries", by=30) == ["msg_2", "msg_1"]
    (row,) = hooked.engine.query("list_webhooks", {"namespace": "main"})
    assert row[7] == 20
    assert ids(hooked, "list_deliveries", limit=2) == ["msg_3", "msg_2"]
    assert ids(hooked, "list_deliveries", before="msg_2") == ["msg_1"]


def test_old_messages_are_dropped_and_those_of_a_dropped_webhook_too(hooked: Hand) -> None:
    for id in ("msg_1", "msg_2"):
        message(hooked, id)
    assert hooked.do("drop_deliveries", uid="main", webhook="hook_a", before="msg_2") == ("hook_a",)
    assert hooked.do("drop_deliveries", uid="main", webhook="hook_a", before="msg_2") is None
    assert ids(hooked, "list_deliveries") == ["msg_2"]
    assert hooked.do("drop_webhook", uid="main", id="hook_a", version=7) is None
    assert hooked.do("drop_webhook", uid="main", id="hook_a", version=1) == ("hook_a",)
    assert ids(hooked, "list_deliveries") == []
    assert hooked.engine.query("hook_namespaces", {}) == []


def test_a_message_is_found_in_its_own_namespace_only(hooked: Hand) -> None:
    message(hooked, "msg_1")
    assert [row[0] for row in hooked.engine.query("get_delivery", {"namespace": "main", "id": "msg_1"})] == ["msg_1"]
    assert hooked.engine.query("get_delivery", {"namespace": "other", "id": "msg_1"}) == []
    assert hooked.engine.query("hook_namespaces", {}) == [("main",)]


def test_tasks_that_have_changed_are_found_until_their_events_were_handed_on(hand: Hand) -> None:
    for uid, id in zip(UIDS, ("alpha", "beta"), strict=False):
        hand.create(uid, id)
    asked = {"namespace": "main", "handler": "webhooks", "since": 0, "limit": 10}
    found = hand.engine.query("changed_undelivered", asked)
    assert [(row[0], row[3]) for row in found] == [(UIDS[0], 0), (UIDS[1], 0)]
    hand.do("deliver", uid=UIDS[0], handler="webhooks", delivered=found[0][2])
    assert [row[0] for row in hand.engine.query("changed_undelivered", asked)] == [UIDS[1]]
    assert hand.engine.query("changed_undelivered", {**asked, "since": 10**9}) == []

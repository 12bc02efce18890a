"""A write that is a batch of its own goes with its COMMIT, and its answer is known even when nobody heard it."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import psycopg
import pytest

from perdure._store import Row
from perdure._store.memory import MemoryEngine
from perdure._store.postgres import PostgresEngine
from perdure._store.postgres import batch_plan as plan
from tests.store.kit import UIDS, Hand, dump, write
from tests.support.proxy import Proxy

UID = UIDS[0]
# Those that an agent waits for again and again.
OFTEN = ["checkpoint", "claim", "complete_function", "create_task", "mark_progress", "move_task", "open_pause"]
OFTEN += ["put_memory", "record_memory", "release", "send_signal", "start_function", "suspend"]


@pytest.fixture
def hand(proxy: Proxy) -> Iterator[Hand]:
    engine = PostgresEngine(proxy.url)
    yield Hand(engine)
    engine.close()


def a_life(hand: Hand, before_each: Any = lambda: None) -> list[Row | None]:
    """Verbs one by one, some of them refused; what they answered."""
    assert hand.register()
    answers: list[Row | None] = []

    def told(row: Row | None) -> None:
        answers.append(row)
        before_each()

    before_each()
    told(hand.create(UID))
    told(hand.create(UIDS[1]))  # the id is taken
    told(hand.claim(UID))
    told(hand.checkpoint(UID, 1, 0))
    told(hand.checkpoint(UID, 1, 0))  # not from there any more
    told(hand.checkpoint(UID, 1, 1))
    told(hand.checkpoint(UID, 9, 2))  # not our lease
    told(hand.progress(UID, 1))
    told(hand.remember("a"))
    told(hand.remember_on_record(UID, 1, 1, "b", seen=0))
    told(hand.remember_on_record(UID, 1, 2, "b", seen=0))  # it is another version by now
    told(hand.signal(UID, "é"))
    told(hand.ask(UID, 1, "1"))
    told(hand.answer(UID, "1"))
    told(hand.move(UID, "pause", epoch=1))
    told(hand.move(UID, "pause"))  # it is
    told(hand.claim(UID, before="paused"))
    told(hand.rollback(UID, 1))
    told(hand.move(UID, "complete"))
    told(hand.release(UID, 2))  # not ours any more
    return answers


@pytest.mark.req("R55")
@pytest.mark.parametrize("moment", ["before", "after"])
def test_every_answer_is_right_whenever_the_connection_is_cut(hand: Hand, proxy: Proxy, moment: Any) -> None:
    engine = MemoryEngine("")
    expected = a_life(Hand(engine))
    cuts: list[bool] = []

    def cut() -> None:
        cuts.append(proxy.has_cut.is_set())
        proxy.cut_next_commit(moment)

    assert a_life(hand, cut) == expected
    assert expected.count(None) == 5
    assert all(cuts[1:])
    assert dump(hand.engine) == dump(engine)


def test_a_write_whose_commit_is_still_under_way_is_waited_for(hand: Hand, proxy: Proxy, postgres_url: str) -> None:
    epoch = hand.running(UID)
    waiting = "SELECT 1 FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'"
    with psycopg.connect(postgres_url, autocommit=True) as admin, ThreadPoolExecutor() as pool:
        with psycopg.connect(postgres_url) as gate:
            gate.execute("SELECT 1 FROM perdure.leases FOR UPDATE")
            committing = pool.submit(hand.checkpoint, UID, epoch, 0)
            while not admin.execute(waiting).fetchall():
                pass
            proxy.cut()  # the verb and its COMMIT are with the server, which waits for the lease
            while len(admin.execute(waiting).fetchall()) < 2:
                pass  # and we wait for what becomes of it
            assert not committing.done()
        assert committing.result() == (1, 3, "running")
    assert sorted(hand.frames(UID)) == [0, 1]


@pytest.mark.parametrize("verb", OFTEN)
def test_what_is_waited_for_often_goes_with_its_commit(verb: str) -> None:
    assert plan.is_noted(write(verb, {}))

"""The engine in memory: stores by name, all or nothing, the same verbs and queries as the others."""

from __future__ import annotations

import os
import uuid

import pytest

from perdure._store.memory import MemoryEngine
from perdure._store.memory.engine import QUERIES, VERBS
from perdure._store.sqlite import SqliteEngine
from tests.store.kit import UIDS, Hand, dump, unchanged, write


@pytest.fixture
def name() -> str:
    return uuid.uuid4().hex


def test_engines_with_one_name_are_one_store(name: str) -> None:
    Hand(MemoryEngine(name)).create(UIDS[0])
    assert Hand(MemoryEngine(name)).task(UIDS[0]).id == "alpha"
    assert dump(MemoryEngine(name + "x")) == {}


def test_an_engine_without_a_name_is_alone() -> None:
    Hand(MemoryEngine("")).create(UIDS[0])
    assert dump(MemoryEngine("")) == {}


def test_a_named_store_outlives_its_engine(name: str) -> None:
    engine = MemoryEngine(name)
    Hand(engine).create(UIDS[0])
    engine.close()
    assert dump(MemoryEngine(name)) != {}


def test_a_verb_that_fails_takes_its_whole_batch_with_it() -> None:
    hand = Hand(MemoryEngine(""))
    epoch = hand.running()
    good = write("append_entry", hand.entry(UIDS[0], epoch, 0))
    bad = write("checkpoint", {"uid": UIDS[0]})
    with unchanged(hand.engine), pytest.raises(KeyError):
        hand.engine.commit([good, bad])


def test_a_verb_that_fails_half_way_changes_nothing() -> None:
    """The new task's state is missing, which shows after the old one has become history."""
    hand = Hand(MemoryEngine(""))
    hand.create(UIDS[0], "alpha")
    hand.move(UIDS[0], "complete")
    params = hand._new("alpha", old=UIDS[0])
    del params["frame"]
    with unchanged(hand.engine), pytest.raises(KeyError):
        hand.do("restart_task", uid=UIDS[1], **params)


def test_it_has_the_verbs_and_queries_of_the_sql_engines(tmp_path: os.PathLike[str]) -> None:
    names = SqliteEngine(tmp_path / "x.db")._queries.names()  # type: ignore[operator]
    assert sorted([*VERBS, *QUERIES]) == names


def test_the_child_of_a_fork_begins_with_an_empty_store(name: str) -> None:
    engine = MemoryEngine(name)
    Hand(engine).create(UIDS[0])
    child = os.fork()
    if child == 0:
        engine.mark_forked()
        os._exit(0 if dump(MemoryEngine(name)) == {} else 1)
    assert os.waitpid(child, 0)[1] == 0
    assert dump(engine) != {}

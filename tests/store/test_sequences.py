"""Random sequences of verbs: every engine gives the oracle's answers and holds the oracle's rows, at each step."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from random import Random

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from perdure._store import Engine
from perdure._store.memory import MemoryEngine
from perdure._store.memory.engine import VERBS
from perdure._store.sqlite import SqliteEngine
from tests.store.conftest import empty
from tests.store.maker import Maker
from tests.store.sequences import Disagreement, run_sequence


@pytest.mark.parametrize("part", range(4))
def test_all_engines_agree_with_the_oracle_at_every_step(
    part: int, tmp_path: Path, request: pytest.FixtureRequest, open_engine: Callable[[str], Engine]
) -> None:
    server = open_engine("postgres")
    for seed in range(part * 5, part * 5 + 5):
        empty(request.getfixturevalue("postgres_store"))
        file = SqliteEngine(tmp_path / f"{seed}.db", synchronous="OFF")
        run_sequence(seed, [MemoryEngine(""), file, server], steps=30)
        file.close()


@settings(max_examples=25, suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow])
@given(random=st.randoms(use_true_random=False))
def test_sqlite_agrees_with_the_oracle_whatever_hypothesis_comes_up_with(tmp_path: Path, random: Random) -> None:
    file = SqliteEngine(tmp_path / f"{len(list(tmp_path.iterdir()))}.db", synchronous="OFF")
    run_sequence(random, [MemoryEngine(""), file], steps=15)
    file.close()


def test_the_sequences_do_every_verb() -> None:
    """Otherwise agreement would mean nothing."""
    done: set[str] = set()
    for seed in range(300):
        done |= set(run_sequence(seed, [MemoryEngine("")], steps=30))
        if done == set(VERBS):
            break
    assert done == set(VERBS)


def test_an_engine_that_is_wrong_is_found_out(monkeypatch: pytest.MonkeyPatch) -> None:
    """For the test's own sake: an oracle that forgets the fence disagrees before long."""

    def compare(seed: int) -> None:
        wrong = MemoryEngine("")
        monkeypatch.setattr(wrong._tables, "may_write", lambda *_: True)
        run_sequence(seed, [MemoryEngine(""), wrong], steps=30)

    with pytest.raises(Disagreement, match="step"):
        any(compare(seed) for seed in range(24))


def test_a_seed_gives_the_same_sequence_again() -> None:
    assert run_sequence(7, [MemoryEngine("")]) == run_sequence(7, [MemoryEngine("")])
    assert Maker(Random(7), MemoryEngine("")).batch() == Maker(Random(7), MemoryEngine("")).batch()

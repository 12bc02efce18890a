"""Where no event loop of asyncio runs, as under trio, a call says so, and writes nothing."""

from __future__ import annotations

from pathlib import Path

import pytest

from perdure import Perdure
from perdure.errors import InvalidInput
from tests.store.watched import Attempt, durable


def test_a_call_under_another_kind_of_loop_is_refused_in_a_sentence(tmp_path: Path) -> None:
    opening = Perdure(f"sqlite://{tmp_path}/p.db").tasks.open("job", state={})
    with pytest.raises(InvalidInput, match="without an event loop of asyncio"):
        opening.send(None)  # as trio does, or whoever drives a coroutine by hand
    assert not (tmp_path / "p.db").exists()


def test_a_write_is_refused_before_it_is_queued(attempt: Attempt) -> None:
    write = attempt.entry(0)
    with pytest.raises(InvalidInput) as raised:
        durable(write).send(None)
    assert "trio.to_thread" in raised.value.do
    assert not write.queued and attempt.positions() == []

"""A test that waits for what never comes fails, and does not hang."""

from __future__ import annotations

import pytest

from tests.support import waiting


async def look_for_ever() -> None:
    while True:
        await waiting.look_again()


def look_for_ever_here() -> None:
    while True:
        waiting.look_again_here()


async def test_a_loop_that_looks_for_ever_fails(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(waiting, "PATIENCE", 0.02)
    with pytest.raises(waiting.NeverCame):
        await look_for_ever()


def test_so_does_one_in_a_thread(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(waiting, "PATIENCE", 0.02)
    with pytest.raises(waiting.NeverCame):
        look_for_ever_here()


def test_what_is_waited_for_after_a_break_has_its_own_patience(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(waiting, "PATIENCE", 0.0)
    monkeypatch.setattr(waiting, "_BREAK", 0.0)
    for _ in range(3):
        waiting.look_again_here()

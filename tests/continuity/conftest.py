"""Continuity: saving what lives beside a task, and bringing it back."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from perdure._runtime.kinds import registry as unit_types
from tests.continuity.restore_kit import MadeType


@pytest.fixture
def made_type(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    unit_types.register(MadeType())
    yield
    unit_types._types.pop("made")
    MadeType.fails = False

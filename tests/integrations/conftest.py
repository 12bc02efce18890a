"""Fixtures for adapters: processes that have imported the framework, and a file that counts what really happened."""

from __future__ import annotations

from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path

import pytest

from tests.integrations.crash_kit import Ledger, Lives
from tests.support.processes import Nursery, nursery_in

# Frameworks that cannot be installed beside the others: tests/torture/frameworks.py has an environment for each.
collect_ignore = [name for name, module in {"strands": "strands"}.items() if find_spec(module) is None]


@pytest.fixture(scope="module")
def framework_nursery(request: pytest.FixtureRequest) -> Iterator[Nursery]:
    """A nursery that has imported what the module's `WARM` names."""
    with nursery_in({"PERDURE_TEST_WARM": " ".join(request.module.WARM)}) as own:
        yield own


@pytest.fixture
def lives(framework_nursery: Nursery, shared_url: str, tmp_path: Path) -> Lives:
    return Lives(framework_nursery, shared_url, Ledger(tmp_path / "happened"))

"""The `req` mark: which lines of docs/requirements.toml a test proves.

@pytest.mark.req("R64") or @pytest.mark.req("R59", "R61"). An id that is not in the list is an error.
@pytest.mark.threat("T4") says which threat to the server a test is about (tests/server/security/test_threats.py).
"""

from __future__ import annotations

import functools
import tomllib
from pathlib import Path

import pytest

LIST = Path(__file__).parents[2] / "docs" / "requirements.toml"


@functools.cache
def requirement_titles() -> dict[str, str]:
    """Every requirement id with its one line, in order."""
    sections = tomllib.loads(LIST.read_text(encoding="utf-8")).values()
    return {name: title for section in sections for name, title in section.items()}


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line("markers", "req(*ids): the requirements this test proves, as in docs/requirements.toml")
    config.addinivalue_line("markers", "threat(*ids): the threats to the server that this test is about")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        # Properties travel with the report, so they reach the controller of several workers.
        item.user_properties.extend(("req", name) for name in _named_by(item))


def pytest_runtest_setup(item: pytest.Item) -> None:
    if unknown := set(_named_by(item)) - requirement_titles().keys():
        pytest.fail(f"{LIST.name} has no {', '.join(sorted(unknown))}", pytrace=False)


def _named_by(item: pytest.Item) -> list[str]:
    return list(dict.fromkeys(name for mark in item.iter_markers("req") for name in mark.args))

"""Stores for the tests of this folder."""

from __future__ import annotations

import os

import pytest


@pytest.fixture
def memory_url() -> str:
    """An empty store, for what never reaches one."""
    return f"memory://test-{os.urandom(6).hex()}"

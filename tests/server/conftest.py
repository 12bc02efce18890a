"""Servers for the tests of this folder."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from tests.support.http_server import Reply, request, serving

Asking = Callable[..., Awaitable[Reply]]


@pytest.fixture
def ask_once(quick_url: str) -> Asking:
    """One request to a server of its own, without a credential."""

    async def ask(method: str, path: str, **how: Any) -> Reply:
        async with serving(quick_url) as server:
            return await request(server, method, path, **how)

    return ask

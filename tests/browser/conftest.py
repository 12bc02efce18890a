"""A browser for each file, and a server with a store for each test."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page

from tests.support.browser import Watched, log_in, running_chromium, watching
from tests.support.server_processes import LiveServer, environment, live_server


@pytest.fixture(scope="module")
def chromium() -> Iterator[Browser]:
    with running_chromium() as browser:
        yield browser


@pytest.fixture
def store(tmp_path: Path) -> str:
    return f"sqlite://{tmp_path}/store/p.db"


@pytest.fixture
def server(store: str) -> Iterator[LiveServer]:
    """`perdure up` without workers."""
    with live_server(store) as live:
        yield live


@pytest.fixture
def watched(chromium: Browser, server: LiveServer) -> Iterator[Watched]:
    """A person's browser. It must end without an error, a violation of the policy or a request to another host."""
    with watching(chromium, server.told["url"]) as found:
        yield found


@pytest.fixture
def page(watched: Watched, server: LiveServer) -> Page:
    """The dashboard, opened by its link."""
    page = watched.page()
    log_in(page, server.told["link"])
    return page


@pytest.fixture
def another(chromium: Browser, server: LiveServer) -> Iterator[Callable[[], Watched]]:
    """More browsers of other persons."""
    with ExitStack() as stack:
        yield lambda: stack.enter_context(watching(chromium, server.told["url"]))


@pytest.fixture
def new_link(store: str, server: LiveServer) -> Callable[..., str]:
    """One more link to the server, as `perdure link` prints it."""

    def make(scope: str = "admin") -> str:
        command = [sys.executable, "-m", "perdure", "link", "--json", "--scope", scope]
        told = subprocess.run(command, check=True, capture_output=True, text=True, env=environment(store)).stdout
        return str(json.loads(told)["link"])

    return make

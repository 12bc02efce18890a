"""A browser for each file, and a server with a store for each test."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page, StorageState, expect

from perdure.sync import Perdure
from tests.support import postgres
from tests.support.browser import PATIENCE, Watched, log_in, running_chromium, watching
from tests.support.server_processes import LiveServer, environment, live_server, started

expect.set_options(timeout=PATIENCE)


@pytest.fixture(scope="module")
def chromium() -> Iterator[Browser]:
    with running_chromium() as browser:
        yield browser


@dataclass
class Site:
    """One server that the tests of a file share, with the store behind it. Each test has tasks of its own."""

    store: str
    server: LiveServer
    app: Perdure
    session: StorageState
    world: Path  # a line for each deed of an agent

    @property
    def url(self) -> str:
        return str(self.server.told["url"])

    def deeds(self, part: str) -> list[str]:
        lines = self.world.read_text(encoding="utf-8").splitlines() if self.world.exists() else []
        return [line for line in lines if part in line]

    @contextmanager
    def worker(self) -> Iterator[subprocess.Popen[str]]:
        """A worker process of the agents, for as long as the block lasts."""
        with started(self.store, "worker", "tests.browser.agents:app", **self.environment) as process:
            yield process

    @property
    def environment(self) -> dict[str, str]:
        return {"PERDURE_TEST_WORLD": str(self.world)}


# For scenarios that must hold on either: @pytest.mark.parametrize("site", ENGINES, indirect=True, scope="module")
ENGINES = ("sqlite", "postgres")


@pytest.fixture(scope="module")
def site(chromium: Browser, tmp_path_factory: pytest.TempPathFactory, request: pytest.FixtureRequest) -> Iterator[Site]:
    """One server for the tests of a file; its engine is SQLite, or the parameter."""
    folder = tmp_path_factory.mktemp("site")
    with ExitStack() as stack, pytest.MonkeyPatch.context() as patch:
        store, world = f"sqlite://{folder}/store/p.db", folder / "world"
        if getattr(request, "param", "sqlite") == "postgres":
            store = stack.enter_context(postgres.fresh_database())
        patch.setenv("PERDURE_TEST_WORLD", str(world))
        server = stack.enter_context(live_server(store))
        with watching(chromium, server.told["url"]) as first:
            log_in(first.page(), server.told["link"])
            session = first.context.storage_state()
        app = stack.enter_context(Perdure(store))
        yield Site(store, server, app, session, world)


@pytest.fixture
def person(chromium: Browser, site: Site) -> Iterator[Callable[[], Watched]]:
    """Browsers of persons at the site, logged in."""
    with ExitStack() as stack:
        yield lambda: stack.enter_context(watching(chromium, site.url, storage_state=site.session))


@pytest.fixture
def seen(person: Callable[[], Watched]) -> Watched:
    return person()


@pytest.fixture
def store(tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[str]:
    """A new store for one test: SQLite, or the engine that is its parameter."""
    if getattr(request, "param", "sqlite") == "postgres":
        with postgres.fresh_database() as url:
            yield url
    else:
        yield f"sqlite://{tmp_path}/store/p.db"


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

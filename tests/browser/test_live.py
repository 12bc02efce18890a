"""What the page says while processes die, workers come, and others may only look."""

from __future__ import annotations

import re

import pytest
from playwright.sync_api import expect

from perdure.sync import Perdure
from tests.browser import agents
from tests.browser.conftest import ENGINES
from tests.support.browser import log_in
from tests.support.server_processes import started

WORKER = ("worker", "tests.browser.agents:app")


@pytest.fixture
def app(store):
    with Perdure(store) as app:
        yield app


def test_a_task_without_a_worker_says_so_and_goes_on_by_itself_when_one_comes(page, app, store, server):
    app.start("crawl-docs", agents.crawl, 5)
    page.goto(f"{server.told['url']}/tasks/crawl-docs")
    situation = page.locator(".situation")
    expect(situation).to_contain_text("no worker is running", ignore_case=True)
    with started(store, *WORKER):
        expect(situation).to_contain_text("Completed")
        expect(page.get_by_role("row").filter(has_text="fetch(4)")).to_be_visible()


@pytest.mark.parametrize("store", ENGINES, indirect=True)
@pytest.mark.req("R145")
def test_after_the_death_of_a_worker_the_page_shows_the_next_attempt_and_no_call_twice(page, app, store, server):
    app.start("steady", agents.crawl_and_wait, 3)
    page.goto(f"{server.told['url']}/tasks/steady")
    with started(store, *WORKER) as worker:
        expect(page.get_by_role("row").filter(has_text="fetch(2)")).to_be_visible()
        worker.kill()
    with started(store, *WORKER):
        expect(page.locator(".facts")).to_contain_text("attempt 2")
    expect(page.get_by_role("row").filter(has_text="fetch(")).to_have_count(3)


def test_who_may_only_look_sees_no_button_that_would_fail(app, server, another, new_link):
    app.run_until_paused("checkout-42", agents.checkout, "ord_3")
    page = another().page()
    log_in(page, new_link("viewer"))
    page.goto(f"{server.told['url']}/tasks/checkout-42")
    expect(page.get_by_role("heading", name=re.compile("Waits for you"))).to_be_visible()
    expect(page.get_by_text("To decide this takes the scope inbox:decide.")).to_be_visible()
    for name in ("Approve", "Cancel…", "Fork…"):
        expect(page.get_by_role("button", name=name)).to_have_count(0)


def test_ten_tabs_all_load_and_those_in_the_background_hold_no_stream(app, page, watched, server):
    app.run_until_paused("checkout-42", agents.checkout, "ord_4")
    watched.context.add_init_script("Object.defineProperty(document, 'hidden', {get: () => true})")
    streams: list[str] = []
    watched.context.on("request", lambda request: "/v1/stream" in request.url and streams.append(request.url))
    for _ in range(9):
        tab = watched.page()
        tab.goto(f"{server.told['url']}/tasks")
        expect(tab).to_have_title(re.compile(r"^\(1\) Tasks"))
    assert streams == []

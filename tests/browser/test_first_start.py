"""From `perdure up` to a page that fills by itself."""

from __future__ import annotations

import re

import pytest
from playwright.sync_api import expect

from perdure.sync import Perdure
from tests.browser import agents
from tests.browser.conftest import ENGINES
from tests.support.browser import log_in, watching


@pytest.mark.parametrize("store", ENGINES, indirect=True)
def test_an_empty_store_is_explained_and_the_page_fills_when_the_first_task_comes(page, store):
    expect(page.get_by_role("heading", name="No task yet")).to_be_visible()
    with Perdure(store) as app:
        app.tasks.open("crawl-docs")
    expect(page.get_by_role("link", name="1 idle")).to_be_visible()
    expect(page).to_have_title(re.compile("Now · perdure"))


def test_now_comes_in_few_requests_and_few_bytes(chromium, server, store, new_link):
    with Perdure(store) as app:
        app.run_until_paused("checkout-42", agents.checkout, "ord_981")
    with watching(chromium, server.told["url"]) as first:
        log_in(first.page(), new_link())
        session = first.context.storage_state()
    with watching(chromium, server.told["url"], storage_state=session) as cold:
        page, asked = cold.page(), []
        page.on("requestfinished", lambda request: asked.append(request))
        page.goto(server.told["url"])
        expect(page.get_by_role("button", name="Approve")).to_be_visible()
        page.wait_for_load_state("load")
        assert len(asked) <= 19, [request.url for request in asked]  # and the stream, which does not finish
        sizes = [request.sizes() for request in asked]
        assert sum(size["responseBodySize"] + size["responseHeadersSize"] for size in sizes) <= 200_000
        assert page.locator("*").count() <= 1500


def test_a_link_that_was_used_is_refused(page, server, another):
    stranger = another()
    stranger.foreseen.append("401 (Unauthorized)")
    other = stranger.page()
    other.goto(server.told["link"])
    expect(other.get_by_text("used before")).to_be_visible()


def test_without_a_session_the_page_shows_nothing_of_the_store(server, another, store):
    with Perdure(store) as app:
        app.tasks.open("secret-plan")
    stranger = another()
    stranger.foreseen.append("401")
    page = stranger.page()
    page.goto(f"{server.told['url']}/tasks/secret-plan")
    expect(page.get_by_text("perdure link")).to_be_visible()
    assert "default" not in page.content()


def test_tasks_are_listed_with_their_situation_and_filtered_by_the_address(page, store, server):
    with Perdure(store) as app:
        for number in range(250):
            task = app.tasks.open(f"task-{number:03}")
        task.complete("done")
    page.get_by_role("link", name="Tasks").click()
    expect(page.get_by_role("row").filter(has_text="task-249")).to_contain_text("completed")
    rows = page.locator("[role=row]")
    assert rows.count() < 60, "only the rows in view are in the document"
    page.get_by_role("searchbox").fill("task-01")
    expect(page).to_have_url(re.compile(r"text=task-01"))
    expect(page.get_by_role("row").filter(has_text="task-249")).to_have_count(0)
    expect(page.get_by_role("row").filter(has_text="task-019")).to_be_visible()
    page.reload()
    expect(page.get_by_role("row").filter(has_text="task-019")).to_be_visible()


PLANTED = {
    "an inline script": "const s = document.createElement('script'); s.text = '1'; document.body.append(s);",
    "an inline handler": "document.body.setAttribute('onclick', '1');",
    "markup": "document.body.innerHTML = '<b>x</b>';",
    "eval": "eval('1');",
    "a style": "document.body.setAttribute('style', 'color:red');",
}


@pytest.mark.parametrize("planted", PLANTED.values(), ids=PLANTED.keys())
def test_the_policy_refuses_and_reports_what_is_planted(page, watched, planted):
    watched.foreseen += ["Content Security Policy", "policy ", "Trusted", "CSP"]
    told = page.evaluate(
        "() => new Promise((tell) => {"
        " document.addEventListener('securitypolicyviolation', (event) => tell(event.violatedDirective));"
        # Later, as code that the test itself runs may use eval.
        f" setTimeout(() => {{ try {{ {planted} }} catch {{ /* refused at once */ }} }}); }})"
    )
    assert told

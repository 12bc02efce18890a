"""The tabs of a task's past: checkpoints and what changed between them, effects, attempts, relatives, events, cost."""

from __future__ import annotations

import re

import pytest
from playwright.sync_api import expect

from perdure.sync import Perdure
from tests.browser import agents


@pytest.fixture
def app(store):
    with Perdure(store) as app:
        yield app


@pytest.fixture
def review(app):
    """A task with five checkpoints; the fifth has one more file at the head of the list."""
    task = app.tasks.open("review")
    files = [{"name": f"auth/{n}.py", "status": "open"} for n in range(40)]
    for phase in ("begin", "read", "compare"):
        task.checkpoint({"files": files, "phase": phase})
    task.checkpoint({"files": files, "phase": "compare", "note": "a"})
    task.checkpoint({"files": [{"name": "auth/__init__.py", "status": "new"}, *files], "phase": "compare"})
    return task


def test_an_item_put_at_the_head_of_a_list_is_one_change_between_two_checkpoints(page, review, server):
    page.goto(f"{server.told['url']}/tasks/review/checkpoints")
    table = page.get_by_role("table", name="Checkpoints")
    table.get_by_role("link", name="5", exact=True).click()
    expect(page.get_by_role("tree")).to_contain_text("41 items")
    table.get_by_role("link", name="3: Compare with 5").click()
    expect(page).to_have_url(re.compile(r"/checkpoints/3\.\.5$"))
    changes = page.get_by_role("list", name="Changes").get_by_role("listitem")
    expect(changes).to_have_count(1)
    expect(changes).to_contain_text("files[0]")
    expect(changes).to_contain_text("auth/__init__.py")
    page.reload()
    expect(changes).to_have_count(1)


def test_keys_compare_a_checkpoint_with_the_one_before_and_go_from_tab_to_tab(page, review, server):
    page.goto(f"{server.told['url']}/tasks/review/checkpoints/4")
    expect(page.get_by_role("tree")).to_be_visible()
    page.keyboard.press("c")
    expect(page.get_by_role("list", name="Changes")).to_contain_text("note")
    page.keyboard.press("Escape")
    expect(page).to_have_url(re.compile("/checkpoints$"))
    page.keyboard.press("[")
    expect(page).to_have_url(re.compile("/state$"))


def test_a_checkpoint_is_pinned_from_its_row(page, review, server, app):
    page.goto(f"{server.told['url']}/tasks/review/checkpoints/2")
    page.get_by_role("button", name="Pin", exact=True).click()
    expect(page.get_by_role("row").filter(has_text="pinned")).to_have_count(1)
    assert [one.seq for one in review.checkpoints() if one.pinned] == [2]


def test_an_archived_function_keeps_its_journal_and_says_what_it_was_called_with(page, app, server):
    app.run("crawl-9", agents.crawl, 2)
    for number in range(3):
        app.tasks.create(f"crawl-9{number}", state={})
    app.tasks.open("crawl-9").archive()
    page.goto(f"{server.told['url']}/tasks/crawl-9")
    expect(page.locator(".facts")).to_contain_text("crawl(pages=2)")
    expect(page.locator(".facts")).to_contain_text("archived")
    expect(page.get_by_role("row").filter(has_text="fetch(1)")).to_be_visible()
    expect(page.get_by_role("button", name="Roll back…")).to_have_count(0)  # it has no checkpoint
    page.get_by_role("button", name="As code").click()
    expect(page).to_have_url(re.compile("as=code"))
    listing = page.get_by_label("As code", exact=True)
    expect(listing).to_contain_text("fetch(0)  # → '00000000'")
    expect(listing).to_contain_text("fetch(1)  # → '9e3779b1'")


def test_a_task_without_a_function_tells_its_history_in_words_the_newest_first(page, app, server):
    task = app.tasks.create("plain", state={"n": 0})
    for number in range(203):
        task.checkpoint({"n": number})
    task.pause("Which door?", reason="human_input")
    page.goto(f"{server.told['url']}/tasks/plain")
    events = page.get_by_role("list", name="What happened").get_by_role("listitem")
    expect(events.first).to_contain_text("paused: Which door?")
    expect(events.filter(has_text="the task was made")).to_have_count(0)
    page.get_by_role("button", name="Earlier events").click()
    expect(events.last).to_contain_text("the task was made")


def test_the_tabs_tell_effects_attempts_relatives_events_and_cost(page, app, server):
    app.run_until_paused("checkout-42", agents.checkout, "ord_9")
    app.tasks.create("later", state={}, depends_on=["checkout-42", "not-there"])
    url = server.told["url"]
    page.goto(f"{url}/tasks/checkout-42/effects")
    effects = page.get_by_role("list", name="Effects")
    expect(effects).to_contain_text("reserve_stock")
    tabs = page.get_by_role("navigation", name="Parts of the task")
    expect(tabs.get_by_role("link", name="Effects 1")).to_be_visible()
    with page.expect_download() as saved:
        page.get_by_role("button", name="CSV").click()
    assert "reserve_stock" in saved.value.path().read_text(encoding="utf-8")
    tabs.get_by_role("link", name="Attempts 1").click()
    expect(page.get_by_role("list", name="Attempts")).to_contain_text("pid")
    tabs.get_by_role("link", name=re.compile("^Audit")).click()
    expect(page.get_by_text(re.compile("Chain whole: [0-9]+ events"))).to_be_visible()
    tabs.get_by_role("link", name="Cost").click()
    expect(page.get_by_text("No model call is on record")).to_be_visible()
    saved = page.locator(".saved")
    expect(saved).to_contain_text("Not repeated by its next attempt")
    expect(saved).to_contain_text("5 steps, 1 effect")
    app.tasks.open("checkout-42").cancel()
    expect(saved).to_contain_text("Nothing: its first attempt ended it.")
    page.goto(f"{url}/tasks/later/family")
    expect(page.get_by_text("not there yet")).to_be_visible()
    page.get_by_role("link", name="checkout-42", exact=True).click()
    expect(page.get_by_role("heading", name="checkout-42")).to_be_visible()

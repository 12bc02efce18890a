"""Operate: keys that are shown once, schedules that are paused and run, gc that looks first, and what is not shown."""

from __future__ import annotations

import re
from urllib.request import Request, urlopen

import pytest
from playwright.sync_api import Page, expect

from perdure.sync import Perdure
from tests.browser import agents
from tests.browser.test_access import violations
from tests.support.browser import PHONE, WIDE, log_in

PARTS = (
    "workers",
    "queues",
    "schedules",
    "triggers",
    "webhooks",
    "handlers",
    "keys",
    "units",
    "store",
    "doctor",
    "audit",
)


@pytest.fixture
def app(store):
    with Perdure(store) as app:
        yield app


@pytest.fixture
def show(page, server):
    """Open a part of Operate."""

    def open_part(part: str) -> Page:
        page.goto(f"{server.told['url']}/operate/{part}")
        expect(page.locator(".op-panel h2").first).to_be_visible()
        return page

    return open_part


def row(page: Page, text: str):
    return page.locator(".op-row").filter(has_text=text)


def answer_to(server, key: str) -> int:
    request = Request(f"{server.told['url']}/v1/tasks", headers={"Authorization": f"Bearer {key}"})
    try:
        with urlopen(request) as answer:
            return int(answer.status)
    except OSError as error:
        return int(getattr(error, "code", 0))


def test_a_key_is_shown_once_works_until_it_is_revoked_and_never_again(show, server):
    page = show("keys")
    page.get_by_role("button", name="New key…").click()
    dialog = page.get_by_role("dialog")
    dialog.get_by_label("Name").fill("nightly")
    dialog.get_by_role("button", name="Make the key").click()
    expect(dialog).to_contain_text("It is shown only now")
    key = dialog.locator(".secret code").inner_text()
    page.keyboard.press("Escape")
    expect(dialog).to_contain_text(key)
    assert answer_to(server, key) == 200
    dialog.get_by_role("button", name="I have it").click()
    expect(row(page, "nightly")).to_contain_text("good")
    assert key not in page.content()

    row(page, "nightly").get_by_role("button", name="Rotate…").click()
    dialog.get_by_label("Hours that the old secret stays good").fill("0")
    dialog.get_by_role("button", name="Make a new secret").click()
    second = dialog.locator(".secret code").inner_text()
    dialog.get_by_role("button", name="I have it").click()
    assert (answer_to(server, key), answer_to(server, second)) == (401, 200)

    row(page, "nightly").get_by_role("button", name="Revoke…").click()
    dialog.get_by_role("button", name="Revoke it for good").click()
    expect(row(page, "nightly")).to_contain_text("revoked")
    assert answer_to(server, second) == 401
    expect(row(page, "nightly").get_by_role("button")).to_have_count(0)


def test_a_schedule_is_told_in_words_run_at_once_paused_and_resumed(show, app):
    app.schedule("weekly", agents.crawl, 3).cron("0 9 * * 1", tz="Europe/Berlin")
    page = show("schedules")
    weekly = row(page, "weekly")
    expect(weekly).to_contain_text("Mondays 09:00 Europe/Berlin")
    weekly.get_by_text("Next ticks and last runs").click()
    expect(weekly.locator(".ticks li")).to_have_count(5)
    weekly.get_by_role("button", name="Run now").click()
    expect(weekly.get_by_role("status")).to_contain_text("Started")
    assert len(app.tasks.list().items) == 1
    weekly.get_by_role("button", name="Pause").click()
    expect(weekly).to_contain_text("paused")
    weekly.get_by_role("button", name="Resume").click()
    expect(weekly).to_contain_text("scheduled")


def test_gc_removes_only_after_a_look_that_is_still_true(show, app):
    app.tasks.open("old").complete("done")
    page = show("store")
    page.get_by_role("button", name="What would gc remove?").click()
    dialog = page.get_by_role("dialog")
    days = dialog.get_by_label("Days to keep finished tasks")
    days.fill("0")
    expect(dialog.get_by_role("button", name=re.compile("^Remove"))).to_have_count(0)
    dialog.get_by_role("button", name="What would this remove?").click()
    expect(dialog).to_contain_text("This would remove 1 task")
    assert app.tasks.get("old").status == "completed"
    days.fill("1")
    expect(dialog.get_by_role("button", name=re.compile("^Remove"))).to_have_count(0)
    days.fill("0")
    dialog.get_by_role("button", name="What would this remove?").click()
    dialog.get_by_role("button", name="Remove 1 task").click()
    expect(dialog).to_contain_text("Removed 1 task")
    assert app.tasks.list().items == []


def test_a_look_by_the_doctor_and_a_check_of_the_audit_tell_what_they_found(show, app, watched):
    watched.foreseen.append("404")  # no look so far
    app.tasks.open("one").complete("done")
    page = show("doctor")
    page.get_by_role("button", name="Look").click()
    expect(page.get_by_role("button", name="Look again")).to_be_visible()
    expect(page.locator(".op-panel")).to_contain_text("0 problems")
    page = show("audit")
    page.get_by_role("button", name="Verify all").click()
    expect(row(page, "of 1 task")).to_contain_text("whole")


def test_the_secret_of_a_webhook_is_shown_once_and_an_address_inside_is_refused(show, watched):
    watched.foreseen.append("422")
    page = show("webhooks")
    page.get_by_role("button", name="New webhook…").click()
    dialog = page.get_by_role("dialog")
    dialog.get_by_label("Address").fill("https://127.0.0.1/hook")
    dialog.get_by_role("button", name="Make the webhook").click()
    expect(dialog.get_by_role("alert")).to_be_visible()
    dialog.get_by_label("Address").fill("https://192.0.2.1/hook")
    dialog.get_by_role("button", name="Make the webhook").click()
    expect(dialog.get_by_role("alert")).to_be_visible()
    assert "whsec_" not in page.content()


def test_parts_and_verbs_without_their_scope_are_absent(new_link, another, server, app):
    app.schedule("weekly", agents.crawl, 3).cron("0 9 * * 1", tz="UTC")
    with_little = another().page()
    log_in(with_little, new_link("viewer"))
    with_little.goto(f"{server.told['url']}/operate")
    names = with_little.get_by_role("navigation", name="Parts").get_by_role("link")
    expect(names).to_have_count(7)
    with_little.goto(f"{server.told['url']}/operate/schedules")
    expect(row(with_little, "weekly")).to_contain_text("scheduled")
    expect(with_little.locator(".op-panel").get_by_role("button")).to_have_count(0)
    with_little.goto(f"{server.told['url']}/operate/keys")
    expect(with_little.get_by_text("This part is not shown here")).to_be_visible()


@pytest.mark.parametrize("size", [WIDE, PHONE], ids=["wide", "phone"])
def test_everyone_can_use_every_part_and_none_needs_sideways_scrolling(show, app, page, watched, size):
    watched.foreseen.append("404")  # the doctor has not looked
    app.schedule("weekly", agents.crawl, 3).cron("0 9 * * 1", tz="UTC")
    page.set_viewport_size(size)
    found = {}
    for part in PARTS:
        show(part)
        expect(page.locator(".skeleton")).to_have_count(0)
        expect(page.get_by_role("alert")).to_have_count(0)
        assert page.evaluate("document.documentElement.scrollWidth") <= size["width"]
        for theme in ("light", "dark"):
            page.emulate_media(color_scheme=theme)
            if bad := violations(page):
                found[f"{part} {theme}"] = bad
    assert not found, found

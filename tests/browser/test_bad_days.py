"""What the pages say when something is wrong: no key, a damaged record, a clock far away, a task that goes away."""

from __future__ import annotations

import re

from playwright.sync_api import Page, expect

from perdure._ground.secrets import crypto
from perdure.sync import Perdure
from tests.browser import agents
from tests.durable.test_damaged_journal import flip_a_byte as flip_entry
from tests.support.browser import log_in
from tests.tasks.upkeep_kit import flip_a_byte

UNREADABLE = "500 (Internal Server Error)"  # the answer about a record that cannot be read
AN_HOUR_BEHIND = "const now = Date.now.bind(Date); Date.now = () => now() - 3_600_000;"


def open_task(page: Page, url: str, id: str, tab: str = "") -> None:
    page.goto(f"{url}/tasks/{id}{tab}")
    expect(page.get_by_role("heading", level=1)).to_contain_text(id)


def test_a_sealed_task_without_its_key_says_so_on_every_page_and_the_others_are_shown(page, store, server, watched):
    url = server.told["url"]
    watched.foreseen.append(UNREADABLE)
    with Perdure(store, key=crypto.generate("k-away")) as app:
        app.tasks.create("secret", state={"plan": "blue moon"}).pause("Which door?", reason="human_input")
        app.run_until_paused("secret-order", agents.checkout, "ord_1")
    with Perdure(store) as app:
        app.tasks.open("open")
    for address in ("/", "/tasks", "/inbox", "/tasks/secret", "/tasks/secret/state", "/tasks/secret-order"):
        page.goto(url + address)
        expect(page.locator(".skeleton")).to_have_count(0)
        expect(page.locator("main")).to_contain_text("k-away")
        assert "blue moon" not in page.content() and "Which door" not in page.content()
    page.goto(f"{url}/tasks")
    expect(page.get_by_role("row").filter(has_text="open")).to_be_visible()


def test_a_damaged_checkpoint_and_a_damaged_entry_are_named_with_what_to_do(page, store, server, watched):
    url = server.told["url"]
    watched.foreseen += [UNREADABLE, "404"]
    with Perdure(store) as app:
        app.run_until_paused("order", agents.checkout, "ord_1")
        ((uid, upto),) = [(row.uid, 4) for row in app.tasks.list().items]
        task = app.tasks.create("notes", state={})
        for number in range(3):
            task.checkpoint({"n": number})
        flip_a_byte(store, task.uid, 3)

    class Home:
        url = store

    flip_entry(Home, uid, upto)  # type: ignore[arg-type]
    open_task(page, url, "notes", "/state")
    expect(page.locator(".task-head")).to_contain_text("Damaged: checkpoint 3")
    expect(page.get_by_role("treeitem", name="n: 1")).to_be_visible()
    open_task(page, url, "order")
    expect(page.locator(".situation")).to_contain_text(re.compile(f"Stuck.*entry {upto}.*cannot be read"))
    page.goto(f"{url}/operate/doctor")
    page.get_by_role("button", name="Look").click()
    found = page.locator(".op-row").filter(has_text="order")
    expect(found).to_contain_text("cannot be read")
    expect(found.locator("p.detail")).not_to_be_empty()


def test_a_task_that_is_deleted_while_it_is_open_stays_as_it_was_and_says_so(page, store, server, watched):
    watched.foreseen.append("404")
    with Perdure(store) as app:
        task = app.tasks.create("short-lived", state={"n": 1})
        open_task(page, server.told["url"], "short-lived", "/state")
        expect(page.get_by_role("treeitem", name="n: 1")).to_be_visible()
        task.complete("done")
        expect(page.locator(".task-head")).to_contain_text("completed")
        task.delete()
    expect(page.get_by_text("This task was deleted.")).to_be_visible()
    expect(page.get_by_role("heading", level=1)).to_contain_text("short-lived")
    expect(page.get_by_role("treeitem", name="n: 1")).to_be_visible()
    for name in ("Fork…", "Roll back…", "More"):
        expect(page.get_by_role("button", name=name)).to_have_count(0)


def test_a_clock_that_is_wrong_is_said_and_every_time_is_the_servers(store, server, another, new_link):
    person = another()
    person.context.add_init_script(AN_HOUR_BEHIND)
    page = person.page()
    log_in(page, new_link())
    with Perdure(store) as app:
        app.run_until_paused("order", agents.checkout, "ord_1")
    expect(page.get_by_role("region", name="Needs you")).to_contain_text(re.compile(r"asked (now|\d+ (s|min) ago)"))
    expect(page.locator(".strip")).to_contain_text(re.compile("clock.*(59 min|1 h)"))


def test_a_session_that_has_ended_clears_the_page_and_says_how_to_begin_another(page, store, server, watched):
    watched.foreseen.append("401 (Unauthorized)")
    with Perdure(store) as app:
        app.run_until_paused("order", agents.checkout, "ord_1")
    open_task(page, server.told["url"], "order")
    expect(page.get_by_role("row").filter(has_text="quote_tax")).to_be_visible()
    # Both at once: what the page reads by itself may be refused, and the page cleared, before a person can click.
    leave = (
        "async () => { const link = document.querySelector('a[href$=\"/checkpoints\"]');"
        " const told = await fetch('/v1/session', {method: 'DELETE', headers: {'Perdure-Client': 'x'}});"
        " link.click(); return told.status; }"
    )
    assert page.evaluate(leave) == 204
    expect(page.get_by_text("This session has ended")).to_be_visible()
    expect(page.get_by_text("perdure link", exact=True)).to_be_visible()
    assert "quote_tax" not in page.content() and "ord_1" not in page.content()


def test_a_session_that_may_only_read_has_no_control_and_its_requests_are_refused(store, server, another, new_link):
    person = another()
    page = person.page()
    log_in(page, new_link("viewer"))
    with Perdure(store) as app:
        app.run_until_paused("order", agents.checkout, "ord_1")
        asked = app.inbox.page(task="order").items[0].id
    open_task(page, server.told["url"], "order")
    expect(page.locator(".situation")).to_contain_text("Waits for you")
    for name in ("Approve", "Cancel…", "Fork…", "Resume…", "Roll back…"):
        expect(page.get_by_role("button", name=name)).to_have_count(0)
    person.foreseen.append("403")
    refused = page.evaluate(
        "async (id) => (await fetch(`/v1/inbox/${id}/approve`, {method: 'POST', headers: {'Content-Type':"
        " 'application/json', 'Perdure-Client': 'x'}, body: '{}'})).status",
        asked,
    )
    assert refused == 403

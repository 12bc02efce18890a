"""The list of tasks: it holds still, it acts on many after a dry run, and it tells when the line is lost."""

from __future__ import annotations

import re
import signal

import pytest
from playwright.sync_api import expect

from perdure.sync import Perdure
from tests.support.server_processes import live_server


@pytest.fixture
def app(store):
    with Perdure(store) as app:
        yield app


def test_rows_hold_still_under_the_pointer_and_changes_wait_for_a_key(page, app, server):
    for number in range(30):
        app.tasks.open(f"old-{number:02}")
    page.goto(f"{server.told['url']}/tasks")
    expect(page.get_by_role("row").filter(has_text="old-29")).to_be_visible()
    page.get_by_role("row").filter(has_text="old-25").hover()
    app.tasks.open("new-one")
    expect(page.get_by_role("button", name=re.compile("1 change"))).to_be_visible()
    expect(page.get_by_role("row").filter(has_text="new-one")).to_have_count(0)
    page.keyboard.press(".")
    expect(page.get_by_role("row").filter(has_text="new-one")).to_be_visible()


def test_a_value_inside_a_row_changes_in_place_while_rows_hold_still(page, app, server):
    task = app.tasks.open("import")
    page.goto(f"{server.told['url']}/tasks")
    row = page.get_by_role("row").filter(has_text="import")
    row.hover()
    task.complete("done")
    expect(row).to_contain_text("completed")


def test_a_filter_is_cancelled_after_a_dry_run_and_nothing_else_is(page, app, server):
    for number in range(25):
        app.tasks.create(f"a-{number:02}", state={}, agent="loader")
    app.tasks.create("other", state={}, agent="crawler")
    page.goto(f"{server.told['url']}/tasks?agent=loader")
    page.get_by_role("checkbox", name="Select a-24").check()
    page.get_by_role("button", name="Take all 25 that match").click()
    page.get_by_role("button", name="Cancel…").click()
    dialog = page.get_by_role("dialog")
    expect(dialog).to_contain_text("This would cancel 25 tasks")
    button = dialog.get_by_role("button", name="Cancel 25 tasks")
    expect(button).to_be_disabled()
    dialog.get_by_role("textbox", name="Type 25").fill("25")
    button.click()
    expect(dialog).to_contain_text("25 tasks done")
    assert app.tasks.counts().status["cancelled"] == 25
    assert app.tasks.get("other").status == "running"


def test_a_lost_server_is_told_and_its_return_is_noticed(page, app, store, server, watched):
    watched.foreseen += [
        "ERR_CONNECTION_REFUSED",
        "ERR_EMPTY_RESPONSE",
        "ERR_INCOMPLETE_CHUNKED",
        "ERR_CONNECTION_RESET",
    ]
    app.tasks.open("first")
    page.goto(f"{server.told['url']}/tasks")
    expect(page.get_by_role("row").filter(has_text="first")).to_be_visible()
    expect(page.locator(".light.live")).to_be_visible()
    server.process.send_signal(signal.SIGKILL)
    expect(page.get_by_text("Not live since")).to_be_visible()
    app.tasks.open("second")
    with live_server(store, port=server.port):
        expect(page.locator(".light.live")).to_be_visible(timeout=15_000)
        expect(page.get_by_role("row").filter(has_text="second")).to_be_visible()

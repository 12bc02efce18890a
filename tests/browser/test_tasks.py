"""The list of tasks: it holds still, it acts on many after a dry run, and it tells when the line is lost."""

from __future__ import annotations

import json
import re
import signal

import pytest
from playwright.sync_api import expect

from perdure.sync import Perdure
from tests.browser import agents
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


# Scrolls to the end of the list, and gives the ids that it saw by the place of their rows.
READ_ALL = """async (count) => {
  const box = document.querySelector("[role=grid]"), seen = new Map();
  const draw = () => new Promise(requestAnimationFrame);
  while (seen.size < count) {
    for (const row of box.querySelectorAll("[role=row][aria-rowindex]")) {
      const link = row.querySelector("a.id");
      if (link) seen.set(Number(row.getAttribute("aria-rowindex")), link.textContent);
    }
    box.scrollTop += 300;
    await draw();
  }
  return [...seen.values()];
}"""


def test_more_new_tasks_than_a_page_holds_leave_no_gap_and_none_stands_twice(page, app, server):
    for number in range(150):
        app.tasks.create(f"old-{number:03}", state={})
    with page.expect_response(re.compile("/v1/stream")):  # from here on every change is told
        page.goto(f"{server.told['url']}/tasks")
    row = page.get_by_role("row").filter(has_text="old-149")
    expect(row).to_be_visible()
    assert len(set(page.evaluate(READ_ALL, 150))) == 150
    page.get_by_role("grid").evaluate("(box) => { box.scrollTop = 0; }")
    row.hover()
    for number in range(130):
        app.tasks.create(f"new-{number:03}", state={})
    expect(page.get_by_role("button", name=re.compile("130 changes"))).to_be_visible()
    expect(row).to_be_visible()
    page.keyboard.press(".")
    expect(page.get_by_role("row").filter(has_text="new-129")).to_be_visible()
    assert sorted(set(page.evaluate(READ_ALL, 280))) == sorted(
        [f"old-{number:03}" for number in range(150)] + [f"new-{number:03}" for number in range(130)]
    )


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


def test_ticked_rows_are_rehearsed_by_the_server_with_the_effects_at_stake(page, app, server, monkeypatch, tmp_path):
    monkeypatch.setenv("PERDURE_TEST_WORLD", str(tmp_path / "world"))
    for ship in ("one", "two"):
        app.run_until_paused(ship, agents.launch, ship)
    app.tasks.create("three", state={}).complete("done")
    page.goto(f"{server.told['url']}/tasks")
    for id in ("one", "three"):
        page.get_by_role("checkbox", name=f"Select {id}").check()
    page.get_by_role("button", name="Cancel…").click()
    dialog = page.get_by_role("dialog")
    expect(dialog).to_contain_text("This would cancel 1 task.")
    expect(dialog).to_contain_text("put_up ×3")
    expect(dialog).to_contain_text("1 task is left alone")
    dialog.get_by_role("button", name="Cancel 1 task").click()
    expect(dialog).to_contain_text("1 task done")
    assert {one.id for one in app.tasks.list().items if one.status == "paused"} == {"two"}


def test_filters_by_time_tag_and_shelf_live_in_the_address_and_are_saved_as_a_file(page, app, server):
    app.tasks.create("red", state={}, tags={"batch": "a=b"})
    app.tasks.create("blue", state={}, tags={"batch": "c"}).complete(1)
    app.tasks.open("blue").archive()
    page.goto(f"{server.told['url']}/tasks")
    rows = page.get_by_role("row").filter(has=page.locator("a.id"))
    expect(rows).to_have_count(1)
    page.get_by_role("button", name="Columns").click()
    page.get_by_role("checkbox", name="archived tasks").check()
    expect(rows).to_have_count(2)
    expect(page).to_have_url(re.compile("archived=true"))
    page.keyboard.press("Escape")
    with page.expect_download() as saved:
        page.get_by_role("button", name="Save as NDJSON").click()
    lines = saved.value.path().read_text(encoding="utf-8").splitlines()
    assert {json.loads(line)["id"] for line in lines} == {"red", "blue"}
    page.get_by_role("searchbox").fill("batch=a=b")
    page.get_by_role("searchbox").press("Enter")
    expect(rows).to_have_count(1)
    expect(page.get_by_role("button", name="batch=a=b")).to_be_visible()
    page.get_by_label("When it began").select_option("last hour")
    expect(page).to_have_url(re.compile("since=20"))
    page.reload()
    expect(rows).to_have_count(1)
    page.goto(f"{server.told['url']}/tasks?since=2100-01-01T00:00:00Z")
    expect(page.get_by_text("No task matches")).to_be_visible()


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
        expect(page.locator(".light.live")).to_be_visible(timeout=120_000)
        expect(page.get_by_role("row").filter(has_text="second")).to_be_visible()
        expect(page.locator(".strip.ok")).to_contain_text("Caught up")

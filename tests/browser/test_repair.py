"""Repairing a task: each verb says what it would do before it does it, and does just that."""

from __future__ import annotations

import re
from typing import Any

from playwright.sync_api import Page, expect

from tests.browser import agents
from tests.browser.conftest import Site
from tests.support.browser import Watched


def open_task(seen: Watched, site: Site, id: str, tab: str = "") -> Page:
    page = seen.page()
    page.goto(f"{site.url}/tasks/{id}{tab}")
    expect(page.get_by_role("heading", level=1)).to_contain_text(id)
    return page


def stakes(page: Page, heading: str) -> Any:
    """The calls that a dry run lists under a heading."""
    return page.get_by_role("dialog").locator("section").filter(has_text=heading).get_by_role("listitem")


def test_a_fork_with_an_edited_state_keeps_what_is_done_and_ends_otherwise(site, seen):
    site.app.run_until_paused("apollo", agents.launch, "apollo")
    page = open_task(seen, site, "apollo", "/checkpoints/1")
    page.get_by_role("button", name="Fork here…").click()
    dialog = page.get_by_role("dialog")
    expect(stakes(page, "Stays done")).to_have_text(["put_up('apollo tank')"])
    expect(dialog.get_by_text("Nothing is changed")).to_be_visible()
    dialog.get_by_label("Id of the fork").fill("apollo")
    expect(dialog.get_by_text("This id is in use.")).to_be_visible()
    expect(dialog.get_by_role("button", name="Make the fork")).to_be_disabled()
    dialog.get_by_label("Id of the fork").fill("apollo-b")
    expect(dialog.get_by_text("This id is free.")).to_be_visible()
    dialog.get_by_role("button", name="Edit the state").click()
    state = dialog.get_by_role("textbox", name="State")
    state.fill('{"stage": 1, "fuel": 99, "crew": [')
    expect(dialog.get_by_text("This is not JSON yet")).to_be_visible()
    state.fill('{"stage": 1, "fuel": 99, "crew": ["ada"], "captain": "ada"}')
    expect(dialog.get_by_text("captain: The fork's state has the keys of its source")).to_be_visible()
    state.fill('{"stage": 1, "fuel": 99, "crew": ["ada"]}')
    expect(dialog.locator(".changes dt")).to_have_text(["fuel", "crew"])
    expect(dialog.locator(".changes dd").first).to_have_text("10 99")
    dialog.get_by_role("button", name="Make the fork").click()
    expect(page.get_by_role("heading", level=1)).to_have_text("apollo-b")
    site.app.run_until_paused("apollo-b", agents.launch, "apollo")
    for id, ends in {"apollo": "10 and 2", "apollo-b": "99 and 1"}.items():
        page.goto(f"{site.url}/tasks/{id}")
        page.get_by_role("button", name="Approve").click()
        expect(page.get_by_role("status").filter(has_text="Approved by you").first).to_be_attached()
        fuel, crew = ends.split(" and ")
        assert site.app.run(id, agents.launch, "apollo") == f"apollo with {fuel} and {crew} on board"
    assert len(site.deeds("up apollo tank")) == 1, "what was done before the fork is not repeated"
    assert len(site.deeds("up apollo flag")) == 2
    page.goto(f"{site.url}/tasks/apollo-b/family")
    source = page.get_by_role("region", name="Forked from")
    expect(source.get_by_role("link", name="apollo", exact=True)).to_be_visible()


def test_a_rollback_lists_what_ran_since_and_undoes_it_once_in_reverse(site, seen):
    site.app.run_until_paused("gemini", agents.launch, "gemini")
    page = open_task(seen, site, "gemini", "/checkpoints/1")
    page.get_by_role("button", name="Roll back here…").click()
    dialog = page.get_by_role("dialog")
    expect(stakes(page, "Undone, the newest first")).to_have_text(["put_up('gemini flag')", "put_up('gemini tower')"])
    expect(stakes(page, "Stays as it is")).to_have_text(["announce('gemini')has no undo"])
    dialog.get_by_label("Keep what they did").check()
    expect(stakes(page, "Stays as it is")).to_have_count(3)
    dialog.get_by_label("Undo them").check()
    expect(stakes(page, "Undone, the newest first")).to_have_count(2)
    with site.worker():
        dialog.get_by_role("button", name="Roll back").click()
        expect(dialog).to_have_count(0)
        page.goto(f"{site.url}/tasks/gemini/journal")
        lines = page.get_by_label("Line of the journal")
        expect(lines.get_by_role("option")).to_have_text(["line 1 of 2", "line 2 of 2"])
        expect(page.get_by_role("row").filter(has_text="pause.approval")).to_be_visible()
    assert site.deeds("down gemini") == ["down gemini flag", "down gemini tower"]
    assert [len(site.deeds(f"up gemini {part}")) for part in ("tank", "tower", "flag")] == [1, 2, 2]
    lines.select_option("1")
    expect(page).to_have_url(re.compile(r"line=1"))
    expect(page.get_by_role("row").filter(has_text="announce('gemini')")).to_be_visible()


def test_a_cancelled_task_undoes_its_effects_in_reverse_and_says_by_whom(site, seen):
    site.app.run_until_paused("mercury", agents.launch, "mercury")
    page = open_task(seen, site, "mercury")
    page.get_by_role("button", name="Cancel…").first.click()
    dialog = page.get_by_role("dialog")
    undone = [f"put_up('mercury {part}')" for part in ("flag", "tower", "tank")]
    expect(stakes(page, "Undone, the newest first")).to_have_text(undone)
    dialog.get_by_label("Undo its effects first").uncheck()
    expect(stakes(page, "Stays as it is")).to_have_count(4)
    dialog.get_by_label("Undo its effects first").check()
    expect(stakes(page, "Undone, the newest first")).to_have_text(undone)
    assert site.deeds("down mercury") == [], "a dry run does nothing"
    with site.worker():
        dialog.get_by_role("button", name="Cancel the task").click()
        expect(page.locator(".task-head")).to_contain_text("cancelled")
    assert site.deeds("down mercury") == [f"down mercury {part}" for part in ("flag", "tower", "tank")]
    expect(page.locator(".situation")).to_contain_text("3 effects undone")


def test_many_tasks_are_cancelled_as_they_were_confirmed_and_no_other(site, seen):
    for number in range(30):
        site.app.tasks.create(f"bulk-{number:02}", tags={"batch": "red" if number < 25 else "blue"}, state={})
    page = seen.page()
    page.goto(f"{site.url}/tasks?tag.batch=red")
    expect(page.get_by_role("row").filter(has_text="bulk-24")).to_be_visible()
    page.keyboard.press("a")
    page.get_by_role("button", name="Cancel…", exact=True).click()
    dialog = page.get_by_role("dialog")
    expect(dialog).to_contain_text("This would cancel 25 tasks.")
    button = dialog.get_by_role("button", name="Cancel 25 tasks")
    expect(button).to_be_disabled()
    dialog.get_by_label("Type 25 to confirm").fill("24")
    expect(button).to_be_disabled()
    dialog.get_by_label("Type 25 to confirm").fill("25")
    for number in range(3):
        site.app.tasks.open(f"bulk-{number:02}").complete("done")  # meanwhile
    site.app.tasks.create("bulk-late", tags={"batch": "red"}, state={})
    button.click()
    expect(dialog).to_contain_text("22 tasks done, 3 refused.")
    dialog.get_by_role("button", name="Close").last.click()
    statuses = {one.id: one.status for one in site.app.tasks.list(limit=100).items if one.id.startswith("bulk-")}
    assert [id for id, status in statuses.items() if status == "cancelled"] == [
        f"bulk-{number:02}" for number in reversed(range(3, 25))
    ]
    assert statuses["bulk-late"] == "running"
    page.go_back()
    page.go_forward()
    page.reload()
    expect(page.get_by_text("25 tasks", exact=False)).to_have_count(0)
    expect(page.get_by_role("dialog")).to_have_count(0)


def test_a_verb_that_fails_says_beside_its_button_what_was_kept_and_what_to_do(site, seen):
    site.app.tasks.open("kept")
    page = open_task(seen, site, "kept")
    page.get_by_role("button", name="Cancel…").first.click()
    dialog = page.get_by_role("dialog")
    expect(dialog).to_contain_text("No effect is touched")
    site.app.tasks.open("kept").complete("meanwhile")
    seen.foreseen.append("409 (Conflict)")
    dialog.get_by_role("button", name="Cancel the task").click()
    expect(dialog.get_by_role("alert")).to_contain_text(re.compile("completed.*Kept:", re.S))
    page.keyboard.press("Escape")
    expect(dialog).to_have_count(0)
    expect(page.get_by_role("button", name="Cancel…")).to_have_count(0)

"""An operator without a mouse: from Now to a decision, and through a fork, a rollback, the cost and the audit."""

from __future__ import annotations

import re

from playwright.sync_api import Locator, Page, expect

from tests.browser import agents

MOST_TABS = 12  # from where a dialog opens to any field of it


def keys(page: Page, *pressed: str) -> None:
    for key in pressed:
        page.keyboard.press(key)


def tab_to(page: Page, wanted: Locator) -> None:
    for _ in range(MOST_TABS):
        if wanted.evaluate("(node) => node === document.activeElement"):
            return
        page.keyboard.press("Tab")
    raise AssertionError(f"{wanted} is more than {MOST_TABS} tabs away")


def search(page: Page, text: str) -> None:
    keys(page, "/")
    page.keyboard.type(text)
    keys(page, "Enter")  # at once: it opens what is found by all that was typed
    expect(page.get_by_role("dialog", name="Search")).to_have_count(0)


def test_every_repair_can_be_made_by_keys_alone(site, seen):
    site.app.run_until_paused("voyager", agents.launch, "voyager")
    seen.foreseen.append("404 (Not Found)")  # a question that the rollback takes away
    page = seen.page()
    page.goto(site.url)
    expect(page.get_by_role("region", name="Needs you")).to_contain_text("Launch voyager?")

    # a fork with an edited state, from a checkpoint
    search(page, "voyager")
    expect(page.get_by_role("heading", level=1)).to_have_text("voyager")
    keys(page, "]", "]")
    expect(page).to_have_url(re.compile("/checkpoints$"))
    expect(page.get_by_role("table")).to_be_visible()
    keys(page, "j", "Enter")
    expect(page.get_by_role("button", name="Fork here…")).to_be_focused()
    keys(page, "Enter")
    dialog = page.get_by_role("dialog")
    tab_to(page, dialog.get_by_label("Id of the fork"))
    page.keyboard.type("voyager-b")
    tab_to(page, dialog.get_by_role("button", name="Edit the state"))
    keys(page, "Enter")
    state = dialog.get_by_role("textbox", name="State")
    tab_to(page, state)
    keys(page, "Control+a")
    page.keyboard.insert_text('{"stage": 1, "fuel": 77, "crew": ["ada"]}')
    expect(dialog.locator(".changes dt")).to_have_text(["fuel", "crew"])
    tab_to(page, dialog.get_by_role("button", name="Make the fork"))
    keys(page, "Enter")
    expect(page.get_by_role("heading", level=1)).to_have_text("voyager-b")

    # a rollback, by its name; then the decision in the inbox
    with site.worker():
        expect(page.locator(".situation")).to_contain_text("Launch voyager?")
        search(page, "roll back voyager")
        button = dialog.get_by_role("button", name="Roll back")
        expect(button).to_be_enabled()
        tab_to(page, button)
        keys(page, "Enter")
        expect(dialog).to_have_count(0)
        expect(page.get_by_role("heading", level=1)).to_have_text("voyager")
        keys(page, "g", "i")
        own = page.locator(".questions a").filter(has_text="voyager-b")
        expect(own).to_be_visible()
        for _ in range(page.locator(".questions a").count()):
            if page.locator(".question-full > header").get_by_text("voyager-b").count():
                break
            keys(page, "j")
        expect(page.locator(".question-full > header")).to_contain_text("voyager-b")
        keys(page, "y")
        expect(page.locator(".question-full").get_by_role("button", name="Approve")).to_be_focused()
        keys(page, "Control+Enter")
        expect(page.locator(".decided")).to_contain_text("Approved by you")
        search(page, "voyager-b")
        expect(page.locator(".situation")).to_contain_text("voyager with 77 and 1 on board")

    # what it did not repeat, and whether its audit is whole
    keys(page, "[")
    expect(page.locator(".saved")).to_contain_text("Not repeated by its last attempt")
    keys(page, "[")
    expect(page.get_by_text(re.compile("Chain whole: [0-9]+ events"))).to_be_visible()

"""The units of a task: what each is and how it came back, what a resume would bring back, and their end."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Locator, Page, expect

from perdure.sync import Perdure
from tests.browser.test_access import violations
from tests.runtime.kit import Place, is_alive, until
from tests.support.browser import PHONE, WIDE
from tests.support.processes import Link, nursery, say

ASKS = ["bash", "--norc", "-c", "read -s -p 'password: ' x; exec cat"]


@pytest.fixture
def place(tmp_path: Path) -> Iterator[Place]:
    place = Place(tmp_path / "store" / "p.db")
    try:
        yield place
    finally:
        place.clear()


def _works(link: Link, url: str) -> None:
    """An agent with two shells and a service, saved; it works until it is killed."""
    app = Perdure(url)
    app.tasks.open("work", state={})
    runtime = app.runtime("work")
    main = runtime.shell("main", ASKS)
    scratch, web = runtime.shell("scratch"), runtime.service("web", ["sleep", "100000"])
    runtime.save()
    say(link, [main.record.pid, scratch.record.pid, web.record.pid])
    link.recv()


def test_after_the_death_of_agent_and_keeper_each_unit_says_how_it_came_back(place, store, page, server):
    with nursery() as children:
        agent = children.start(_works, store)
        main, scratch, web = agent.heard()
        agent.kill()
    place.kill_keeper()
    for pid in (scratch, web):
        os.kill(pid, signal.SIGKILL)
        until(lambda pid=pid: not is_alive(pid))
    units = server.told["url"] + "/tasks/work/units"
    page.goto(units)
    expect(card(page, "main")).to_contain_text("waits for a password")
    expect(card(page, "scratch")).to_contain_text("ended by signal 9")
    page.get_by_role("button", name="Look", exact=True).click()
    plan = page.get_by_role("region", name="What a resume would bring back")
    for name, level in (("shell main", "kept"), ("service web", "rebuilt"), ("shell scratch", "lost")):
        expect(plan.get_by_role("listitem").filter(has_text=name).first).to_contain_text(level)

    with Perdure(store) as app:
        app.tasks.open("work")
        app.runtime("work").restore()
    page.reload()
    report = page.get_by_role("region", name="How it came back")
    expect(report.get_by_role("listitem").filter(has_text="shell main")).to_contain_text(f"the same process ({main})")
    expect(report.get_by_role("listitem").filter(has_text="shell scratch")).to_contain_text("ended by signal 9")
    expect(card(page, "web").filter(has_text="alive")).to_contain_text("rebuilt")
    page.goto(server.told["url"])
    recent = page.get_by_role("region", name="In the last day")
    expect(recent).to_contain_text("1 lost")
    expect(recent).to_contain_text("shell scratch: it was ended by signal 9")

    page.goto(server.told["url"] + "/operate/units")
    row = page.locator(".op-row").filter(has_text="main")
    expect(row).to_contain_text("waits for a password")
    expect(row).to_contain_text("kept")
    page.get_by_role("link", name="main").click()
    expect(page.get_by_label("It waits for a password")).to_be_visible()
    found = {}
    for address in ("/tasks/work/units", "/tasks/work/units/main"):
        for size in (WIDE, PHONE):
            page.set_viewport_size(size)
            page.goto(server.told["url"] + address)
            expect(page.get_by_role("heading", name="main")).to_be_visible()
            for theme in ("light", "dark"):
                page.emulate_media(color_scheme=theme)
                found[f"{address} {size['width']} {theme}"] = violations(page)
            assert page.evaluate("document.documentElement.scrollWidth") <= size["width"]
    assert not any(found.values()), found

    page.set_viewport_size(WIDE)
    page.get_by_role("button", name="End…").click()
    dialog = page.get_by_role("dialog")
    expect(dialog).to_contain_text("This ends 1 process:")
    expect(dialog).to_contain_text(str(main))
    assert is_alive(main)
    dialog.get_by_role("button", name="End it").click()
    expect(page.get_by_text("Ended", exact=False).first).to_be_visible()
    until(lambda: not is_alive(main))


def card(page: Page, name: str) -> Locator:
    return page.locator(".unit").filter(has=page.get_by_role("heading", name=name, exact=True))

"""Everyone can use every page: no violation that axe finds, in both themes, on a wide screen and on a phone."""

from __future__ import annotations

from pathlib import Path

import pytest
from playwright.sync_api import Page, expect

from perdure.sync import Perdure
from tests.browser import agents
from tests.support.browser import PHONE, WIDE

AXE = Path(__file__).parent / "vendor" / "axe.min.js"
PAGES = {
    "now": "/",
    "tasks": "/tasks",
    "no match": "/tasks?text=nothing-like-it",
    "task": "/tasks/checkout-42?call=1",
    "plain task": "/tasks/plain",
    "inbox": "/inbox",
}


@pytest.fixture
def filled(store):
    with Perdure(store) as app:
        app.run_until_paused("checkout-42", agents.checkout, "ord_9")
        app.run_until_paused("migrate-prod", agents.migrate, "eu-2")
        app.start("crawl-docs", agents.crawl, 20)
        app.tasks.open("plain").fail(ValueError("bad row"))
        for number in range(40):
            app.tasks.open(f"import-{number:02}")
    return store


# A colour that is still fading is none that a reader sees; what moves without end is left out.
SETTLED = """async () => { await Promise.all(document.getAnimations()
    .filter((one) => one.effect.getComputedTiming().iterations !== Infinity)
    .map((one) => one.finished.catch(() => null))); }"""


def violations(page: Page) -> list[str]:
    """What axe finds. Its script comes through the debugger: the policy of the page lets no script in."""
    page.evaluate(AXE.read_text(encoding="utf-8") + "; 0")
    page.evaluate(SETTLED)
    found = page.evaluate(
        "async () => (await axe.run(document, {resultTypes: ['violations'],"
        " runOnly: ['wcag2a', 'wcag2aa', 'wcag21a', 'wcag21aa', 'wcag22aa', 'best-practice']})).violations"
        ".map((each) => `${each.id}: ${each.nodes.slice(0, 3).map((node) => node.html.slice(0, 160)).join(' | ')}`)"
    )
    return [str(each) for each in found]


def stands(page: Page) -> None:
    """Wait until a page is drawn with its data, and nothing fades in any more."""
    expect(page.get_by_role("heading", level=1).first).to_be_attached()
    expect(page.locator("main .panel, main .empty").first).to_be_visible()
    expect(page.locator(".skeleton")).to_have_count(0)
    page.wait_for_load_state("load")
    page.evaluate("Promise.all(document.getAnimations().map((each) => each.finished.catch(() => {})))")


@pytest.mark.parametrize("size", [WIDE, PHONE], ids=["wide", "phone"])
def test_no_page_has_a_violation(filled, page, server, size):
    page.set_viewport_size(size)
    found = {}
    for name, address in PAGES.items():
        page.goto(server.told["url"] + address)
        stands(page)
        for theme in ("light", "dark"):
            page.emulate_media(color_scheme=theme)
            if bad := violations(page):
                found[f"{name} {theme}"] = bad
    assert not found, found


@pytest.mark.parametrize("dialog", ["/", "?"], ids=["search", "keys"])
def test_no_dialog_has_a_violation(filled, page, server, dialog):
    page.keyboard.press(dialog)
    expect(page.get_by_role("dialog")).to_be_visible()
    assert violations(page) == []
    page.keyboard.press("Escape")
    expect(page.get_by_role("dialog")).to_have_count(0)


@pytest.mark.parametrize("address", PAGES.values(), ids=PAGES.keys())
def test_a_page_of_320_pixels_needs_no_sideways_scrolling(filled, page, server, address):
    page.set_viewport_size(PHONE)
    page.goto(server.told["url"] + address)
    stands(page)
    assert page.evaluate("document.documentElement.scrollWidth") <= PHONE["width"]

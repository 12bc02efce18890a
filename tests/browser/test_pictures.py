"""Every page as people see it: in light and dark, and on a phone.

`tools/make_pictures.py` keeps the best of them in docs/pictures; here it is held that each can be taken, without a
violation and without sideways scrolling.
"""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from playwright.sync_api import Page, expect

from tests.browser.scene import set_scene
from tests.browser.test_access import violations
from tests.support.browser import PHONE, log_in, show_as, watching
from tests.support.server_processes import live_server


@pytest.fixture(scope="module")
def scene(chromium, tmp_path_factory):
    folder = tmp_path_factory.mktemp("scene") / "agent" / ".perdure"
    store = f"sqlite://{folder}/perdure.db"
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("HOME", str(folder.parents[1]))  # the bar names the store as ~/agent/.perdure
        patch.setenv("PERDURE_TEST_WORLD", str(folder.parent / "world"))
        folder.mkdir(parents=True)
        with (
            set_scene(store),
            live_server(store) as server,
            watching(chromium, server.told["url"]) as watched,
        ):
            page = watched.page()
            log_in(page, server.told["link"])
            expect(page.get_by_role("region", name="Working")).to_contain_text("crawl-docs")
            expect(page.get_by_text("import-legacy").first).to_be_visible()
            yield page, server.told["url"]


def open_dialog(page: Page, name: str) -> None:
    page.get_by_role("button", name=name).first.click()
    expect(page.get_by_role("dialog")).to_be_visible()
    expect(page.get_by_role("dialog").get_by_text("Looking at what would happen")).to_have_count(0)


VIEWS = {
    "now": ("/", None),
    "tasks": ("/tasks", None),
    "task": ("/tasks/checkout-42?call=11", None),
    "state": ("/tasks/review-auth/state", None),
    "checkpoints": ("/tasks/review-auth/checkpoints/2..3", None),
    "effects": ("/tasks/launch-apollo/effects", None),
    "family": ("/tasks/launch-apollo/family", None),
    "attempts": ("/tasks/checkout-41/attempts", None),
    "audit": ("/tasks/checkout-41/audit", None),
    "inbox": ("/inbox", "migrate-prod"),
    "uncertain": ("/inbox?kind=effect", None),
    "workers": ("/operate/workers", None),
    "store": ("/operate/store", None),
    "fork": ("/tasks/launch-apollo/state", "Fork…"),
    "rollback": ("/tasks/launch-apollo", "Roll back…"),
    "cancel": ("/tasks/launch-apollo", "Cancel…"),
    "failed": ("/tasks/import-legacy", None),
    "stuck": ("/tasks/nightly-digest", None),
}


@pytest.mark.parametrize("name", VIEWS)
def test_a_picture_of_each_page_is_sound(scene, tmp_path, name):
    page, url = scene
    address, then = VIEWS[name]
    page.goto(url + address)
    expect(page.get_by_role("heading", level=1).first).to_be_attached()
    expect(page.locator(".skeleton")).to_have_count(0)
    if then is not None and then.endswith("…"):
        open_dialog(page, then)
    elif then is not None:
        page.locator(".questions a", has_text=then).click()
        expect(page.locator(".question-full")).to_contain_text(then)
    found = {}
    for theme in ("light", "dark"):
        page.emulate_media(color_scheme=theme)
        if bad := violations(page):
            found[theme] = bad
    assert not found, found
    folder = Path(os.environ.get("PERDURE_PICTURES", tmp_path))
    show_as(page, folder, name)
    page.set_viewport_size(PHONE)
    try:
        assert page.evaluate("document.documentElement.scrollWidth") <= PHONE["width"]
        assert page.locator("*").count() <= 1500
    finally:
        page.set_viewport_size({"width": 1440, "height": 900})

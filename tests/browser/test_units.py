"""The units of a task: each with what it is, and whether it waits for a password."""

from __future__ import annotations

from pathlib import Path

import pytest
from playwright.sync_api import expect

from perdure.sync import Perdure
from tests.runtime.kit import Place


@pytest.fixture
def place(tmp_path):
    place = Place(Path(tmp_path) / "store" / "p.db")
    try:
        yield place
    finally:
        place.clear()


def test_a_shell_that_waits_for_a_password_says_so_on_its_task_and_in_operate(place, store, page, server):
    with Perdure(store) as app:
        app.tasks.open("work", state={})
        app.runtime("work").shell("main", ["bash", "--norc", "-c", "read -s -p 'password: ' x; exec cat"])
    for address in ("/tasks/work/units", "/operate/units"):
        page.goto(server.told["url"] + address)
        expect(page.locator(".op-row").filter(has_text="main")).to_contain_text("waits for a password")
    page.get_by_role("link", name="main").click()
    expect(page.get_by_text("perdure attach work main")).to_be_visible()

"""Deciding: approve, answer, settle; by two persons at once, with the keyboard, and on a phone."""

from __future__ import annotations

import re

import pytest
from playwright.sync_api import Route, expect

from perdure.sync import Perdure
from tests.browser import agents
from tests.browser.conftest import ENGINES
from tests.support.browser import log_in


@pytest.fixture
def app(store):
    with Perdure(store) as app:
        yield app


@pytest.mark.parametrize("store", ENGINES, indirect=True)
@pytest.mark.req("R145")
def test_an_approval_is_given_with_a_comment_from_now_and_the_task_goes_on(page, app):
    app.run_until_paused("checkout-42", agents.checkout, "ord_981")
    needs = page.get_by_role("region", name="Needs you")
    expect(needs).to_contain_text("Charge 42.00 EUR")
    expect(page).to_have_title(re.compile(r"^\(1\) "))
    needs.get_by_role("button", name="Add a comment").click()
    needs.get_by_role("textbox", name="Comment").fill("fine with me")
    needs.get_by_role("button", name="Approve").click()
    expect(needs).to_contain_text("Approved by you")
    assert app.run("checkout-42", agents.checkout, "ord_981") == "receipt-ord_981"
    assert "fine with me" in str([event.data for event in app.tasks.events("checkout-42")])
    expect(page).to_have_title(re.compile(r"^Now"))


@pytest.mark.parametrize("store", ENGINES, indirect=True)
def test_of_two_who_decide_one_counts_and_the_other_keeps_what_they_wrote(page, app, server, another, new_link):
    app.run_until_paused("checkout-42", agents.checkout, "ord_981")
    first, second = page, another()
    second.foreseen.append("409 (Conflict)")
    other = second.page()
    log_in(other, new_link())
    for each in (first, other):
        each.goto(f"{server.told['url']}/inbox")
        expect(each.get_by_role("button", name="Approve")).to_be_visible()
    held: list[Route] = []
    other.route("**/v1/inbox/*/approve", lambda route: held.append(route))
    other.get_by_role("textbox", name="Comment").fill("too expensive")
    with other.expect_request("**/v1/inbox/*/approve"):
        other.get_by_role("button", name="Approve").click()  # its request is on the way while the first one decides
    first.get_by_role("button", name="Approve").click()
    expect(first.get_by_text("Approved by you").first).to_be_visible()
    with other.expect_response(lambda answer: answer.status == 409):
        held[0].continue_()
    expect(other.get_by_text("Approved by").first).to_be_visible()
    expect(other.locator("pre", has_text="too expensive")).to_be_visible()

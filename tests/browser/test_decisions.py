"""Deciding: typed answers, edited approvals, questions that expire, effects whose outcome is not known."""

from __future__ import annotations

import json
import re
from datetime import UTC, datetime

import pytest
from playwright.sync_api import Page, expect

from tests.browser import agents
from tests.browser.conftest import ENGINES, Site
from tests.browser.scene import nightly_digest
from tests.support.browser import Watched

pytestmark = pytest.mark.parametrize("site", ENGINES, indirect=True, scope="module")


def open_question(seen: Watched, site: Site, id: str) -> Page:
    page = seen.page()
    page.goto(f"{site.url}/inbox/{site.app.inbox.page(task=id).items[0].id}")
    expect(page.get_by_role("heading", level=2)).to_be_visible()
    return page


def test_a_wrong_answer_is_told_at_its_field_and_a_right_one_is_given_as_it_was_typed(site, seen):
    site.app.run_until_paused("rollout", agents.roll_out, "1.4")
    page = open_question(seen, site, "rollout")
    replicas = page.get_by_label("replicas")
    expect(page.get_by_text("integer, 1 to 9")).to_be_visible()
    replicas.fill("abc")
    page.get_by_role("radio", name="half").check()
    page.get_by_label("city").fill("Bern")
    hosts = page.get_by_role("group", name="hosts")
    for host in ("a1", "b2", "c3"):
        if not hosts.get_by_role("checkbox", name="give a value").is_checked():
            hosts.get_by_role("checkbox", name="give a value").check()
        hosts.get_by_role("button", name="Add").click()
        hosts.get_by_role("textbox").last.fill(host)
    hosts.get_by_role("button", name="Remove: item 2").click()
    hosts.get_by_role("button", name="Move up: item 2").click()
    seen.foreseen.append("422 (Unprocessable")
    page.get_by_role("button", name="Answer").click()
    wrong = page.locator(".field").filter(has=replicas).locator(".misfit")
    expect(wrong).to_have_text("it is not an integer: 'abc'")
    expect(replicas).to_be_focused()
    assert site.app.tasks.get("rollout").status == "paused"
    page.reload()
    expect(replicas).to_have_value("abc")
    expect(page.get_by_role("radio", name="half")).to_be_checked()
    expect(page.get_by_label("city")).to_have_value("Bern")
    replicas.fill("3")
    page.get_by_label("window").fill("2026-11-20T09:30")
    page.get_by_role("button", name="As JSON").click()
    typed = json.loads(page.get_by_role("textbox", name="Answer").input_value())
    page.get_by_role("button", name="As a form").click()
    expect(replicas).to_have_value("3")
    page.get_by_role("button", name="Answer").focus()
    page.keyboard.press("Control+Enter")
    expect(page.locator(".decided")).to_contain_text("Answered by you")
    found = site.app.run("rollout", agents.roll_out, "1.4")
    assert found == agents.Rollout(
        3, "half", agents.Spot("Bern"), datetime(2026, 11, 20, 9, 30, tzinfo=UTC), ["c3", "a1"]
    )
    assert typed["replicas"] == 3 and typed["window"] == "2026-11-20T09:30:00.000Z"


def test_an_approval_can_be_edited_and_its_function_gets_the_edited_value(site, seen):
    site.app.run_until_paused("letter", agents.send_letter, "ada")
    site.app.run_until_paused("plain-yes", agents.wait_for_a_yes, "it")
    page = open_question(seen, site, "plain-yes")
    expect(page.get_by_role("button", name="Approve")).to_be_visible()
    expect(page.get_by_role("button", name="Edit, then approve…")).to_have_count(0)
    asked = site.app.inbox.page(task="plain-yes").items[0].id
    refused = page.evaluate(
        "async (id) => (await fetch(`/v1/inbox/${id}/approve`, {method: 'POST', headers: {'Content-Type':"
        " 'application/json', 'Perdure-Client': 'x'}, body: '{\"edited\": 1}'})).status",
        asked,
    )
    seen.foreseen.append("422 (Unprocessable")
    assert refused == 422
    page = open_question(seen, site, "letter")
    page.get_by_role("button", name="Edit, then approve…").click()
    page.get_by_label("subject").fill("Good news")
    page.get_by_label("lines").fill("7")
    page.get_by_role("group", name="urgent").get_by_label("yes").check()
    page.reload()
    page.get_by_role("button", name="Edit, then approve…").click()
    expect(page.get_by_label("subject")).to_have_value("Good news")
    page.get_by_role("button", name="Approve as edited").click()
    expect(page.locator(".decided")).to_contain_text("Approved by you")
    sent = site.app.run("letter", agents.send_letter, "ada")
    assert sent == {"subject": "Good news", "lines": 7, "urgent": True}


def test_a_question_that_expires_while_it_is_open_says_what_was_applied(site, seen):
    with site.worker():
        site.app.run_until_paused("contract", agents.sign, "the contract")
        page = open_question(seen, site, "contract")
        expect(page.locator(".question-full .expiry")).to_have_text(re.compile(r"it is rejected (in \d+ s|now)"))
        expect(page.locator(".decided")).to_contain_text("Expired")
        expect(page.get_by_role("button", name="Approve")).to_have_count(0)
        page.goto(f"{site.url}/tasks/contract")
        expect(page.locator(".situation")).to_contain_text("not signed")


@pytest.mark.parametrize("choice", ["it happened", "try again"])
def test_an_effect_cut_off_by_a_death_is_settled_by_a_person_and_done_once(site, seen, choice):
    id, number = f"invoice {choice}", f"{choice[:3]}-7731"
    (gate := site.world.with_name("world.open")).unlink(missing_ok=True)
    site.app.start(id, agents.invoice, number)
    page = seen.page()
    page.goto(f"{site.url}/tasks/{id}")
    with site.worker() as worker:
        expect(page.get_by_role("row").filter(has_text="send_invoice")).to_be_visible()
        while not site.deeds(f"invoice {number}"):
            page.evaluate("() => new Promise(requestAnimationFrame)")
        worker.kill()
    gate.touch()
    with site.worker():
        situation = page.locator(".situation")
        expect(situation.get_by_role("button", name="It happened…")).to_be_visible()
        page.goto(f"{site.url}/inbox?kind=effect")
        item = page.locator(".question-full")
        expect(item.get_by_role("heading", level=2)).to_have_text(f"Did send_invoice('{number}') happen?")
        key = site.deeds(f"invoice {number}")[0].split()[-1]
        expect(item).to_contain_text(key)
        expect(item.locator(".pairs")).to_contain_text("not known, as")
        if choice == "it happened":
            item.get_by_role("button", name="It happened…").click()
            item.get_by_label("What it returned").fill('"seen at the provider"')
            item.get_by_role("button", name="It happened").click()
        else:
            item.get_by_role("button", name="It did not: try again").click()
        expect(page.locator(".decided")).to_contain_text("Settled by you")
        page.goto(f"{site.url}/tasks/{id}/effects")
        expect(page.locator(".task-head")).to_contain_text("completed")
    effects = page.get_by_role("list", name="Effects")
    keys = [deed.split()[-1] for deed in site.deeds(f"invoice {number}")]
    if choice == "it happened":
        expect(effects).to_contain_text("settled:")
        expect(situation).to_contain_text("seen at the provider")
        assert keys == [key]
    else:
        expect(situation).to_contain_text(f"receipt-{number}")
        assert keys == [key, key], "a repeated effect has the key of its first try"


def test_each_reason_why_a_task_does_not_run_is_told_and_goes_when_it_is_gone(site, seen):
    page = seen.page()
    site.app.tasks.create("base", state={}).fail(ValueError("no"))
    site.app.run_until_paused("limited", agents.sync_issues, "perdure/perdure")
    site.app.start("newer", nightly_digest, "monday")
    site.app.start("queued", agents.nightly.options(queue="night"), "monday")
    site.app.tasks.create("after-base", state={}, depends_on=["base"])
    site.app.start("alone", agents.nightly, "monday")
    page.goto(f"{site.url}/tasks/alone")
    situation = page.locator(".situation")
    expect(situation).to_contain_text("no worker is running")
    expect(situation).to_contain_text("perdure worker")
    site.app.tasks.create("halted", state={})
    page.goto(f"{site.url}/tasks/halted")
    page.get_by_role("button", name="More").click()
    page.get_by_role("button", name="Kill switch…").click()
    page.get_by_role("dialog").get_by_role("textbox").fill("costs run away")
    page.get_by_role("dialog").get_by_role("button", name="Stop").click()
    expect(situation).to_contain_text(re.compile("Stopped: stopped by .*: costs run away"))
    with site.worker():
        page.goto(f"{site.url}/tasks/alone")
        expect(situation).to_contain_text("Completed: 'monday'")
        page.goto(f"{site.url}/tasks?sort=changed")
        for id, why in {
            "limited": "rate limit of github",
            "newer": "no live worker knows nightly_digest version 3",
            "queued": "no live worker takes tasks of queue 'night'",
            "after-base": "base (failed)",
            "halted": "costs run away",
        }.items():
            expect(page.get_by_role("row").filter(has_text=id).first).to_contain_text(why)

"""The journal as a timeline: waits are folded, retries are seen, and any number of calls is drawn."""

from __future__ import annotations

import re

import pytest
from playwright.sync_api import expect

from perdure.sync import Perdure
from tests.browser import agents

MOST_NODES = 1500


@pytest.fixture
def app(store):
    with Perdure(store) as app:
        yield app


def test_a_retried_call_is_found_by_a_key_and_shows_the_error_of_each_try(page, app, server):
    app.run_until_paused("checkout-42", agents.checkout, "ord_7")
    page.goto(f"{server.told['url']}/tasks/checkout-42")
    expect(page.get_by_role("row").filter(has_text="load_order('ord_7')")).to_be_visible()
    page.keyboard.press("e")
    inspector = page.get_by_role("complementary", name="summarise")
    expect(inspector).to_contain_text("3 tries")
    expect(inspector).to_contain_text("Flaky: summarise ord_7 answered 503")
    address = page.url
    page.keyboard.press("Escape")
    expect(inspector).to_have_count(0)
    page.goto(address)
    expect(inspector).to_contain_text("3 tries")


def test_time_that_only_waited_is_folded_and_can_be_shown(page, app, server):
    app.run_until_paused("checkout-42", agents.checkout, "ord_8")
    page.goto(f"{server.told['url']}/tasks/checkout-42")
    expect(page.locator(".fold-shade")).to_have_count(1)
    page.keyboard.press("i")
    expect(page).to_have_url(re.compile("idle=shown"))
    expect(page.locator(".fold-shade")).to_have_count(0)
    page.keyboard.press("j")
    page.keyboard.press("+")
    expect(page).to_have_url(re.compile("zoom="))
    another = page.context.new_page()  # the address holds the whole view
    another.goto(page.url)
    expect(another.get_by_role("complementary", name="load_order")).to_be_visible()
    labels = ".axis span"
    assert another.locator(labels).all_inner_texts() == page.locator(labels).all_inner_texts()
    page.keyboard.press("0")
    expect(page).not_to_have_url(re.compile("zoom="))


def test_a_view_at_the_end_follows_new_calls_and_another_is_told_of_them(page, app, server):
    def crawl_on() -> None:
        app.tasks.open("turns").signal("more", 1)
        app.run_until_paused("turns", agents.crawl_in_turns, 60, 4)

    app.run_until_paused("turns", agents.crawl_in_turns, 60, 4)
    page.goto(f"{server.told['url']}/tasks/turns")
    expect(page.get_by_role("row").filter(has_text="fetch(0)")).to_be_visible()
    calls = page.get_by_role("table")
    calls.focus()
    page.keyboard.press("End")
    expect(page.get_by_role("row").filter(has_text="fetch(59)")).to_be_visible()
    expect(page.locator(".pill", has_text="following")).to_be_visible()
    crawl_on()
    expect(page.get_by_role("row").filter(has_text="fetch(119)")).to_be_visible()
    page.keyboard.press("Home")
    expect(page.get_by_role("row").filter(has_text="fetch(0)")).to_be_visible()
    crawl_on()
    news = page.get_by_role("button", name=re.compile("61 new calls"))
    expect(news).to_be_visible()
    expect(page.get_by_role("row").filter(has_text="fetch(0)")).to_be_visible()  # nothing has moved
    news.click()
    expect(page.get_by_role("row").filter(has_text="fetch(179)")).to_be_visible()


def test_a_stretch_is_chosen_by_dragging_over_the_map_and_left_by_a_key(page, app, server):
    app.run_until_paused("checkout-42", agents.checkout, "ord_6")
    page.goto(f"{server.told['url']}/tasks/checkout-42")
    box = page.locator(".minimap").bounding_box()
    assert box is not None
    y = box["y"] + 20
    page.mouse.move(box["x"] + box["width"] * 0.4, y)
    page.mouse.down()
    page.mouse.move(box["x"] + box["width"] * 0.8, y)
    page.mouse.up()
    expect(page).to_have_url(re.compile(r"zoom=\d+-\d+"))
    expect(page.locator(".brush")).to_be_visible()
    page.keyboard.press("0")
    expect(page).not_to_have_url(re.compile("zoom="))


def test_ten_thousand_calls_are_drawn_and_one_of_them_is_found(page, app, server):
    app.run("crawl", agents.crawl, 10_000)
    page.goto(f"{server.told['url']}/tasks/crawl")
    expect(page.get_by_role("row").filter(has_text="fetch(0)")).to_be_visible()
    page.get_by_role("table").focus()
    page.keyboard.press("End")
    expect(page.get_by_role("row").filter(has_text="fetch(9999)")).to_be_visible()
    page.get_by_role("searchbox", name="Find a call").fill("fetch(7312)")
    expect(page).to_have_url(re.compile("find="))
    page.get_by_role("searchbox", name="Find a call").press("Enter")
    expect(page.get_by_role("row").filter(has_text="fetch(7312)")).to_be_visible()
    assert page.evaluate("document.querySelectorAll('*').length") <= MOST_NODES

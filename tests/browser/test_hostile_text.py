"""Text of agents is shown as text: on every page, in every field, whatever it says."""

from __future__ import annotations

import pytest
from playwright.sync_api import expect

from perdure.sync import Perdure
from tests.browser import agents
from tests.browser.hostile import HOSTILE, HOSTILE_VALUES


@pytest.fixture
def hostile_store(store):
    """Tasks whose every text is hostile."""
    with Perdure(store) as app:
        for number, text in enumerate(HOSTILE):
            short = "".join(part for part in text[:200] if part.isprintable()) or "-"
            task = app.tasks.create(
                f"{number:02} {short}"[:120].strip(),
                name=text[:200],
                description=text[:1000],
                agent=short[:100],
                tags={f"k{short}"[:60]: short[:100]},
                state={text[:100]: text, "values": list(HOSTILE_VALUES)},
            )
            if number % 3 == 0:
                task.pause(text)
            elif number % 3 == 1:
                task.fail(ValueError(text))
            else:
                task.complete({"result": text})
        app.run_until_paused("ask", agents.ask_hostile, HOSTILE[1], list(HOSTILE))
    return store


def test_no_text_of_an_agent_becomes_anything_but_text(hostile_store, page, server, watched):
    base = server.told["url"]
    title = page.title()
    for address in ("/", "/tasks", "/inbox", "/tasks?text=%3Cscript%3E&tag.%3Cimg%3E=%22%3E", "/tasks/ask"):
        page.goto(base + address)
        page.wait_for_load_state("load")
        expect(page.locator("main")).not_to_be_empty()
        page.wait_for_timeout(400)
    page.goto(f"{base}/tasks")
    page.locator("a.id").first.wait_for()
    hrefs = page.locator("a.id").evaluate_all("all => all.map((each) => each.getAttribute('href'))")
    assert len(hrefs) > 10
    for href in hrefs[:12]:
        page.goto(base + href)
        expect(page.get_by_role("heading", level=1)).to_be_visible()
    assert page.evaluate("({}).polluted") is None
    assert page.locator("main img, main script, main iframe, main object, main embed, main form").count() == 0
    assert all(href.startswith("/tasks/") for href in hrefs)
    assert title
    assert len(watched.context.pages) == 1


def test_characters_that_cannot_be_seen_are_shown(page, store, server):
    with Perdure(store) as app:
        app.tasks.open("t").pause("pay \u202e001\u202c EUR \x1b[31m")
    page.goto(f"{server.told['url']}/inbox")
    expect(page.get_by_role("heading", name="pay ⟨RLO⟩001⟨PDF⟩ EUR ␛[31m")).to_be_visible()

"""Text of agents is shown as text: on every page, in every field, whatever it says."""

from __future__ import annotations

import pytest
from playwright.sync_api import expect

from perdure.sync import Perdure
from tests.browser import agents
from tests.browser.hostile import HOSTILE, HOSTILE_VALUES, complain_hostile


@pytest.fixture
def hostile_store(store):
    """Tasks whose every text is hostile: ids, names, states, labels, questions, comments, errors, progress."""
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
            task.checkpoint({text[:100]: [text[:200]]}, label=short[:60])
            task.mark_progress(short[:100], done=1, total=3)
            if number % 4 == 0:
                task.pause(text)
            elif number % 4 == 1:
                task.fail(type(f"E{number}", (ValueError,), {})(text))
            elif number % 4 == 2:
                task.pause(text, reason="human_approval")
                task.reject(by=short[:60], comment=text[:1000])
            else:
                task.complete({"result": text})
        for number, text in enumerate(HOSTILE[:12]):
            name = "".join(part for part in text[:40] if part.isprintable() and part not in "/\\")
            app.schedule(f"s{number} {name}".strip(), agents.crawl, 3).cron("0 9 * * 1", tz="UTC")
        app.run_until_paused("complain", complain_hostile, [text[:2000] for text in HOSTILE[:30]])
        for text in HOSTILE[:6]:
            app.webhooks.make("https://93.184.215.14/in", description=text)
        app.run_until_paused("ask", agents.ask_hostile, HOSTILE[1], list(HOSTILE))
    return store


NAME_A_KEY = """async (names) => { for (const name of names) await fetch("/v1/api-keys", {
  method: "POST", headers: {"Content-Type": "application/json", "Perdure-Client": "x"},
  body: JSON.stringify({name, scopes: ["tasks:read"]})}); }"""
TABS = ("history", "state", "checkpoints", "checkpoints/1", "family", "attempts", "audit")


@pytest.mark.threat("T8")
def test_no_text_of_an_agent_becomes_anything_but_text(hostile_store, page, server, watched):
    base = server.told["url"]
    watched.foreseen += ["422 (Unprocessable", "400 (Bad Request)"]  # keys have no such names
    page.evaluate(NAME_A_KEY, list(HOSTILE[:12]))

    def look(address: str) -> None:
        page.goto(base + address)
        expect(page.locator("main")).not_to_be_empty()
        expect(page.locator(".skeleton")).to_have_count(0)
        assert page.locator("main img, main script, main iframe, main object, main embed, main form").count() == 0
        assert page.evaluate("({}).polluted") is None

    for address in ("/", "/inbox", "/tasks?text=%3Cscript%3E&tag.%3Cimg%3E=%22%3E", "/tasks/ask", "/tasks/ask?call=2"):
        look(address)
    for query in ("", "?call=2", "?call=4", "?as=code", "?find=%3Cscript%3E"):
        look(f"/tasks/complain{query}")
    for tab in ("effects", "cost"):
        look(f"/tasks/complain/{tab}")
    for part in ("schedules", "keys", "audit", "workers", "webhooks"):
        look(f"/operate/{part}")
    look("/tasks")
    page.locator("a.id").first.wait_for()
    hrefs = page.locator("a.id").evaluate_all("all => all.map((each) => each.getAttribute('href'))")
    assert len(hrefs) > 10
    assert all(href.startswith("/tasks/") for href in hrefs)
    for number, href in enumerate(hrefs[:14]):
        look(f"{href}/{TABS[number % len(TABS)]}")
        expect(page.get_by_role("heading", level=1)).to_be_visible()
    assert len(watched.context.pages) == 1


def test_characters_that_cannot_be_seen_are_shown(page, store, server):
    with Perdure(store) as app:
        app.tasks.open("t").pause("pay \u202e001\u202c EUR \x1b[31m")
    page.goto(f"{server.told['url']}/inbox")
    expect(page.get_by_role("heading", name="pay ⟨RLO⟩001⟨PDF⟩ EUR ␛[31m")).to_be_visible()

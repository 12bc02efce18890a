"""What a task has stored, for reading: its state as a tree, of any size."""

from __future__ import annotations

import re

import pytest
from playwright.sync_api import expect

from perdure.sync import Perdure

MOST_NODES = 1500


@pytest.fixture
def app(store):
    with Perdure(store) as app:
        yield app


def test_a_state_is_a_tree_with_counts_that_is_opened_by_keys_and_searched(page, app, server):
    task = app.tasks.open("review")
    files = [{"name": f"auth/{n}.py", "status": "open", "notes": {"by": {"who": f"ada {n}"}}} for n in range(30)]
    task.checkpoint({"files": files, "phase": "reading"}, plan=["read", "write"])
    page.goto(f"{server.told['url']}/tasks/review/state")
    tree = page.get_by_role("tree")
    files_row = page.get_by_role("treeitem").filter(has_text="files")
    expect(files_row).to_contain_text("30 items")
    tree.focus()
    page.keyboard.press("ArrowDown")
    expect(page).to_have_url(re.compile("at="))
    page.get_by_role("searchbox", name="Find in this value").fill("ada 17")
    page.get_by_role("searchbox", name="Find in this value").press("Enter")
    found = page.get_by_role("treeitem", selected=True)
    expect(found).to_contain_text('"ada 17"')
    expect(page.locator(".node-bar")).to_contain_text("files[17].notes.by.who")
    page.reload()
    expect(found).to_contain_text('"ada 17"')
    page.get_by_role("button", name="Plan").click()
    expect(tree).to_contain_text('"write"')


def test_a_state_of_five_megabytes_opens_folded_and_loads_what_is_opened(page, app, server):
    rows = [{"id": n, "text": "x" * 250, "inner": {"deep": {"n": n}}} for n in range(17_000)]
    log = "".join(f"line {n}\n" for n in range(9000))
    app.tasks.open("big").checkpoint({"rows": rows, "log": log})
    sizes = []
    page.on("response", lambda answer: sizes.append(int(answer.headers.get("content-length", 0))))
    page.goto(f"{server.told['url']}/tasks/big/state")
    row = page.get_by_role("treeitem")
    expect(row.filter(has_text="rows")).to_contain_text("17,000 items")
    assert max(sizes) < 200_000, "only outlines are sent"
    row.filter(has_text="log").get_by_role("button", name=f"show all {len(log):,}").click()
    expect(page.get_by_role("region", name="log")).to_contain_text("line 8999")
    row.filter(has_text="rows").click()
    row.filter(has_text="show 16,900 more items").click()
    expect(row.filter(has_text=re.compile(r"^\s*101"))).to_have_count(1)
    page.get_by_role("tree").focus()
    page.keyboard.press("End")
    expect(row.filter(has_text="16999")).to_be_visible()
    assert page.evaluate("document.querySelectorAll('*').length") <= MOST_NODES


def test_a_task_without_a_state_says_so(page, app, server):
    app.tasks.open("empty")
    page.goto(f"{server.told['url']}/tasks/empty/state")
    expect(page.get_by_text("No state is stored")).to_be_visible()


def test_the_state_a_task_began_with_is_shown_before_its_first_checkpoint(page, app, server):
    app.tasks.open("begun", state={"phase": "analysis"})
    page.goto(f"{server.told['url']}/tasks/begun/state")
    expect(page.get_by_text("analysis")).to_be_visible()

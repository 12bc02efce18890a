"""One store that every picture is taken of: agents at work, waiting, stuck, ended; some need a person."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager

from perdure import durable, effect, progress, step
from perdure.sync import Perdure
from tests.browser import agents
from tests.support.server_processes import started


@effect
async def send_newsletter(list_name: str, issue: int) -> str:
    raise ConnectionError("the connection was closed after the request was sent")


@durable
async def newsletter(list_name: str, issue: int) -> str:
    return await send_newsletter(list_name, issue)


@durable(version=3)
async def nightly_digest(day: str) -> str:
    return day


@step
async def fetch_pages(pages: int) -> None:
    await progress.mark(done=pages * 5 // 8, total=pages)
    await asyncio.Event().wait()


@durable
async def crawl_docs(pages: int) -> int:
    for page in range(12):
        await agents.fetch(page)
    await fetch_pages(pages)
    return pages


app = agents.app  # a worker of this module knows all of these


@contextmanager
def set_scene(store: str) -> Iterator[None]:
    """The store with everything in it; a worker works on it as long as the block lasts."""
    with Perdure(store) as app:
        for order in ("40", "41"):
            app.run_until_paused(f"checkout-{order}", agents.checkout, f"ord_{order}")
            app.inbox.approve(app.inbox.page(task=f"checkout-{order}").items[0].id, by="ada")
            app.run(f"checkout-{order}", agents.checkout, f"ord_{order}")
        app.run_until_paused("checkout-42", agents.checkout, "ord_42")
        app.run_until_paused("migrate-prod", agents.migrate, "eu-2")
        app.run_until_paused("letter-to-ada", agents.send_letter, "ada")
        app.run_until_paused("newsletter-11", newsletter, "readers", 11)
        app.run_until_paused("rate-limited-sync", agents.sync_issues, "perdure/perdure")
        app.run_until_paused("launch-apollo", agents.launch, "apollo")
        review = app.tasks.create("review-auth", name="Review of the auth package", agent="reviewer", state={})
        files = [{"name": f"auth/{name}.py", "status": "open"} for name in ("keys", "login", "sessions", "tokens")]
        review.checkpoint({"files": files, "phase": "reading", "findings": []}, label="began")
        files[0]["status"] = "done"
        found = [{"file": "auth/keys.py", "line": 41, "what": "compares a secret with =="}]
        review.checkpoint({"files": files, "phase": "reading", "findings": found})
        files.insert(0, {"name": "auth/__init__.py", "status": "new"})
        review.checkpoint({"files": files, "phase": "writing", "findings": found}, label="half")
        app.start("nightly-digest", nightly_digest.options(queue="night"), "2026-11-17")
        for number in range(24):
            imported = app.tasks.create(f"import-{number:03}", state=None, tags={"batch": "november"}, agent="importer")
            imported.complete(number)
        app.start("crawl-docs", crawl_docs, 612)
        app.start("import-legacy", agents.import_legacy, 6)
        with started(store, "worker", "tests.browser.scene:app"):
            yield

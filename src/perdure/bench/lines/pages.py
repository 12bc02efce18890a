"""The dashboard in a browser: the time until it is drawn, its bytes, requests and memory, and scrolling 10,000 calls.

Chromium without a window or a graphics card, so scrolling is slower than in a person's browser. Beside each stands a
page of the same server without a script. Needs playwright and Chromium, which the tests install; without them there are
no figures.
"""

from __future__ import annotations

import asyncio
import json
import os
import shutil
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from importlib.util import find_spec
from statistics import median, quantiles
from typing import Any

from perdure._app import Perdure
from perdure._durable import durable, step
from perdure.bench.figures import Budget, Figure
from perdure.bench.served import Address, make_key, serving
from perdure.bench.stage import Plot
from perdure.errors import StoreUnavailable

_PATIENCE_MS = 60_000.0
_VIEW = {"width": 1440, "height": 900}
# Notes the moment a selector first matches, by the browser's own clock, so that the driver is not measured.
_NOTE = """(selector) => {
  const look = () => { if (document.querySelector(selector)) window.__drawn ??= performance.now(); };
  new MutationObserver(look).observe(document, {childList: true, subtree: true});
}"""
_DRAWN = """new Promise((tell) => {
  const look = () => (window.__drawn ? tell(window.__drawn) : requestAnimationFrame(look));
  look();
})"""
_FRAMES = """(steps) => new Promise((tell) => {
  const box = document.querySelector(".calls"), frames = [];
  let before = performance.now(), left = steps;
  const draw = (now) => {
    frames.push(now - before);
    before = now;
    box.scrollTop += 260;
    if (left-- > 0) requestAnimationFrame(draw); else tell(frames.slice(1));
  };
  requestAnimationFrame(draw);
})"""
_NOW, _CALL = ".sentence b", ".call"


@step
async def _fetch(page: int) -> str:
    return f"{page * 2654435761 % 2**32:08x}"


@durable
async def _crawl(pages: int) -> int:
    for page in range(pages):
        await _fetch(page)
    return pages


async def pages(plot: Plot, quick: bool) -> list[Figure]:
    """Pages in Chromium; none where it or playwright is not installed."""
    chromium = os.environ.get("PERDURE_CHROMIUM") or shutil.which("chromium") or shutil.which("chromium-browser")
    if find_spec("playwright") is None or chromium is None or find_spec("uvicorn") is None:
        return []
    calls = 1_000 if quick else 10_000
    async with plot.app() as app:
        await _fill(app, calls)
    key = await make_key(plot.url)
    with serving(plot.url, key) as address:
        async with _browser(chromium) as browser:
            session = await _session(browser, plot.url)
            rounds = 3 if quick else 7
            colds = [await _visit(browser, address, session) for _ in range(rounds)]
            warm = await _warm(browser, address, session, rounds)
            timeline = await _timeline(browser, address, session, 60 if quick else 300)
    return [*_of_now(colds, warm), *_of_timeline(timeline, calls)]


# ── lines ─────────────────────────────────────────────────────────────────────────────


def _of_now(colds: list[dict[str, float]], warm: float) -> list[Figure]:
    def middle(name: str) -> float:
        return median(cold[name] for cold in colds)

    floor = middle("bare")

    def figure(what: str, unit: str, value: float, most: float, beside: float | None = None) -> Figure:
        budget = Budget(most, f"at most {most:g} {unit}".strip())
        is_floor = "a page of the same server without a script" if beside is not None else ""
        return Figure(name="pages", what=what, unit=unit, figure=value, floor=beside, floor_is=is_floor, budget=budget)

    return [
        figure("first paint, cold", "ms", middle("paint"), 300, floor),
        figure("Now drawn with its data, cold", "ms", middle("drawn"), 600, floor),
        figure("Now drawn with its data, warm", "ms", warm, 200, floor),
        figure("loaded for Now, cold", "kB", middle("kilobytes"), 200),
        figure("requests for Now, cold", "", middle("requests"), 20),
        figure("JavaScript heap after Now", "MB", middle("heap"), 12),
    ]


def _of_timeline(told: dict[str, Any], calls: int) -> list[Figure]:
    what = f"a journal of {calls:,} calls"
    frames = sorted(told["frames"])
    slow = quantiles(frames, n=20)[18]
    return [
        Figure(
            name="pages", what=f"{what}, drawn", unit="ms", figure=told["drawn"], budget=Budget(800, "at most 800 ms")
        ),
        Figure(
            name="pages",
            what=f"{what}, frame while scrolling, p95",
            unit="ms",
            figure=slow,
            budget=Budget(50, "at most 50 ms"),
            detail={"p50": median(frames)},
        ),
        Figure(
            name="pages",
            what=f"{what}, JavaScript heap",
            unit="MB",
            figure=told["heap"],
            budget=Budget(30, "at most 30 MB"),
        ),
    ]


async def _visit(browser: Any, address: Address, session: Any) -> dict[str, float]:
    """Open Now in a browser with an empty cache."""
    async with _context(browser, session) as context:
        page = await context.new_page()
        await page.goto(f"{address.url}/healthz")
        bare = await page.evaluate("performance.now()")
    async with _context(browser, session) as context:
        page = await context.new_page()
        asked: list[Any] = []

        def note(request: Any) -> None:  # playwright does not accept a bound method
            asked.append(request)

        page.on("requestfinished", note)
        drawn = await _drawn(page, address.url, _NOW)
        sizes = [await request.sizes() for request in asked]
        return {
            "bare": bare,
            "paint": await page.evaluate("performance.getEntriesByName('first-contentful-paint')[0].startTime"),
            "drawn": drawn,
            "requests": len(asked),
            "kilobytes": sum(size["responseBodySize"] + size["responseHeadersSize"] for size in sizes) / 1000,
            "heap": await _heap(context, page),
        }


async def _warm(browser: Any, address: Address, session: Any, rounds: int) -> float:
    async with _context(browser, session) as context:
        page = await context.new_page()
        await _drawn(page, address.url, _NOW)
        return median([await _drawn(page, address.url, _NOW) for _ in range(rounds)])


async def _timeline(browser: Any, address: Address, session: Any, steps: int) -> dict[str, Any]:
    async with _context(browser, session) as context:
        page = await context.new_page()
        await _drawn(page, address.url, _NOW)
        drawn = await _drawn(page, f"{address.url}/tasks/long", _CALL)
        frames = await page.evaluate(_FRAMES, steps)
        return {"drawn": drawn, "frames": frames, "heap": await _heap(context, page)}


# ── how ──────────────────────────────────────────────────────────────────────────────────────────


async def _fill(app: Perdure, calls: int) -> None:
    for number in range(40):
        task = await app.tasks.create(f"filler-{number}", state={"n": number})
        if number % 4:
            await task.complete({"n": number})
        elif number % 8:
            await task.pause("Go on?", reason="human_input")
    await app.run("long", _crawl, calls)


async def _drawn(page: Any, url: str, selector: str) -> float:
    """The milliseconds from the beginning of the navigation until the selector matches."""
    await page.add_init_script(f"({_NOTE})({json.dumps(selector)})")
    await page.goto(url)
    drawn = float(await page.evaluate(_DRAWN))
    await page.wait_for_load_state("load")
    return drawn


async def _heap(context: Any, page: Any) -> float:
    debugger = await context.new_cdp_session(page)
    await debugger.send("HeapProfiler.collectGarbage")
    used = await debugger.send("Runtime.getHeapUsage")
    return float(used["usedSize"]) / 1e6


@asynccontextmanager
async def _browser(chromium: str) -> AsyncIterator[Any]:
    from playwright.async_api import async_playwright

    flags = ["--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--no-first-run"]
    async with async_playwright() as playwright:
        browser = await playwright.chromium.launch(executable_path=chromium, args=flags)
        try:
            yield browser
        finally:
            await browser.close()


@asynccontextmanager
async def _context(browser: Any, session: Any) -> AsyncIterator[Any]:
    """A new browser profile, with an empty cache."""
    context = await browser.new_context(viewport=_VIEW, storage_state=session)
    try:
        yield context
    finally:
        await context.close()


async def _session(browser: Any, store: str) -> Any:
    """The cookies that a browser has after it has opened a printed link."""
    command = [sys.executable, "-m", "perdure", "link", "--json"]
    asked = await asyncio.create_subprocess_exec(
        *command, stdout=asyncio.subprocess.PIPE, env={**os.environ, "PERDURE_URL": store}
    )
    told, _ = await asked.communicate()
    if asked.returncode:
        raise StoreUnavailable("no link to the server could be made")
    async with _context(browser, None) as context:
        page = await context.new_page()
        await page.goto(json.loads(told)["link"])
        await page.wait_for_url(lambda url: "/link" not in url, timeout=_PATIENCE_MS)
        return await context.storage_state()

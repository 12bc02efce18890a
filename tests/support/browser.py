"""The distribution's Chromium, without a window, and everything a page does that it should not."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal
from urllib.parse import urlsplit

import pytest
from playwright.sync_api import (
    Browser,
    BrowserContext,
    ConsoleMessage,
    Dialog,
    Page,
    Request,
    ViewportSize,
    sync_playwright,
)

FLAGS = (
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--disable-dev-shm-usage",
)
PATIENCE = 120_000.0  # milliseconds that a page may take to show something
WIDE: ViewportSize = {"width": 1440, "height": 900}
PHONE: ViewportSize = {"width": 320, "height": 720}

# Tells the test of every violation of the policy, also of one that the console does not mention.
_WATCH = """
window.__violations = [];
document.addEventListener("securitypolicyviolation", (event) =>
  window.__violations.push(`${event.violatedDirective} ${event.blockedURI}`));
"""


def chromium_path() -> str | None:
    return os.environ.get("PERDURE_CHROMIUM") or shutil.which("chromium") or shutil.which("chromium-browser")


@contextmanager
def running_chromium() -> Iterator[Browser]:
    """One browser for many tests. Without Chromium the test is skipped, except in CI."""
    path = chromium_path()
    if path is None:
        if "CI" in os.environ:
            pytest.fail("Chromium is not installed: run tools/install_chromium.sh")
        pytest.skip("Chromium is not installed")
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=path, args=list(FLAGS), headless=True)
        try:
            yield browser
        finally:
            browser.close()


@dataclass
class Watched:
    """A context whose pages are listened to. `close` fails the test for everything that was not foreseen."""

    context: BrowserContext
    origin: str
    troubles: list[str] = field(default_factory=list)
    foreseen: list[str] = field(default_factory=list)  # parts of troubles that the test wants

    def listen(self) -> None:
        self.context.set_default_timeout(PATIENCE)
        self.context.add_init_script(_WATCH)
        self.context.on("console", self._hear)
        self.context.on("weberror", lambda error: self.troubles.append(f"error {error.error}"))
        self.context.on("request", self._see)
        self.context.on("dialog", self._refuse)

    def _hear(self, message: ConsoleMessage) -> None:
        if message.type in ("error", "warning"):
            self.troubles.append(f"console {message.text}")

    def _refuse(self, dialog: Dialog) -> None:
        self.troubles.append(f"dialog {dialog.message}")
        dialog.dismiss()

    def _see(self, request: Request) -> None:
        where = urlsplit(request.url)
        if where.scheme not in ("data", "blob") and f"{where.scheme}://{where.netloc}" != self.origin:
            self.troubles.append(f"request {request.url}")

    def page(self) -> Page:
        return self.context.new_page()

    def unforeseen(self) -> list[str]:
        violations = [
            f"policy {each}"
            for page in self.context.pages
            for frame in page.frames
            for each in frame.evaluate("window.__violations ?? []")
        ]
        return [each for each in [*self.troubles, *violations] if not any(part in each for part in self.foreseen)]


@contextmanager
def watching(browser: Browser, origin: str, *, theme: str = "light", **options: Any) -> Iterator[Watched]:
    """A context of its own: cookies, storage and listeners. It must end without a trouble."""
    options = {"viewport": WIDE, "color_scheme": theme, "timezone_id": "UTC", "locale": "en-GB", **options}
    context = browser.new_context(**options)
    # A network that comes or goes on this machine ends the requests of a browser; that says nothing about the page.
    watched = Watched(context, origin, foreseen=["net::ERR_NETWORK_CHANGED"])
    watched.listen()
    try:
        yield watched
        found = watched.unforeseen()
        assert not found, found
    finally:
        context.close()


def log_in(page: Page, link: str) -> None:
    """Open a printed link, and wait until the dashboard stands."""
    page.goto(link)
    page.wait_for_url(lambda url: "/link" not in url)
    page.get_by_role("navigation", name="Pages").wait_for()


def show_as(page: Page, folder: Path, name: str) -> None:
    """Pictures of a page in both themes and on a phone, for people to look at."""
    folder.mkdir(parents=True, exist_ok=True)
    themes: tuple[Literal["light", "dark"], ...] = ("light", "dark")
    for theme in themes:
        page.emulate_media(color_scheme=theme)
        page.screenshot(path=str(folder / f"{name}-{theme}.png"))
    page.set_viewport_size(PHONE)
    page.screenshot(path=str(folder / f"{name}-320.png"))
    page.set_viewport_size(WIDE)
    page.emulate_media(color_scheme="light")

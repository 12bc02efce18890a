"""The site is built without a warning, its links lead somewhere, and it asks no other host for anything."""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from html.parser import HTMLParser
from pathlib import Path
from typing import Literal
from urllib.parse import unquote, urlsplit
from xml.etree import ElementTree

import pytest
from playwright.sync_api import Page as Tab
from playwright.sync_api import ViewportSize, expect

from tests.docs.pages import PAGES, ROOT
from tests.support.browser import running_chromium
from tests.support.requirements import requirement_titles


@dataclass
class Page(HTMLParser):
    """What a page offers and asks for."""

    links: list[str] = field(default_factory=list)
    fetched: list[str] = field(default_factory=list)
    anchors: set[str] = field(default_factory=set)

    def __post_init__(self) -> None:
        super().__init__()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = {name: value for name, value in attrs if value}
        self.anchors |= {given[name] for name in ("id", "name") if name in given}
        if tag == "a" and "href" in given:
            self.links.append(given["href"])
        elif tag in {"link", "script", "img", "source", "iframe", "video", "object"}:
            self.fetched += [given[name] for name in ("href", "src", "data", "srcset") if name in given]


def read(file: Path) -> Page:
    page = Page()
    page.feed(file.read_text(encoding="utf-8"))
    return page


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> dict[Path, Page]:
    folder = tmp_path_factory.mktemp("site")
    command = [sys.executable, "-m", "sphinx", "-W", "--keep-going", "-q", "-d", str(folder / "doctrees")]
    built = subprocess.run(
        [*command, "-b", "html", str(ROOT / "docs"), str(folder / "html")],
        capture_output=True,
        text=True,
        check=False,
        timeout=240,
    )
    assert built.returncode == 0, built.stdout + built.stderr
    return {file: read(file) for file in (folder / "html").rglob("*.html")}


def test_the_site_has_every_page_and_each_link_and_anchor_leads_somewhere(site: dict[Path, Page]) -> None:
    top = next(file for file in site if file.name == "search.html").parent
    wanted = {page.relative_to(ROOT / "docs").with_suffix(".html") for page in PAGES if page.parent != ROOT}
    assert wanted <= {file.relative_to(top) for file in site}
    assert (top / "searchindex.js").exists()
    broken = []
    for file, page in site.items():
        for link in page.links:
            target = urlsplit(link)
            if target.scheme or target.netloc:
                continue
            found = (file.parent / unquote(target.path)).resolve() if target.path else file
            is_there = found.exists() and (
                not target.fragment or found.suffix != ".html" or unquote(target.fragment) in site[found].anchors
            )
            if not is_there:
                broken.append(f"{file.relative_to(top)}: {link}")
    assert broken == []


def test_every_requirement_is_shown_with_the_tests_that_name_it(site: dict[Path, Page]) -> None:
    page = next(file for file in site if file.match("project/requirements.html")).read_text(encoding="utf-8")
    assert set(re.findall(r"<p>(R\d+)</p>", page)) == set(requirement_titles())
    assert "nothing yet" not in page


def test_no_page_asks_another_host_for_anything(site: dict[Path, Page]) -> None:
    asked = [
        f"{file.name}: {address}" for file, page in site.items() for address in page.fetched if urlsplit(address).netloc
    ]
    assert asked == []
    top = next(file for file in site if file.name == "search.html").parent
    styles = "".join(file.read_text(encoding="utf-8") for file in top.rglob("*.css"))
    assert "url(http" not in styles and "@import" not in styles
    assert "prefers-color-scheme: dark" in styles.replace("prefers-color-scheme:dark", "prefers-color-scheme: dark")


READ = ("index", "tutorial/1-write-kill-resume", "reference/api", "explanation/comparison", "project/changelog")


@pytest.fixture(scope="module")
def reader(site: dict[Path, Page]) -> Iterator[Callable[..., Tab]]:
    """Opens a page of the site in a browser that has no network."""
    top = next(file for file in site if file.name == "search.html").parent
    with running_chromium() as chromium:

        def opened(address: str, look: Literal["light", "dark"] = "light", width: int = 1280) -> Tab:
            size: ViewportSize = {"width": width, "height": 800}
            tab = chromium.new_context(offline=True, color_scheme=look, viewport=size).new_page()
            tab.goto(f"file://{top}/{address}")
            return tab

        yield opened


def test_a_word_is_found_without_a_network(reader: Callable[..., Tab]) -> None:
    tab = reader("index.html")
    tab.get_by_placeholder("Search").fill("idempotency_key")
    tab.get_by_placeholder("Search").press("Enter")
    expect(tab.get_by_text("search finished, found")).to_be_visible()
    tab.get_by_role("link", name="2. Step or effect").last.click()
    expect(tab.get_by_role("heading", level=1)).to_contain_text("Step or effect")


@pytest.mark.parametrize("look", ["light", "dark"])
def test_pages_fit_a_narrow_screen_and_can_be_read_by_everyone(
    reader: Callable[..., Tab], look: Literal["light", "dark"]
) -> None:
    grounds = set()
    for name in READ:
        tab = reader(f"{name}.html", look, 320)
        assert tab.evaluate("document.documentElement.scrollWidth") == 320, name
        grounds.add(tab.evaluate("getComputedStyle(document.body).backgroundColor"))
        tab.add_script_tag(path=ROOT / "tests" / "browser" / "vendor" / "axe.min.js")
        found = tab.evaluate("async () => (await axe.run('article', {runOnly: ['wcag2a', 'wcag2aa']})).violations")
        told = {(one["id"], node["html"][:200]) for one in found for node in one["nodes"]}
        assert told == set(), name
    (ground,) = grounds
    assert (ground == "rgb(255, 255, 255)") == (look == "light")


def test_comments_for_the_tests_are_not_in_the_site(site: dict[Path, Page]) -> None:
    text = "".join(file.read_text(encoding="utf-8") for file in site)
    assert "<!-- given" not in text and "<!-- run" not in text


def test_pictures_fetch_nothing_and_follow_the_readers_look() -> None:
    for picture in (ROOT / "docs" / "pictures").glob("*.svg"):
        text = picture.read_text(encoding="utf-8")
        root = ElementTree.fromstring(text)
        assert {name for element in root.iter() for name in element.attrib if "href" in name or name == "src"} == set()
        assert "url(" not in text and "@import" not in text and "<script" not in text
        assert "prefers-color-scheme: dark" in text

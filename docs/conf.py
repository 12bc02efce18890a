"""Settings of the documentation site: `make docs` builds it from the Markdown in this folder.

The pages are plain Markdown, so that they also read well where they are stored. What the site needs besides is added
here: the navigation is made from the lists of index.md, the first page begins with the README, the changelog and its
like are pages too, and comments for the tests are left out. Nothing is fetched from another host, neither while the
site is built nor when it is read.
"""

from __future__ import annotations

import os
import re
import sys
import tomllib
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent
ROOT = HERE.parent
# Files beside this folder that are pages of the site as well. The page in this folder only points to its file.
FILES = {"CHANGELOG.md": "project/changelog", "SECURITY.md": "project/security", "README.md": "index"} | {
    "ARCHITECTURE.md": "project/architecture",
    "CONTRIBUTING.md": "project/contributing",
}

REQUIREMENTS = "project/requirements"
MADE_FROM_MARKS = (
    "Each line of `docs/requirements.toml`, with the tests that name it. `make test` says which of them have a passing "
    "test, and `make test ARGS=--write-docs` writes this page of the tests that passed."
)

sys.path[:0] = [str(ROOT), str(ROOT / "tools")]
import requirements_table  # noqa: E402

project = "perdure"
release = tomllib.loads((HERE.parent / "pyproject.toml").read_text(encoding="utf-8"))["project"]["version"]
copyright = "the authors of perdure"

extensions = ["myst_parser"]
exclude_patterns = ["pictures/README.md"]
myst_heading_anchors = 4
myst_enable_extensions = ["attrs_inline"]
nitpicky = True
show_warning_types = True
# Console blocks end in "…", and JSON with an ellipsis is still best shown as JSON.
suppress_warnings = ["misc.highlighting_failure"]

html_theme = "furo"
html_title = f"perdure {release}"
html_copy_source = False
html_show_sphinx = False
html_static_path = ["_static"]
html_css_files = ["site.css"]
html_js_files = [("site.js", {"defer": "defer"})]
html_logo = html_favicon = "../src/perdure/dashboard/assets/css/mark.svg"
html_theme_options = {
    "light_css_variables": {"color-brand-primary": "#1d5fc4", "color-brand-content": "#1d5fc4"},
    "dark_css_variables": {"color-brand-primary": "#7fb2ff", "color-brand-content": "#7fb2ff"},
}
pygments_style = "a11y-high-contrast-light"
pygments_dark_style = "github-dark"

_LINK = re.compile(r"\]\((?!\w+:|#)([\w./-]+)(#[\w-]+)?\)")
_COMMENT = re.compile(r"<!--.*?-->\n?", re.DOTALL)
_SECTION = re.compile(r"^## (.+?)\n(.*?)(?=^## |\Z)", re.DOTALL | re.MULTILINE)
_PAGE = re.compile(r"\]\(((?!\.\.)[\w/.-]+)\.md\)")


def with_navigation(index: str) -> str:
    """The index page with one hidden table of contents for each of its sections."""
    seen: set[str] = set()
    for caption, body in _SECTION.findall(index):
        pages = [page for page in dict.fromkeys(_PAGE.findall(body)) if page not in seen]
        seen.update(pages)
        if pages:
            listed = "\n".join(pages)
            index += f"\n```{{toctree}}\n:hidden:\n:caption: {caption}\n\n{listed}\n```\n"
    return index


def with_links(text: str, folder: Path, page: str) -> str:
    """The links of a text that stands in a folder, for a page: to pages, and to other files as they are."""
    here = (HERE / page).parent

    def linked(link: re.Match[str]) -> str:
        target, anchor = (folder / link[1]).resolve(), link[2] or ""
        name = target.relative_to(ROOT).as_posix()
        if name in FILES:
            target = HERE / f"{FILES[name]}.md"
        is_inside = target.is_relative_to(HERE)
        return f"]({'' if is_inside else 'path:'}{os.path.relpath(target, here)}{anchor if is_inside else ''})"

    return _LINK.sub(linked, text)


def prepare(_app: Any, page: str, source: list[str]) -> None:
    text, folder = source[0], (HERE / page).parent
    outside = next((file for file, shown in FILES.items() if shown == page), None)
    if page == "index":
        pitch = (ROOT / "README.md").read_text(encoding="utf-8").partition("## Where to go")[0]
        body = with_navigation("## " + with_links(text, folder, page).partition("\n## ")[2])
        text = f"{with_links(pitch, ROOT, page)}\n{body}"
    elif page == REQUIREMENTS:
        text = requirements_table.page(requirements_table.named(), MADE_FROM_MARKS)
    elif outside is not None:
        text = with_links((ROOT / outside).read_text(encoding="utf-8"), ROOT, page)
    else:
        text = with_links(text, folder, page)
    source[0] = _COMMENT.sub("", text)
    if page == "decisions/README":
        source[0] += "\n```{toctree}\n:hidden:\n:glob:\n\n0*\n```\n"


def setup(app: Any) -> None:
    app.connect("source-read", prepare)

"""The files of the dashboard, read once: joined where the browser needs several, and one hash over all of them.

The hash is part of every asset's address, so that a browser may keep an asset for good and an upgrade changes all
addresses at once.
"""

from __future__ import annotations

import gzip
import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from importlib.resources import files
from importlib.resources.abc import Traversable

from perdure.dashboard.chunks import PAGES, Chunks

_MEDIA = {
    ".js": "text/javascript; charset=utf-8",
    ".mjs": "text/javascript; charset=utf-8",
    ".css": "text/css; charset=utf-8",
    ".svg": "image/svg+xml",
    ".woff2": "font/woff2",
    ".json": "application/json",
}
_PACKED = (".woff2",)  # gzip would make them larger
_SHEETS_FIRST = ("css/tokens.css", "css/base.css")  # what the others build on
DOCUMENTS = ("index.html", "terminal.html")


@dataclass(frozen=True, slots=True)
class Asset:
    """One file as it is sent."""

    content: bytes
    squeezed: bytes | None  # under gzip
    media: str


@dataclass(frozen=True, slots=True)
class Assets:
    """All files of the dashboard."""

    tree: str  # hash over all names and bytes
    by_name: Mapping[str, Asset]  # "app/main.js"
    documents: Mapping[str, str]  # the templates of pages
    files_of: Mapping[str, list[str]]  # the modules that a page loads first


@lru_cache(maxsize=1)
def assets() -> Assets:
    """Read every file, once in a process."""
    root = files("perdure.dashboard") / "assets"
    written = dict(sorted(_walk(root, "")))
    chunks = Chunks({name: content.decode() for name, content in written.items() if _is_module(name)})
    contents = {name: content for name, content in written.items() if not _is_module(name) and not _is_sheet(name)}
    contents |= {name: text.encode() for name, text in chunks.served().items()}
    contents["css/all.css"] = b"\n".join(written[name] for name in sorted(filter(_is_sheet, written), key=_sheet_order))
    hashed = hashlib.sha256()
    for name, content in sorted(contents.items()):
        hashed.update(f"{name}\0{len(content)}\0".encode())
        hashed.update(content)
    by_name = {name: _asset(name, content) for name, content in contents.items() if _suffix(name) in _MEDIA}
    documents = {name: contents[name].decode() for name in DOCUMENTS if name in contents}
    return Assets(hashed.hexdigest()[:16], by_name, documents, {page: chunks.files_of(page) for page in PAGES})


def _is_module(name: str) -> bool:
    return name.startswith("app/") and name.endswith(".js") and name != "app/theme.js"  # which is a classic script


def _is_sheet(name: str) -> bool:
    return name.startswith("css/") and name.endswith(".css")


def _sheet_order(name: str) -> tuple[int, str]:
    return (_SHEETS_FIRST.index(name) if name in _SHEETS_FIRST else len(_SHEETS_FIRST), name)


def _walk(folder: Traversable, before: str) -> list[tuple[str, bytes]]:
    found = []
    for entry in folder.iterdir():
        name = f"{before}{entry.name}"
        found += _walk(entry, f"{name}/") if entry.is_dir() else [(name, entry.read_bytes())]
    return found


def _asset(name: str, content: bytes) -> Asset:
    squeezed = None if name.endswith(_PACKED) else gzip.compress(content, 9, mtime=0)
    return Asset(content, squeezed, _MEDIA[_suffix(name)])


def _suffix(name: str) -> str:
    return name[name.rfind(".") :]

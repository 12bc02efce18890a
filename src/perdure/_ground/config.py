"""Where the store is: an address given, PERDURE_URL, or the nearest .perdure/ upwards, like git's.

Pure but for looking at the file system. Nothing is made here; the first write does that.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Literal
from urllib.parse import unquote, urlsplit

from msgspec import Struct

from perdure.errors import InvalidInput

FOLDER = ".perdure"
FILE = "perdure.db"
_NO_FILE = (":memory:", "memory:")  # what SQLite calls no file at all, and what is nearly our own word for it


class Address(Struct, frozen=True):
    engine: Literal["sqlite", "postgres", "memory"]
    target: str  # an absolute path, a PostgreSQL URL, or the name of a store in memory


def find_address(url: str | Path | None, environ: Mapping[str, str] = os.environ, cwd: Path | None = None) -> Address:
    """The store an app means."""
    given = url if url is not None else environ.get("PERDURE_URL") or None
    here = cwd or Path.cwd()
    if given is None:
        return Address("sqlite", str(_nearest(here) / FILE))
    if isinstance(given, Path):
        return Address("sqlite", str(here / given.expanduser()))
    return _parse(given, here)


def _nearest(here: Path) -> Path:
    for folder in (here, *here.parents):
        if (folder / FOLDER).is_dir():
            return folder / FOLDER
    return here / FOLDER


def _parse(text: str, here: Path) -> Address:
    scheme, colon, rest = text.partition("://")
    if text.rpartition("/")[2] in _NO_FILE:
        raise InvalidInput(
            f"{text!r} would be a file of that name", do="write memory://name for a store that ends with its process"
        )
    if not colon:
        return Address("sqlite", str(here / Path(text).expanduser()))
    if scheme == "sqlite":
        path = unquote(rest)
        if not path:
            raise InvalidInput(f"{text!r} names no file", do="write sqlite:///folder/file.db")
        return Address("sqlite", os.path.normpath(here / ("/" + path.lstrip("/") if path.startswith("/") else path)))
    if scheme in ("postgresql", "postgres"):
        urlsplit(text)
        return Address("postgres", "postgresql" + text[len(scheme) :])
    if scheme == "memory":
        return Address("memory", rest)
    raise InvalidInput(
        f"{scheme!r} is no kind of store", do="use sqlite:///folder/file.db, postgresql://… or a path to a file"
    )

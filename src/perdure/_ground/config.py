"""The address of the store: a given one, PERDURE_URL, or the nearest .perdure/ in the folders above, like git's.

A store that is found, not named, must belong to this user: in a shared folder another user may have planted one, whose
recipes would run as this user.

Pure but for looking at the file system. Nothing is made here; the first write does that.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Literal
from urllib.parse import unquote, urlsplit

from msgspec import Struct

from perdure.errors import InvalidInput, StoreRefused

FOLDER = ".perdure"
FILE = "perdure.db"
_NO_FILE = (":memory:", "memory:")  # what SQLite calls no file at all, and what is nearly our own word for it


class Address(Struct, frozen=True):
    engine: Literal["sqlite", "postgres", "memory"]
    target: str  # an absolute path, a PostgreSQL URL, or the name of a store in memory


def find_address(url: str | Path | None, environ: Mapping[str, str] = os.environ, cwd: Path | None = None) -> Address:
    """The store an app means.

    Raises:
        InvalidInput: the address names no store.
        StoreRefused: no address was given, and the nearest `.perdure` is another user's.
    """
    given = url if url is not None else environ.get("PERDURE_URL") or None
    here = cwd or _here()
    if given is None:
        address = Address("sqlite", str(_own(_nearest(here), environ) / FILE))
    elif isinstance(given, Path):
        address = Address("sqlite", str(here / _expanded(given)))
    else:
        address = _parse(given, here)
    if address.engine == "sqlite" and not os.path.isabs(address.target):
        raise InvalidInput(
            f"{address.target!r} leads nowhere: the folder this process works in has been removed",
            do="change to a folder that is there, or give an absolute path",
        )
    return address


def _here() -> Path:
    """The folder this process works in; an empty path, below which nothing is absolute, if it has been removed."""
    try:
        return Path.cwd()
    except FileNotFoundError:
        return Path()


def _nearest(here: Path) -> Path:
    for folder in (here, *here.parents):
        if os.path.isdir(folder / FOLDER):  # treat a path that we may not look at as missing
            return folder / FOLDER
    return here / FOLDER


def _own(folder: Path, environ: Mapping[str, str]) -> Path:
    """The folder, if this user owns it, what it links to, and the store in it; like git's safe.directory."""
    if sys.platform == "win32":
        return folder
    users = {os.geteuid()}
    if os.geteuid() == 0 and environ.get("SUDO_UID", "").isdecimal():
        users.add(int(environ["SUDO_UID"]))  # who became root by sudo is still at home
    for path in (folder, folder / FILE):
        for follow in (False, True):
            try:
                owner = os.stat(path, follow_symlinks=follow).st_uid
            except OSError as error:
                if error.errno is None:
                    raise  # a signal's handler raised it, and the owner is not known
                continue  # not there yet, or not ours to look at: opening it says so
            if owner not in users:
                raise StoreRefused(
                    f"{path} belongs to user {owner}, and this process is user {os.geteuid()}",
                    kept="everything as it was; the store was not opened",
                    do=f"if you trust it, name it: PERDURE_URL=sqlite://{folder / FILE}",
                )
    return folder


def _expanded(path: Path) -> Path:
    try:
        return path.expanduser()
    except RuntimeError:
        raise InvalidInput(f"{str(path)!r}: no home folder is known", do="set HOME, or give an absolute path") from None


def _parse(text: str, here: Path) -> Address:
    scheme, colon, rest = text.partition("://")
    if text.rpartition("/")[2] in _NO_FILE:
        raise InvalidInput(
            f"{text!r} would be a file of that name", do="write memory://name for a store that ends with its process"
        )
    if not colon:
        return Address("sqlite", str(here / _expanded(Path(text))))
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
        f"{scheme!r} is not a kind of store", do="use sqlite:///folder/file.db, postgresql://… or a path to a file"
    )


def is_there(path: Path) -> bool:
    """True if the file exists.

    Raises:
        OSError: we are not allowed to look; from Python 3.14 on `path.exists()` says then that there is none.
    """
    try:
        path.stat()
    except (FileNotFoundError, NotADirectoryError):
        return False
    return True

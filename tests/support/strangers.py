"""Another program that opens the file of a SQLite store, to look at it or to spoil it behind perdure's back."""

from __future__ import annotations

from pathlib import Path

import apsw

from perdure._store.sqlite.page_checksums import find_vfs


def open_file(path: Path | str) -> apsw.Connection:
    """A connection that keeps the checksums of the pages right: what it changes is not noticed by them."""
    return apsw.Connection(str(path), vfs=find_vfs(Path(path)))

"""Give every page of a store's file a checksum, so that a flipped bit anywhere in it is noticed when it is read.

SQLite itself checks the frames of its log and nothing else: a changed number or name in the file is read as if it had
been written so. Its extension `cksumvfs`, which apsw's wheels bring along, keeps eight bytes at the end of each page
for a checksum, in C, and refuses to read a page that does not fit it.

A store has these eight bytes from its first page on, or never: a process that has the file open would not hear of them.
Files that older versions made have none, and are read and written as they were. A process without the extension makes
stores without checksums and does not open one that has them, as its pages would be taken for damaged.

Owns which of the two a file is, and how the extension is loaded.
"""

from __future__ import annotations

import threading
from pathlib import Path

import apsw

from perdure.errors import StoreRefused

RESERVED = 8
_EXTENSION = Path("sqlite_extra_binaries", "cksumvfs")
_NAME = "cksmvfs"
# Of the file's header: how many bytes at the end of each page are not SQLite's.
_PLACE = 20
_mutex = threading.Lock()


def find_vfs(path: Path) -> str | None:
    """The name by which SQLite opens this file; None for the usual one, where the extension is not installed.

    Raises:
        StoreRefused: its pages have checksums, and they could not be kept right here.
    """
    with _mutex:
        if _NAME in apsw.vfs_names() or _load():
            return _NAME
    if has_checksums(path):
        raise StoreRefused(
            f"the pages of {path} have checksums, and this installation of apsw lacks the extension that writes them",
            kept="the file, unchanged",
            do="install apsw from its wheel: `pip install --only-binary apsw --force-reinstall apsw`",
        )
    return None


def reserve(connection: apsw.Connection) -> None:
    """Have the pages of a file that is about to be made end with a checksum."""
    if connection.open_vfs == _NAME and not connection.execute("PRAGMA page_count").fetchall()[0][0]:
        connection.reserve_bytes(reserve=RESERVED)


def renew(path: Path) -> list[str]:
    """Make the checksums of a copy that another program has made; what SQLite finds wrong with it otherwise, and then
    nothing is changed."""
    connection = apsw.Connection(str(path), vfs=find_vfs(path))
    try:
        connection.execute("PRAGMA checksum_verification = OFF").fetchall()
        found = [str(line) for (line,) in connection.execute("PRAGMA integrity_check").fetchall()]
        if found != ["ok"]:
            return found
        connection.execute("VACUUM").fetchall()
        connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()
        return []
    finally:
        connection.close()


def has_checksums(path: Path) -> bool:
    """True if the file has room for them; False for one that is not there, or is empty."""
    try:
        with path.open("rb") as file:
            header = file.read(_PLACE + 1)
    except FileNotFoundError:
        return False
    return len(header) > _PLACE and header[_PLACE] == RESERVED


def _load() -> bool:
    # By its path: apsw's own way to it imports as much again as all of apsw.
    found = next((Path(apsw.__file__).parent / _EXTENSION).parent.glob(f"{_EXTENSION.name}.*"), None)
    if found is None:
        return False
    usual = apsw.vfs_names()[0]
    connection = apsw.Connection(":memory:")
    try:
        connection.enable_load_extension(True)
        connection.load_extension(str(found))
    except apsw.Error:
        return False
    finally:
        connection.close()
        # It makes itself the default of the process, and other databases of the program are none of our business.
        apsw.set_default_vfs(usual)
    return _NAME in apsw.vfs_names()

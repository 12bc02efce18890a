"""Check the place of a SQLite store, and make its folder.

Refuses what would lose data: a SQLite with the WAL-reset bug, and network file systems, whose locks and
shared memory are not those of one machine.
"""

from __future__ import annotations

import os
from pathlib import Path

import apsw

from perdure.errors import StoreRefused, StoreUnavailable

OLDEST_SQLITE = (3, 51, 3)
_NETWORK = {"nfs", "nfs4", "cifs", "smb3", "smbfs", "afs", "9p", "ceph", "glusterfs", "lustre"}
_NETWORK |= {"ncpfs", "ocfs2", "beegfs", "gpfs", "fuse"}
# Folders of the host in a virtual machine: there, other locks count.
_NETWORK |= {"virtiofs", "vboxsf", "vmhgfs", "prl_fs", "fakeowner"}
# What a program of the user serves is most often far away, and seldom has shared memory; these lie on a disk of here.
_LOCAL_FUSE = {"fuse.fuse-overlayfs", "fuse.lxcfs"}


def check_sqlite() -> None:
    have = tuple(int(part) for part in apsw.sqlite_lib_version().split("."))
    if have < OLDEST_SQLITE:
        wanted = ".".join(map(str, OLDEST_SQLITE))
        raise StoreRefused(
            f"this apsw carries SQLite {apsw.sqlite_lib_version()}, which can corrupt a store two processes write to",
            kept="the store, unopened",
            do=f"install an apsw with SQLite {wanted} or newer: pip install -U apsw",
        )


def check_folder(folder: Path) -> None:
    kind = _file_system(folder)
    if kind in _NETWORK or (kind.startswith("fuse.") and kind not in _LOCAL_FUSE):
        raise StoreRefused(
            f"{folder} is on a network or shared file system ({kind}), where SQLite's locks cannot be trusted",
            kept="nothing was made there",
            do="put the store on a local disk, or use PostgreSQL: Perdure('postgresql://…')",
        )


def make_room(path: Path) -> None:
    """The store's folder and its empty file, both private; a `.perdure` also keeps itself out of commits.

    Raises:
        StoreUnavailable: it could not be made.
        OSError: it is there already, and may not be written to.
    """
    folder = path.parent
    try:
        folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        ignore = folder / ".gitignore"
        if folder.name == ".perdure" and not ignore.exists():
            ignore.write_text("# Made by perdure: local state, not for version control.\n*\n", encoding="utf-8")
        # Private from its first byte; SQLite gives its log and shared memory the same mode.
        os.close(os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600))
    except OSError as error:
        if error.errno is None or os.path.exists(path):
            raise  # a signal's handler raised it; or the file is there, with all that is in it
        raise StoreUnavailable(
            f"cannot make {path}: {error.strerror}",
            kept="nothing was made there",
            do="choose a folder you can write to, by PERDURE_URL or Perdure(url)",
        ) from error


def _file_system(folder: Path) -> str:
    """The kind of file system a folder is (or will be) on; empty where that cannot be told."""
    while not folder.exists() and folder != folder.parent:
        folder = folder.parent
    try:
        device = os.stat(folder).st_dev
        with open("/proc/self/mountinfo", encoding="utf-8", errors="surrogateescape") as mounts:
            lines = [line.split() for line in mounts]
    except OSError as error:
        if error.errno is None:
            raise  # a signal's handler raised it: TimeoutError is an OSError too
        return ""
    wanted = f"{os.major(device)}:{os.minor(device)}"
    for fields in reversed(lines):
        if fields[2] == wanted:
            return fields[fields.index("-") + 1]
    return ""

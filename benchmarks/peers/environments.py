"""A virtual environment for each peer, in build/peers, from the pinned `requirements`; and its server.

Restate's server is a package of npm, pinned by its integrity hash in restate-server.txt.
"""

from __future__ import annotations

import base64
import hashlib
import platform
import subprocess
import sys
import tarfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PEERS = ROOT / "build" / "peers"
_PINNED = Path(__file__).resolve().parent / "requirements"
_RESTATE = PEERS / "restate" / "package" / "bin" / "restate-server"


class Missing(Exception):
    """An environment cannot be made here; the text says why."""


def python_of(environment: str) -> Path:
    """The interpreter of an environment, which is made if its requirements have changed.

    Raises:
        Missing: it cannot be made here.
    """
    if not environment:
        return Path(sys.executable)
    folder, pinned = PEERS / environment, _PINNED / f"{environment}.txt"
    python, stamp = folder / "bin" / "python", folder / ".built-from"
    wanted = hashlib.sha256(pinned.read_bytes()).hexdigest()
    if not stamp.exists() or stamp.read_text() != wanted:
        _run(sys.executable, "-m", "venv", "--clear", str(folder))
        _run(str(python), "-m", "pip", "install", "-qq", "--require-hashes", "-r", str(pinned))
        stamp.write_text(wanted)
    return python


def temporal_server() -> Path:
    return python_of("temporal").with_name("temporal")


def restate_server() -> Path:
    """Restate's server, fetched from npm and checked against the pinned hash.

    Raises:
        Missing: npm has it not, or not for this machine.
    """
    python_of("restate")  # made anew, it clears the folder
    if not _RESTATE.exists():
        package, integrity = _restate_package()
        _run("npm", "pack", "--silent", "--pack-destination", str(PEERS / "restate"), package)
        (archive,) = (PEERS / "restate").glob("*.tgz")
        found = base64.b64encode(hashlib.sha512(archive.read_bytes()).digest()).decode()
        if f"sha512-{found}" != integrity:
            raise Missing(f"{package} is not what is pinned: its hash is sha512-{found}")
        with tarfile.open(archive) as opened:
            opened.extractall(PEERS / "restate", filter="data")
        archive.unlink()
    return _RESTATE


def _restate_package() -> tuple[str, str]:
    for line in (_PINNED / "restate-server.txt").read_text(encoding="utf-8").splitlines():
        machine, _, rest = line.partition(" ")
        if machine == f"{platform.system()}-{platform.machine()}":
            package, integrity = rest.split()
            return package, integrity
    raise Missing(f"no server is pinned for {platform.system()} on {platform.machine()}")


def _run(*command: str) -> None:
    try:
        done = subprocess.run(command, capture_output=True, text=True, check=False)
    except OSError as error:
        raise Missing(str(error)) from error
    if done.returncode:
        told = (done.stderr.strip() or done.stdout.strip()).splitlines()
        raise Missing(f"`{' '.join(command[:4])} …` failed: {told[-1] if told else 'no output'}")

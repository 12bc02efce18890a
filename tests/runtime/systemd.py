"""A real systemd for a test: the first process of namespaces of its own, with nothing to start but what it is told.

It finds none of the machine's unit files, and can write to no file of the machine's but in the one folder it is given:
a systemd that boots would tidy up /tmp, among other things.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.runtime.kit import until

_SYSTEMD = "/lib/systemd/systemd"
_INSIDE = f"""
set -e
mount --make-rprivate /
mount --bind "$1" "$1"
for place in /run /dev/shm /etc/systemd /usr/lib/systemd/system /usr/lib/systemd/user /usr/lib/tmpfiles.d /var/log; do
    [ -d $place ] && mount -t tmpfs tmpfs $place
done
mount -o remount,bind,ro /
mount -t proc proc /proc
umount -R /sys/fs/cgroup || true
mount -t cgroup2 cgroup2 /sys/fs/cgroup
! touch /tmp/perdure-is-read-only 2>/dev/null
mkdir -p /run/lock /run/systemd /etc/systemd/system /etc/systemd/user
for place in /etc/systemd/system /etc/systemd/user; do
    printf '[Unit]\\nDefaultDependencies=no\\n' > $place/nothing.target
done
export container=other
exec {_SYSTEMD} --system --unit=nothing.target --show-status=no
"""


class Systemd:
    """One that runs; `first` is its pid as this process sees it."""

    def __init__(self, first: int) -> None:
        self._first = first

    def run(self, *argv: str) -> str:
        """Run a command where systemd is the first process; what it says."""
        done = subprocess.run(
            ["nsenter", f"--target={self._first}", "--all", *argv],
            env={"PATH": os.environ["PATH"]},
            capture_output=True,
            text=True,
            check=False,
            timeout=120,
        )
        assert done.returncode == 0, f"{' '.join(argv)}: {done.stdout}{done.stderr}"
        return done.stdout.strip()


@contextlib.contextmanager
def running(folder: Path) -> Iterator[Systemd]:
    """One that may write to this folder; skips the test where none can be started."""
    group = _group()
    if os.getuid() != 0 or group is None or not all(map(shutil.which, (_SYSTEMD, "systemd-run", "unshare", "nsenter"))):
        pytest.skip("no systemd can be started here")
    joined = ["sh", "-c", 'echo $$ > "$1/cgroup.procs" && shift && exec "$@"', "sh", str(group)]
    spaces = ["unshare", "--pid", "--fork", "--kill-child", "--mount", "--cgroup", "--uts", "--ipc"]
    nothing = subprocess.DEVNULL
    outer = subprocess.Popen(
        [*joined, *spaces, "bash", "-c", _INSIDE, "bash", str(folder)], stdin=nothing, stdout=nothing, stderr=nothing
    )
    try:
        first = until(lambda: outer.poll() is not None or _systemd_of(outer.pid), "a systemd")
        if first is True:
            pytest.skip("no systemd can be started here")
        found = Systemd(int(first))
        until(lambda: Path("/proc", first, "root", "run/systemd/private").exists(), "systemd's own socket")
        yield found
    finally:
        for pid in [int(line) for line in _children(outer.pid)]:
            os.kill(pid, signal.SIGKILL)  # the first process: all others end with it
        outer.kill()
        outer.wait()
        until(lambda: _is_removed(group), "the end of what systemd had started")


def _group() -> Path | None:
    """A control group of our own, of the second kind."""
    for line in Path("/proc/self/mounts").read_text().splitlines():
        _, place, kind, *_ = line.split()
        if kind == "cgroup2":
            group = Path(place) / f"perdure-test-{os.getpid()}"
            with contextlib.suppress(OSError):
                group.mkdir(exist_ok=True)
                return group
    return None


def _is_removed(group: Path) -> bool:
    for folder, _, _ in os.walk(group, topdown=False):
        with contextlib.suppress(OSError):
            os.rmdir(folder)
    return not group.exists()


def _children(pid: int) -> list[str]:
    try:
        return Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
    except OSError:
        return []


def _systemd_of(pid: int) -> str:
    for child in _children(pid):
        with contextlib.suppress(OSError):
            if os.readlink(f"/proc/{child}/exe").endswith("/systemd"):
                return child
    return ""

"""Have Patroni move the primary of PostgreSQL while workers work: when asked, after a kill, and while it is frozen.

Two nodes with synchronous replication, and a third vote; Patroni's own Raft keeps who leads, so nothing else has to
run. A frozen Patroni is the worst of the three: its server stays up and takes itself for the primary, while another is
promoted. Nothing acknowledged is lost, nothing is done twice, and the workers go on.

Patroni is looked for in build/patroni, made by a Python that the user of the server can reach:

    /usr/bin/python3 -m venv build/patroni
    build/patroni/bin/pip install 'patroni[raft]' 'psycopg[binary]'

python -m tests.torture --part switchovers --seeds 0-9
"""

from __future__ import annotations

import json
import os
import random
import shutil
import signal
import subprocess
import tempfile
import urllib.error
import urllib.request
import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from tests.support import postgres
from tests.support.folders import fast_folder
from tests.support.ports import free_port
from tests.support.processes import nursery
from tests.support.waiting import look_again_here
from tests.torture.kills import Home
from tests.torture.report import CannotRun
from tests.torture.storm import Storm

PYTHON = Path(__file__).resolve().parents[2] / "build" / "patroni" / "bin" / "python"
_PATRONI = "from patroni.__main__ import main; main()"
_VOTER = "from patroni.raft_controller import main; main()"
SWITCHES = 3
# The least that Patroni takes: a leader that is silent so long has lost its place.
TTL_SECONDS = 20


def require_patroni() -> None:
    """Raises CannotRun where there is none."""
    asked = [str(PYTHON), "-c", "import patroni.raft_controller, psycopg"]
    try:
        done = subprocess.run(asked, capture_output=True, text=True, check=False, cwd="/", **postgres._unprivileged())
    except OSError as error:
        raise CannotRun(f"there is no Patroni: {PYTHON}: {error.strerror}") from None
    if done.returncode:
        raise CannotRun(f"there is no Patroni: {PYTHON}: {done.stderr.strip().splitlines()[-1]}")


class Group:
    """Nodes that agree who leads: two with a server, one that only votes."""

    def __init__(self) -> None:
        self.place = Path(tempfile.mkdtemp(prefix="perdure-patroni-", dir=postgres._parent()))
        self.place.chmod(0o711)
        self._as = postgres._unprivileged()
        self.programs = postgres._programs(self.place)
        votes = [f"127.0.0.1:{free_port()}" for _ in range(3)]
        self.nodes = [Node(self, f"n{number}", votes, number) for number in range(2)]
        self._witness = self.start(_VOTER, self._witness_settings(votes))
        for node in self.nodes:
            node.start()
        self.wait_until_whole()

    @property
    def url(self) -> str:
        """As the guide tells it."""
        hosts, ports = ",".join("127.0.0.1" for _ in self.nodes), ",".join(str(node.port) for node in self.nodes)
        return f"postgresql://postgres@/postgres?host={hosts}&port={ports}&target_session_attrs=read-write"

    def folder(self, name: str) -> Path:
        made = self.place / name
        made.mkdir(mode=0o700)
        if self._as:
            os.chown(made, self._as["user"], self._as["group"])
        return made

    def start(self, program: str, settings: Path) -> subprocess.Popen[bytes]:
        with settings.with_suffix(".log").open("ab") as log:
            return subprocess.Popen(
                [str(PYTHON), "-c", program, str(settings)],
                cwd=self.place,
                env={"PATH": os.defpath, "LC_ALL": "C"},
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                preexec_fn=postgres._die_with_parent(signal.SIGTERM),
                start_new_session=True,
                **self._as,
            )

    def write(self, name: str, settings: dict[str, Any]) -> Path:
        file = self.place / f"{name}.yml"
        file.write_text(json.dumps(settings), encoding="utf-8")  # JSON is YAML
        return file

    def _witness_settings(self, votes: list[str]) -> Path:
        raft = {"data_dir": str(self.folder("witness")), "self_addr": votes[2], "partner_addrs": votes[:2]}
        return self.write("w", {"scope": "perdure", "name": "w", "raft": raft})

    def wait_until_whole(self) -> Node:
        """Wait until one leads and the other has all that was acknowledged; the leader."""
        while True:
            roles = {member["name"]: (member["role"], member["state"]) for member in self._members()}
            found = [node for node in self.nodes if roles.get(node.name) == ("leader", "running")]
            if found and ("sync_standby", "streaming") in roles.values():
                return found[0]
            look_again_here()

    def wait_for_another(self, former: Node) -> None:
        while not any(
            member["role"] == "leader" and member["state"] == "running" and member["name"] != former.name
            for member in self._members(but=former)
        ):
            look_again_here()

    def _members(self, but: Node | None = None) -> list[dict[str, Any]]:
        for node in self.nodes:
            if node is not but:
                with suppress(OSError, ValueError), urllib.request.urlopen(f"{node.api}/cluster", timeout=2) as found:
                    members: list[dict[str, Any]] = json.load(found)["members"]
                    return members
        return []

    # ── what happens to it ───────────────────────────────────────────────────────────────────────

    def switch_over(self) -> None:
        """An operator asks for it."""
        leader = self.wait_until_whole()
        (heir,) = (node for node in self.nodes if node is not leader)
        order = json.dumps({"leader": leader.name, "candidate": heir.name}).encode()
        request = urllib.request.Request(f"{leader.api}/switchover", order, {"content-type": "application/json"})
        with suppress(urllib.error.HTTPError):  # it is refused while the state is unsure; then there is none
            urllib.request.urlopen(request, timeout=60).close()
        self.wait_until_whole()

    def lose_machine(self) -> None:
        """The leader's processes end all at once, and come back when another one leads."""
        leader = self.wait_until_whole()
        leader.kill()
        self.wait_for_another(leader)
        leader.start()
        self.wait_until_whole()

    def freeze_leader(self) -> None:
        """The leader's Patroni does not run for a while; its server does, and nobody fences it."""
        leader = self.wait_until_whole()
        leader.signal(signal.SIGSTOP)
        self.wait_for_another(leader)
        leader.signal(signal.SIGCONT)
        self.wait_until_whole()

    def remove(self) -> None:
        for node in self.nodes:
            node.kill()
        self._witness.kill()
        self._witness.wait()
        shutil.rmtree(self.place, ignore_errors=True)


class Node:
    """A Patroni and its server."""

    def __init__(self, group: Group, name: str, votes: list[str], number: int) -> None:
        self.name, self._group = name, group
        self.port, api = free_port(), free_port()
        self.api = f"http://127.0.0.1:{api}"
        self._data = group.folder(f"{name}-data")
        own = {"listen": f"127.0.0.1:{api}", "connect_address": f"127.0.0.1:{api}"}
        partners = [vote for vote in votes if vote != votes[number]]
        self._settings = group.write(
            name,
            {
                "scope": "perdure",
                "name": name,
                "restapi": own,
                "raft": {
                    "data_dir": str(group.folder(f"{name}-raft")),
                    "self_addr": votes[number],
                    "partner_addrs": partners,
                },
                "bootstrap": {"dcs": _AGREED, "initdb": ["no-sync", {"encoding": "UTF8"}, {"locale": "C"}]},
                "postgresql": {
                    "listen": f"127.0.0.1:{self.port}",
                    "connect_address": f"127.0.0.1:{self.port}",
                    "data_dir": str(self._data / "data"),
                    "bin_dir": str(group.programs),
                    "pgpass": str(self._data / "pgpass"),
                    "authentication": {
                        role: {"username": "postgres", "password": "unused"} for role in ("superuser", "replication")
                    },
                    "pg_hba": ["local all all trust", "host all all 127.0.0.1/32 trust", _MAY_REPLICATE],
                    "parameters": {"unix_socket_directories": str(self._data), "log_checkpoints": "off"},
                },
            },
        )
        self._process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        self._process = self._group.start(_PATRONI, self._settings)

    def signal(self, sign: signal.Signals) -> None:
        assert self._process is not None
        self._process.send_signal(sign)

    def kill(self) -> None:
        """End Patroni and every process of its server, as a power cut does."""
        if self._process is None:
            return
        self.signal(signal.SIGSTOP)  # it starts nothing more
        for pid in self._of_server():
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        self._process.kill()
        self._process.wait()

    def _of_server(self) -> list[int]:
        """The server, stopped, and its processes."""
        try:
            server = int((self._data / "data" / "postmaster.pid").read_text(encoding="utf-8").split()[0])
            os.kill(server, signal.SIGSTOP)
            children = Path(f"/proc/{server}/task/{server}/children").read_text(encoding="utf-8").split()
        except (OSError, ValueError, IndexError):
            return []
        return [*(int(child) for child in children), server]


_MAY_REPLICATE = "host replication all 127.0.0.1/32 trust"
_AGREED = {
    "ttl": TTL_SECONDS,
    "loop_wait": 1,
    "retry_timeout": 3,
    "synchronous_mode": True,
    "synchronous_mode_strict": True,  # without a standby nothing is acknowledged
    "postgresql": {"use_pg_rewind": True, "parameters": {"max_connections": 100, "wal_log_hints": "on"}},
}


def run(seed: int, *, switches: int = SWITCHES) -> None:
    require_patroni()
    rng = random.Random(seed)
    with fast_folder() as folder, nursery() as children, groups() as group:
        troubles: tuple[Callable[[], None], ...] = (group.switch_over, group.lose_machine, group.freeze_leader)
        kinds = [troubles[(seed + number) % len(troubles)] for number in range(switches)]
        rng.shuffle(kinds)
        storm = Storm(rng, Home(group.url, uuid.uuid4().hex), folder, children)
        storm.rage(switches, lambda: kinds.pop()())


@contextmanager
def groups() -> Iterator[Group]:
    group = Group()
    try:
        yield group
    finally:
        group.remove()

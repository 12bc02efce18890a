"""A real PgBouncer in transaction mode in front of PostgreSQL.

    engine ── pgbouncer ═╦═ server
                         ╚═ server

It hands its server connections round, so that what a session kept on one of them is not there for the next
transaction. It ends with the test.
"""

from __future__ import annotations

import contextlib
import os
import pwd
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psycopg
from psycopg.conninfo import conninfo_to_dict

from tests.support import packages
from tests.support.ports import free_port

SERVERS = 3
_SETTINGS = f"""
[databases]
{{database}} = host={{host}} port={{port}}

[pgbouncer]
listen_addr = 127.0.0.1
listen_port = {{own_port}}
unix_socket_dir =
auth_type = trust
auth_file = {{users}}
pool_mode = transaction
default_pool_size = {SERVERS}
server_round_robin = 1
max_client_conn = 200
"""


class PgBouncer:
    """One that can be killed, and started again at the same place."""

    def __init__(self, folder: Path, url: str) -> None:
        self._program = packages.need("pgbouncer")
        server = conninfo_to_dict(url)
        port = free_port()
        self.url = f"postgresql://{server['user']}@127.0.0.1:{port}/{server['dbname']}"
        self._settings, users = folder / "pgbouncer.ini", folder / "users"
        users.write_text(f'"{server["user"]}" ""\n')
        self._settings.write_text(
            _SETTINGS.format(
                database=server["dbname"],
                host=server["host"],
                port=server.get("port") or 5432,
                own_port=port,
                users=users,
            )
        )
        self._process: subprocess.Popen[str] | None = None

    def start(self) -> None:
        self._process = subprocess.Popen(
            [self._program, str(self._settings)], stderr=subprocess.PIPE, text=True, **_unprivileged()
        )
        assert self._process.stderr is not None
        told: list[str] = []
        for line in self._process.stderr:
            told.append(line)
            if "process up" in line:
                return self._fill()
        raise AssertionError("".join(told))

    def _fill(self) -> None:
        """Have all its server connections open, by as many transactions at a time."""
        with contextlib.ExitStack() as open_:
            for _ in range(SERVERS):
                open_.enter_context(psycopg.connect(self.url)).execute("SELECT 1")

    def kill(self) -> None:
        if self._process is not None:
            self._process.kill()
            self._process.communicate()
            self._process = None


def _unprivileged() -> dict[str, Any]:
    """Who it runs as: PgBouncer refuses root."""
    if os.geteuid() != 0:
        return {}
    nobody = pwd.getpwnam("nobody")
    return {"user": nobody.pw_uid, "group": nobody.pw_gid, "extra_groups": []}


@contextlib.contextmanager
def pgbouncer_to(url: str) -> Iterator[PgBouncer]:
    # Not pytest's folder: the user it runs as may not look into that.
    folder = Path(tempfile.mkdtemp(prefix="perdure-pgbouncer-", dir="/tmp"))
    folder.chmod(0o755)
    bouncer: PgBouncer | None = None
    try:
        bouncer = PgBouncer(folder, url)
        bouncer.start()
        yield bouncer
    finally:
        if bouncer is not None:
            bouncer.kill()
        shutil.rmtree(folder, ignore_errors=True)

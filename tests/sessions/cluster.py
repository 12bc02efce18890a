"""A PostgreSQL of a test's own: with passwords, and one that may be stopped and started again."""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import subprocess
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from tests.support import postgres
from tests.support.ports import free_port
from tests.support.waiting import look_again_here

_HBA = """
local all postgres trust
local replication postgres trust
host  all app   127.0.0.1/32 scram-sha-256
host  all old   127.0.0.1/32 md5
host  all plain 127.0.0.1/32 password
"""
_SETTINGS = ("listen_addresses=127.0.0.1", "fsync=off", "log_checkpoints=off", "max_prepared_transactions=4")


class Cluster:
    """One server; users app, old and plain have the password `pass ü:word`."""

    PASSWORD = "pass ü:word"

    def __init__(self, connections: int = 20, env: Mapping[str, str] | None = None) -> None:
        self._connections, self._env = connections, dict(env or {})
        self.place = Path(tempfile.mkdtemp(prefix="perdure-cluster-", dir=postgres._parent()))
        self.place.chmod(0o711)
        self._as = postgres._unprivileged()
        self._programs = postgres._programs(self.place)
        self.port = free_port()
        self.data = self._folder("data")
        self.socket = self._folder("socket")
        subprocess.run(
            [self._programs / "initdb", "-D", self.data, "--username=postgres", "--auth=trust", "--no-sync"],
            check=True,
            **self._common,
        )
        (self.data / "pg_hba.conf").write_text(_HBA)
        self._server: subprocess.Popen[bytes] | None = None
        self.start()
        self._make_users()

    @property
    def _common(self) -> dict[str, Any]:
        out = subprocess.DEVNULL
        env = {"PATH": os.defpath, "LC_ALL": "C", **self._env}
        return {"cwd": self.place, "env": env, "stdin": out, "stdout": out, "stderr": out, **self._as}

    def _folder(self, name: str) -> Path:
        folder = self.place / name
        folder.mkdir(mode=0o700)
        if self._as:
            os.chown(folder, self._as["user"], self._as["group"])
        return folder

    def start(self) -> None:
        own = (f"port={self.port}", f"max_connections={self._connections}")
        settings = [part for setting in (*_SETTINGS, *own) for part in ("-c", setting)]
        self._server = subprocess.Popen(
            [self._programs / "postgres", "-D", self.data, "-k", self.socket, *settings],
            preexec_fn=postgres._die_with_parent(signal.SIGQUIT),
            **self._common,
        )
        subprocess.run([self._programs / "pg_ctl", "-D", self.data, "-w", "status"], check=False, **self._common)

    def stop(self, how: signal.Signals = signal.SIGINT) -> None:
        assert self._server is not None
        self._server.send_signal(how)
        self._server.wait()

    def kill(self) -> None:
        """End it with all its processes at once, as a power cut does: nothing is sent any more."""
        assert self._server is not None
        self._server.send_signal(signal.SIGSTOP)  # it starts no other process while its own are ended
        for child in Path(f"/proc/{self.pid}/task/{self.pid}/children").read_text().split():
            with contextlib.suppress(ProcessLookupError):
                os.kill(int(child), signal.SIGKILL)
        self.stop(signal.SIGKILL)

    @property
    def pid(self) -> int:
        assert self._server is not None
        return self._server.pid

    def admin(self) -> str:
        return f"host={self.socket} port={self.port} user=postgres dbname=postgres"

    def url(self, user: str, password: str = PASSWORD, **options: str) -> dict[str, str]:
        return {
            "host": "127.0.0.1",
            "port": str(self.port),
            "user": user,
            "dbname": "postgres",
            "password": password,
            **options,
        }

    def _make_users(self) -> None:
        import psycopg
        from psycopg import sql

        while True:
            try:
                connection = psycopg.connect(self.admin(), autocommit=True)
                break
            except psycopg.OperationalError:
                assert self._server is not None and self._server.poll() is None
        with connection:
            for user, kind in (("app", "scram-sha-256"), ("old", "md5"), ("plain", "scram-sha-256")):
                connection.execute(sql.SQL("SET password_encryption = {}").format(kind))
                made = sql.SQL("CREATE ROLE {} LOGIN PASSWORD {}").format(sql.Identifier(user), self.PASSWORD)
                connection.execute(made)
            connection.execute("GRANT ALL ON SCHEMA public TO PUBLIC")

    def standby(self) -> Cluster:
        """Another server that follows this one, until it is promoted."""
        other = object.__new__(Cluster)
        other._connections, other._as, other._programs = self._connections, self._as, self._programs
        other._env = self._env
        other.place, other.data = self.place / "standby", self.place / "standby" / "data"
        self._folder("standby")
        other.port = free_port()
        other.socket = other._folder("socket")
        other.follow(self)
        return other

    def follow(self, primary: Cluster) -> None:
        """Become a copy of another server, and follow it until this one is promoted."""
        shutil.rmtree(self.data, ignore_errors=True)
        self._folder(self.data.name)
        source = ["-h", primary.socket, "-p", str(primary.port), "-U", "postgres"]
        backup = [*source, "-R", "--checkpoint=fast", "--no-sync"]
        subprocess.run([self._programs / "pg_basebackup", "-D", self.data, *backup], check=True, **self._common)
        self.start()

    def wait_for_standby(self) -> None:
        """From now on, answer a COMMIT only when the standby has it too."""
        import psycopg

        with psycopg.connect(self.admin(), autocommit=True) as connection:
            connection.execute("ALTER SYSTEM SET synchronous_standby_names = '*'")
            connection.execute("SELECT pg_reload_conf()")
            asked = "SELECT count(*) FROM pg_stat_replication WHERE sync_state = 'sync'"
            while connection.execute(asked).fetchone() != (1,):
                look_again_here()

    def promote(self) -> None:
        subprocess.run([self._programs / "pg_ctl", "-D", self.data, "-w", "promote"], check=True, **self._common)

    def remove(self) -> None:
        if self._server is not None and self._server.poll() is None:
            self.stop(signal.SIGQUIT)
        shutil.rmtree(self.place, ignore_errors=True)

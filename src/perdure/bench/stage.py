"""The place of a measurement: a folder on the measured disk, and fresh stores beside their floors."""

from __future__ import annotations

import importlib.util
import os
import shutil
import sys
import tempfile
import uuid
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from perdure.bench import server
from perdure.bench.bare import Bare, BarePostgres, BareSqlite
from perdure.errors import StoreUnavailable

if TYPE_CHECKING:
    from psycopg import Connection

    from perdure._app import Perdure

_PREFIX = "perdure-bench-"
ELSEWHERE = "PERDURE_TEST_POSTGRES"


@contextmanager
def folder_on(wanted: Path | None) -> Iterator[Path]:
    """An empty folder, removed at the end: on the disk that was asked for, else on a disk that is not in memory."""
    parent = wanted or _lasting_folder()
    made = Path(tempfile.mkdtemp(prefix=_PREFIX, dir=parent)).resolve()
    made.chmod(0o711)  # PostgreSQL can run as another user
    try:
        yield made
    finally:
        shutil.rmtree(made, ignore_errors=True)


def _lasting_folder() -> Path:
    """The usual folder for temporary files, unless that is in memory, where syncing costs nothing and proves
    nothing."""
    usual = Path(tempfile.gettempdir())
    return Path("/var/tmp") if file_system(usual) in ("tmpfs", "ramfs") else usual  # noqa: S108


def file_system(folder: Path) -> str:
    """The kind of file system; empty when it is unknown."""
    try:
        device = os.stat(folder).st_dev
        lines = [line.split() for line in Path("/proc/self/mountinfo").read_text(encoding="utf-8").splitlines()]
    except OSError:
        return ""
    wanted = f"{os.major(device)}:{os.minor(device)}"
    return next((fields[fields.index("-") + 1] for fields in reversed(lines) if fields[2] == wanted), "")


@dataclass(frozen=True, slots=True)
class Plot:
    """A store that does not exist yet, and the floor beside it."""

    engine: str
    url: str
    folder: Path
    bare: Bare

    @asynccontextmanager
    async def app(self) -> AsyncIterator[Perdure]:
        from perdure import Perdure

        async with Perdure(self.url) as app:
            yield app

    @asynccontextmanager
    async def pipeline(self) -> AsyncIterator[Any]:
        """The bare prototype, running in the same place; None if this perdure was installed without it."""
        prototype = _prototype()
        if prototype is None:
            yield None
            return
        if self.engine == "sqlite":
            log = prototype.SqliteLog(self.folder / "prototype.db")
        else:
            log = prototype.PostgresLog(self.url)
        pipeline = prototype.Pipeline(log)
        try:
            yield pipeline
        finally:
            await pipeline.close()

    def bytes_stored(self) -> int:
        """The size of the store on disk; call this while no app has the store open."""
        if self.engine == "sqlite":
            return Path(self.url.removeprefix("sqlite://")).stat().st_size
        import psycopg

        with psycopg.connect(self.url) as connection:
            found = connection.execute(
                "SELECT sum(pg_total_relation_size(c.oid)) FROM pg_class c JOIN pg_namespace n ON n.oid = relnamespace"
                " WHERE relkind = 'r' AND relname <> 'bare' AND nspname NOT IN ('pg_catalog', 'information_schema')"
            ).fetchone()
        return int(found[0]) if found is not None else 0


def _prototype() -> ModuleType | None:
    """benchmarks/prototype.py of the source tree that perdure was installed from, if it exists."""
    name = "perdure_bench_prototype"
    if name in sys.modules:
        return sys.modules[name]
    path = Path(__file__).parents[3] / "benchmarks" / "prototype.py"
    spec = importlib.util.spec_from_file_location(name, path) if path.exists() else None
    if spec is None or spec.loader is None:
        return None
    module = sys.modules[name] = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


class SqliteStage:
    engine = "sqlite"

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self.where = f"{folder} ({file_system(folder) or 'unknown file system'})"

    @contextmanager
    def plot(self) -> Iterator[Plot]:
        folder = self._folder / uuid.uuid4().hex[:12]
        folder.mkdir()
        bare = BareSqlite(folder / "bare.db")
        try:
            yield Plot("sqlite", f"sqlite://{folder}/store/perdure.db", folder, bare)
        finally:
            bare.close()
            shutil.rmtree(folder, ignore_errors=True)


class PostgresStage:
    engine = "postgres"

    def __init__(self, admin: str, folder: Path) -> None:
        self._admin, self._folder = admin, folder
        with _connected(admin) as connection:
            version = connection.info.server_version
        self.where = f"PostgreSQL {version // 10_000}.{version % 10_000}, {_without_password(admin)}"

    @contextmanager
    def plot(self) -> Iterator[Plot]:
        from psycopg import sql

        name = f"perdure_bench_{uuid.uuid4().hex[:12]}"
        database = sql.Identifier(name)
        with _connected(self._admin) as connection:
            connection.execute(sql.SQL("CREATE DATABASE {}").format(database))
        url = urlsplit(self._admin)._replace(path=f"/{name}").geturl()
        bare: BarePostgres | None = None
        try:
            bare = BarePostgres(url)
            yield Plot("postgres", url, self._folder, bare)
        finally:
            if bare is not None:
                bare.close()
            with _connected(self._admin) as connection:
                connection.execute(sql.SQL("DROP DATABASE {} WITH (FORCE)").format(database))


@contextmanager
def _connected(url: str) -> Iterator[Connection[Any]]:
    import psycopg

    try:
        with psycopg.connect(url, autocommit=True) as connection:
            yield connection
    except psycopg.Error as error:
        raise StoreUnavailable(
            f"cannot measure on {_without_password(url)}: {str(error).strip()}",
            kept="only databases called perdure_bench_… were created",
            do="name a server and a role that may create databases, or leave --url out",
        ) from error


def _without_password(url: str) -> str:
    parts = urlsplit(url)
    if parts.password is None:
        return url
    return parts._replace(netloc=parts.netloc.replace(f":{parts.password}@", ":…@")).geturl()


Stage = SqliteStage | PostgresStage


@contextmanager
def stage_for(engine: str, folder: Path, url: str | None) -> Iterator[Stage]:
    """A place to measure this engine in.

    Raises:
        StoreUnavailable: PostgreSQL is not reachable, and none could be started.
    """
    if engine == "sqlite":
        yield SqliteStage(folder)
    elif address := url or os.environ.get(ELSEWHERE):
        yield PostgresStage(address, folder)
    else:
        with server.running(folder) as started:
            yield PostgresStage(started, folder)

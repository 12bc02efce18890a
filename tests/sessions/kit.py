"""Sessions whose proxies, parking and clients are real processes, forked from a warm one.

test ── Stage ── parking            holds descriptors when a proxy dies
             ├── proxy              one for each session
             └── client             runs a function with a connection, until it is killed
"""

from __future__ import annotations

import asyncio
import os
import signal
import socket
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import psycopg

from perdure._runtime.sessions import postgres as sessions
from perdure._runtime.sessions.session_processes import SessionPlace, ask
from perdure._runtime.sessions.sqlite import open_sqlite
from perdure.keeper.pgproxy import process
from perdure.keeper.pgproxy.recovery import parking
from perdure.keeper.sqlite_holder import __main__ as sqliteholder
from tests.support.processes import Child, Link, Nursery, say

HOLD = "10m"


def be_parking(link: Link, path: str) -> None:
    place = socket.socket(socket.AF_UNIX)
    place.bind(path)
    place.listen(16)
    say(link, "ready")
    parking.serve(place)


def be_proxy(link: Link, config: dict[str, Any]) -> None:
    process.main(config, lambda answer: say(link, answer))


def be_holder(link: Link, config: dict[str, Any]) -> None:
    sqliteholder.main(config, lambda answer: say(link, answer))


def be_sqlite_client(link: Link, folder: str, path: str, act: Any, *arguments: Any) -> Any:
    """Run `act(link, session, *arguments)` in an attached process."""
    place = SessionPlace(Path(folder), None, _no_proxy)

    async def run() -> Any:
        return await act(link, await open_sqlite(place, "main", path), *arguments)

    return asyncio.run(run())


def be_client(link: Link, folder: str, with_parking: str, url: str, act: Any, *arguments: Any) -> Any:
    """Run `act(link, session, *arguments)` in an attached process."""
    place = SessionPlace(
        Path(folder), Path(with_parking), lambda module, config, folder: {"error": "no proxy", "kind": "login"}
    )

    async def run() -> Any:
        session = await sessions.open_postgres(place, "main", url, hold=HOLD)
        return await act(link, session, *arguments)

    return asyncio.run(run())


def _no_proxy(_module: str, _config: dict[str, Any], _folder: Path) -> dict[str, Any]:
    return {"error": "a client of a test starts no proxy", "kind": "login"}


class Stage:
    """One place with its parking, and what a test does there."""

    def __init__(self, children: Nursery, folder: Path, url: str) -> None:
        self.children, self.folder, self.url = children, folder, url
        self.parking = folder / "park"
        self.proxies: list[Child] = []
        self.env: dict[str, str] = {}
        self.place = SessionPlace(folder, self.parking, self._launch)

    def __enter__(self) -> Stage:
        self.parker = self.children.start(be_parking, str(self.parking))
        self.parker.heard()
        return self

    def __exit__(self, *_: object) -> None:
        for folder in self.folder.glob("??-*"):
            ask(folder, {"ask": "end"})

    def _launch(self, program: str, config: dict[str, Any], _folder: Path) -> dict[str, Any]:
        process = be_proxy if program == "postgres" else be_holder
        self.proxies.append(self.children.start(process, config, env=self.env))
        answer: dict[str, Any] = self.proxies[-1].heard()
        return answer

    async def open(self, hold: str = HOLD, url: str | None = None) -> sessions.PostgresSession:
        return await sessions.open_postgres(self.place, "main", url or self.url, hold=hold)

    async def connect(self, **options: Any) -> Any:
        return await (await self.open()).connect(**options)

    def client(self, act: Callable[..., Awaitable[Any]], *arguments: Any) -> Child:
        """A process that does `act` in the session; the session has been opened before."""
        return self.children.start(be_client, str(self.folder), str(self.parking), self.url, act, *arguments)

    def wait(self, what: str) -> dict[str, Any]:
        """How things stand when it has come to that: quiet, alone, none, gone."""
        answer = ask(next(self.folder.glob("??-*")), {"ask": "wait", "for": what}, 60)
        assert answer is not None
        return answer

    def kill_proxy(self) -> None:
        self.proxies[-1].kill()

    def kill_parking(self) -> None:
        """With all that is parked; another one takes its place."""
        self.parker.kill()
        self.parking.unlink()
        self.__enter__()

    def outside(self, sql: str) -> Any:
        """What somebody else sees."""
        with psycopg.connect(self.url, autocommit=True) as connection:
            cursor = connection.execute(sql.encode())
            return cursor.fetchone()[0] if cursor.description else None  # type: ignore[index]


def stop_here() -> None:
    os.kill(os.getpid(), signal.SIGSTOP)


def rows(stage: Stage) -> list[int]:
    """What is in the table `t`, seen from outside."""
    return stage.outside("SELECT coalesce(array_agg(x ORDER BY x), '{}') FROM t")

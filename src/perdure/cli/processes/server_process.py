"""The process of `perdure serve` and of `perdure up` without workers: listens, says where, serves until a signal."""

from __future__ import annotations

import asyncio
import os
import socket
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from perdure._ground.encoding import json_values as values
from perdure._ground.ids import user_name
from perdure.cli.base import Invocation
from perdure.cli.output import safe
from perdure.cli.processes.mcp_route import mcp_routes
from perdure.errors import StoreUnavailable
from perdure.server import (
    Listener,
    Route,
    RunningServers,
    Server,
    Settings,
    Vitals,
    bind,
    bind_unix,
    load_settings,
    log_to_stderr,
    make_app,
    refuse_open_door,
    require_uvicorn,
    scopes_of,
    serve,
)


class ServerChoice(NamedTuple):
    """The server's options from the command line."""

    host: str | None = None
    port: int | None = None
    unix: str | None = None
    origins: tuple[str, ...] = ()
    proxies: tuple[str, ...] = ()
    insecure_http: bool = False
    dashboard: bool = True
    opens: bool = False
    read_only: bool = False
    new_secret: bool = False
    logs: bool | None = None

    @classmethod
    def of(cls, options: Mapping[str, Any]) -> ServerChoice:
        return cls(**{name: options[name] for name in cls._fields})

    def as_options(self) -> list[str]:
        """The same on a command line, without where to listen."""
        found = [part for origin in self.origins for part in ("--origin", origin)]
        found += [part for proxy in self.proxies for part in ("--trust-proxy", proxy)]
        found += ["--socket", self.unix] if self.unix is not None else []
        found += ["--host", self.host] if self.host is not None else []
        flags = {
            "--insecure-http": self.insecure_http,
            "--no-dashboard": not self.dashboard,
            "--open": self.opens,
            "--read-only": self.read_only,
            "--new-secret": self.new_secret,
            "--access-log": self.logs is True,
            "--no-access-log": self.logs is False,
        }
        return [*found, *(flag for flag, is_on in flags.items() if is_on)]


class Serving:
    """One server, from its sockets to its end."""

    def __init__(self, call: Invocation, choice: ServerChoice) -> None:
        """
        Raises:
            InvalidInput: a setting will not do, or the server is not installed.
        """
        require_uvicorn()
        self._call, self._choice = call, choice
        self._settings = self._read_settings()

    def _read_settings(self) -> Settings:
        choice = self._choice
        place = Path(self._call.store.address.target).parent if self._call.store.address.engine == "sqlite" else None
        return load_settings(
            place,
            host=choice.host,
            port=choice.port,
            socket=choice.unix,
            origins=choice.origins or None,
            trusted_proxies=choice.proxies or None,
            read_only=choice.read_only or None,
        )

    def require_store(self) -> None:
        """
        Raises:
            StoreUnavailable: there is no store to serve.
        """
        address = self._call.store.address
        if address.engine == "sqlite" and not os.path.lexists(address.target):
            raise StoreUnavailable(
                f"there is no store at {address.target}",
                kept="nothing was started",
                do="a program that uses perdure makes one, and so does `perdure up`; --store names another",
            )

    def listen(self, *, may_move: bool) -> Listener:
        """
        Raises:
            Conflict: the port is taken.
        """
        return bind(self._settings.host, self._settings.port, may_move=may_move)

    def run(self, listener: Listener) -> None:
        """Serve until SIGTERM or SIGINT.

        Raises:
            NotAllowed: the server would be open to other machines.
            StoreUnavailable: the store cannot be reached.
        """
        asyncio.run(self._run(listener))

    async def _run(self, listener: Listener) -> None:
        logs = not sys.stderr.isatty() if self._choice.logs is None and sys.stderr else bool(self._choice.logs)
        log_to_stderr(with_requests=logs)
        settings = _with_port(self._settings, listener.port)
        server = make_app(self._call.store_url, settings, pages=[*self._pages(), *mcp_routes()])
        sockets: list[socket.socket] = [listener.socket]
        try:
            await refuse_open_door(server, is_insecure=self._choice.insecure_http)
            if settings.socket is not None:
                sockets.append(bind_unix(settings.socket))
            desk = server.desk
            if self._choice.new_secret:
                await desk.vault.renew_secret()
            base = desk.place.origins[0] if desk.place.origins else listener.url
            code = await desk.sessions.make_link(user_name(), scopes_of(["admin"]), self._call.namespace, is_local=True)
            running = RunningServers(desk.vault)
            name = await running.come(base)
            server.on_close(running.leave(name))
            server.be_hasty()  # from here on: until it has begun, it waits for its store
            telling = asyncio.create_task(running.keep_telling(name, lambda: _vitals_of(server)))
            server.on_close(_ended(telling))
            await serve(server, sockets, on_ready=lambda: self._say(base, f"{base}/link#{code}"))
        finally:
            await server.close()
            if settings.socket is not None and len(sockets) > 1:
                _unlink(settings.socket)

    def _pages(self) -> Sequence[Route]:
        if not self._choice.dashboard:
            return ()
        from perdure.dashboard import pages

        return pages(self._call.place)

    def _say(self, url: str, link: str) -> None:
        if sys.stdout is None:
            return
        place = self._call.place
        if self._call.json:
            told = {"store": place, "url": url, "link": link, "socket": self._settings.socket, "pid": os.getpid()}
            print(values.as_json(told, ascii=True), flush=True)
        else:
            minutes = int(self._settings.link.total_seconds() // 60)
            print(f"store  {safe(place)}\nopen   {link}  (once, within {minutes} minutes)\nstop   Ctrl-C", flush=True)
        if self._choice.opens:
            import webbrowser

            webbrowser.open(link)


def _vitals_of(server: Server) -> Vitals:
    seen = server.telemetry
    return Vitals(seen.streams_refused, round(seen.held.longest, 3), seen.held.route, dict(seen.skews))


async def _ended(work: asyncio.Task[None]) -> None:
    work.cancel()
    await asyncio.wait({work})


def _with_port(settings: Settings, port: int) -> Settings:
    from msgspec.structs import replace

    return replace(settings, port=port)


def _unlink(path: str) -> None:
    try:
        os.unlink(path)
    except OSError:
        return

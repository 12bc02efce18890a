"""What an operator may set: `[server]` in .perdure/config.toml, PERDURE_SERVER_*, options of the command line."""

from __future__ import annotations

from datetime import timedelta

from msgspec import Struct

MB = 1024 * 1024


class Settings(Struct, frozen=True, kw_only=True):
    """Limits and addresses of one server; each with its default."""

    host: str = "127.0.0.1"
    port: int = 7420
    socket: str | None = None
    origins: tuple[str, ...] = ()  # where browsers reach it, when a proxy ends TLS
    trusted_proxies: tuple[str, ...] = ()  # networks whose X-Forwarded-For is believed
    read_only: bool = False
    body_limit: int = 2 * MB
    state_limit: int = 64 * MB
    depth: int = 64  # of JSON
    page_limit: int = 200
    rate: int = 50  # requests a second and credential
    burst: int = 200
    streams_per_key: int = 20
    streams: int = 4000
    session: timedelta = timedelta(hours=12)
    link: timedelta = timedelta(minutes=10)
    retention_deliveries: timedelta = timedelta(days=7)
    allow_private_hooks: bool = False
    hook_ports: tuple[int, ...] = (443,)

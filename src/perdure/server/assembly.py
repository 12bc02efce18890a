"""Put a server together: a store, a guard, identities, the table of routes."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from perdure._app import Perdure
from perdure.server.access import BrowserGuard, ServerAddress, read_network, read_origin
from perdure.server.desk import Desk
from perdure.server.pipeline import Server
from perdure.server.settings import Settings
from perdure.server.table import Route


def make_app(
    url: str | Path | None = None,
    settings: Settings | None = None,
    *,
    key: str | None = None,
    pages: Sequence[Route] = (),
) -> Server:
    """The ASGI application that serves a store.

    `url` and `key` are those of `Perdure`; `pages` are routes to serve beside the API, such as those of
    `perdure.dashboard.pages()`. Closing it, or the end of its lifespan, closes the store.

    Raises:
        InvalidInput: a setting will not do.
    """
    settings = settings or Settings()
    place = ServerAddress(
        settings.host,
        settings.port,
        tuple(map(read_origin, settings.origins)),
        tuple(map(read_network, settings.trusted_proxies)),
    )

    def open_app(namespace: str) -> Perdure:
        return Perdure(url, key=key, namespace=namespace)

    desk = Desk.open(open_app("default"), settings, place)
    guard = BrowserGuard(place, desk.vault.clock, rate=settings.rate, burst=settings.burst)
    return Server(open_app, settings, guard, desk.identities, desk=desk, pages=pages)

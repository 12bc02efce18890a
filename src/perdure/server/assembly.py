"""Put a server together: a store, a guard, identities, the table of routes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from perdure._app import Perdure
from perdure.server.access import BrowserGuard, Identities, Place, read_network, read_origin
from perdure.server.credentials import ApiKeys, Sessions, Vault
from perdure.server.jobs import Jobs
from perdure.server.once import Answers
from perdure.server.serving import Server
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
    place = Place(
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


@dataclass(frozen=True, slots=True)
class Desk:
    """Where credentials are made, checked and taken back."""

    app: Perdure  # holds the store open
    vault: Vault
    keys: ApiKeys
    sessions: Sessions
    identities: Identities
    answers: Answers
    jobs: Jobs
    place: Place

    @classmethod
    def open(cls, app: Perdure, settings: Settings, place: Place) -> Desk:
        vault = Vault(app)
        keys, sessions = ApiKeys(vault), Sessions(vault, settings.session, settings.link)
        identities = Identities(
            keys, sessions, vault.clock, port=settings.port, rate=settings.rate, burst=settings.burst
        )
        return cls(app, vault, keys, sessions, identities, Answers(vault), Jobs(vault), place)

    async def close(self) -> None:
        await self.identities.close()
        await self.vault.close()
        await self.app.close()

"""The desk of a server: where credentials are made, checked and taken back, beside kept answers and jobs."""

from __future__ import annotations

from dataclasses import dataclass

from perdure._app import Perdure
from perdure.server.access import Identities, ServerAddress
from perdure.server.credentials import ApiKeys, Sessions, Vault
from perdure.server.http import Answers
from perdure.server.jobs import Jobs
from perdure.server.settings import Settings


@dataclass(frozen=True, slots=True)
class Desk:
    """The part of a server that makes, checks and revokes credentials."""

    app: Perdure  # holds the store open
    vault: Vault
    keys: ApiKeys
    sessions: Sessions
    identities: Identities
    answers: Answers
    jobs: Jobs
    place: ServerAddress

    @classmethod
    def open(cls, app: Perdure, settings: Settings, place: ServerAddress) -> Desk:
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

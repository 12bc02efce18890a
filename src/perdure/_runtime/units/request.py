"""HTTP requests that the keeper makes: sent once, and read by any later process from any offset."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from hashlib import sha256
from typing import Any

from perdure import keeper
from perdure._ground.secrets import secret_forms
from perdure._model import Level, Verdict
from perdure._runtime.keeper_client import Client, Record
from perdure._runtime.secrets import Secret, redaction
from perdure._runtime.units.unit import Owner, Unit
from perdure._runtime.units.unit_notes import MOST_ANSWER, Note, UnitNote
from perdure.errors import Conflict, InvalidInput, PerdureError, RequestFailed, UnitEnded

NOT_SENT, CUT_OFF = 3, 4


@dataclass(frozen=True)
class Head:
    """The answer to a request."""

    status: int
    headers: Mapping[str, str] = field(default_factory=dict)


class KeptRequest(Unit):
    """A request under way, or answered."""

    level: Level
    verdict: Verdict
    note: UnitNote  # where its whole answer is kept, for a keeper that does not know it
    stored: Note | None = None  # the note of another keeper, which alone is left of it here

    def __init__(self, client: Client, owner: Owner, record: Record, verdict: Verdict) -> None:
        if record.ended == 0:  # its program has done its work
            verdict = Verdict("kept", "it was answered; the answer is kept", same=("answer",))
        super().__init__(client, owner, record, verdict)

    def check_same(self, recipe: Mapping[str, Any]) -> None:
        """A name stands for one request for ever, also after it was answered."""
        if any(self.record.recipe.get(part) != recipe[part] for part in ("method", "url", "digest")):
            asked = f"{self.record.recipe.get('method')} {self.record.recipe.get('url')}"
            raise Conflict(
                f"request {self.name!r} was made before, as another one: {asked}",
                kept="that one and its answer; nothing was sent",
                do="choose another name",
            )

    async def check_whole(self) -> None:
        """An answer is called kept only if it is still all that came."""
        if self.record.ended == 0 and (damage := await self._damage()):
            self.level = "lost"
            self.verdict = Verdict(
                "lost",
                damage,
                do_not_assume=("that it was not answered: what it bought is paid for",),
                options=("make it again under another name",),
            )

    async def _damage(self) -> str:
        try:
            return str((await self.ask("whole")).args["damage"])
        except InvalidInput:
            return ""  # its keeper is an older one, which does not tell
        except UnitEnded as gone:
            return gone.why

    def _check(self) -> None:
        """The part of an answer that arrived can be read, however the request ended."""
        if not self.uid:
            raise RequestFailed(self.name, str(self.record.facts["why"]), True)

    async def head(self) -> Head:
        """The answer's status and headers, as soon as they are there.

        Raises:
            RequestFailed: there is no answer; `sent` says whether the request may have arrived.
        """
        if self.stored is not None and self.stored.status is not None:
            return Head(self.stored.status, dict(self.stored.headers))
        while True:
            reply = await self.ask("answered")
            head, ended = reply.args["head"], reply.args["status"]
            if head is not None and "status" in head:
                return Head(head["status"], {name.lower(): value for name, value in head["headers"]})
            if ended is not None:
                raise self._failed(head, ended)

    async def chunks(self, after: int = 0) -> AsyncIterator[bytes]:
        """The body from an offset on, as it comes; ends when it is whole.

        Raises:
            RequestFailed: it was cut off; the part that arrived was returned.
        """
        if self.stored is not None and self.stored.body is not None:
            if rest := self.stored.body[after:]:
                yield rest
            return
        offset, whole = after, bytearray()
        while True:
            reply = await self.ask("more", start=offset)
            if reply.body:
                offset = reply.args["start"] + len(reply.body)
                whole += reply.body if len(whole) <= MOST_ANSWER else b""
                yield reply.body
            elif reply.args["status"] is not None:
                break
        if reply.args["status"] == 0 and (damage := await self._damage()):
            raise RequestFailed(self.name, damage, True)
        if reply.args["status"] != 0:
            head = (await self.ask("state")).args["head"]
            raise self._failed(head, reply.args["status"])
        if after == 0:
            await self._keep(bytes(whole))

    async def _keep(self, body: bytes) -> None:
        head = await self.head()
        hidden = redaction.HIDDEN
        shown = {name: hidden if redaction.is_telling(name) else value for name, value in head.headers.items()}
        with suppress(PerdureError):  # the caller has its answer, whatever becomes of the store
            await self.note.keep(head.status, tuple(shown.items()), body)

    async def read(self) -> bytes:
        """The whole body."""
        return b"".join([piece async for piece in self.chunks()])

    async def json(self) -> Any:
        return json.loads(await self.read())

    def _failed(self, head: Mapping[str, Any] | None, ended: int) -> RequestFailed:
        told = dict(head or {})
        # Unseen, or killed: it is not known how far it had come.
        sent = bool(told.get("sent", True))
        return RequestFailed(self.name, str(told.get("error") or self.record.facts.get("why") or _how(ended)), sent)


def _how(ended: int) -> str:
    return "it ended unseen" if ended < 0 else f"its program ended with {ended}"


def request_recipe(
    method: str, url: str, headers: Mapping[str, str | Secret], data: Any, body: bytes | None
) -> tuple[dict[str, Any], dict[str, str], bytes]:
    """The request's method and headers, the secret ones among them, and its body."""
    plain: dict[str, str] = {}
    secret: dict[str, str] = {}  # sent, and written down nowhere
    references: dict[str, str] = {}
    for name, value in headers.items():
        if isinstance(value, Secret):
            secret[name], references[name] = value.value(), value.reference
        elif redaction.is_telling(name) or redaction.looks_secret(value):
            secret[name], references[name] = value, redaction.HIDDEN
            redaction.know(value)
        else:
            plain[name] = value
    shown = secret_forms.hide_in_address(url)
    if shown != url:
        secret[keeper.REAL_URL] = url
    content = body if body is not None else b""
    if data is not None:
        content = json.dumps(data).encode()
        if not any(name.lower() == "content-type" for name in headers):
            plain["Content-Type"] = "application/json"
    recipe = {
        "method": method.upper(),
        "url": shown,
        "headers": plain,
        "secret_headers": references,
        "has_body": body is not None or data is not None,
        "digest": sha256(content).hexdigest(),
    }
    return recipe, secret, content

"""A namespace with webhooks, and its duty driven by hand: a round at a time, by a clock that the test moves."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from perdure import Perdure
from perdure._tasks import Webhooks
from perdure._worker import WebhookDuty
from tests.support.receivers import Catching, Got, Receiver

ADDRESS = "https://hooks.example.com/in"


class Post:
    """An app, its webhooks, a receiver that all messages go to, and the duty that sends them."""

    def __init__(self, app: Perdure, receiver: Receiver) -> None:
        self.app, self.receiver = app, receiver
        self.sender: Catching = receiver.sender()
        self.hooks = Webhooks(app.tasks, lambda: self.sender)
        self.duty = WebhookDuty(app.tasks, self.sender)

    async def make(self, **how: Any) -> tuple[str, str]:
        """The id and the secret of a new webhook."""
        made = await self.hooks.make(how.pop("url", ADDRESS), **how)
        return made.webhook.id, made.secret

    async def settle(self) -> None:
        """Queue and send until nothing more is due now."""
        while True:
            await self.duty.round()
            running = list(self.duty._sending._under_way.values())
            if not running:
                return
            await asyncio.gather(*running)

    def bodies(self) -> list[Any]:
        return [json.loads(got.body) for got in self.receiver.got]

    def numbers(self) -> list[int]:
        return [body["data"]["event"]["number"] for body in self.bodies()]

    def types(self) -> list[str]:
        return [body["type"] for body in self.bodies()]


@asynccontextmanager
async def post(url: str, receiver: Receiver | None = None, **how: Any) -> AsyncIterator[Post]:
    async with receiver or Receiver() as open_receiver, Perdure(url, **how) as app:
        made = Post(app, open_receiver)
        try:
            yield made
        finally:
            await made.duty.leave()


def headers_of(got: Got) -> dict[str, str]:
    return {name: got.headers[name] for name in ("webhook-id", "webhook-timestamp", "webhook-signature")}

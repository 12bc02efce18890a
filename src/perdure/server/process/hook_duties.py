"""Send the webhooks of every namespace from a server, so that `perdure serve` alone delivers.

The server looks for namespaces with webhooks and has the duty of webhooks for each. Workers have the same duty;
of all these processes one holds the post of each webhook (perdure/_worker/delivery/webhooks.py).
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable
from contextlib import suppress

from perdure._app import Perdure
from perdure._ground.reach import Sender
from perdure._tasks import store_of
from perdure._worker import DutyLoop, WebhookDuty
from perdure.errors import PerdureError
from perdure.server.settings import Settings
from perdure.server.telemetry import Telemetry

log = logging.getLogger("perdure.server")

_LOOK = 1.0  # seconds
_MOST_NAMESPACES = 1000


class HookDuties:
    """The duties of one server."""

    def __init__(self, open_app: Callable[[str], Perdure], settings: Settings, telemetry: Telemetry) -> None:
        self._open, self._settings, self._telemetry = open_app, settings, telemetry
        self._sender = Sender(settings.hook_rules)
        self._apps: dict[str, Perdure] = {}
        self._duties: list[WebhookDuty] = []
        self._running: list[asyncio.Task[None]] = []

    def begin(self) -> Awaitable[None]:
        """Begin, and count how long the event loop is held up. What is returned ends both."""
        if not self._settings.read_only:
            self._running.append(asyncio.create_task(self._look(), name="perdure webhook namespaces"))
        self._running.append(asyncio.create_task(self._telemetry.held.feel_pulse(), name="perdure pulse"))
        return self._end()

    async def _end(self) -> None:
        """Stop, and let other processes have the posts."""
        for running in self._running:
            running.cancel()
        await asyncio.gather(*self._running, return_exceptions=True)
        for duty in self._duties:
            with suppress(PerdureError):
                await duty.leave()
        for app in self._apps.values():
            await app.close()
        self._running, self._duties, self._apps = [], [], {}

    async def _look(self) -> None:
        first = self._apps["default"] = self._open("default")
        store = store_of(first.tasks)
        begun: set[str] = set()
        while True:
            with suppress(PerdureError):  # the store is out of reach: the next look may find it
                found = {row[0] for row in await store.query("hook_namespaces")}
                for namespace in sorted(found - begun)[: _MOST_NAMESPACES - len(begun)]:
                    begun.add(namespace)
                    self._begin(namespace)
            await asyncio.sleep(_LOOK)

    def _begin(self, namespace: str) -> None:
        app = self._apps.get(namespace) or self._open(namespace)
        self._apps[namespace] = app
        duty = WebhookDuty(app.tasks, self._sender, self._settings.retention_deliveries)
        loop = DutyLoop(duty, store_of(app.tasks).clock)
        duty.wake = loop.ring
        duty.tell_try = lambda state: self._telemetry.of(namespace).count("hook_deliveries", state)
        self._duties.append(duty)
        self._running.append(asyncio.create_task(loop.run(), name=f"perdure webhooks of {namespace}"))

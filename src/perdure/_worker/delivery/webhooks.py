"""The duty of webhooks: queue messages, send those that are due, forget old ones.

Workers have this duty, and servers have it for every namespace. Of several processes one holds the post of each
webhook: it alone sends to it. The process with the post of the oldest webhook also queues the messages of all. When a
process dies, others see it as they see the death of a worker, and one of them takes its posts.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import suppress
from datetime import timedelta
from pathlib import Path

from perdure._ground.reach import Sender, operator_rules
from perdure._model import Holder
from perdure._store import Store, WorkerRow
from perdure._tasks import KeptHook, Tasks, messages_before, read_hooks, store_of, why_lease_over
from perdure._worker.delivery.hook_intake import HookIntake
from perdure._worker.delivery.hook_sender import HookSending
from perdure._worker.duty import Rest
from perdure._worker.losses import Peer
from perdure.errors import PerdureError

LOOK, IDLE = timedelta(seconds=0.2), timedelta(seconds=1)
RETENTION = timedelta(days=7)
_TIDY_SECONDS = 600.0

# Several workers or servers of one process look like one to other processes; the first of them here has the duty.
_here: dict[tuple[int, str], WebhookDuty] = {}


def sender_of(store: Store) -> Sender:
    """The sender for the messages of a store, by the operator's rules."""
    folder = Path(store.address.target).parent if store.address.engine == "sqlite" else None
    return Sender(operator_rules(folder))


class WebhookDuty:
    """Webhooks of one namespace, in one process."""

    name = "webhooks"

    def __init__(self, tasks: Tasks, sender: Sender, retention: timedelta = RETENTION) -> None:
        self._store = store_of(tasks)
        self._retention_ms = int(retention.total_seconds() * 1000)
        self._place = (id(self._store.engine), self._store.namespace)
        self._intake = HookIntake(tasks)
        self._sending = HookSending(tasks, sender, self._tried)
        self._is_present = False
        self._tidied: float | None = None
        self.wake: Callable[[], None] = lambda: None  # makes the loop of this duty look now
        self.tell_try: Callable[[str], None] = lambda state: None  # hears how each try has left its message

    def _tried(self, state: str) -> None:
        if state:
            self.tell_try(state)
        self.wake()

    async def round(self) -> timedelta | Rest | None:
        if _here.setdefault(self._place, self) is not self:
            return IDLE  # nothing tells when the other one leaves
        hooks = await read_hooks(self._store)
        if not hooks:
            return Rest(IDLE)
        await self._come()
        mine = await self._take_posts(hooks)
        if hooks[0].id in mine and await self._intake.round(hooks):
            hooks = await read_hooks(self._store)
        for hook in hooks:
            if hook.id in mine:
                await self._sending.begin(hook)
        await self._tidy([hook for hook in hooks if hook.id in mine])
        return LOOK if mine else IDLE

    async def leave(self) -> None:
        """Stop sending, and let other processes have the posts at once."""
        if _here.get(self._place) is not self:
            return
        await self._sending.end()
        del _here[self._place]
        if not self._is_present:
            return
        me = self._store.presence.worker
        with suppress(PerdureError):  # store out of reach: the posts are free once this process is gone
            for hook in await read_hooks(self._store):
                if hook.row.worker == me:
                    await self._post(hook, "")
        self._store.presence.let_go()
        self._is_present = False

    # ── which process sends ─────────────────────────────────────────────────────────────────────

    async def _come(self) -> None:
        """Register a row in the store whose beats others can see."""
        await self._store.presence.register()
        if not self._is_present:
            self._is_present = True
            self._store.presence.hold()

    async def _take_posts(self, hooks: Sequence[KeptHook]) -> set[str]:
        """The webhooks whose post this process holds, after it has taken those that are free."""
        me = self._store.presence.worker
        mine = {hook.id for hook in hooks if hook.row.worker == me}
        others = [hook for hook in hooks if hook.row.worker != me]
        if not others:
            return mine
        peers = {row.id: Peer.of(row) for row in await self._store.rows(WorkerRow, "read_workers")}
        for hook in others:
            if self._is_free(hook, peers.get(hook.row.worker)) and await self._post(hook, me):
                mine.add(hook.id)
        return mine

    def _is_free(self, hook: KeptHook, peer: Peer | None) -> bool:
        if not hook.row.worker or peer is None:
            return True
        holder = Holder(0, peer.id, peer.beats, peer.process, peer.user, peer.lease_ms)
        return why_lease_over(self._store, f"webhook {hook.id}", holder) is not None

    async def _post(self, hook: KeptHook, worker: str) -> bool:
        marks = {"id": hook.id, "worker": worker, "old_worker": hook.row.worker}
        params = {**marks, "failing_since": hook.row.failing_since}
        write = self._store.verb("mark_webhook", self._store.namespace, params, key=f"~webhook/{hook.id}")
        return await write is not None

    # ── old messages ────────────────────────────────────────────────────────────────────────────

    async def _tidy(self, hooks: Sequence[KeptHook]) -> None:
        now = self._store.clock.boottime()
        if self._tidied is not None and now - self._tidied < _TIDY_SECONDS:
            return
        self._tidied = now
        before = messages_before(self._store.clock.now_ms() - self._retention_ms)
        for hook in hooks:
            params = {"webhook": hook.id, "before": before}
            while await self._store.verb("drop_deliveries", self._store.namespace, params, key=f"~webhook/{hook.id}"):
                continue  # some at a time

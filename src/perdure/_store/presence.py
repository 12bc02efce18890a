"""This process, as other processes see it: a row of its own, and a heart that keeps it fresh.

The heart is a thread, so that a busy event loop does not make its process look dead. Where it can, it beats past the
committer, so that a write waiting for locked rows does not either. One row serves all leases of the process; when it
has held none for a while, the heart rests.
"""

from __future__ import annotations

import json
import logging
import threading
from functools import lru_cache
from typing import Any

from msgspec.structs import asdict

from perdure._ground import ids
from perdure._ground.clock import Clock
from perdure._model import LEASE, Sighting
from perdure._store.author import Author, acting_author
from perdure._store.committer import Committer
from perdure._store.contract import Again, Engine
from perdure._store.write import Write
from perdure.errors import PerdureError, StoreClosed, StoreForked

log = logging.getLogger("perdure.heart")


class Presence:
    process: ids.Process
    user: str
    worker: str
    is_registered: bool

    def __init__(self, engine: Engine, committer: Committer, clock: Clock) -> None:
        self._engine, self._committer, self._clock = engine, committer, clock
        self.process = ids.this_process()
        self.user = ids.user_name()
        self.worker = ids.new_uid(clock.now_ms())
        self.lease = LEASE
        self._mutex = threading.Lock()
        self._bell = threading.Event()
        self._held = 0
        self._idle_since = 0.0
        self.is_registered = False
        self._registering: Write | None = None
        self.held: dict[str, Any] = {}  # by task uid: what this process's attempts on it share
        self.taking: set[str] = set()  # task uids whose lease is being taken
        self.seen: dict[str, Sighting] = {}  # by task uid: leases of others that may be over
        self._thread: threading.Thread | None = None
        self._own = lru_cache(maxsize=64)(self._author)  # few agents, and the same text for every write of theirs

    def author(self, agent: str = "", once: str = "") -> str:
        """The author in every event and checkpoint: this process, or the user it acts for; and `once`, the mark of a
        request that can be repeated."""
        acting = acting_author()
        return self._own(agent) if acting is None and not once else self._author(agent, acting, once)

    def _author(self, agent: str, acting: Author | None = None, once: str = "") -> str:
        who = {"user": self.user} if acting is None else asdict(acting)
        told = {name: text for name, text in {"agent": agent, **who, "once": once}.items() if text}
        return json.dumps({**told, "host": self.process.host, "pid": self.process.pid}, separators=(",", ":"))

    @property
    def acting_user(self) -> str:
        """The name of who decides: the author this process acts for, else its own user."""
        acting = acting_author()
        return self.user if acting is None else acting.user

    async def register(self) -> None:
        """Have this process's row in the store before it takes its first lease; for all who ask at once, one write."""
        if self.is_registered:
            return
        if self._registering is None or self._registering.done:
            host, boot_id, pid_ns, pid, start = self.process
            self._registering = self._write(
                "register_worker",
                host=host,
                boot_id=boot_id,
                pid_ns=pid_ns,
                pid=pid,
                pid_start=start,
                user=self.user,
                lease_ms=int(self.lease.total_seconds() * 1000),
                at=self._clock.now_ms(),
            )
        await self._registering
        self.is_registered = True

    def _write(self, verb: str, **params: object) -> Write:
        return Write(self._committer, verb, {"worker": self.worker, **params}, key=f"worker {self.worker}")

    # ── the heart ───────────────────────────────────────────────────────────────────────────────

    def hold(self) -> None:
        """One lease more to keep."""
        with self._mutex:
            self._held += 1
            if self._thread is None:
                self._bell = threading.Event()
                self._thread = threading.Thread(
                    target=self._beat, args=(self._bell,), name="perdure-heart", daemon=True
                )
                self._thread.start()

    def let_go(self) -> None:
        """One lease less. The heart continues for a while: a process with short leases would otherwise never beat."""
        with self._mutex:
            self._held -= 1
            if self._held <= 0:
                self._idle_since = self._clock.boottime()

    def _rest(self) -> None:
        self._bell.set()
        self._thread = None

    def _beat(self, bell: threading.Event) -> None:
        # A third of the lease: one beat may be lost, and the next is still in time.
        interval = self.lease.total_seconds() / 3
        # One that could not be is made up for soon: others look as soon as the store is back.
        soon, wait = interval / 8, interval
        began = self._clock.boottime()
        while not self._clock.wait(began + wait - self._clock.boottime(), bell) and not self._may_rest(bell):
            began = self._clock.boottime()  # however long the beat takes, the next one is due in its time
            try:
                if not self._engine.beat(self.worker):
                    self._committer.submit(self._write("beat"))
                wait = interval
            except (StoreClosed, StoreForked) as error:
                log.warning("this process cannot renew its leases: %s", error.what)
                return
            except (PerdureError, Again) as error:
                if wait == interval and not bell.is_set():
                    what = error.what if isinstance(error, PerdureError) else str(error)
                    log.warning("this process cannot renew its leases now: %s", what)
                wait = soon

    def _may_rest(self, bell: threading.Event) -> bool:
        """True if there has been no lease to keep for a whole lease time."""
        with self._mutex:
            idle = self._held <= 0 and self._clock.boottime() - self._idle_since >= self.lease.total_seconds()
            if idle and self._bell is bell:
                self._thread = None
            return idle

    async def end(self) -> None:
        """The process gives up its leases; its row goes with them."""
        with self._mutex:
            self._held = 0
            self._rest()
        if self.is_registered:
            self.is_registered = False
            await self._write("forget_worker")

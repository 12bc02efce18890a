"""The leases of this process on a server elsewhere: one holder, kept alive by a thread while it holds anything."""

from __future__ import annotations

import logging
import os
import threading
from typing import Any

from perdure._ground import ids
from perdure.client.transport import Reply, Transport
from perdure.errors import LeaseHeld, PerdureError

log = logging.getLogger("perdure.client")
LEASE = 30.0  # seconds the holder may be silent: a server that restarts must not cost it its leases


class RemoteHolding:
    """This process as a holder. It registers with its first attempt, and leaves when the app closes."""

    def __init__(self, transport: Transport) -> None:
        self._transport = transport
        self._mutex = threading.Lock()
        self._holder: dict[str, Any] | None = None
        self._at_work: set[str] = set()  # uids of tasks that a part of this program has begun an attempt at
        self._pid = 0
        self._bell = threading.Event()

    async def begin(self, id: str, uid: str, *, take_over: bool) -> Reply:
        """Begin an attempt at a task: its fence, and the task.

        Raises:
            LeaseHeld: another attempt is alive, perhaps one of this process.
        """
        with self._mutex:
            if uid in self._at_work:
                process = ids.this_process()
                raise LeaseHeld(id, f"{ids.user_name()}, in this very process", process.host, process.pid)
            self._at_work.add(uid)
        try:
            holder = await self._registered()
            headers = {"Perdure-Holder": holder["token"]}
            return await self._transport.send(
                "POST", f"/v1/tasks/~{uid}/attempt", {"take_over": take_over}, headers=headers
            )
        except BaseException:
            self._at_work.discard(uid)
            raise

    async def give_back(self, uid: str, fence: str) -> None:
        """End an attempt. One whose lease was lost has nothing to give back."""
        try:
            await self._transport.send("DELETE", f"/v1/tasks/~{uid}/attempt", headers={"Perdure-Fence": fence})
        finally:
            self._at_work.discard(uid)

    async def _registered(self) -> dict[str, Any]:
        if self._holder is None or self._pid != os.getpid():
            process = ids.this_process()
            body = {
                "host": process.host,
                "pid": process.pid,
                "boot_id": process.boot_id,
                "user": ids.user_name(),
                "lease": LEASE,
            }
            made: dict[str, Any] = (await self._transport.send("POST", "/v1/holders", body)).value
            with self._mutex:
                self._holder, self._pid, self._bell = made, os.getpid(), threading.Event()
            threading.Thread(target=self._beat, args=(made, self._bell), name="perdure-beat", daemon=True).start()
        return self._holder

    def _beat(self, holder: dict[str, Any], bell: threading.Event) -> None:
        path = f"/v1/holders/{holder['holder']}/beat"
        while not bell.wait(holder["lease"] / 3):
            try:
                reply = self._transport._once("POST", path, None, [], {"Perdure-Holder": holder["token"]})
            except Exception as error:
                log.warning("this process cannot renew its leases now: %s", error)
                continue
            if reply.status == 410:
                log.warning("the server has forgotten this process; its attempts can no longer write")
                with self._mutex:
                    if self._holder is holder:
                        self._holder = None
                return

    async def close(self) -> None:
        """Give back every lease and leave."""
        with self._mutex:
            holder, self._holder = self._holder, None
            self._bell.set()
        if holder is not None and self._pid == os.getpid():
            headers = {"Perdure-Holder": holder["token"]}
            try:
                await self._transport.send("DELETE", f"/v1/holders/{holder['holder']}", headers=headers)
            except PerdureError as error:
                log.warning("could not give back leases; they end after %g s of silence: %s", LEASE, error.what)

"""The server's own storage: a namespace that no user can name, and a secret in it.

The namespace begins with a space, and `check_id` refuses such a name everywhere else. So no key, session or header can
reach these values through the routes for tasks.
"""

from __future__ import annotations

import hashlib
import hmac
import os
from base64 import b64decode, b64encode
from typing import TYPE_CHECKING, TypeVar

from perdure._store import Store, share
from perdure._tasks import Shelf, store_of

if TYPE_CHECKING:
    from perdure._app import Perdure

T = TypeVar("T")
NAMESPACE = " server"
_SECRET = "secret"


class Vault:
    """The server's own values in a store. All servers and commands that use the store share them."""

    def __init__(self, app: Perdure) -> None:
        beside = store_of(app.tasks)
        self._store = Store(share(beside.address), beside.ring, NAMESPACE)
        self.clock = self._store.clock
        self._secret: bytes | None = None

    @property
    def owner(self) -> str:
        """Under which all these values are kept."""
        return f"namespace:{NAMESPACE}"

    def shelf(self, kind: str, as_type: type[T]) -> Shelf[T]:
        return Shelf(self._store, f"server {kind}", as_type)

    async def secret(self) -> bytes:
        """32 bytes that only servers of this store know. The first one that asks makes them."""
        if self._secret is None:
            shelf = self.shelf(_SECRET, str)
            kept = await shelf.get(_SECRET)
            while kept is None:
                await shelf.add(_SECRET, b64encode(os.urandom(32)).decode())
                kept = await shelf.get(_SECRET)
            self._secret = b64decode(kept.value)
        return self._secret

    async def renew_secret(self) -> None:
        """Replace the secret: every session, link and cursor made under the old one ends."""
        await self.shelf(_SECRET, str).update(_SECRET, lambda _: (b64encode(os.urandom(32)).decode(), None))
        self._secret = None

    async def sign(self, purpose: str, text: bytes) -> bytes:
        """A signature of this text that only servers of this store can make; 32 bytes."""
        return hmac.digest(await self.secret(), purpose.encode() + b"\0" + text, hashlib.sha256)

    async def close(self) -> None:
        await self._store.close()

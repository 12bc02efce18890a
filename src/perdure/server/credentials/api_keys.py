"""API keys: `prd_<id>_<43 characters>`.

The store keeps the SHA-256 of the secret part, never the secret: a key is shown once, when it is made. 256 random bits
need no slow hash. A key that is unknown, wrong, revoked or expired costs one read and two comparisons, and gives the
same answer, so that nothing can be learned from trying.
"""

from __future__ import annotations

import hashlib
import hmac
import os
import re
import secrets
from collections.abc import Iterable
from datetime import timedelta
from typing import NamedTuple

from msgspec import Struct
from msgspec.structs import replace

from perdure._ground.ids import check_id
from perdure._tasks import Kept
from perdure.errors import Conflict, InvalidInput, NotFound
from perdure.server.credentials.presets import scopes_of
from perdure.server.credentials.vault import Vault

_FORM = re.compile(r"prd_([0-9a-z]{12})_([A-Za-z0-9_-]{43})\Z")
_DIGITS = "0123456789abcdefghijkmnpqrstuvwx"
_MINUTE = 60_000  # milliseconds
_LONGEST_NAME = 100
_NO_HASH = hashlib.sha256(os.urandom(32)).hexdigest()


class ApiKey(Struct, frozen=True):
    """A key as it is stored. Moments are milliseconds since 1970."""

    id: str
    name: str
    namespace: str
    scopes: tuple[str, ...]
    hash: str
    made_at: int
    until: int | None = None
    revoked_at: int | None = None
    former: str = ""  # hash of the secret before the last rotation
    former_until: int | None = None
    once: str | None = None  # what the last secret was made for, as a repeated request says it

    def is_good(self, now_ms: int) -> bool:
        return self.revoked_at is None and (self.until is None or now_ms < self.until)


class MadeKey(NamedTuple):
    """A key and its text, which nobody can read again."""

    key: ApiKey
    text: str


def read_key(text: str) -> tuple[str, str] | None:
    """The id and the secret of a key's text; None when it has not the form of one."""
    found = _FORM.match(text)
    return (found[1], found[2]) if found else None


class ApiKeys:
    """The API keys of a store, of all namespaces."""

    def __init__(self, vault: Vault) -> None:
        self._clock = vault.clock
        self._shelf = vault.shelf("api key", ApiKey)
        self._uses = vault.shelf("api key use", int)
        self._used: dict[str, int] = {}  # by key id: the minute that is already noted

    async def check(self, text: str) -> ApiKey | None:
        """The key with this text; None when there is none that is good now."""
        key_id, secret = read_key(text) or ("", "")
        kept = await self._shelf.get(key_id)
        now = self._clock.now_ms()
        given = _hash(secret)
        key = kept.value if kept else None
        is_present = hmac.compare_digest(given, key.hash if key else _NO_HASH)
        is_former = hmac.compare_digest(given, (key.former if key else "") or _NO_HASH)
        if key is None or not key.is_good(now):
            return None
        if is_present or (is_former and key.former_until is not None and now < key.former_until):
            return key
        return None

    def is_new_use(self, key: ApiKey) -> bool:
        """Whether `note_use` has something to note."""
        return self._used.get(key.id, 0) < self._clock.now_ms() // _MINUTE * _MINUTE

    async def note_use(self, key: ApiKey) -> None:
        """Remember, to the minute, when a key was last used."""
        minute = self._clock.now_ms() // _MINUTE * _MINUTE
        if self._used.get(key.id, 0) < minute:
            self._used[key.id] = minute
            await self._uses.update(key.id, lambda known: (max(known or 0, minute), None))

    async def last_uses(self) -> dict[str, int]:
        return {kept.key: kept.value for kept in await self._uses.all()}

    async def make(
        self,
        name: str,
        scopes: Iterable[str],
        namespace: str = "default",
        until: int | None = None,
        *,
        once: str | None = None,
    ) -> MadeKey:
        """A new key. Its text is in the answer and nowhere else.

        With `once`, a repeat whose first answer was lost gives the same key a secret that can be told.

        Raises:
            InvalidInput: the name, a scope, the namespace or the moment will not do.
        """
        now = self._clock.now_ms()
        if until is not None and until <= now:
            raise InvalidInput("the key would expire before it is made", do="give a moment that is to come")
        secret = secrets.token_urlsafe(32)
        key = ApiKey(
            id=_new_id(once),
            name=check_name(name),
            namespace=check_id(namespace, "namespace"),
            scopes=scopes_of(scopes),
            hash=_hash(secret),
            made_at=now,
            until=until,
            once=once,
        )
        if not await self._shelf.add(key.id, key):
            kept = await self.get(key.id, namespace)
            if once is None or kept.value.once != once:
                raise Conflict(f"the key {key.id} is there already", kept="the key as it is", do="make another one")
            key = (await self._put(kept, replace(kept.value, hash=_hash(secret)))).value
        return MadeKey(key, f"prd_{key.id}_{secret}")

    async def all(self, namespace: str | None = None) -> list[Kept[ApiKey]]:
        """All keys, or those of one namespace, in the order they were made."""
        found = [kept for kept in await self._shelf.all() if namespace in (None, kept.value.namespace)]
        return sorted(found, key=lambda kept: (kept.value.made_at, kept.key))

    async def has_any(self) -> bool:
        """True if a key exists that is good now."""
        return any(kept.value.is_good(self._clock.now_ms()) for kept in await self._shelf.all())

    async def get(self, id: str, namespace: str | None = None) -> Kept[ApiKey]:
        """
        Raises:
            NotFound: there is no such key, or it is another namespace's.
        """
        kept = await self._shelf.get(id)
        if kept is None or namespace not in (None, kept.value.namespace):
            raise NotFound("API key", id, "this store", do="`perdure api-keys list` lists the keys")
        return kept

    async def change(
        self, kept: Kept[ApiKey], *, name: str | None = None, scopes: Iterable[str] | None = None
    ) -> Kept[ApiKey]:
        """Rename a key, or take scopes from it.

        Raises:
            InvalidInput: a scope is one that the key does not have.
            Conflict: it was changed since it was read.
        """
        key = kept.value
        if scopes is not None:
            narrow = scopes_of(scopes)
            if wider := [scope for scope in narrow if scope not in key.scopes]:
                raise InvalidInput(f"the key does not have the scope {wider[0]}", do="make another key for it")
            key = replace(key, scopes=narrow)
        return await self._put(kept, replace(key, name=key.name if name is None else check_name(name)))

    async def rotate(
        self, kept: Kept[ApiKey], overlap: timedelta = timedelta(hours=24), *, once: str | None = None
    ) -> MadeKey:
        """Give a key a new secret. The old one stays good for the overlap.

        With `once`, a repeat whose first answer was lost replaces the secret that nobody was told, and not the old one.

        Raises:
            Conflict: the key is revoked or expired, or was changed since it was read.
        """
        now = self._clock.now_ms()
        if not kept.value.is_good(now):
            raise Conflict(f"the key {kept.key} is revoked or expired", kept="the key as it is", do="make another one")
        secret = secrets.token_urlsafe(32)
        until = now + int(overlap.total_seconds() * 1000)
        key = replace(kept.value, hash=_hash(secret), once=once)
        if once is None or kept.value.once != once:
            key = replace(key, former=kept.value.hash, former_until=until)
        await self._put(kept, key)
        return MadeKey(key, f"prd_{key.id}_{secret}")

    async def revoke(self, kept: Kept[ApiKey]) -> None:
        """End a key for good. Ending it twice is not an error."""
        if kept.value.revoked_at is None:
            await self._put(kept, replace(kept.value, revoked_at=self._clock.now_ms()))

    async def _put(self, kept: Kept[ApiKey], key: ApiKey) -> Kept[ApiKey]:
        if not await self._shelf.change(kept, key):
            raise Conflict(
                f"the key {kept.key} was changed since it was read",
                kept="the key as the other change left it",
                do="look at it, and try again",
            )
        return replace(kept, version=kept.version + 1, value=key)


def check_name(name: str) -> str:
    """
    Raises:
        InvalidInput: the name is empty, too long, or has characters that nobody sees.
    """
    if len(name) > _LONGEST_NAME:
        raise InvalidInput(f"the name has {len(name)} characters; at most {_LONGEST_NAME} are kept")
    return check_id(name, "name of a key")


def _hash(secret: str) -> str:
    return hashlib.sha256(secret.encode()).hexdigest()


def _new_id(once: str | None) -> str:
    """A random id, or the one that every repeat of a request makes."""
    digits = secrets.token_bytes(12) if once is None else hashlib.sha256(once.encode()).digest()[:12]
    return "".join(_DIGITS[digit % len(_DIGITS)] for digit in digits)

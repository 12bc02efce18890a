"""Keys, where they come from, and AES-256-GCM with them.

A key is 32 bytes under a short id. As text it is `<id>:<base64>`, kept outside the store: in an environment variable,
in a file only its owner can read, or in the system's keyring. Each record names the id of its key, so several can be in
use while records move from an old one to a new one.

Owns the text form of keys and the cipher. envelope.py decides which records are sealed, and what they are bound to.
`cryptography` and `keyring` are imported when first needed: most stores have no key.
"""

from __future__ import annotations

import base64
import os
import re
import stat
from collections.abc import Iterable, Mapping
from functools import cached_property
from typing import Any

from msgspec import Struct

from perdure.errors import InvalidInput, KeyMissing, RecordDamaged

_SECRET_BYTES = 32
_NONCE_BYTES = 12
_KEY_ID = r"[a-z0-9-]{1,32}"
_SOURCES = ("env", "file", "keyring")
_DO_GENERATE = "make one with `perdure keys generate`"


class Key(Struct, frozen=True, dict=True):
    """One key; its secret is not shown by repr."""

    id: str
    secret: bytes

    def __post_init__(self) -> None:
        if not re.fullmatch(_KEY_ID, self.id) or self.id in _SOURCES:
            raise InvalidInput(
                "the id of a key is 1 to 32 of a-z, 0-9 and '-', and none of " + ", ".join(_SOURCES), do=_DO_GENERATE
            )
        if len(self.secret) != _SECRET_BYTES:
            raise InvalidInput(
                f"the secret of a key has {_SECRET_BYTES} bytes, not {len(self.secret)}", do=_DO_GENERATE
            )

    def __repr__(self) -> str:
        return f"Key(id={self.id!r})"

    def __rich_repr__(self) -> list[tuple[str, Any]]:
        return [("id", self.id)]

    @cached_property
    def cipher(self) -> Any:
        from cryptography.hazmat.primitives.ciphers.aead import AESGCM

        return AESGCM(self.secret)


SEALED_ONLY = "sealed-only"


class KeyRing:
    """The keys at hand: the current one seals new records, all of them open old ones."""

    def __init__(self, keys: Iterable[Key] = (), *, sealed_only: bool = False) -> None:
        self._keys: dict[str, Key] = {}
        self.current: Key | None = None
        self.sealed_only = sealed_only  # whether a record that is not sealed counts as damaged
        for key in keys:
            self.add(key)

    def __repr__(self) -> str:
        return f"KeyRing({', '.join(self._keys)})"

    @property
    def ids(self) -> tuple[str, ...]:
        return tuple(self._keys)

    def add(self, key: Key, *, current: bool = False) -> None:
        """Add a key for reading; the first one, or one added as current, also seals what is written from now on."""
        if self._keys.setdefault(key.id, key) != key:
            raise InvalidInput(f"there are two different keys {key.id!r}", do="give each key an id of its own")
        if current or self.current is None:
            self.current = key

    def get(self, key_id: str) -> Key:
        """The key of that id.

        Raises:
            KeyMissing: the key is not here; records it sealed stay as they are.
        """
        key = self._keys.get(key_id)
        if key is None:
            raise KeyMissing(key_id)
        return key

    @classmethod
    def load(cls, spec: str | None = None, environ: Mapping[str, str] = os.environ) -> KeyRing:
        """The keys a spec names: `env:NAME`, `file:/path`, `keyring:service/user`, or `<id>:<base64>` itself.

        Several are separated by commas; the first is current, the others open old records. With the word `sealed-only`
        among them, unsealed records are refused: someone else may have planted them. Without a spec, PERDURE_KEY holds
        it; without that either, the ring is empty and nothing is sealed.

        Raises:
            InvalidInput: a key cannot be read, or is not a key. The message never shows it.
        """
        if spec is None:
            spec = environ.get("PERDURE_KEY", "")
        parts = [part.strip() for part in spec.split(",") if part.strip()]
        names = [part for part in parts if part != SEALED_ONLY]
        if SEALED_ONLY in parts and not names:
            raise InvalidInput(f"{SEALED_ONLY} without a key: nothing could be read", do=_DO_GENERATE)
        return cls((_load(part, environ) for part in names), sealed_only=SEALED_ONLY in parts)


def generate(key_id: str | None = None) -> str:
    """A new key as text."""
    key = Key(key_id or f"k-{os.urandom(4).hex()}", os.urandom(_SECRET_BYTES))
    return f"{key.id}:{base64.b64encode(key.secret).decode()}"


def parse(text: str, where: str = "the key") -> Key:
    """A key from its text; `where` replaces the text in error messages."""
    key_id, colon, encoded = text.strip().partition(":")
    secret = _from_base64(encoded)
    if not colon or secret is None:
        raise InvalidInput(f"{where} does not hold a key of the form <id>:<base64>", do=_DO_GENERATE)
    return Key(key_id, secret)


def _from_base64(encoded: str) -> bytes | None:
    try:
        return base64.b64decode(encoded, validate=True)
    except ValueError:
        return None


# ── where keys come from ─────────────────────────────────────────────────────────────────────────


def _load(part: str, environ: Mapping[str, str]) -> Key:
    source, _, name = part.partition(":")
    if source in _SOURCES and len(_from_base64(name.rpartition(":")[2]) or b"") == _SECRET_BYTES:
        # Told apart first, because the messages further down show the name.
        raise InvalidInput(f"{source}: is followed by the name of a place, not by a key", do=f"leave out {source}:")
    if source == "env":
        return parse(_from_environment(name, environ), f"environment variable {name}")
    if source == "file":
        return parse(_from_file(name), f"key file {name}")
    if source == "keyring":
        return parse(_from_keyring(name), f"keyring entry {name}")
    return parse(part)


def _from_environment(name: str, environ: Mapping[str, str]) -> str:
    if name not in environ:
        raise InvalidInput(f"environment variable {name}, which should hold a key, is not set", do=_DO_GENERATE)
    return environ[name]


def _from_file(path: str) -> str:
    try:
        with open(os.path.expanduser(path), encoding="utf-8") as file:
            mode = stat.S_IMODE(os.fstat(file.fileno()).st_mode)
            if os.name == "posix" and mode & 0o077:
                raise InvalidInput(
                    f"key file {path} can be used by others than its owner (mode {mode:03o})", do=f"chmod 600 {path}"
                )
            return file.read()
    except (OSError, UnicodeDecodeError) as error:
        if isinstance(error, OSError) and error.errno is None:
            raise  # a signal's handler raised it: TimeoutError is an OSError too
        reason = error.strerror if isinstance(error, OSError) else "it is not text"
        raise InvalidInput(f"key file {path} cannot be read: {reason}", do=_DO_GENERATE) from None


def _from_keyring(name: str) -> str:
    service, _, user = name.partition("/")
    try:
        import keyring
    except ImportError:
        raise InvalidInput(
            f"the key is in the keyring ({name}), and the keyring library is not installed",
            do="pip install 'perdure[keyring]'",
        ) from None
    try:
        found = keyring.get_password(service, user)
    except Exception as error:  # each backend has its own: locked, absent, refused
        raise InvalidInput(f"the keyring could not be asked for {name}: {error}", do="unlock the keyring") from error
    if found is None:
        raise InvalidInput(f"the keyring has no entry {name}", do=f"keyring set {service} {user}")
    return found


# ── the cipher ───────────────────────────────────────────────────────────────────────────────────


def encrypt(key: Key, plaintext: bytes, bound_to: bytes) -> bytes:
    """The plaintext sealed, a random nonce in front; only `decrypt` with the same key and binding opens it.

    Nonces are drawn at random, so a key is good for some four thousand million records; then rotate it.
    """
    nonce = os.urandom(_NONCE_BYTES)
    sealed: bytes = key.cipher.encrypt(nonce, plaintext, bound_to)
    return nonce + sealed


def decrypt(key: Key, sealed: bytes, bound_to: bytes) -> bytes:
    """The plaintext.

    Raises:
        RecordDamaged: it was changed, belongs elsewhere, or was sealed by another key of that id.
    """
    from cryptography.exceptions import InvalidTag

    try:
        plaintext: bytes = key.cipher.decrypt(sealed[:_NONCE_BYTES], sealed[_NONCE_BYTES:], bound_to)
    except (InvalidTag, ValueError):
        raise RecordDamaged(
            "a sealed record", f"key {key.id!r} does not open it: it was changed, or belongs elsewhere"
        ) from None
    return plaintext

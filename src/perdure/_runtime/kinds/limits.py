"""Record the used part of each provider's allowance, so that a resumed agent does not run into the limit again.

Counted by provider and key; of a key only a digest is kept. What is taken is on disk before `take` returns, in a small
file beside the store (sealed, if the store has a key): a process that is killed a moment later has used it, whether or
not anything was saved. Several processes may take from the same allowance.
"""

from __future__ import annotations

import contextlib
import fcntl
import hashlib
import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import msgspec

from perdure._ground.clock import Clock, SystemClock
from perdure._ground.secrets import envelope
from perdure._ground.secrets.crypto import KeyRing
from perdure._runtime.context import Place, UnitType
from perdure.errors import RecordDamaged

_Told = dict[str, tuple[int, int, int, int]]


@dataclass
class Allowance:
    """One provider's allowance for one key: `limit` within each window, of which `used` are gone."""

    limit: int
    window_ms: int
    used: int = 0
    resets_at: int = 0


class RateLimits:
    """Counters, by provider and key."""

    def __init__(self, clock: Clock | None = None, path: Path | None = None, ring: KeyRing | None = None) -> None:
        self._clock = clock or SystemClock()
        self._counts: dict[str, Allowance] = {}
        self._path: Path | None = None
        self._ring = ring or KeyRing()
        if path is not None:
            self.keep_in(path, self._ring)

    def keep_in(self, path: Path, ring: KeyRing) -> None:
        """Count in this file from now on. What it holds is newer than what a checkpoint knew.

        Raises:
            RecordDamaged: the file is not what was written.
            KeyMissing: it is sealed with a key that is not here.
        """
        if path == self._path:
            return
        self._path, self._ring = path, ring
        with self._together():
            pass

    def allow(self, provider: str, key: str = "", *, limit: int, seconds: float) -> None:
        """Say what a provider allows; what was used already stays used."""
        with self._together():
            found = self._counts.setdefault(_name(provider, key), Allowance(limit, int(seconds * 1000)))
            found.limit, found.window_ms = limit, int(seconds * 1000)

    def take(self, provider: str, key: str = "", *, count: int = 1) -> bool:
        """Use some of the allowance; False, and nothing used, when there is not enough left.

        Once this returns, it stays used, whatever becomes of the process.
        """
        with self._together():
            found = self._current(provider, key)
            if found is None:
                return True
            if found.used + count > found.limit:
                return False
            if not found.used:
                found.resets_at = self._clock.now_ms() + found.window_ms
            found.used += count
        return True

    def left(self, provider: str, key: str = "") -> int | None:
        """The part of the allowance that is left in this window; None for an unknown provider."""
        with self._together():
            found = self._current(provider, key)
            return None if found is None else found.limit - found.used

    def told(self, provider: str, key: str = "", *, left: int, resets_at_ms: int) -> None:
        """Take over the provider's own figures (X-RateLimit-Remaining, -Reset), which are the most exact."""
        with self._together():
            found = self._counts.setdefault(_name(provider, key), Allowance(left, 0))
            found.limit = max(found.limit, left)
            found.used, found.resets_at = found.limit - left, resets_at_ms

    def _current(self, provider: str, key: str) -> Allowance | None:
        found = self._counts.get(_name(provider, key))
        if found is not None and found.used and self._clock.now_ms() >= found.resets_at:
            found.used = 0
        return found

    # ── the file ────────────────────────────────────────────────────────────────────────────────

    @contextlib.contextmanager
    def _together(self) -> Iterator[None]:
        """Read what others have taken, and write what is taken here before the block is left."""
        if self._path is None:
            yield
            return
        self._path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        lock = os.open(f"{self._path}.lock", os.O_CREAT | os.O_RDWR | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
        try:
            fcntl.flock(lock, fcntl.LOCK_EX)
            found = self._read(self._path)
            self._counts |= {name: Allowance(*numbers) for name, numbers in found.items()}
            yield
            if (counted := self._plain()) != found:
                self._write(self._path, counted)
        finally:
            os.close(lock)

    def _plain(self) -> _Told:
        return {name: (a.limit, a.window_ms, a.used, a.resets_at) for name, a in self._counts.items()}

    def _read(self, path: Path) -> _Told:
        try:
            sealed = path.read_bytes()
        except FileNotFoundError:
            return {}
        try:
            told = envelope.unseal(sealed, kind="limits", bound_to=path.name, ring=self._ring)
            return msgspec.msgpack.decode(told, type=_Told)
        except msgspec.DecodeError as problem:
            raise RecordDamaged(f"the counters {path}", str(problem)) from None

    def _write(self, path: Path, counted: _Told) -> None:
        sealed = envelope.seal(msgspec.msgpack.encode(counted), kind="limits", bound_to=path.name, ring=self._ring)
        beside = path.with_name(f"{path.name}.new")
        flags = os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW
        with open(beside, "wb", opener=lambda name, _: os.open(name, flags, 0o600)) as file:
            file.write(sealed)
            file.flush()
            os.fsync(file.fileno())
        beside.replace(path)
        folder = os.open(path.parent, os.O_RDONLY | os.O_DIRECTORY)
        try:
            os.fsync(folder)
        finally:
            os.close(folder)


def _name(provider: str, key: str) -> str:
    return f"{provider}:{hashlib.sha256(key.encode()).hexdigest()[:12]}" if key else provider


class RateLimitsType(UnitType):
    kind = "rate_limits"

    async def capture(self, live: RateLimits, place: Place) -> Any:
        return {name: [a.limit, a.window_ms, a.used, a.resets_at] for name, a in live._counts.items()}

    async def restore(self, recipe: Any, place: Place) -> RateLimits:
        limits = RateLimits(place.given("rate_limits").get("clock"))
        limits._counts = {name: Allowance(*told) for name, told in recipe.items()}
        return limits

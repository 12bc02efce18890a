"""Record what the world looked like at a checkpoint, and compare it before a restore touches anything.

A fingerprint names a part of the world (a database's schema, a file, a repository, an API, packages, the
interpreter, the model, its tools, or the result of a function) and what to do if it differs:

    refuse    the restore is refused, nothing is touched
    warn      the restore proceeds, and reports the difference
    rebuild   the restore proceeds, and units that depend on it are made anew, not reattached
    continue  the restore proceeds, and only records the difference

Looking is bounded: a look that raises or hangs counts as a difference, told as such.
"""

from __future__ import annotations

import asyncio
import contextvars
import inspect
import threading
from collections.abc import Awaitable, Callable, Generator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import timedelta
from pathlib import Path
from typing import Any, Literal, get_args

import msgspec

from perdure._ground.bridge import Hop
from perdure._ground.durations import Duration, require_timedelta
from perdure._runtime.context import probes as looks
from perdure._runtime.secrets import Secret, redaction
from perdure.errors import InvalidInput, PerdureError

Policy = Literal["refuse", "warn", "rebuild", "continue"]
_PATIENCE = timedelta(seconds=10)
_UNTRUSTED = "not compared: the task was imported from an unsigned bundle"


@dataclass(frozen=True, slots=True)
class Fingerprint:
    """One part of the world to be checked; made by the class methods."""

    kind: str
    name: str
    about: Mapping[str, Any]  # what a fresh process needs to compare again; plain data
    policy: Policy = "refuse"
    patience: timedelta = _PATIENCE
    look: Callable[[], Any] | None = field(default=None, compare=False)  # of this process only, never stored

    def __post_init__(self) -> None:
        if self.policy not in get_args(Policy):
            raise InvalidInput(f"{self.policy!r} is not a policy", do=f"choose from {', '.join(get_args(Policy))}")

    @classmethod
    def postgres(cls, dsn: str | Secret, *, name: str = "", policy: Policy = "refuse") -> Fingerprint:
        """The schema of a PostgreSQL database: tables, columns, keys, indexes. Give the address as a Secret."""
        reference = dsn.reference if isinstance(dsn, Secret) else dsn
        if not isinstance(dsn, Secret) and redaction.looks_secret(dsn):
            raise InvalidInput("the address holds a password", do="give it as Secret(…), so that it is not stored")
        return cls("postgres", name or "schema of the database", {"dsn": reference}, policy)

    @classmethod
    def sqlite(cls, path: str | Path, *, policy: Policy = "refuse") -> Fingerprint:
        """The schema of a SQLite file."""
        return cls("sqlite", f"schema of {path}", {"path": str(Path(path).absolute())}, policy)

    @classmethod
    def file(cls, path: str | Path, *, policy: Policy = "refuse") -> Fingerprint:
        """A file's contents."""
        return cls("file", f"file {path}", {"path": str(Path(path).absolute())}, policy)

    @classmethod
    def git(cls, folder: str | Path = ".", *, dirty: bool = True, policy: Policy = "refuse") -> Fingerprint:
        """The commit a repository stands at and, with `dirty`, what differs from it."""
        return cls("git", f"git {folder}", {"folder": str(Path(folder).absolute()), "dirty": dirty}, policy)

    @classmethod
    def api(cls, url: str, *, header: str = "", field: str = "version", policy: Policy = "refuse") -> Fingerprint:
        """The version an API tells: in a header of its answer, or in a field of its JSON (`a.b` goes deeper)."""
        return cls("api", f"version of {url}", {"url": url, "header": header, "field": field}, policy)

    @classmethod
    def packages(cls, *names: str, policy: Policy = "warn") -> Fingerprint:
        """The versions of these installed packages."""
        return cls("packages", f"packages {', '.join(names)}", {"names": list(names)}, policy)

    @classmethod
    def interpreter(cls, *, policy: Policy = "warn") -> Fingerprint:
        """The implementation and minor version of this Python."""
        return cls("interpreter", "the interpreter", {}, policy)

    @classmethod
    def model(cls, id: str, *, policy: Policy = "warn") -> Fingerprint:
        """The model that is asked; a fresh process says which one it asks."""
        return cls("model", "the model", {}, policy, look=lambda: id)

    @classmethod
    def tools(cls, schema: Any, *, policy: Policy = "refuse") -> Fingerprint:
        """The schema of the tools the model is given; a fresh process says which it gives."""
        return cls("tools", "the tools' schema", {}, policy, look=lambda: looks.digest_of(schema))

    @classmethod
    def custom(
        cls,
        name: str,
        look: Callable[[], Any | Awaitable[Any]],
        *,
        policy: Policy = "refuse",
        patience: Duration = _PATIENCE,
    ) -> Fingerprint:
        """The result of a function, which must stay the same. A fresh process passes the function again."""
        return cls("custom", name, {}, policy, require_timedelta("patience", patience), look)


class Recorded(msgspec.Struct, frozen=True):
    """A fingerprint as it stands in a checkpoint."""

    kind: str
    name: str
    about: dict[str, Any]
    policy: Policy
    value: Any
    problem: str = ""  # why there was no value


@dataclass(frozen=True, slots=True)
class Finding:
    """The result of one comparison: `same`, or how it differs."""

    name: str
    policy: Policy
    same: bool
    why: str = ""
    looked: bool = True  # False: only a process that was told how can look at it

    @property
    def refuses(self) -> bool:
        return not self.same and self.policy == "refuse"


async def record(fingerprints: Sequence[Fingerprint]) -> list[Recorded]:
    """Record how the world looks now. A look that fails is recorded as failed, and never compares as the same."""
    found = []
    for fingerprint in fingerprints:
        value, problem = await _look(fingerprint)
        about = dict(fingerprint.about)
        found.append(Recorded(fingerprint.kind, fingerprint.name, about, fingerprint.policy, value, problem))
    return found


async def check(recorded: Sequence[Recorded], here: Sequence[Fingerprint], *, is_trusted: bool = True) -> list[Finding]:
    """Compare a checkpoint's fingerprints with the world as it is now; nothing is touched.

    `here` are those this process has given: they carry the functions, the model and the tools of now, and their
    policy counts. Those of a record that is not trusted are not looked at otherwise: a look at a database or an
    address would say hello to whom the record names, with the passwords of here.
    """
    given = {(fingerprint.kind, fingerprint.name): fingerprint for fingerprint in here}
    return [await _compare(one, given.get((one.kind, one.name)), is_trusted) for one in recorded]


async def _compare(before: Recorded, given: Fingerprint | None, is_trusted: bool) -> Finding:
    if given is None and not is_trusted:
        return Finding(before.name, "warn", False, _UNTRUSTED, looked=False)
    policy = given.policy if given is not None else before.policy
    if given is None:
        if before.kind not in looks.KINDS:
            return Finding(before.name, policy, False, "this process has not said how to look at it", looked=False)
        given = Fingerprint(before.kind, before.name, before.about, policy)
    if before.problem:
        return Finding(before.name, policy, False, f"it could not be seen at the checkpoint: {before.problem}")
    value, problem = await _look(given)
    if problem:
        return Finding(before.name, policy, False, problem)
    if value == before.value:
        return Finding(before.name, policy, True)
    return Finding(before.name, policy, False, looks.difference(before.value, value))


async def _look(fingerprint: Fingerprint) -> tuple[Any, str]:
    """The result of a look, or why it has none; never waits longer than its limit."""
    look = fingerprint.look or looks.KINDS[fingerprint.kind](fingerprint.about)
    seconds = fingerprint.patience.total_seconds()
    try:
        value = await Bounded(look, seconds)
    except TimeoutError:
        return None, f"it did not answer within {seconds:g} s"
    except PerdureError as error:
        return None, redaction.redact(error.what)
    except Exception as error:
        return None, redaction.redact(f"{type(error).__name__}: {error}")
    return looks.storable(value), ""


class Bounded(Hop[Any]):
    """Run a user's function in its own thread, and wait no longer than the limit."""

    __slots__ = ("_act", "_seconds")

    def __init__(self, act: Callable[[], Any], seconds: float) -> None:
        self._act, self._seconds = act, seconds

    def block(self) -> Any:
        box: list[tuple[Any, BaseException | None]] = []
        thread = threading.Thread(target=self._run, args=(box,), name="perdure-look", daemon=True)
        thread.start()
        thread.join(self._seconds)
        if not box:
            raise TimeoutError
        value, error = box[0]
        if error is not None:
            raise error
        return value

    def on_loop(self) -> Generator[Any, None, Any]:
        return (yield from self._on_loop().__await__())

    async def _on_loop(self) -> Any:
        if inspect.iscoroutinefunction(self._act):
            return await asyncio.wait_for(self._act(), self._seconds)
        loop = asyncio.get_running_loop()
        done: asyncio.Future[Any] = loop.create_future()
        context = contextvars.copy_context()

        def run() -> None:
            box: list[tuple[Any, BaseException | None]] = []
            context.run(self._run, box)
            if not loop.is_closed():
                loop.call_soon_threadsafe(_settle, done, *box[0])

        threading.Thread(target=run, name="perdure-look", daemon=True).start()
        value = await asyncio.wait_for(done, self._seconds)
        return await asyncio.wait_for(value, self._seconds) if inspect.isawaitable(value) else value

    def _run(self, box: list[tuple[Any, BaseException | None]]) -> None:
        try:
            value = self._act()
            if inspect.iscoroutine(value) and not _has_loop():
                value = asyncio.run(value)
            box.append((value, None))
        except BaseException as error:
            box.append((None, error))


def _has_loop() -> bool:
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return False
    return True


def _settle(done: asyncio.Future[Any], value: Any, error: BaseException | None) -> None:
    if done.done():
        return
    if error is not None:
        done.set_exception(error if isinstance(error, Exception) else RuntimeError(type(error).__name__))
    else:
        done.set_result(value)

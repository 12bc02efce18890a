"""Requests to a perdure server: credentials, safe repeats, errors as the library's own exceptions.

A request that may be repeated without harm is repeated when the connection breaks or the server is busy: reads, and
writes, which all carry an Idempotency-Key that is made once per call and not per try. Requests run in threads, so that
one client serves any number of event loops, and blocking code as well.
"""

from __future__ import annotations

import asyncio
import json
import random
import time
import uuid
from collections.abc import Callable, Generator, Iterator, Mapping
from contextlib import contextmanager
from functools import partial
from typing import Any, NamedTuple, TypeVar
from urllib.parse import urlsplit

from perdure._ground.bridge import Hop, Nap
from perdure._ground.json_values import plain
from perdure.client.problems import error_of
from perdure.errors import InvalidInput, NotStorable, PerdureError, StoreUnreachable

T = TypeVar("T")
PATIENCE = 45.0  # seconds of trying again
_BUSY = (429, 502, 503, 504)
_FIRST_WAIT, _LONGEST_WAIT = 0.1, 5.0  # seconds


class Reply(NamedTuple):
    status: int
    value: Any
    headers: Mapping[str, str]


class Transport:
    """The connection to one server, as one caller."""

    def __init__(self, url: str, key: str | None, *, patience: float = PATIENCE) -> None:
        parts = urlsplit(url)
        if parts.scheme not in ("http", "https") or not parts.hostname or parts.query or parts.fragment:
            raise InvalidInput(f"{url!r} is not the address of a server", do="give https://host or https://host:port")
        if parts.username or parts.password:
            raise InvalidInput("the address holds a user or a password", do="give the key as key=, or in PERDURE_KEY")
        self.url = f"{parts.scheme}://{parts.netloc}{parts.path.rstrip('/')}"
        self._key, self.patience = key, patience
        self._client: Any = None

    @property
    def client(self) -> Any:
        if self._client is None:
            try:
                import httpx2
            except ImportError:
                raise InvalidInput(
                    "a server is reached with the package httpx2, which is not installed",
                    do="pip install 'perdure[server]'",
                ) from None
            headers = {"Accept": "application/json", "User-Agent": "perdure"}
            if self._key:
                headers["Authorization"] = f"Bearer {self._key}"
            limits = httpx2.Limits(max_connections=64, max_keepalive_connections=16)
            self._client = httpx2.Client(
                base_url=self.url, headers=headers, timeout=90.0, limits=limits, follow_redirects=False, trust_env=False
            )
        return self._client

    async def get(self, path: str, **query: Any) -> Reply:
        return await self.send("GET", path, query=query)

    async def send(
        self,
        method: str,
        path: str,
        body: Any = None,
        *,
        query: Mapping[str, Any] | None = None,
        headers: Mapping[str, str] | None = None,
        is_bodied: bool = False,
    ) -> Reply:
        """The answer. A body of None is left out, unless `is_bodied` says that it is the value null.

        Raises:
            PerdureError: what the server refused it with, as the library raises it.
            StoreUnreachable: the server gave no answer; a write may or may not have been done.
        """
        content = None if body is None and not is_bodied else _encoded(body)
        sent = dict(headers or {})
        if content is not None:
            sent["Content-Type"] = "application/json"
        if method != "GET":
            sent.setdefault("Idempotency-Key", uuid.uuid4().hex)
        given = [(name, text) for name, value in (query or {}).items() for text in _texts(value)]
        return await self._repeat(method, path, content, given, sent)

    async def _repeat(
        self, method: str, path: str, content: bytes | None, query: list[tuple[str, str]], headers: dict[str, str]
    ) -> Reply:
        end = time.monotonic() + self.patience
        wait = _FIRST_WAIT
        while True:
            try:
                reply = await InThread(partial(self._once, method, path, content, query, headers))
            except _Unanswered as error:
                failure: PerdureError = StoreUnreachable(
                    f"the server at {self.url} did not answer: {error}",
                    kept="what was acknowledged before; this request may or may not have been carried out",
                    do="look whether the server runs, and read before you repeat a write",
                )
            else:
                if reply.status < 400:
                    return reply
                failure = error_of(reply.status, reply.value, self.url)
                if reply.status not in _BUSY:
                    raise failure
                wait = max(wait, _seconds(reply.headers.get("retry-after")))
            if time.monotonic() + wait > end:
                raise failure
            await Nap(wait * random.uniform(0.5, 1.0))  # noqa: S311 -- only spreads the tries
            wait = min(wait * 2, _LONGEST_WAIT)

    def _once(
        self, method: str, path: str, content: bytes | None, query: list[tuple[str, str]], headers: dict[str, str]
    ) -> Reply:
        import httpx2

        try:
            answer = self.client.request(method, path, content=content, params=query, headers=headers)
        except httpx2.TransportError as error:
            raise _Unanswered(type(error).__name__) from None
        value = _decoded(answer.content) if answer.content else None
        return Reply(answer.status_code, value, answer.headers)

    @contextmanager
    def stream(self, path: str, query: Mapping[str, Any], headers: Mapping[str, str]) -> Iterator[Any]:
        """An answer that is read bit by bit, in the caller's thread."""
        import httpx2

        timeout = httpx2.Timeout(30.0, read=40.0)
        with self.client.stream("GET", path, params=dict(query), headers=dict(headers), timeout=timeout) as answer:
            if answer.status_code >= 400:
                raise error_of(answer.status_code, _decoded(answer.read()), self.url)
            yield answer

    def close(self) -> None:
        if self._client is not None:
            self._client.close()
            self._client = None


class InThread(Hop[T]):
    """A request, done by a thread when an event loop waits for it, else right here."""

    __slots__ = ("_act",)

    def __init__(self, act: Callable[[], T]) -> None:
        self._act = act

    def block(self) -> T:
        return self._act()

    def on_loop(self) -> Generator[Any, None, T]:
        return (yield from asyncio.to_thread(self._act).__await__())


class _Unanswered(Exception):
    """The request was sent, or not, and no answer has come."""


def _encoded(body: Any) -> bytes:
    try:
        return json.dumps(body, allow_nan=False, default=_refuse).encode()
    except NotStorable:
        raise
    except (ValueError, TypeError, RecursionError) as error:
        raise NotStorable("the request", f"JSON cannot hold it: {error}") from None


def _refuse(value: Any) -> Any:
    raise NotStorable("the request", f"JSON cannot hold a {type(value).__name__}")


def _decoded(content: bytes) -> Any:
    try:
        return json.loads(content)
    except ValueError:
        return None


def _texts(value: Any) -> list[str]:
    if value is None:
        return []
    if isinstance(value, list | tuple | set | frozenset):
        return [str(plain(item)) for item in value]
    if isinstance(value, bool):
        return ["true" if value else "false"]
    return [str(plain(value))]


def _seconds(text: str | None) -> float:
    return float(text) if text is not None and text.isdigit() and len(text) < 5 else 0.0

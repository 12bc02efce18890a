"""Requests to a perdure server: credentials, safe repeats, errors as the library's own exceptions.

A request that may be repeated without harm is repeated when the connection breaks or the server is busy: reads, and
writes, which all carry an Idempotency-Key that is made once per call and not per try. Requests run in threads, so that
one client serves any number of event loops, and blocking code as well.
"""

from __future__ import annotations

import asyncio
import json
import math
import random
import time
import uuid
from collections.abc import Callable, Generator, Iterator, Mapping
from contextlib import contextmanager
from email.utils import formatdate
from functools import partial
from typing import Any, NamedTuple, TypeVar
from urllib.parse import unquote, urlsplit

from perdure._ground.bridge import Hop, Nap
from perdure._ground.encoding.json_values import plain
from perdure.client.problems import error_of, not_a_server
from perdure.errors import InvalidInput, NotFound, NotStorable, PerdureError, StoreUnreachable

T = TypeVar("T")
PATIENCE = 45.0  # seconds of trying again
_BUSY = (429, 502, 503, 504)
_FIRST_WAIT, _LONGEST_WAIT = 0.1, 5.0  # seconds


class Reply(NamedTuple):
    status: int
    value: Any
    headers: Mapping[str, str]
    content: bytes = b""  # the value as it came


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
        content = None if body is None and not is_bodied else encoded(body)
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
                if _is_good(reply):
                    return reply
                failure = self._error_of(reply, path)
                if reply.status not in _BUSY and not _is_under_way(reply):
                    raise failure
                wait = max(wait, _seconds(reply.headers.get("retry-after")))
            if time.monotonic() + wait > end:
                raise failure
            await Nap(wait * random.uniform(0.5, 1.0))  # noqa: S311 -- only spreads the tries
            wait = min(wait * 2, _LONGEST_WAIT)

    def _error_of(self, reply: Reply, path: str) -> PerdureError:
        if reply.status < 400:
            return not_a_server(reply.status, str(reply.headers.get("location", "")), self.url)
        failure = error_of(reply.status, reply.value, self.url)
        if isinstance(failure, NotFound) and not failure.name and (task := _task_in(path)):
            failure = NotFound("task", task, self.url)
        return failure

    def _once(
        self, method: str, path: str, content: bytes | None, query: list[tuple[str, str]], headers: dict[str, str]
    ) -> Reply:
        import httpx2

        try:
            dated = {**headers, "Date": formatdate(usegmt=True)}  # `perdure doctor` tells of clocks that are wrong
            answer = self.client.request(method, path, content=content, params=query, headers=dated)
        except httpx2.TransportError as error:
            raise _Unanswered(type(error).__name__) from None
        value = _decoded(answer.content) if answer.content else None
        return Reply(answer.status_code, value, answer.headers, answer.content)

    @contextmanager
    def stream(self, path: str, query: Mapping[str, Any], headers: Mapping[str, str]) -> Iterator[Any]:
        """An answer that is read bit by bit, in the caller's thread."""
        import httpx2

        timeout = httpx2.Timeout(30.0, read=40.0)
        with self.client.stream("GET", path, params=dict(query), headers=dict(headers), timeout=timeout) as answer:
            if not 200 <= answer.status_code < 300:
                content = answer.read()
                raise self._error_of(Reply(answer.status_code, _decoded(content), answer.headers, content), path)
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


def _is_good(reply: Reply) -> bool:
    """True if this can be a perdure server's answer that all went well: JSON, or nothing at all."""
    is_json = not reply.content or "json" in str(reply.headers.get("content-type", ""))
    return 200 <= reply.status < 300 and is_json and (reply.value is not None or reply.content in (b"", b"null"))


def _is_under_way(reply: Reply) -> bool:
    """An earlier try of this very request, whose answer was lost, is still being carried out."""
    return isinstance(reply.value, Mapping) and reply.value.get("code") == "still_running"


def _task_in(path: str) -> str:
    parts = path.split("/")
    return unquote(parts[3]) if path.startswith("/v1/tasks/") else ""


def encoded(body: Any) -> bytes:
    """The body, if JSON gives it back as it is.

    Raises:
        NotStorable: JSON would make something else of a part of it; the path leads there.
    """
    try:
        text = json.dumps(body, allow_nan=False).encode()
        if json.loads(text) == body and not (b"\\ud" in text and _find_difference(body, "")):
            return text
    except (ValueError, TypeError, RecursionError):
        pass
    raise _difference(body)


def _difference(body: Any) -> NotStorable:
    fields = body if isinstance(body, dict) else {"": body}
    for value in fields.values():
        try:
            if found := _find_difference(value, ""):
                return NotStorable(found[0].removeprefix("."), found[1], do="send plain data")
        except RecursionError:
            return NotStorable("", "it is nested too deeply", do="keep a deep tree as a flat list of its nodes")
    return NotStorable("", "JSON cannot hold it", do="send plain data")


def _find_difference(value: Any, path: str) -> tuple[str, str] | None:
    """Where JSON would change the value, and why; None if it would not."""
    if isinstance(value, dict):
        for key, item in value.items():
            if not isinstance(key, str):
                return path, f"a key is {type(key).__name__}, and JSON's are texts"
            if found := _find_difference(key, path) or _find_difference(item, f"{path}.{key}"):
                return found
        return None
    if isinstance(value, list):
        return next(filter(None, (_find_difference(item, f"{path}[{at}]") for at, item in enumerate(value))), None)
    if isinstance(value, str):
        return None if _is_text(value) else (path, "its text has half a character (a lone surrogate)")
    if isinstance(value, float) and not math.isfinite(value):
        return path, f"JSON cannot hold {value}"
    if value is None or isinstance(value, bool | int | float):
        return None
    return path, f"JSON cannot hold a {type(value).__name__}"


def _is_text(value: str) -> bool:
    try:
        value.encode()
    except UnicodeEncodeError:
        return False
    return True


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

"""Server-sent events of a server, across broken lines.

A line that breaks, or that a server ends with `bye`, is opened again after the last id that came. 40 s without a byte
count as broken: a server sends a comment every 15 s. Lines are read in threads, as all requests of the client are.
"""

from __future__ import annotations

import json
import random
import socket
import time
from collections.abc import AsyncIterator, Iterator, Mapping
from contextlib import AbstractContextManager, suppress
from typing import Any, NamedTuple

from perdure._ground.bridge import Nap
from perdure.client.transport import InThread, Transport
from perdure.errors import NotAllowed, PerdureError, StoreUnavailable, StoreUnreachable

_FIRST_WAIT, _LONGEST_WAIT = 0.1, 5.0  # seconds


class ServerEvent(NamedTuple):
    """One message of a stream."""

    event: str
    data: Any
    id: str = ""


async def listen(
    transport: Transport, path: str, query: Mapping[str, Any], after: str = ""
) -> AsyncIterator[ServerEvent]:
    """Messages of a stream, also across broken lines, until the caller has had enough.

    Raises:
        NotAllowed: the credential may not listen any more.
        StoreUnreachable: no server has answered for 45 s.
        PerdureError: the server refuses the stream.
    """
    wait, last = _FIRST_WAIT, time.monotonic()
    while True:
        line = _Line(transport, path, query, after)
        failure: PerdureError | None = None
        try:
            while (found := await InThread(line.next)) is not None:
                wait, last = _FIRST_WAIT, time.monotonic()
                after = found.id or after
                if found.event == "bye":
                    break
                if found.event == "end":
                    raise NotAllowed(
                        "this credential may not listen any more", kept="what came before", do="use another key"
                    )
                if found.event:
                    yield found
        except _Busy as busy:
            failure = busy.error
        finally:
            line.close()
        if time.monotonic() - last + wait > transport.patience:
            raise failure or StoreUnreachable(
                f"the server at {transport.url} did not answer",
                kept="what came before",
                do="look whether the server runs, and listen again",
            )
        await Nap(wait * random.uniform(0.5, 1.0))  # noqa: S311 -- only spreads the tries
        wait = min(wait * 2, _LONGEST_WAIT)


class _Busy(Exception):
    """The server has no room for this stream now."""

    def __init__(self, error: PerdureError) -> None:
        self.error = error


class _Line:
    """One connection; `next` is called by one thread at a time."""

    def __init__(self, transport: Transport, path: str, query: Mapping[str, Any], after: str) -> None:
        headers = {"Accept": "text/event-stream", **({"Last-Event-ID": after} if after else {})}
        self._context: AbstractContextManager[Any] | None = transport.stream(path, query, headers)
        self._is_closed = False
        self._answer: Any = None
        self._lines: Iterator[str] = iter(())

    def next(self) -> ServerEvent | None:
        """The next message; a comment is one without a name. None at the end of the line, however it came."""
        import httpx2

        try:
            if self._answer is None and self._context is not None:
                self._answer = self._context.__enter__()
                self._lines = self._answer.iter_lines()
            return _read(self._lines)
        except StoreUnavailable as error:
            raise _Busy(error) from None
        except (httpx2.TransportError, httpx2.StreamError, OSError, ValueError):
            return None

    def close(self) -> None:
        """End it, also while another thread reads from it."""
        if self._answer is not None and not self._is_closed:
            self._is_closed = True
            with suppress(Exception):
                self._answer.extensions["network_stream"].get_extra_info("socket").shutdown(socket.SHUT_RDWR)
            with suppress(Exception):
                assert self._context is not None
                self._context.__exit__(None, None, None)


def _read(lines: Iterator[str]) -> ServerEvent | None:
    fields: dict[str, str] = {}
    for line in lines:
        if line.startswith(":"):
            return ServerEvent("", None)
        if line:
            name, _, value = line.partition(":")
            fields[name] = value.removeprefix(" ")
        elif "event" in fields:
            return ServerEvent(fields["event"], json.loads(fields.get("data", "null")), fields.get("id", ""))
        else:
            fields = {}
    return None

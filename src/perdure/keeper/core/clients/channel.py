"""Speaking to the keeper from a small blocking program: standard library only, one question at a time.

A process the keeper has started finds its token at TOKEN_FD, and speaks for its own unit:

    with Channel(socket_path, token=TOKEN_FD) as channel:
        channel.put("upstream", sock.fileno(), {"backend": 4711})      # the anchor holds it from here on
        fd, about = channel.get("upstream")                            # also in the process that comes after

The keeper can be replaced at any time: a question on its way is asked again on a new connection, which is harmless for
all questions about descriptors.
"""

from __future__ import annotations

import os
import socket
import time
from collections.abc import Sequence
from typing import Any

from perdure.keeper.core.clients import wire
from perdure.keeper.process import TOKEN_FD

__all__ = ["TOKEN_FD", "Channel", "ChannelRefused"]

_PATIENCE_SECONDS = 10.0


class ChannelRefused(Exception):
    """The keeper has said no; `error` is a word for programs."""

    def __init__(self, error: str, values: dict[str, Any]) -> None:
        self.error, self.values = error, values
        super().__init__(f"{error}: {values}")


class Channel:
    def __init__(self, path: str, *, token: int | None = None) -> None:
        self._path, self._token = path, token
        self._sock: socket.socket | None = None
        self._decoder = wire.Decoder()
        self._last = 0
        if token is not None:
            os.set_inheritable(token, False)  # what this process starts does not speak for its unit

    def put(self, name: str, fd: int, about: object = None, *, unit: str = "") -> None:
        """Have the anchor hold this descriptor under a name, replacing its former one."""
        self.ask("fd.put", {"name": name, "about": about, "unit": unit}, (fd,))

    def get(self, name: str, *, unit: str = "") -> tuple[int, Any]:
        """A descriptor that was put, and what was said about it.

        Raises:
            KeyError: nothing is held under this name.
        """
        try:
            reply = self.ask("fd.get", {"name": name, "unit": unit})
        except ChannelRefused as refused:
            if refused.error == "no descriptor":
                raise KeyError(name) from None
            raise
        return reply.fds[0], reply.args.get("about")

    def drop(self, name: str, *, unit: str = "") -> None:
        self.ask("fd.drop", {"name": name, "unit": unit})

    def names(self, *, unit: str = "") -> list[tuple[str, Any]]:
        return [(name, about) for name, about in self.ask("fd.names", {"unit": unit}).args["names"]]

    def ask(self, verb: str, args: dict[str, Any], fds: Sequence[int] = ()) -> wire.Reply:
        """Any question, and its answer.

        Raises:
            ChannelRefused: the keeper has said no.
            OSError: it could not be reached for ten seconds.
        """
        end = time.monotonic() + _PATIENCE_SECONDS
        while True:
            try:
                if self._sock is None:
                    self._connect()
                return self._ask(verb, args, fds)
            except (OSError, EOFError, wire.BadFrame) as error:
                self.close()
                if time.monotonic() > end:
                    raise OSError(f"the keeper at {self._path} does not answer: {error}") from error
                time.sleep(0.02)

    def _connect(self) -> None:
        self._decoder = wire.Decoder()
        self._sock = socket.socket(socket.AF_UNIX)
        self._sock.settimeout(_PATIENCE_SECONDS)
        self._sock.connect(self._path)
        self._ask("hello", {"versions": list(wire.VERSIONS)}, () if self._token is None else (self._token,))

    def _ask(self, verb: str, args: dict[str, Any], fds: Sequence[int]) -> wire.Reply:
        assert self._sock is not None
        self._last += 1
        wire.send(self._sock, wire.Request(self._last, verb, args, fds=tuple(fds)))
        while True:
            data, came = wire.receive(self._sock)
            if not data:
                raise EOFError("the keeper has hung up")
            for message in self._decoder.feed(data, came):
                if isinstance(message, wire.Refusal):
                    raise ChannelRefused(message.error, message.args)
                if isinstance(message, wire.Reply) and message.id == self._last:
                    return message

    def close(self) -> None:
        self._decoder.close()
        if self._sock is not None:
            self._sock.close()
            self._sock = None

    def __enter__(self) -> Channel:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

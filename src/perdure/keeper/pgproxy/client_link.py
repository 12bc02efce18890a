"""A new client: what it asks for, and whether it is admitted. Bytes in, bytes out.

Clients of other users are refused by their uid. With a secret, a client must also give it as its password: for
sessions whose folder others can reach.
"""

from __future__ import annotations

import hmac
import os
import re
import socket
from collections.abc import Mapping

from perdure.keeper.core import peer_of
from perdure.keeper.pgproxy.protocol import wire

_UTF8 = frozenset({"utf8", "utf-8", "unicode", "'utf-8'", "'utf8'", "auto"})
_OWN = frozenset({"user", "database", "client_encoding", "application_name", "options", "replication"})
_LONGEST_PASSWORD = 10_000
_MOST_SAID = 1 << 20  # by a client that has not been let in yet
_GUARD = re.compile(r"(?:^|\s)-c\s*perdure\.guard=on(?=\s|$)")


class Visitor:
    """One connection before it is a client."""

    def __init__(self, link: socket.socket, user: str, database: str, secret: str) -> None:
        self.link, self.secret = link, secret
        self.user, self.database = user, database
        self.wants: wire.Startup | None = None
        self.reply = b""
        self.is_in = False  # may be admitted
        self.is_over = False  # has been told why not
        self._data = bytearray()

    def said(self, data: bytes) -> None:
        """Raises: Broken: it is not a PostgreSQL client."""
        self._data += data
        if len(self._data) > _MOST_SAID:
            raise wire.Broken("more than a client says before it is let in")
        while not (self.is_in or self.is_over) and self._step():
            pass

    @property
    def rest(self) -> bytes:
        """The bytes it has already sent as a client."""
        return bytes(self._data)

    @property
    def is_guarded(self) -> bool:
        return self.wants is not None and _GUARD.search(self.wants.parameters.get("options", "")) is not None

    @property
    def minor(self) -> int:
        return self.wants.minor if self.wants else 0

    @property
    def unknown_options(self) -> list[str]:
        return [name for name in (self.wants.parameters if self.wants else {}) if name.startswith("_pq_.")]

    @property
    def ignored(self) -> list[str]:
        """Requested settings that a continued session does not take."""
        given = dict(self.wants.parameters) if self.wants else {}
        left = [name for name in given if name not in _OWN and not name.startswith("_pq_.")]
        options = _GUARD.sub("", given.get("options", "")).strip()
        return left + ([options] if options else [])

    def _step(self) -> bool:
        if self.wants is None:
            return self._start()
        return self._password()

    def _start(self) -> bool:
        found = wire.read_startup(self._data)
        if found is None:
            return False
        del self._data[: found.size]
        if found.kind == "encrypt":
            self.reply += b"N"  # a socket of this machine
            return True
        self.wants = found
        if found.kind == "start":
            self._judge(found.parameters)
        return False

    def _judge(self, asked: Mapping[str, str]) -> None:
        encoding = asked.get("client_encoding", "UTF8").lower()
        if asked.get("replication", "").lower() not in ("", "false", "off", "no", "0"):
            self._refuse("a kept session is not for replication", "0A000")
        elif encoding not in _UTF8:
            self._refuse(f"a kept session speaks UTF8, not {encoding}", "22023")
        elif asked.get("user", self.user) != self.user or asked.get("database", self.database) != self.database:
            self._refuse(f"this session is {self.user}'s, in the database {self.database}", "28000")
        elif self.secret:
            self.reply += wire.message(b"R", wire.LENGTH.pack(3))
        else:
            self.is_in = True

    def _password(self) -> bool:
        if len(self._data) < 5:
            return False
        size = 1 + wire.number(self._data, 1)
        if not 5 <= size <= _LONGEST_PASSWORD:
            raise wire.Broken(f"a password of {size} bytes")
        if len(self._data) < size:
            return False
        given = bytes(self._data[5 : size - 1])
        is_right = self._data[0] == 0x70 and hmac.compare_digest(given, self.secret.encode())
        del self._data[:size]
        self.is_in = is_right
        if not is_right:
            self._refuse("this is not the session's secret", "28P01")
        return False

    def _refuse(self, why: str, code: str) -> None:
        self.reply += wire.fatal(why, code=code)
        self.is_over = True


def is_ours(link: socket.socket) -> bool:
    """True if the other end is a process of this user, or of root."""
    return peer_of(link)[1] in (os.geteuid(), 0)

"""Make one HTTP request and write its body to standard output as it arrives. Standard library only; run as a file.

Standard input: a length of four bytes, JSON with method, url and headers, then the body. The file named by the first
argument gets the head of the answer, or the error, without secrets (by the rules in the file named by the second); it
is replaced as a whole. Descriptor 3 gets the complete head, a line each time it changes. Exit codes:

    0   the whole answer is there
    3   it was not sent: there was no connection
    4   it may have been sent, and the answer is not whole
"""

from __future__ import annotations

import contextlib
import hashlib
import http.client
import importlib.util
import json
import os
import ssl
import sys
from typing import Any
from urllib.parse import urlsplit

MOST_HEADERS = 64 << 10
CONNECT_SECONDS, SILENCE_SECONDS = 30.0, 900.0
WHOLE, NOT_SENT, CUT_OFF = 0, 3, 4
_MEMORY = 3
HIDES_ALL = "hides_all"


class Notes:
    """The place where the head is noted."""

    def __init__(self, path: str, rules: str) -> None:
        self._path, self._hides_all = path, False
        found = importlib.util.spec_from_file_location("secret_forms", rules)
        assert found is not None and found.loader is not None
        self._rules = importlib.util.module_from_spec(found)
        sys.modules["secret_forms"] = self._rules
        found.loader.exec_module(self._rules)

    def hide_all(self) -> None:
        self._hides_all = True

    def write(self, told: dict[str, Any]) -> None:
        line = memoryview(json.dumps(told).encode() + b"\n")
        while line:
            line = line[os.write(_MEMORY, line) :]
        shown = {**told, "headers": [(name, self._shown(name, value)) for name, value in told.get("headers", ())]}
        with contextlib.suppress(FileNotFoundError):  # its folder was removed; descriptor 3 has it all
            with open(f"{self._path}.new", "w", encoding="utf-8") as file:
                json.dump(shown, file)
                file.flush()
                os.fsync(file.fileno())
            os.replace(f"{self._path}.new", self._path)

    def _shown(self, name: str, value: str) -> str:
        if self._hides_all or self._rules.is_secret(name, value):
            return str(self._rules.HIDDEN)
        address = str(self._rules.hide_in_address(value)) if "://" in value else value
        return str(self._rules.HIDDEN) if address != value else value


def main(path: str, rules: str) -> int:
    head = Notes(path, rules)
    told, body = _read_all(0)
    if told.get(HIDES_ALL):
        head.hide_all()
    try:
        connection, target = _connect(told["url"])
    except OSError as error:
        return _trouble(head, error, NOT_SENT, {})
    answered: dict[str, Any] = {}
    try:
        connection.request(told["method"], target, body or None, told["headers"])
        answer = connection.getresponse()
        answered = _head_of(answer)
        head.write(answered)
        length, digest = _copy(answer)
    except (OSError, http.client.HTTPException) as error:
        return _trouble(head, error, CUT_OFF, answered)
    head.write({**answered, "whole": True, "length": length, "sha256": digest})
    return WHOLE


def _head_of(answer: http.client.HTTPResponse) -> dict[str, Any]:
    headers = answer.getheaders()
    if sum(len(name) + len(value) for name, value in headers) > MOST_HEADERS:
        raise http.client.HTTPException(f"the answer's headers have more than {MOST_HEADERS:,} characters")
    return {"status": answer.status, "reason": answer.reason[:200], "headers": headers}


def _read_all(fd: int) -> tuple[dict[str, Any], bytes]:
    with os.fdopen(fd, "rb") as given:
        told = json.loads(given.read(int.from_bytes(given.read(4))))
        return told, given.read()


def _connect(url: str) -> tuple[http.client.HTTPConnection, str]:
    parts = urlsplit(url)
    host, port = parts.hostname or "", parts.port
    connection: http.client.HTTPConnection
    if parts.scheme.lower() == "https":
        connection = http.client.HTTPSConnection(
            host, port, timeout=CONNECT_SECONDS, context=ssl.create_default_context()
        )
    else:
        connection = http.client.HTTPConnection(host, port, timeout=CONNECT_SECONDS)
    connection.connect()
    connection.sock.settimeout(SILENCE_SECONDS)
    target = (parts.path or "/") + (f"?{parts.query}" if parts.query else "")
    return connection, target


def _copy(answer: http.client.HTTPResponse) -> tuple[int, str]:
    """Each piece is in the file as soon as it arrives. Returns the number of bytes, and their digest."""
    length, digest = 0, hashlib.sha256()
    while piece := answer.read1(1 << 16):
        view = memoryview(piece)
        length += len(piece)
        digest.update(piece)
        while view:
            view = view[os.write(1, view) :]
    if answer.length:
        raise http.client.IncompleteRead(b"", answer.length)
    return length, digest.hexdigest()


def _trouble(head: Notes, error: Exception, code: int, answered: dict[str, Any]) -> int:
    head.write({**answered, "error": f"{type(error).__name__}: {error}"[:500], "sent": code != NOT_SENT})
    return code


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:3]))

"""Build a lost session anew from its recipe: all of it, or nothing.

First the statements that shaped the session, then those of its open transaction, in a new one. Each must have its
former result: the same commands, as many rows, and the same ones where rows were read. If one differs, the database has
changed since, and decisions based on it may be wrong: it is rolled back and refused.
"""

from __future__ import annotations

import socket
from hashlib import blake2b

from perdure.keeper.pgproxy.login import upstream as login
from perdure.keeper.pgproxy.protocol import wire
from perdure.keeper.pgproxy.session import Entry, SessionRecipe


class Differs(Exception):
    """The transaction cannot be built anew, and why; nothing of it is left."""


def rebuild(link: socket.socket, recipe: SessionRecipe, parameters: dict[str, str]) -> bytes:
    """Apply the recipe on a fresh connection; the transaction's status then. `parameters` are kept up to date.

    Raises:
        Differs: it came to something else, or cannot be done; the connection is of no more use.
    """
    made: set[bytes] = set()
    for entry in recipe.shaping:
        found = _apply(link, entry, made, parameters)
        if found.failed:
            raise Differs(f"{_told(entry)} failed")
    if recipe.spoiled:
        raise Differs(recipe.spoiled)
    if any(entry.failed for entry in recipe.open) and recipe.open[-1].status == "E":
        raise Differs("it had failed")
    status = b"I"
    for entry in recipe.open:
        found = _apply(link, entry, made, parameters)
        if found.tags != entry.tags or found.rows != entry.rows or found.status != entry.status:
            raise Differs(f"the base has changed: {_told(entry)} came to {found.tags or 'an error'}, not {entry.tags}")
        status = found.status.encode()
    if made:
        _ask(link, b"".join(map(wire.close_statement, sorted(made))) + wire.SYNC, parameters)
    return status


def _apply(link: socket.socket, entry: Entry, made: set[bytes], parameters: dict[str, str]) -> Entry:
    needed = b"".join(parse for name, parse in entry.needs.items() if name not in made)
    if needed:
        _ask(link, needed + wire.SYNC, parameters)
    made |= set(entry.needs)
    for kind, message in wire.Frames().feed(entry.batch):
        if kind == 0x50:  # P
            made.add(wire.text(message, 5)[0])
    made.discard(b"")
    return _ask(link, entry.batch, parameters)


def _ask(link: socket.socket, batch: bytes, parameters: dict[str, str]) -> Entry:
    """Send a batch; what came of it."""
    found, digest = Entry(batch), blake2b(digest_size=16)
    link.sendall(batch)
    for kind, body in login.messages(link):
        if kind == 0x44:  # D
            digest.update(wire.message(b"D", body))
        elif kind == 0x43:  # C
            found.tags.append(body[:-1].decode("utf-8", "replace"))
        elif kind == 0x45:  # E
            found.failed = True
        elif kind == 0x53:  # S
            wire.set_parameter(parameters, body)
        elif kind == 0x47:  # G
            link.sendall(wire.copy_fail("a COPY is not built anew"))
        elif kind == 0x5A:  # Z
            found.status = body.decode("ascii", "replace")
            break
    found.rows = digest.hexdigest()
    return found


def _told(entry: Entry) -> str:
    """The statement, for people."""
    for kind, message in wire.Frames().feed(entry.batch):
        if kind == 0x51:  # Q
            return repr(message[5:-1][:60].decode("utf-8", "replace"))
        if kind == 0x50:  # P
            return repr(wire.text(message, wire.text(message, 5)[1])[0][:60].decode("utf-8", "replace"))
    return "a statement"

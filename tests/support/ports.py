"""Port numbers that no other test of this machine takes.

The kernel hands out its own numbers again at once, to listeners and to connections that go out. So these lie below the
kernel's, and each is reserved by an abstract socket of its name until this process ends.
"""

from __future__ import annotations

import random
import socket

_FIRST, _LAST = 20_000, 32_000
_reserved: list[socket.socket] = []


def free_port() -> int:
    """A port of 127.0.0.1 that nothing listens on, this test's own."""
    dice = random.SystemRandom()
    while True:
        number = dice.randint(_FIRST, _LAST)
        if _is_reserved_now(number) and _is_free(number):
            return number


def _is_reserved_now(number: int) -> bool:
    name = socket.socket(socket.AF_UNIX)
    try:
        name.bind(f"\0perdure-test-port-{number}")
    except OSError:
        name.close()
        return False
    _reserved.append(name)
    return True


def _is_free(number: int) -> bool:
    with socket.socket() as door:
        try:
            door.bind(("127.0.0.1", number))
        except OSError:
            return False
    return True

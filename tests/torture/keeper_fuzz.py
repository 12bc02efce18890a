"""The keeper's own protocol, spoken badly: lengths, nesting, descriptors, questions that are none.

python -m tests.torture --part keeper-fuzz --seeds 0-99

First the decoder alone, some thousand times a seed. Then a real keeper with a unit in it: the same keeper has to
answer afterwards, the same unit has to be there, and no descriptor and no memory may be left behind.
"""

from __future__ import annotations

import array
import asyncio
import atexit
import contextlib
import os
import random
import socket
import struct
import tempfile
from functools import lru_cache
from pathlib import Path
from typing import Any

from perdure.keeper.core import wire
from perdure.keeper.core.handlers import QUESTIONS
from tests.runtime.kit import Place, until
from tests.torture.mutation import as_json, nested, pieces, value

THOUGHTS = 500  # rounds with the decoder alone, a seed
VISITS = 25
MOST_MEMORY = 150 << 20
_WORDS = ("unit", "do", "epoch", "name", "task", "namespace", "kind", "recipe", "about", "offset", "versions", "size")
# Those would end it, as they should.
_VERBS = [*sorted(set(QUESTIONS) - {"stop", "replace"}), "do", "do", "nothing"]


def run(seed: int) -> None:
    draw, open_ones = random.Random(seed), _open_here()
    for _ in range(THOUGHTS):
        think(draw)
    assert _open_here() == open_ones, "the decoder has left descriptors open"
    _rig().round(draw)


def _open_here() -> int:
    return len(os.listdir("/proc/self/fd"))


def think(draw: random.Random) -> None:
    """A decoder gives messages or refuses; it keeps no more than a frame, and gives every descriptor back."""
    decoder, fed = wire.Decoder(), 0
    with contextlib.suppress(wire.BadFrame):
        for _ in range(draw.randrange(1, 6)):
            data = frame(draw)
            for piece in pieces(draw, data):
                fed += len(piece)
                fds = [os.dup(0) for _ in range(draw.choice([0, 0, 0, 1, 3]))]
                for message in decoder.feed(piece, fds):
                    assert isinstance(message.args, dict)
                    for fd in message.fds:
                        os.close(fd)
    assert len(decoder._bytes) <= fed
    assert len(decoder._fds) <= 3 * wire.MOST_FDS
    decoder.close()
    assert not decoder._fds


def frame(draw: random.Random) -> bytes:
    header = _header(draw)
    body = draw.randbytes(draw.choice([0, 0, 1, 500]))
    lengths = [len(header), len(body)]
    if draw.random() < 0.2:
        lengths[draw.randrange(2)] = draw.choice(
            [0, 1, 0xFFFF, 1 << 20, (1 << 20) + 1, 16 << 20, 0x7FFFFFFF, 0xFFFFFFFF]
        )
    data = bytearray(struct.pack(">II", *lengths) + header + body)
    if draw.random() < 0.15:
        del data[draw.randrange(len(data)) :]
    if data and draw.random() < 0.1:
        data[draw.randrange(len(data))] = draw.randrange(256)
    return bytes(data)


def _header(draw: random.Random) -> bytes:
    if draw.random() < 0.15:
        return nested(draw).encode()
    head: Any = value(draw)
    if draw.random() < 0.85:
        args: Any = {draw.choice(_WORDS): value(draw) for _ in range(draw.randrange(5))}
        if draw.random() < 0.1:
            args = value(draw)
        elif draw.random() < 0.1:
            return b'{"ask":1,"verb":"hello","args":{"versions":' + nested(draw).encode() + b"}}"
        head = {draw.choice(["ask", "re", "news"]): draw.choice([1, 2, value(draw)]), "args": args}
        head["verb"] = draw.choice([*_VERBS, value(draw)])
        if draw.random() < 0.3:
            head["fds"] = draw.choice([0, 1, 2, 17, -1, 1.5, "1", 1 << 70])
    return as_json(head)


class Rig:
    """A keeper with a unit, for all seeds of this process."""

    def __init__(self, place: Place) -> None:
        self.place = place
        asyncio.run(self._look(say="stays\n"))
        self.keeper, self.path = place.keeper, place.socket

    async def _look(self, say: str = "") -> str:
        """What the unit has written so far: `cat` says what it is told, once by the terminal and once itself."""
        async with self.place.runtime() as rt:
            unit = await rt.shell("work", ["cat"])
            if say:
                await unit.send(say)
            return (await unit.read()).text

    def round(self, draw: random.Random) -> None:
        before = self._descriptors()
        for _ in range(VISITS):
            self._visit(draw)
        assert self.place.keeper == self.keeper, "the keeper died of it"
        assert "stays" in asyncio.run(self._look()), "the unit is another one"
        until(lambda: self._descriptors() <= before + 4, f"descriptors are left behind: {self._descriptors()}")
        resident = int(Path(f"/proc/{self.keeper}/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")
        assert resident < MOST_MEMORY, f"the keeper has {resident >> 20} MiB"

    def _visit(self, draw: random.Random) -> None:
        with socket.socket(socket.AF_UNIX) as link, contextlib.suppress(OSError):
            link.settimeout(0.2)
            link.connect(self.path)
            if draw.random() < 0.7:
                wire.send(link, wire.Request(1, "hello", {"versions": [1]}))
                link.recv(65536)
            for _ in range(draw.randrange(1, 6)):
                _send(draw, link, frame(draw))
            if draw.random() < 0.3:
                link.recv(65536)

    def _descriptors(self) -> int:
        return len(os.listdir(f"/proc/{self.keeper}/fd"))


def _send(draw: random.Random, link: socket.socket, data: bytes) -> None:
    fds = array.array("i", [0] * draw.choice([0, 0, 0, 1, 2, 16, 40]))
    beside = [(socket.SOL_SOCKET, socket.SCM_RIGHTS, fds)] if fds else []
    sent = link.sendmsg([data], beside) if data else 0
    link.sendall(data[sent:])


_things = contextlib.ExitStack()


def end() -> None:
    """Leave nothing of what the seeds have used."""
    _rig.cache_clear()
    _things.close()


atexit.register(end)


@lru_cache(maxsize=1)
def _rig() -> Rig:
    things = _things
    folder = things.enter_context(tempfile.TemporaryDirectory(prefix="perdure-fuzz-"))
    place = Place(Path(folder) / "store" / "perdure.db")
    things.callback(place.clear)
    return Rig(place)

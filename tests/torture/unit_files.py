"""Put anything at all into the files of units and into the keeper's folders, and kill the keeper: it lives on, and so
do the units whose files were left alone.

What is damaged is chosen by the seed, knowing what the files are: records with one value exchanged, cut off, huge,
nested; links, pipes, devices and folders in a file's place; names that are not text.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import random
import socket
import stat
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

from perdure._runtime import Runtime, Shell
from perdure.errors import PerdureError
from perdure.keeper.process.processes import with_cookie
from tests.runtime.kit import Place, is_alive, until

ROUNDS = 6  # keepers a seed
VICTIM = "the content of a file that is none of theirs"
ENV = {"HOME": "/", "PS1": "$ "}
SERVICE = [sys.executable, "-c", "import time; print(1, flush=True); time.sleep(1000)"]
_VALUES: list[Any] = [None, True, -1, 0, 1, 2**31, 2**63, 1e308, "", "x", "\0", "\udcff", "../..", "x" * 100_000]
_VALUES += [[], {}, [[]], [-1, 0], {"a": {"b": []}}, ["x", None], "@@ not-a-time @@"]


def run(seed: int) -> None:
    with tempfile.TemporaryDirectory(prefix="perdure-unit-files-") as folder:
        place = Place(Path(folder) / "store" / "perdure.db")
        victim = Path(folder) / "victim"
        victim.write_text(VICTIM)
        try:
            asyncio.run(_storm(place, victim, random.Random(seed)))
        finally:
            place.clear()


async def _storm(place: Place, victim: Path, dice: random.Random) -> None:
    async with place.runtime() as rt:
        good = await rt.shell("good", env=ENV)
        await good.run("X=42")
        service = await rt.service("good service", ["sleep", "1000"])
        for turn in range(ROUNDS):
            bad = await _bad_ones(rt, turn)
            told = [_damage(dice, file, victim) for file in dice.choices(_files(place, bad), k=dice.randint(1, 5))]
            try:
                place.kill_keeper()
                keeper = place.keeper
                await _check(rt, place, good, service.pid)
                await _open_again(rt, turn)
                assert place.keeper == keeper, "the keeper died of it"
                assert victim.read_text() == VICTIM, "a file outside was written through a link"
                _check_not_copied(place, victim)
            except BaseException as error:
                error.add_note("damaged: " + "; ".join(told))
                raise


async def _bad_ones(rt: Runtime, turn: int) -> list[str]:
    """Units to be damaged, of several kinds, alive."""
    shell = await rt.shell(f"bad shell {turn}", env=ENV)
    await shell.run("true", key="key")
    service = await rt.service(f"bad service {turn}", SERVICE)
    pipe = await rt.pipe(f"bad pipe {turn}")
    return [shell.uid, service.uid, pipe.uid]


def _files(place: Place, bad: list[str]) -> list[Path]:
    """What can be damaged: all that stands there for these units, and what does not stand there yet."""
    live = Path(place.socket).parent
    folders = [place.home / "units" / uid for uid in bad]
    folders += [live / f"{uid}{ending}" for uid in bad for ending in ("", ".kept")]
    # In an order of their own, not of their random names: a seed does the same each time.
    found = [file for folder in folders if folder.is_dir() for file in sorted(folder.rglob("*")) if not file.is_dir()]
    records = [folder / "unit.json" for folder in folders[: len(bad)]]
    absent = [
        folder / name for folder in folders for name in ("unit.json.new", "output", "inputs", "state.0", "history")
    ]
    strange = [place.home / "units" / name for name in ("garbage", os.fsdecode(b"\xff\xfe"), "a" * 200, "x\ny")]
    return [*found, *absent, *strange, *records, *records, *records]


# ── damages ──────────────────────────────────────────────────────────────────────────────────────


def _damage(dice: random.Random, file: Path, victim: Path) -> str:
    name = dice.choice(sorted(_DAMAGES))
    with contextlib.suppress(Exception):  # one damage may stand in the way of the next
        file.parent.mkdir(exist_ok=True)
        if os.path.lexists(file) and not _is_small(file):
            _instead(file)
        _DAMAGES[name](dice, file, victim)
    return f"{name} at {str(file)!a}"


def _is_small(file: Path) -> bool:
    found = file.lstat()
    return stat.S_ISREG(found.st_mode) and found.st_size < 1 << 20


def _instead(file: Path) -> None:
    if file.is_dir() and not file.is_symlink():
        file.rename(file.with_name(f"{file.name}.gone"))
    file.unlink(missing_ok=True)


def _exchange(dice: random.Random, file: Path, victim: Path) -> None:
    """One value of a JSON text, wherever it stands, for another."""
    told = json.loads(file.read_bytes().splitlines()[0])
    places = list(_places(told))
    holder, key = dice.choice(places)
    holder[key] = dice.choice(_VALUES)
    file.write_text(json.dumps(told))


def _places(value: Any) -> Any:
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, item in list(items):
        yield value, key
        yield from _places(item)


def _leave_out(dice: random.Random, file: Path, victim: Path) -> None:
    told = json.loads(file.read_bytes())
    del told[dice.choice(sorted(told))]
    file.write_text(json.dumps(told))


def _cut_off(dice: random.Random, file: Path, victim: Path) -> None:
    os.truncate(file, dice.randint(0, file.stat().st_size))


def _flip(dice: random.Random, file: Path, victim: Path) -> None:
    data = bytearray(file.read_bytes())
    for _ in range(dice.randint(1, 8)):
        data[dice.randrange(len(data))] ^= 1 << dice.randrange(8)
    file.write_bytes(data)


def _noise(dice: random.Random, file: Path, victim: Path) -> None:
    file.write_bytes(dice.randbytes(dice.randint(0, 10_000)))


def _nest(dice: random.Random, file: Path, victim: Path) -> None:
    file.write_text(dice.choice(("[", '{"a":')) * 200_000)


def _huge(dice: random.Random, file: Path, victim: Path) -> None:
    os.truncate(file, 1 << dice.choice((30, 36, 40)))  # a hole, so it costs nothing


def _link(dice: random.Random, file: Path, victim: Path) -> None:
    _instead(file)
    target = dice.choice((victim, victim.parent, file, Path("/dev/zero"), Path("/proc/self/mem"), Path("/nowhere")))
    file.symlink_to(target)


def _pipe(dice: random.Random, file: Path, victim: Path) -> None:
    _instead(file)
    os.mkfifo(file)


def _socket(dice: random.Random, file: Path, victim: Path) -> None:
    _instead(file)
    with socket.socket(socket.AF_UNIX) as made:
        made.bind(str(file))


def _device(dice: random.Random, file: Path, victim: Path) -> None:
    _instead(file)
    os.mknod(file, stat.S_IFCHR | 0o600, os.makedev(1, 5))  # endless zeros; needs root


def _folder(dice: random.Random, file: Path, victim: Path) -> None:
    _instead(file)
    file.mkdir()
    (file / "unit.json").write_text(dice.choice(("", "{}", "[]", '{"format": 1}')))


def _remove(dice: random.Random, file: Path, victim: Path) -> None:
    _instead(file)


_DAMAGES: dict[str, Callable[[random.Random, Path, Path], None]] = {
    "a value exchanged": _exchange,
    "another value exchanged": _exchange,
    "a field left out": _leave_out,
    "cut off": _cut_off,
    "bits flipped": _flip,
    "noise": _noise,
    "nested": _nest,
    "huge": _huge,
    "a link": _link,
    "a pipe": _pipe,
    "a socket": _socket,
    "a device": _device,
    "a folder": _folder,
    "removed": _remove,
}


# ── what must hold ───────────────────────────────────────────────────────────────────────────────


async def _check(rt: Runtime, place: Place, good: Shell, service: int) -> None:
    assert (await good.run("echo $X")).output == "42\n"
    assert is_alive(service), "a service that nobody has touched was ended"
    told = {one["name"]: one for one in place.ask("units")["units"]}
    assert told["good"]["ended"] is None and told["good service"]["pid"] == service
    for one in told.values():  # what is lost says why, and is gone
        if one["ended"] is not None:
            assert one["facts"].get("why") or one["ended"] != -1, one
            if one["facts"].get("aside"):
                until(lambda one=one: not _has_processes(one["uid"]), f"{one['name']} lives on, and is called lost")
    assert isinstance(place.ask("status")["unreadable"], list)


def _has_processes(uid: str) -> bool:
    return bool(list(with_cookie(uid)))


async def _open_again(rt: Runtime, turn: int) -> None:
    """Every unit answers, or is refused in our words."""
    with contextlib.suppress(PerdureError):
        await (await rt.shell(f"bad shell {turn}", env=ENV, rebuild="auto")).read()
    with contextlib.suppress(PerdureError):
        await (await rt.service(f"bad service {turn}", SERVICE)).read()
    with contextlib.suppress(PerdureError):
        await rt.pipe(f"bad pipe {turn}")
    for unit in await rt.units():
        if unit.name.startswith("bad"):
            with contextlib.suppress(PerdureError):
                await unit.end()


def _check_not_copied(place: Place, victim: Path) -> None:
    for file in (place.home / "units").rglob("*"):
        if stat.S_ISREG(file.lstat().st_mode) and file.lstat().st_size < 1 << 20:
            assert VICTIM.encode() not in file.read_bytes(), f"{file} has what a link led to"

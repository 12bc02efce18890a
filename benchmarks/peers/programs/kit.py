"""What the measured programs share. It imports no library that is measured, so that every environment can load it.

    python PROGRAM LINE --url URL --size N

A program prints one line of JSON: its `value`, its `durability` and its `versions`. The lines:

    chain    N small steps one after the other, as the library does it by default     milliseconds
    waited   the same, each step on disk before the next one begins                   milliseconds
    crowd    N tasks of 20 steps at once, in one process                              steps a second
    worker   N tasks of one step that wait, from the start of a worker to the end     tasks a second
    size     a task of N steps; the caller measures what it left on disk
    fill     a task of N steps that then waits in one more step, for SIGKILL          prints `recorded`
    resume   the same task in a new process, which is killed when that step begins    prints when
    turns    LangGraph: one invoke of N turns, each adding 1 kB; and `chat`, an invoke for each turn
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

STEPS_IN_CROWD = 20
WARM = 50  # steps before the clock is started
# What a step that is not waited for may need until it is on disk, before the process is killed.
SETTLED_SECONDS = 1.0


@dataclass(frozen=True)
class Place:
    """Where a program keeps its tasks: the address of a database or of a server."""

    url: str
    size: int

    @property
    def is_sqlite(self) -> bool:
        return self.url.startswith("sqlite:")

    @property
    def file(self) -> Path:
        return Path(self.url.removeprefix("sqlite://"))


Line = Callable[[Place], "float | Mapping[str, float] | None"]


def answer(lines: Mapping[str, Line], durability: Callable[[Place], str], packages: Iterable[str]) -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("line", choices=sorted(lines))
    parser.add_argument("--url", required=True)
    parser.add_argument("--size", type=int, required=True)
    options = parser.parse_args()
    place = Place(options.url, options.size)
    value = lines[options.line](place)
    say({"value": value, "durability": durability(place), "versions": dict(installed(packages))})


def installed(packages: Iterable[str]) -> Iterator[tuple[str, str]]:
    for name in packages:
        with suppress(PackageNotFoundError):
            yield name, version(name)


def say(words: Any) -> None:
    sys.stdout.write(json.dumps(words) + "\n")
    sys.stdout.flush()


class Clock:
    """Measures a block: milliseconds, and how many of something in a second."""

    def __enter__(self) -> Clock:
        self._began = time.perf_counter()
        return self

    def __exit__(self, *_: object) -> None:
        self.seconds = time.perf_counter() - self._began

    @property
    def ms(self) -> float:
        return self.seconds * 1000

    def rate(self, many: int) -> float:
        return many / self.seconds


class LastStep:
    """The step after the recorded ones: it holds a process until that is killed, or says that it was reached."""

    def __init__(self, *, resumes: bool, loaded_at: float) -> None:
        self.resumes, self._loaded_at = resumes, loaded_at

    def reached(self) -> None:
        if self.resumes:
            say({"at": time.time(), "loaded_at": self._loaded_at})
        else:
            time.sleep(SETTLED_SECONDS)
            say("recorded")


def sqlite_durability(pragma: Callable[[str], Any]) -> str:
    """What the connection that was measured says of itself."""
    levels = {0: "OFF", 1: "NORMAL", 2: "FULL", 3: "EXTRA"}
    return f"SQLite, journal_mode={pragma('journal_mode')}, synchronous={levels[int(pragma('synchronous'))]}"


def postgres_durability(show: Callable[[str], Any]) -> str:
    named = (f"{name}={show(name)}" for name in ("fsync", "synchronous_commit", "full_page_writes"))
    return "PostgreSQL, " + ", ".join(named)

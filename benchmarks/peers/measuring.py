"""Measure one line of one contestant, in a process of its own; and all of them in turns."""

from __future__ import annotations

import json
import os
import subprocess
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from benchmarks.peers import environments
from benchmarks.peers.contestants import CONTESTANTS, LINES, Contestant, Line
from benchmarks.peers.places import Place, place_for
from benchmarks.peers.results import Results

_PROGRAMS = Path(__file__).resolve().parent / "programs"
_PATIENCE_SECONDS = 900
SYNCED = ("synchronous=FULL", "fsync=on, synchronous_commit=on", "wal-fsync=false")


class Failed(Exception):
    """A program ended without a figure; the text is the end of what it said."""


class Program:
    """A contestant's program, in its interpreter."""

    def __init__(self, contestant: Contestant, python: Path, size: int) -> None:
        self._start = [str(python), str(_PROGRAMS / contestant.program)]
        self.size = size

    def command(self, line: str, place: Place) -> list[str]:
        return [*self._start, line, "--url", place.url, "--size", str(self.size)]

    def ask(self, line: str, place: Place) -> dict[str, Any]:
        done = subprocess.run(
            self.command(line, place), capture_output=True, text=True, check=False, timeout=_PATIENCE_SECONDS
        )
        if done.returncode:
            raise Failed((done.stderr.strip().splitlines() or ["no word"])[-1][:300])
        found: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
        return found

    def recovery(self, place: Place) -> dict[str, float]:
        """Kill a process in its last step, and start another one: milliseconds until that step begins again."""
        with subprocess.Popen(self.command("fill", place), stdout=subprocess.PIPE, text=True) as first:
            assert first.stdout is not None
            told = first.stdout.readline()
            first.kill()
        if json.loads(told or "null") != "recorded":
            raise Failed("it did not come to its last step")
        began = time.time()
        with subprocess.Popen(self.command("resume", place), stdout=subprocess.PIPE, text=True) as second:
            assert second.stdout is not None
            told = second.stdout.readline()
            second.kill()
        if not told:
            raise Failed("the new process did not come to the last step")
        found = json.loads(told)
        return {"restart": 1000 * (found["at"] - began), "resume": 1000 * (found["at"] - found["loaded_at"])}


def measure(line: Line, program: Program, place: Place) -> tuple[dict[str, float], dict[str, Any]]:
    """The figures of a line, and what the program said besides."""
    if line.name == "recovery":
        return program.recovery(place), {}
    answer = program.ask("size" if line.name == "size" else line.name, place)
    if line.name == "size":
        before = place.bytes_stored()
        program.ask("size", place)
        return {line.name: (place.bytes_stored() - before) / program.size}, answer
    if isinstance(answer["value"], dict):
        told = {f"{line.name} {name}": value for name, value in answer["value"].items()}
        return {**told, f"{line.name} bytes": place.bytes_stored() / 1000}, answer
    return {line.name: answer["value"]}, answer


@dataclass(frozen=True)
class Stand:
    """Where the measurements take place."""

    folder: Path
    postgres: str  # a server where databases may be made
    pythons: Mapping[str, Path]  # of each environment
    say: Callable[[str], None]


def measure_round(results: Results, contestants: Sequence[str], lines: Sequence[str], stand: Stand) -> None:
    """Every line once, contestant after contestant, so that a busy moment of the machine falls on all of them."""
    for line in (LINES[name] for name in lines):
        for key in contestants:
            if line.name in CONTESTANTS[key].lines and key not in results.failed.get(line.name, {}):
                _measure_one(results, line, CONTESTANTS[key], stand)
    results.rounds += 1


def _measure_one(results: Results, line: Line, contestant: Contestant, stand: Stand) -> None:
    results.loads.append(round(os.getloadavg()[0], 1))
    size = line.quick if results.quick else line.size
    program = Program(contestant, stand.pythons[contestant.environment], size)
    where = f"round {results.rounds + 1}, {line.name}, {contestant.key}"
    try:
        with place_for(contestant, stand.folder, stand.postgres) as place:
            figures, answer = measure(line, program, place)
            _note(results, contestant.key, place.durability or answer.get("durability", ""), answer)
    except (Failed, environments.Missing, subprocess.SubprocessError) as error:
        results.failed.setdefault(line.name, {})[contestant.key] = str(error)
        stand.say(f"{where}: failed, {error}")
        return
    for figure, value in figures.items():
        results.add(figure, contestant.key, value)
    stand.say(f"{where}: " + ", ".join(f"{figure} {value:,.1f}" for figure, value in figures.items()))


def _note(results: Results, key: str, durability: str, answer: Mapping[str, Any]) -> None:
    results.versions |= answer.get("versions", {})
    if durability:
        if not any(word in durability for word in SYNCED):
            raise Failed(f"it does not sync what it commits: {durability}")
        results.durability[key] = durability


def pythons_for(contestants: Sequence[str], results: Results, *, here: bool) -> dict[str, Path]:
    """An interpreter for each environment; those that cannot be made are left out, with the reason."""
    found: dict[str, Path] = {}
    for name in dict.fromkeys(CONTESTANTS[key].environment for key in contestants):
        try:
            found[name] = environments.python_of("" if here else name)
        except environments.Missing as error:
            results.left_out[name] = str(error)
    return found

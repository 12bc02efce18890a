"""`make torture`: random faults, seed by seed, for as long as one likes.

    python -m tests.torture                                  every part, its own seeds
    python -m tests.torture --part kills --seeds 0-99        some seeds of one part
    python -m tests.torture --shard 1/2                      every second seed; 2/2 are the others
    python -m tests.torture --resume finished.txt            leave out what is in the file, add what passes
    python -m tests.torture --minutes 60 --report report.md  an hour, shared among the parts, told in a report

Prints each seed that failed with the command that repeats it, and ends with 1 if there was one. Of a seed that hangs
all stacks are printed, those of its processes too; then they are killed, so that it fails and the next one is run.
"""

from __future__ import annotations

import argparse
import faulthandler
import sys
import threading
import time
import traceback
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

from tests.support import processes
from tests.torture import (
    adapter_promises,
    agents,
    alarms,
    clocks,
    coding_agents,
    contract,
    crowd,
    cuts,
    damage,
    failovers,
    floods,
    frameworks,
    fuzz_bundle,
    fuzz_envelope,
    honesty,
    hostile,
    keeper_fuzz,
    keepers,
    kills,
    migrations,
    mutants,
    outages,
    powerloss,
    programs,
    promises,
    proxy_fuzz,
    races,
    restarts,
    s2,
    s4,
    sequences,
    server_agents,
    sessions,
    simulations,
    sleeps,
    storm,
    switchovers,
    unit_files,
    walls,
    writers,
    zombies,
)
from tests.torture.report import CannotRun, PartReport, Report

TELL_EVERY = 10.0  # seconds
HANGS_AFTER = 900.0  # the longest part is done in a third of that
TELLING = 5.0  # how long processes have to print their stacks


class Part(NamedTuple):
    run: Callable[[int], None]
    seeds: range  # when none are named
    # What each seed breaks. Every one is tried, however short the time is: one that was left out may have survived.
    mutants: tuple[str, ...] = ()


PARTS = {
    "powerloss": Part(powerloss.run, range(20_000)),
    "kills": Part(kills.run, range(3_000)),
    "sequences": Part(sequences.run, range(2_000)),
    "races": Part(races.run, range(6)),
    "hostile": Part(hostile.run, range(400)),
    "storm": Part(storm.run, range(100)),
    "cuts": Part(cuts.run, range(20)),
    "restarts": Part(restarts.run, range(10)),
    "failovers": Part(failovers.run, range(20)),
    "switchovers": Part(switchovers.run, range(12)),  # two minutes each
    "crowd": Part(crowd.run, range(4)),
    "clocks": Part(clocks.run, range(100)),
    "sleeps": Part(sleeps.run, range(20)),
    "walls": Part(walls.run, range(40)),
    "writers": Part(writers.run, range(2_000)),
    "alarms": Part(alarms.run, range(100)),
    "agents": Part(agents.run, range(200)),
    "damage": Part(damage.run, range(3_000)),
    "zombies": Part(zombies.run, range(500)),
    "simulations": Part(simulations.run, range(50_000)),
    "programs": Part(programs.run, range(5_000)),
    "keepers": Part(keepers.run, range(30)),
    "coding-agents": Part(coding_agents.run, range(20)),
    "frameworks": Part(frameworks.run, range(len(frameworks.APART))),
    "floods": Part(floods.run, range(2)),
    "outages": Part(outages.run, range(2)),
    "sessions": Part(sessions.run, range(3_000)),
    "honesty": Part(honesty.run, range(3_000)),
    "migrations": Part(migrations.run, range(400)),
    "mutants": Part(mutants.run, range(len(mutants.MUTANTS)), tuple(mutants.MUTANTS)),
    "promises": Part(promises.run, range(len(promises.PROMISES)), tuple(promises.PROMISES)),
    "adapter-promises": Part(
        adapter_promises.run, range(len(adapter_promises.PROMISES)), tuple(adapter_promises.PROMISES)
    ),
    "fuzz_bundle": Part(fuzz_bundle.run, range(800)),  # a minute each
    "fuzz_envelope": Part(fuzz_envelope.run, range(1_200)),
    "keeper-fuzz": Part(keeper_fuzz.run, range(100)),
    "proxy-fuzz": Part(proxy_fuzz.run, range(100)),
    "server-agents": Part(server_agents.run, range(40)),
    "server-kills": Part(contract.run_kills, range(2 * len(contract.PAIRS))),
    "schemathesis": Part(contract.run_schemathesis, range(4)),
    "s4": Part(s4.run_full, range(2)),
    "unit files": Part(unit_files.run, range(30)),
    "s2": Part(s2.run, range(90 * s2.REPETITIONS)),
}


def main(arguments: Sequence[str], parts: Mapping[str, Part] = PARTS) -> int:
    options = _options(arguments, parts)
    finished = Finished(options.resume)
    report = Report(" ".join(arguments))
    # The mutants first. What they take is not taken from the minutes of the others.
    chosen = sorted(options.part or list(parts), key=lambda name: not parts[name].mutants)
    seconds_left = None if options.minutes is None else options.minutes * 60
    for number, name in enumerate(chosen):
        run, seeds, mutants = parts[name]
        module = sys.modules.get(run.__module__ or "")
        about = (module.__doc__ or "").partition("\n")[0].rstrip(".") if module else ""
        part = PartReport(name, about, mutants)
        report.parts.append(part)
        # What one part leaves of its share, the parts after it get.
        share = None if seconds_left is None or mutants else max(seconds_left, 0.0) / (len(chosen) - number)
        _torture(part, run, finished.without(name, _shard(options.seeds or seeds, options.shard)), finished, share)
        if seconds_left is not None and not mutants:
            seconds_left -= part.minutes * 60
        if options.report is not None:
            report.write(options.report)
    for part, seed in report.failed:
        print(f"FAILED: {part.name} {seed}: {part.repeated(seed)}", flush=True)
    print(f"{len(report.failed)} failed", flush=True)
    return 1 if report.failed else 0


def _torture(
    part: PartReport, run: Callable[[int], None], seeds: Sequence[int], finished: Finished, seconds: float | None
) -> None:
    """Run the seeds of a part, at least one; with `seconds`, begin no other when they are over."""
    name = part.name
    began = told = time.monotonic()
    for number, seed in enumerate(seeds, 1):
        part.tried.append(seed)
        try:
            with _watched(f"{name} {seed}"):
                run(seed)
            finished.add(name, seed)
        except CannotRun as error:
            part.tried.remove(seed)
            part.left_out = str(error)
            print(f"LEFT OUT: {name}: {error}", flush=True)
            break
        except Exception:
            traceback.print_exc()
            part.failed.append(seed)
            print(f"FAILED: {name} {seed}: {part.repeated(seed)}", flush=True)
        now = time.monotonic()
        if now - told > TELL_EVERY:
            told = now
            print(f"{name}: {number} of {len(seeds)} seeds, {len(part.failed)} failed", flush=True)
        if seconds is not None and now - began > seconds:
            break
    part.minutes = (time.monotonic() - began) / 60
    part.left = len(seeds) - len(part.tried)
    print(f"{name}: {len(part.tried)} seeds in {part.minutes:.1f} minutes, {len(part.failed)} failed", flush=True)


@contextmanager
def _watched(what: str) -> Iterator[None]:
    """Whatever hangs in this block tells where, and is ended."""
    over = threading.Event()

    def watch() -> None:
        if over.wait(HANGS_AFTER):
            return
        print(f"HANGS: {what}", flush=True)
        faulthandler.dump_traceback(all_threads=True)
        for nursery in list(processes.alive):
            nursery.tell_stacks()
        if not over.wait(TELLING):
            for nursery in list(processes.alive):
                nursery.end_children()

    watching = threading.Thread(target=watch, name="watchdog", daemon=True)
    watching.start()
    try:
        yield
    finally:
        over.set()
        watching.join()


class Finished:
    """The seeds that have passed, one a line, in a file that outlives an interrupted run."""

    def __init__(self, path: Path | None) -> None:
        self._path = path
        lines = path.read_text(encoding="utf-8").splitlines() if path is not None and path.exists() else []
        self._known = {(name, int(seed)) for name, _, seed in (line.partition(" ") for line in lines)}

    def without(self, name: str, seeds: Iterable[int]) -> list[int]:
        return [seed for seed in seeds if (name, seed) not in self._known]

    def add(self, name: str, seed: int) -> None:
        if self._path is not None:
            with self._path.open("a", encoding="utf-8") as file:
                file.write(f"{name} {seed}\n")


# ── options ──────────────────────────────────────────────────────────────────────────────────────


def _options(arguments: Sequence[str], parts: Mapping[str, Part]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m tests.torture", description="Random faults, seed by seed.")
    parser.add_argument("--part", action="append", choices=list(parts), help="only this part; may be repeated")
    parser.add_argument("--seeds", type=_seeds, metavar="A-B", help="these seeds, both included")
    parser.add_argument("--shard", type=_part_of, metavar="I/N", default=(1, 1), help="every Nth seed, from the Ith on")
    parser.add_argument("--resume", type=Path, metavar="PATH", help="a file of finished seeds, read and added to")
    parser.add_argument(
        "--minutes", type=float, metavar="N", help="share N minutes among the parts that draw seeds (default: no limit)"
    )
    parser.add_argument("--report", type=Path, metavar="PATH", help="write a page of Markdown that says what was tried")
    return parser.parse_args(arguments)


def _seeds(text: str) -> range:
    first, _, last = text.partition("-")
    return range(int(first), int(last or first) + 1)


def _part_of(text: str) -> tuple[int, int]:
    number, _, of = text.partition("/")
    if not 1 <= int(number) <= int(of):
        raise argparse.ArgumentTypeError(f"{text}: I lies between 1 and N")
    return int(number), int(of)


def _shard(seeds: range, shard: tuple[int, int]) -> range:
    number, of = shard
    return seeds[number - 1 :: of]


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

"""Measure perdure and its peers, in one run on one machine, with the same durability.

python -m benchmarks.peers                            all, three rounds; writes results.json, the page and its pictures
python -m benchmarks.peers --only chain --rounds 1    one line, only printed
python -m benchmarks.peers --page                     write the page anew from results.json
"""

from __future__ import annotations

import argparse
import os
import platform
import sys
from contextlib import nullcontext
from datetime import UTC, datetime
from pathlib import Path

from benchmarks.peers import page
from benchmarks.peers.contestants import CONTESTANTS, LEFT_OUT, LINES, POSTGRES
from benchmarks.peers.measuring import Stand, measure_round, pythons_for
from benchmarks.peers.results import RECORDED, Results
from perdure.bench.server import running
from perdure.bench.stage import file_system, folder_on


def main(arguments: list[str]) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=3, help="how often each line is measured (default: 3)")
    parser.add_argument("--only", action="append", choices=list(LINES), help="one line; may be given again")
    parser.add_argument(
        "--contestant", action="append", choices=list(CONTESTANTS), help="one of them; may be given again"
    )
    parser.add_argument("--quick", action="store_true", help="small samples: they show that it works, not how fast")
    parser.add_argument("--here", action="store_true", help="use this environment for all, and make no other")
    parser.add_argument("--folder", type=Path, help="on which disk (default: as perdure bench)")
    parser.add_argument(
        "--out", type=Path, help="where to write the results (default: results.json, if all is measured)"
    )
    parser.add_argument("--page", action="store_true", help="measure nothing, write the page anew from results.json")
    options = parser.parse_args(arguments)
    if options.page:
        page.write(Results.read())
        return 0
    is_whole = not (options.only or options.contestant or options.quick)
    out = options.out or (RECORDED if is_whole else None)
    contestants = options.contestant or list(CONTESTANTS)
    needs_server = any(CONTESTANTS[key].store == POSTGRES for key in contestants)
    with folder_on(options.folder) as folder, running(folder) if needs_server else nullcontext("") as postgres:
        results = Results(
            date=datetime.now(UTC).date().isoformat(),
            machine=_machine(folder),
            quick=options.quick,
            left_out=dict(LEFT_OUT),
        )
        pythons = pythons_for(contestants, results, here=options.here)
        there = [key for key in contestants if CONTESTANTS[key].environment in pythons]
        stand = Stand(folder, postgres, pythons, _say)
        for _ in range(options.rounds):
            measure_round(results, there, options.only or list(LINES), stand)
            if out is not None:
                results.write(out)  # what is measured is kept, whatever comes after it
    for key, settings in results.durability.items():
        _say(f"durability of {key}: {settings}")
    for who, why in results.left_out.items():
        _say(f"left out: {who}: {why}")
    if out == RECORDED:
        page.write(results)
    return 1 if results.failed else 0


def _machine(folder: Path) -> dict[str, object]:
    models = [
        line.partition(":")[2].strip()
        for line in Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
        if line.startswith("model name")
    ]
    return {
        "processor": models[0] if models else platform.machine(),
        "cores": os.cpu_count(),
        "system": f"{platform.system()} {platform.release()}",
        "python": platform.python_version(),
        "disk": file_system(folder),
    }


def _say(words: str) -> None:
    sys.stdout.write(words + "\n")
    sys.stdout.flush()


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

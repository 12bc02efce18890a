"""Run every part of the tests and say what was proved.

    python tools/run_tests.py                 all parts; starts none after one that failed
    python tools/run_tests.py unit store      some of them
    python tools/run_tests.py --keep-going    all, whatever fails
    python tools/run_tests.py --write-docs    also writes docs/requirements.md, after a whole run

Two parts run side by side, so that one computes while the other waits. Each prints what pytest said when it is done.
A few failures of a part are tried again in the end, each alone, on a machine that does nothing else. A test that passes
then is unsteady: it fails nothing, and is listed with what it said when it failed.

Prints minutes per part, what was skipped and why, which requirements have a passing test, and last
`N passed, N failed, N skipped`. With CI set, a skip whose reason is not in ALLOWED_SKIPS fails the run.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections import deque
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

import requirements_table  # noqa: E402
from tests.support import postgres, results  # noqa: E402
from tests.torture import frameworks  # noqa: E402

LINTS = {
    "ruff check": ("-m", "ruff", "check", "--quiet", "."),
    "ruff format": ("-m", "ruff", "format", "--check", "--quiet", "."),
    "mypy": ("-m", "mypy", "--no-error-summary"),
    "import-linter": ("-c", "from importlinter.cli import lint_imports_command; lint_imports_command()"),
    "dashboard": ("tools/ui/check.py",),
}
CANNOT_CHECK = 75  # what a tool ends with that is not here; it says why
FOLDERS = (
    "unit",
    "replay",
    "store",
    "tasks",
    "durable",
    "runtime",
    "memory",
    "worker",
    "sessions",
    "continuity",
    "former",
    "coordination",
    "scenarios",
    "server",
    "browser",
    "mcp",
    "security",
    "honesty",
    "crash",
    "acceptance",
    "docs",
    "typing",
    "integrations",
)
NOT_A_PART = {"support", "torture"}
WORKERS = "2"
NO_TESTS_COLLECTED = 5
TOOK_TOO_LONG = 124
PART_LIMIT = 20 * 60.0  # seconds; the longest part takes a quarter of it on two idle cores
LANES = 2  # parts that run side by side
# A part with more failures than this fails at once: they are no accident of timing, and are not tried again.
MOST_UNSTEADY = 8
TRIES_ALONE = 2  # how often a test that failed is tried again

# Reasons for which a test may be skipped in CI, each as it is printed.
ALLOWED_SKIPS: frozenset[str] = frozenset(
    {
        "no systemd can be started here",
        "kubectl is not installed",
        "network namespaces need root and iproute2",
        "network namespaces cannot be wired here",
        "root bypasses filesystem permissions",  # one rule of Pydantic AI's suite for workspaces
        "TypeScript is not here and npm cannot fetch it",
        "the packages of its environment cannot be fetched",  # of a framework that has one of its own
    }
)


@dataclass
class Part:
    name: str
    minutes: float = 0.0
    failed: bool = False
    results: dict[str, results.Result] = field(default_factory=dict)
    unsteady: dict[str, list[str]] = field(default_factory=dict)  # what each said before it passed

    def count(self, outcome: str) -> int:
        return sum(result["outcome"] == outcome for result in self.results.values())

    @property
    def failures(self) -> list[str]:
        return [name for name, result in self.results.items() if result["outcome"] == "failed"]

    @property
    def skips(self) -> Iterator[tuple[str, str]]:
        return ((name, result["reason"]) for name, result in self.results.items() if result["outcome"] == "skipped")


def main() -> int:
    options = _options()
    chosen = options.parts or ["lint", *(name for name in FOLDERS if (ROOT / "tests" / name).is_dir())]
    postgres.own_the_run()
    began = time.monotonic()
    try:
        parts = _run_parts(chosen, keep_going=options.keep_going)
        for part in parts:
            _try_again(part)
    finally:
        postgres.stop_server()
    is_whole = not options.parts and len(parts) == len(chosen)
    minutes = (time.monotonic() - began) / 60
    return _tell(parts, minutes, is_whole=is_whole, write_docs=options.write_docs)


def _run_parts(chosen: Sequence[str], *, keep_going: bool) -> list[Part]:
    """The parts that were run, in the order of their names."""
    waiting = deque(chosen)
    done: list[Part] = []

    def take_turns() -> None:
        while waiting and (keep_going or not any(part.failed for part in done)):
            with contextlib.suppress(IndexError):  # the other lane took the last one
                done.append(_run(waiting.popleft()))

    with ThreadPoolExecutor(max_workers=LANES) as lanes:
        for lane in [lanes.submit(take_turns) for _ in range(LANES)]:
            lane.result()
    return sorted(done, key=lambda part: chosen.index(part.name))


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description="Run the tests of perdure.")
    parser.add_argument("parts", nargs="*", metavar="part", help=f"lint, {', '.join(FOLDERS)}; all when left out")
    parser.add_argument("--keep-going", action="store_true", help="go on after a part that failed")
    parser.add_argument("--write-docs", action="store_true", help="write docs/requirements.md after a whole run")
    options = parser.parse_args()
    if unknown := set(options.parts) - {"lint", *FOLDERS}:
        parser.error(f"no such part: {', '.join(sorted(unknown))}")
    if forgotten := _folders_no_part_runs():
        parser.error(f"no part runs the tests in {', '.join(forgotten)}; add them to FOLDERS in {Path(__file__).name}")
    return options


def _folders_no_part_runs() -> list[str]:
    with_tests = {file.relative_to(ROOT / "tests").parts[0] for file in (ROOT / "tests").rglob("test_*.py")}
    return sorted(with_tests - {*FOLDERS, *NOT_A_PART})


# ── running ──────────────────────────────────────────────────────────────────────────────────────


def _run(name: str) -> Part:
    print(f"begins: {name}", flush=True)
    began = time.monotonic()
    part = Part(name)
    with tempfile.TemporaryFile("w+", encoding="utf-8", errors="replace") as said:
        if name == "lint":
            _lint(part, said)
        else:
            _test(part, said)
        part.minutes = (time.monotonic() - began) / 60
        said.seek(0)
        print(f"── {name} ".ljust(100, "─"), said.read(), sep="\n", flush=True)
    return part


def _lint(part: Part, said: IO[str]) -> None:
    for tool, arguments in LINTS.items():
        command = [sys.executable, *arguments]
        ran = subprocess.run(
            command, check=False, cwd=ROOT, text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT
        )
        word = {0: "ok", CANNOT_CHECK: "left out"}.get(ran.returncode, "FAILED")
        print(f"lint: {tool}: {word}", file=said)
        if ran.returncode != 0:
            print(ran.stdout, file=said)
            part.failed |= ran.returncode != CANNOT_CHECK


def _test(part: Part, said: IO[str]) -> None:
    if part.name == "browser":
        subprocess.run(["sh", str(ROOT / "tools" / "install_chromium.sh")], check=False, stdout=said, stderr=said)
    # Each worker begins with a stretch of its own, so a file's fixtures are made once, and ends with what is left.
    code, part.results = _run_pytest(said, "-n", WORKERS, "--dist", "worksteal", f"tests/{part.name}")
    if part.name == "integrations":
        for framework in frameworks.APART:
            code = _test_apart(framework, part, said) or code
    if code not in (0, NO_TESTS_COLLECTED) and not part.failures:
        reason = f"pytest ended with {code}"
        part.results[f"tests/{part.name}"] = {"outcome": "failed", "reason": reason, "text": "", "requirements": []}
    part.failed = len(part.failures) > MOST_UNSTEADY or any("::" not in name for name in part.failures)


def _test_apart(framework: str, part: Part, said: IO[str]) -> int:
    """The tests of an adapter whose framework is not in this environment: in one of its own."""
    if frameworks.make_environment(framework, said) is None:
        reason = "the packages of its environment cannot be fetched"
        name = f"tests/integrations/{framework}"
        part.results[name] = {"outcome": "skipped", "reason": reason, "text": "", "requirements": []}
        return 0
    code, found = _run_pytest(said, "-n", WORKERS, "-p", "no:cacheprovider", *frameworks.tests_of(framework))
    part.results.update(found)
    return code


def _run_pytest(said: IO[str], *arguments: str) -> tuple[int, dict[str, results.Result]]:
    environ, python = dict(os.environ), sys.executable
    if (apart := frameworks.python_for(arguments)) is not None:
        environ["PYTHONPATH"], python = str(ROOT / "src"), str(apart)
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder, "results.json")
        command = [python, "-m", "pytest", "-q", *arguments]
        code = _within_limit(command, {**environ, results.FILE: str(file)}, said)
        found = json.loads(file.read_text(encoding="utf-8")) if file.exists() else {}
    return code, found


def _within_limit(command: list[str], environ: dict[str, str], said: IO[str]) -> int:
    """Run a command with all its processes ended after PART_LIMIT: a part that hangs fails, and the others are run."""
    running = subprocess.Popen(command, cwd=ROOT, env=environ, stdout=said, stderr=said, start_new_session=True)
    try:
        return running.wait(timeout=PART_LIMIT)
    except subprocess.TimeoutExpired:
        print(f"FAILED: not done after {PART_LIMIT / 60:.0f} minutes; its processes are killed", file=said)
        return TOOK_TOO_LONG
    finally:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(running.pid, signal.SIGKILL)
        running.wait()


def _try_again(part: Part) -> None:
    """Try each of a few failures again, alone. A test that passes then is noted as unsteady."""
    if part.failed:
        return
    for name in part.failures:
        said = []
        for _ in range(TRIES_ALONE):
            with tempfile.TemporaryFile("w+", encoding="utf-8", errors="replace") as output:
                print(f"── {name}, again and alone ".ljust(100, "─"), flush=True)
                code, again = _run_pytest(output, "-n", "0", name)
                output.seek(0)
                print(output.read(), flush=True)
            said.append(part.results[name]["text"])
            part.results.update(again)
            if code == 0:
                part.unsteady[name] = said
                break
        else:
            part.failed = True


# ── telling ──────────────────────────────────────────────────────────────────────────────────────


def _tell(parts: list[Part], minutes: float, *, is_whole: bool, write_docs: bool) -> int:
    print("─" * 100)
    _tell_minutes(parts, minutes)
    passed, failed, skipped = (sum(part.count(o) for part in parts) for o in ("passed", "failed", "skipped"))
    problems = [f"{part.name} failed" for part in parts if part.failed]
    problems += _tell_skips(parts)

    proofs = requirements_table.proofs(result for part in parts for result in part.results.items())
    if any(part.results for part in parts):
        print(requirements_table.summary(proofs))
    if write_docs and is_whole and not problems:
        print(f"wrote {requirements_table.write(proofs).relative_to(ROOT)}")
    elif write_docs:
        problems.append("docs/requirements.md was not written: that takes a whole run without failure")

    _tell_unsteady(parts)
    for problem in problems:
        print(f"FAILED: {problem}")
    for name in (name for part in parts for name in part.failures):
        print(f"FAILED: {name}")
    print(f"{passed} passed, {failed} failed, {skipped} skipped", flush=True)
    return 1 if problems else 0


def _tell_minutes(parts: list[Part], minutes: float) -> None:
    print(f"{'part':<12}{'minutes':>8}{'passed':>8}{'failed':>8}{'skipped':>8}")
    for part in parts:
        counts = "".join(f"{part.count(outcome):>8}" for outcome in ("passed", "failed", "skipped"))
        print(f"{part.name:<12}{part.minutes:>8.2f}{counts if part.name != 'lint' else ''}")
    print(f"{'all':<12}{minutes:>8.2f}  {LANES} parts side by side")


def _tell_unsteady(parts: list[Part]) -> None:
    """Each test that failed and passed when it was tried again, with what it said when it failed."""
    unsteady = {name: said for part in parts for name, said in part.unsteady.items()}
    for name, said in unsteady.items():
        for text in said:
            print(f"── unsteady: {name} ".ljust(100, "─"), text, sep="\n")
    for name, said in unsteady.items():
        print(f"unsteady: {name} failed {len(said)} of {len(said) + 1} times")


def _tell_skips(parts: list[Part]) -> list[str]:
    """Print each skip with its reason; in CI, give back those that nobody allowed."""
    skips = [skip for part in parts for skip in part.skips]
    for name, reason in skips:
        print(f"skipped: {name}: {reason}")
    if not os.environ.get("CI"):
        return []
    return [f"{name} was skipped, and in CI nothing may be" for name, reason in skips if reason not in ALLOWED_SKIPS]


if __name__ == "__main__":
    sys.exit(main())

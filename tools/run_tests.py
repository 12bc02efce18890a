"""Run every part of the tests, in order, and say what was proved.

    python tools/run_tests.py                 all parts; stops at the first that fails
    python tools/run_tests.py unit store      some of them
    python tools/run_tests.py --keep-going    all, whatever fails
    python tools/run_tests.py --write-docs    also writes docs/requirements.md, after a whole run

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
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

import requirements_table  # noqa: E402
from tests.support import postgres, results  # noqa: E402

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
PART_LIMIT = 15 * 60.0  # seconds; the longest part takes four minutes on two idle cores
# More failures than this in one part are no accident of timing, and are not tried again.
MOST_UNSTEADY = 4

# Reasons for which a test may be skipped in CI, each as it is printed.
ALLOWED_SKIPS: frozenset[str] = frozenset(
    {
        "no systemd can be started here",
        "kubectl is not installed",
        "network namespaces need root and iproute2",
        "network namespaces cannot be wired here",
        "root bypasses filesystem permissions",  # one rule of Pydantic AI's suite for workspaces
        "TypeScript is not here and npm cannot fetch it",
    }
)


@dataclass
class Part:
    name: str
    minutes: float = 0.0
    failed: bool = False
    results: dict[str, results.Result] = field(default_factory=dict)
    unsteady: list[str] = field(default_factory=list)  # failed, and passed when they were run again alone

    def count(self, outcome: str) -> int:
        return sum(result["outcome"] == outcome for result in self.results.values())

    @property
    def skips(self) -> Iterator[tuple[str, str]]:
        return ((name, result["reason"]) for name, result in self.results.items() if result["outcome"] == "skipped")


def main() -> int:
    options = _options()
    chosen = options.parts or ["lint", *(name for name in FOLDERS if (ROOT / "tests" / name).is_dir())]
    postgres.own_the_run()
    parts: list[Part] = []
    with ThreadPoolExecutor(max_workers=1) as beside:
        # Most tests wait for a disk or a process: mypy, which is one thread that computes, runs beside them.
        lint = beside.submit(_lint) if "lint" in chosen else None
        try:
            for name in (name for name in chosen if name != "lint"):
                parts.append(_run(name))
                if not options.keep_going and (parts[-1].failed or _has_failed(lint)):
                    break
        finally:
            postgres.stop_server()
        if lint is not None:
            parts.insert(0, lint.result())
    is_whole = not options.parts and len(parts) == len(chosen)
    return _tell(parts, is_whole=is_whole, write_docs=options.write_docs)


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
    print(f"── {name} ".ljust(100, "─"), flush=True)
    began = time.monotonic()
    part = _pytest(name)
    part.minutes = (time.monotonic() - began) / 60
    return part


def _has_failed(lint: Future[Part] | None) -> bool:
    return lint is not None and lint.done() and lint.result().failed


def _lint() -> Part:
    part = Part("lint")
    began = time.monotonic()
    for tool, arguments in LINTS.items():
        command = [sys.executable, *arguments]
        ran = subprocess.run(
            command, check=False, cwd=ROOT, text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT
        )
        word = {0: "ok", CANNOT_CHECK: "left out"}.get(ran.returncode, "FAILED")
        print(f"lint: {tool}: {word}", flush=True)
        if ran.returncode != 0:
            print(ran.stdout, flush=True)
            part.failed |= ran.returncode != CANNOT_CHECK
    part.minutes = (time.monotonic() - began) / 60
    return part


def _pytest(name: str) -> Part:
    if name == "browser":
        subprocess.run(["sh", str(ROOT / "tools" / "install_chromium.sh")], check=False)
    part = Part(name)
    code, part.results = _run_pytest("-n", WORKERS, f"tests/{name}")
    part.failed = code not in (0, NO_TESTS_COLLECTED)
    if part.failed and not part.count("failed"):
        reason = f"pytest ended with {code}"
        part.results[f"tests/{name}"] = {"outcome": "failed", "reason": reason, "requirements": []}
    elif part.failed:
        _try_again(part)
    return part


def _run_pytest(*arguments: str) -> tuple[int, dict[str, results.Result]]:
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder, "results.json")
        command = [sys.executable, "-m", "pytest", "-q", *arguments]
        code = _within_limit(command, {**os.environ, results.FILE: str(file)})
        found = json.loads(file.read_text(encoding="utf-8")) if file.exists() else {}
    return code, found


def _within_limit(command: list[str], environ: dict[str, str]) -> int:
    """Run a command with all its processes ended after PART_LIMIT: a part that hangs fails, and the others are run."""
    running = subprocess.Popen(command, cwd=ROOT, env=environ, start_new_session=True)
    try:
        return running.wait(timeout=PART_LIMIT)
    except subprocess.TimeoutExpired:
        print(f"FAILED: not done after {PART_LIMIT / 60:.0f} minutes; its processes are killed", flush=True)
        return TOOK_TOO_LONG
    finally:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(running.pid, signal.SIGKILL)
        running.wait()


def _try_again(part: Part) -> None:
    """Run a few failures once more, alone. Those that pass then are told as unsteady, and fail nothing."""
    failed = [name for name, result in part.results.items() if result["outcome"] == "failed"]
    if len(failed) > MOST_UNSTEADY:
        return
    code, again = _run_pytest("-n", "0", *failed)
    if code == 0:
        part.results.update(again)
        part.unsteady, part.failed = failed, False


# ── telling ──────────────────────────────────────────────────────────────────────────────────────


def _tell(parts: list[Part], *, is_whole: bool, write_docs: bool) -> int:
    print("─" * 100)
    _tell_minutes(parts)
    passed, failed, skipped = (sum(part.count(o) for part in parts) for o in ("passed", "failed", "skipped"))
    problems = [f"{part.name} failed" for part in parts if part.failed]
    problems += _tell_skips(parts)
    for name in (name for part in parts for name in part.unsteady):
        print(f"unsteady: {name} failed among the others and passed alone")

    proofs = requirements_table.proofs(result for part in parts for result in part.results.items())
    if any(part.results for part in parts):
        print(requirements_table.summary(proofs))
    if write_docs and is_whole and not problems:
        print(f"wrote {requirements_table.write(proofs).relative_to(ROOT)}")
    elif write_docs:
        problems.append("docs/requirements.md was not written: that takes a whole run without failure")

    for problem in problems:
        print(f"FAILED: {problem}")
    print(f"{passed} passed, {failed} failed, {skipped} skipped", flush=True)
    return 1 if problems else 0


def _tell_minutes(parts: list[Part]) -> None:
    print(f"{'part':<12}{'minutes':>8}{'passed':>8}{'failed':>8}{'skipped':>8}")
    for part in parts:
        counts = "".join(f"{part.count(outcome):>8}" for outcome in ("passed", "failed", "skipped"))
        print(f"{part.name:<12}{part.minutes:>8.2f}{counts if part.name != 'lint' else ''}")
    lint = sum(part.minutes for part in parts if part.name == "lint")
    print(f"{'all':<12}{max(lint, sum(part.minutes for part in parts) - lint):>8.2f}  lint runs beside the others")


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

"""Which requirement is proved by which passing test, as one line and as docs/requirements.md.

Also which tests name each of them, for the page of the site.
"""

from __future__ import annotations

import ast
import tomllib
from collections.abc import Iterable
from pathlib import Path

from tests.support.requirements import LIST, requirement_titles
from tests.support.results import Result

PAGE = LIST.with_name("requirements.md")

Proofs = dict[str, list[str]]


def proofs(results: Iterable[tuple[str, Result]]) -> Proofs:
    """Each requirement with its passing tests; a test with a failing variant proves nothing."""
    found: Proofs = {name: [] for name in requirement_titles()}
    variants: dict[str, list[Result]] = {}
    for node_id, result in results:
        variants.setdefault(node_id.partition("[")[0], []).append(result)
    for test, of_test in variants.items():
        outcomes = {result["outcome"] for result in of_test}
        if "passed" in outcomes and "failed" not in outcomes:
            for name in dict.fromkeys(name for result in of_test for name in result["requirements"]):
                found[name].append(test)
    return found


def summary(proofs: Proofs) -> str:
    without = [name for name, tests in proofs.items() if not tests]
    proved = f"requirements with a passing test: {len(proofs) - len(without)} of {len(proofs)}"
    return f"{proved}; without: {_ranges(without)}" if without else proved


def named() -> Proofs:
    """Each requirement with the tests that name it, as the source says. Whether they pass is for a run to say."""
    found: Proofs = {name: [] for name in requirement_titles()}
    tests = LIST.parents[1] / "tests"
    for path in sorted(tests.rglob("test_*.py")):
        tree = ast.parse(path.read_text(encoding="utf-8"))
        whole = [name for node in tree.body if isinstance(node, ast.Assign) for name in _marks(node.value)]
        for node in ast.walk(tree):
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and node.name.startswith("test_"):
                own = [name for decorator in node.decorator_list for name in _marks(decorator)]
                for name in dict.fromkeys([*whole, *own]):
                    found[name].append(f"{path.relative_to(tests)}::{node.name}")
    return found


def _marks(node: ast.expr) -> list[str]:
    """The requirements in `pytest.mark.req(…)`, also in a list of marks."""
    calls = (
        one
        for one in ast.walk(node)
        if isinstance(one, ast.Call) and isinstance(one.func, ast.Attribute) and one.func.attr == "req"
    )
    return [str(word.value) for call in calls for word in call.args if isinstance(word, ast.Constant)]


def write(proofs: Proofs) -> Path:
    """Write the page of a run, and say where."""
    made = "Made by `make test ARGS=--write-docs` from `docs/requirements.toml` and the tests that name its lines."
    PAGE.write_text(page(proofs, made), encoding="utf-8")
    return PAGE


def page(proofs: Proofs, made: str) -> str:
    lines = ["# Requirements and their tests", "", made]
    for section, titles in tomllib.loads(LIST.read_text(encoding="utf-8")).items():
        lines += ["", f"## {section}", "", "| | perdure | proved by |", "|---|---|---|"]
        lines += [f"| {name} | {title} | {_tests(proofs[name])} |" for name, title in titles.items()]
    return "\n".join(lines) + "\n"


def _tests(tests: list[str]) -> str:
    return "<br>".join(f"`{test.removeprefix('tests/')}`" for test in sorted(tests)) or "nothing yet"


def _ranges(names: list[str]) -> str:
    """R1, R2, R3, R7 as R1-R3, R7."""
    runs: list[list[int]] = []
    for number in (int(name.removeprefix("R")) for name in names):
        if runs and number == runs[-1][-1] + 1:
            runs[-1].append(number)
        else:
            runs.append([number])
    return ", ".join(f"R{run[0]}-R{run[-1]}" if len(run) > 1 else f"R{run[0]}" for run in runs)

"""Write what became of each test to the file named by PERDURE_TEST_RESULTS.

The test runner adds up several pytest runs from these files: {node id: {outcome, reason, text, requirements}}.
"""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import TypedDict

import pytest

FILE = "PERDURE_TEST_RESULTS"
TEXT_LIMIT = 20_000  # characters, the last ones


class Result(TypedDict):
    outcome: str
    reason: str
    text: str  # of a failure: all that pytest tells of it, cut to TEXT_LIMIT
    requirements: list[str]


class _Recorder:
    """The worst of set-up, call and tear-down counts."""

    def __init__(self, file: Path) -> None:
        self._file = file
        self._results: dict[str, Result] = {}

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        requirements = [str(value) for name, value in report.user_properties if name == "req"]
        self._note(report.nodeid, report, requirements)

    def pytest_collectreport(self, report: pytest.CollectReport) -> None:
        if not report.passed:
            self._note(report.nodeid, report, [])

    def pytest_sessionfinish(self) -> None:
        self._file.write_text(json.dumps(self._results), encoding="utf-8")

    def _note(self, name: str, report: pytest.TestReport | pytest.CollectReport, requirements: list[str]) -> None:
        before = self._results.get(name)
        if before is None or before["outcome"] == "passed" or report.failed:
            self._results[name] = {
                "outcome": report.outcome,
                "reason": "" if report.passed else _reason(report),
                "text": _text(report) if report.failed else "",
                "requirements": requirements,
            }


def _reason(report: pytest.TestReport | pytest.CollectReport) -> str:
    if hasattr(report, "wasxfail"):
        return f"expected to fail: {report.wasxfail}"
    if isinstance(report.longrepr, tuple):
        return report.longrepr[2].removeprefix("Skipped: ")
    return report.longreprtext.strip().rpartition("\n")[2]


def _text(report: pytest.TestReport | pytest.CollectReport) -> str:
    captured = (f"── {title}\n{content}" for title, content in report.sections)
    return "\n".join((report.longreprtext, *captured))[-TEXT_LIMIT:]


def pytest_configure(config: pytest.Config) -> None:
    is_worker = hasattr(config, "workerinput")
    if (file := os.environ.get(FILE)) and not is_worker:
        config.pluginmanager.register(_Recorder(Path(file)), "perdure-results")

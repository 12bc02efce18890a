"""Which threat to the server has which tests. `@pytest.mark.threat("T4")` says what a test is about."""

from __future__ import annotations

import re
from pathlib import Path

TESTS = Path(__file__).resolve().parents[2]
THREATS = {
    "T1": "every route answers every credential as the table says",
    "T2": "another tenant's things",
    "T3": "what agents wrote, to a key that may not read it",
    "T4": "DNS rebinding",
    "T5": "cross-site requests",
    "T6": "framing of pages",
    "T7": "the content security policy of pages",
    "T8": "markup in texts on pages",
    "T9": "escape sequences in terminals",
    "T10": "control characters in logs",
    "T11": "webhooks to addresses inside",
    "T12": "webhooks: signatures, secrets, hostile receivers",
    "T13": "guessed callback tokens",
    "T14": "SQL and JSON paths in filters",
    "T15": "paths",
    "T16": "sizes, and requests that two readers read differently",
    "T17": "clients that do nothing",
    "T18": "patterns that never end",
    "T19": "rates",
    "T20": "secrets in answers, logs and the store",
    "T21": "API keys",
    "T22": "sessions and links",
    "T23": "where the server listens",
    "T24": "artifacts and bundles",
    "T25": "a server that is killed in the middle of a request",
    "T26": "what failures tell",
    "T27": "vendored files of the dashboard",
    "T28": "a server that only reads",
}


def marked() -> dict[str, set[str]]:
    """The files with tests of each threat."""
    found: dict[str, set[str]] = {}
    for file in TESTS.rglob("test_*.py"):
        text = file.read_text(encoding="utf-8")
        for group in re.findall(r"pytest\.mark\.threat\(([^)]*)\)", text):
            for name in re.findall(r'"(T\d+)"', group):
                found.setdefault(name, set()).add(file.name)
    return found


def test_every_threat_has_a_test():
    silent = [name for name in THREATS if name not in marked()]
    assert silent == [], "write a test with @pytest.mark.threat"


def test_every_mark_names_a_threat():
    assert marked().keys() <= THREATS.keys()

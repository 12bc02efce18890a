"""`perdure demo` shows what it says, on either database, and leaves nothing behind."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support import postgres


@pytest.mark.req("R79", "R82", "R83", "R59")
@pytest.mark.parametrize("database", ["sqlite", "postgres"])
def test_everything_comes_back_and_nothing_stays_behind(database: str, tmp_path: Path) -> None:
    environment = dict(os.environ)
    if database == "postgres":
        postgres.ensure_server()  # which says why, where none can be started
    else:  # as root the server is another user's, who must get into the folder
        environment["TMPDIR"] = str(tmp_path)
    argv = [sys.executable, "-m", "perdure", "demo", "--json", "--database", database]
    shown = subprocess.run(argv, text=True, capture_output=True, timeout=300, check=False, env=environment)
    assert shown.returncode == 0, shown.stdout + shown.stderr
    told = json.loads(shown.stdout)
    assert [proof["what"] for proof in told["proofs"] if not proof["is_good"]] == []
    assert told["good"]
    assert list(tmp_path.iterdir()) == []

"""Every public name has a type that all checkers read alike, as pyright's own report of completeness says."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

# Programs of perdure's own: nobody imports from them.
PROGRAMS = {"bench", "cli", "client", "dashboard", "demo", "integrations", "keeper", "mcp", "server"}
# What says nothing about a type, or follows from another finding.
QUIET = ("No docstring", "partially unknown", "default value")


@pytest.mark.req("R147")
def test_every_public_name_has_a_type_that_is_written_down(tmp_path: Path) -> None:
    environment = Path(sys.executable).parent
    done = subprocess.run(
        [sys.executable, "-m", "basedpyright", "--verifytypes", "perdure", "--ignoreexternal", "--outputjson"],
        cwd=tmp_path,
        env={**os.environ, "VIRTUAL_ENV": str(environment.parent), "PATH": f"{environment}:{os.environ['PATH']}"},
        capture_output=True,
        text=True,
        check=False,
    )
    report = json.loads(done.stdout)["typeCompleteness"]
    public = [one for one in report["symbols"] if one["name"].split(".")[1] not in PROGRAMS]
    exported = [one for one in public if one["isExported"]]
    assert len(exported) > 1000, report["packageRootDirectory"]
    causes = {
        f"{one['name']}: {found['message']}"
        for one in public
        for found in one["diagnostics"]
        if not one["isTypeKnown"] and not any(words in found["message"] for words in QUIET)
    }
    assert causes == set()
    assert [one["name"] for one in exported if not one["isTypeKnown"]] == []

"""What the guide to webhooks shows works as it stands."""

from __future__ import annotations

import re
import sys
from pathlib import Path

from perdure.cli.base.command import SECTIONS
from perdure.server.telemetry import CATALOGUE, full_name
from tests.support.programs import run

ROOT = Path(__file__).resolve().parents[3]


def test_the_program_of_the_guide_sends_and_verifies_a_message(tmp_path: Path):
    (block,) = re.findall(r"```python\n(.*?)```", (ROOT / "docs/guide/webhooks.md").read_text(), re.DOTALL)
    (tmp_path / "pasted.py").write_text(block)
    assert run([sys.executable, "pasted.py"], tmp_path) == "task.paused invoice-7 human_approval\n"


def test_every_alarm_of_the_runbook_is_a_metric_and_every_command_exists():
    page = (ROOT / "docs/runbook.md").read_text()
    names = set(re.findall(r"perdure_[a-z_]+", page))
    assert names and names <= {full_name(metric) for metric in CATALOGUE}
    commands = set(re.findall(r"`perdure ([a-z-]+)", page))
    assert commands <= {name for names in SECTIONS.values() for name in names}

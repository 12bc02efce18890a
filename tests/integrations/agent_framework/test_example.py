"""The example and the guide, as a reader would run them."""

from __future__ import annotations

import re
import sys
from pathlib import Path

from tests.support import programs

ROOT = Path(__file__).parents[3]
EXAMPLE = [sys.executable, str(ROOT / "examples" / "agent_framework_agent.py")]
PERDURE = [str(Path(sys.executable).with_name("perdure"))]


def test_the_example_pays_once(tmp_path: Path) -> None:
    assert programs.kill_after(EXAMPLE, tmp_path, "paying")[-1] == "paying"
    assert "waits: outcome unknown" in programs.run(EXAMPLE, tmp_path)
    programs.run([*PERDURE, "answer", "order-7", "done"], tmp_path)
    told = programs.run(EXAMPLE, tmp_path)
    assert "paying" not in told and "looking up" not in told and told.endswith("Order ord-7 is paid.\n")


def test_the_code_of_the_guide_runs(tmp_path: Path) -> None:
    blocks = re.findall(r"```python\n(.*?)```", (ROOT / "docs/guide/agent-framework.md").read_text(), re.DOTALL)
    (tmp_path / "guide.py").write_text("\n".join(blocks))
    assert "4200 cents" in programs.run([sys.executable, "guide.py"], tmp_path)

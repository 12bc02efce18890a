"""The example in examples/, as a reader would run it: killed while it pays, started again, answered."""

from __future__ import annotations

import re
import sys
from pathlib import Path

from tests.support import programs

ROOT = Path(__file__).parents[3]
EXAMPLE = [sys.executable, str(ROOT / "examples" / "langgraph_agent.py")]


def test_the_example_pays_once_and_asks(tmp_path: Path) -> None:
    assert programs.kill_after(EXAMPLE, tmp_path, "paying")[-1] == "paying"
    asked = programs.run(EXAMPLE, tmp_path)
    assert (
        "Did pay(order='ord-7', cents=4200) happen?" in asked and "done, retry, fail" in asked and "paying" not in asked
    )
    answered = programs.run([*EXAMPLE, "done"], tmp_path)
    assert "paying" not in answered and "looking up" not in answered
    assert answered.strip().endswith("Order ord-7: It happened. Its result is not known.")


def test_the_code_of_the_guide_runs(tmp_path: Path) -> None:
    blocks = re.findall(r"```python\n(.*?)```", (ROOT / "docs/guide/langgraph.md").read_text(), re.DOTALL)
    (tmp_path / "guide.py").write_text("\n".join(blocks))
    assert programs.run([sys.executable, "guide.py"], tmp_path) == "['one thing', 'one thing']\n"

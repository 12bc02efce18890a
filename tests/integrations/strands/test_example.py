"""The example and the guide (docs/guide/strands.md), as a reader would run them."""

from __future__ import annotations

import re
import sys
from pathlib import Path

from tests.support import programs

ROOT = Path(__file__).parents[3]
EXAMPLE = [sys.executable, str(ROOT / "examples" / "strands_agent.py")]
PERDURE = [str(Path(sys.executable).with_name("perdure"))]
SCRIPT = """
from tests.integrations.strands.agents import Scripted, call, text

class Script(Scripted):
    def says(self, told):
        return [call("a", "price_of", order="7"), call("b", "pay", order="7", cents=4200), text("settled")][len(told)]

print(asyncio.run(settle(Script())))
"""


def test_the_example_pays_once(tmp_path: Path) -> None:
    assert programs.kill_after(EXAMPLE, tmp_path, "paying")[-1] == "paying"
    assert "waits: outcome unknown" in programs.run(EXAMPLE, tmp_path)
    programs.run([*PERDURE, "answer", "order-7", "done"], tmp_path)
    told = programs.run(EXAMPLE, tmp_path)
    assert "paying" not in told and "looking up" not in told and told.endswith("Order ord-7 is paid.\n")


def test_the_code_of_the_guide_runs(tmp_path: Path) -> None:
    blocks = re.findall(r"```python\n(.*?)```", (ROOT / "docs/guide/strands.md").read_text(), re.DOTALL)
    program = [sys.executable, "guide.py"]
    (tmp_path / "guide.py").write_text(f"import sys\nsys.path.insert(0, {str(ROOT)!r})\n{''.join(blocks)}{SCRIPT}")
    assert "waits" in programs.run(program, tmp_path)
    programs.run([*PERDURE, "approve", "clerk-1"], tmp_path)
    assert "settled" in programs.run(program, tmp_path)

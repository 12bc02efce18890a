"""The example and the guide, as a reader would run them."""

from __future__ import annotations

import re
import sys
from pathlib import Path

from tests.integrations.claude_agent.fake_api import fake_api
from tests.support import programs

ROOT = Path(__file__).parents[3]
EXAMPLE = [sys.executable, str(ROOT / "examples" / "claude_agent.py")]
PERDURE = [str(Path(sys.executable).with_name("perdure"))]


def test_the_example_pays_once_and_refunds_after_an_approval(tmp_path: Path) -> None:
    assert programs.kill_after(EXAMPLE, tmp_path, "paying")[-1] == "paying"
    assert "waits: outcome unknown" in programs.run(EXAMPLE, tmp_path)
    programs.run([*PERDURE, "answer", "order-7", "done"], tmp_path)
    asked = programs.run(EXAMPLE, tmp_path)
    assert "paying" not in asked and "waits: Run mcp__shop__refund(" in asked
    programs.run([*PERDURE, "approve", "order-7"], tmp_path)
    told = programs.run(EXAMPLE, tmp_path)
    assert "refunded\n" in told and told.endswith("Order ord-7 is settled.\n") and "paying" not in told


def test_the_guide_runs_with_the_real_cli_and_goes_on_after_an_approval(tmp_path: Path) -> None:
    blocks = re.findall(r"```python\n(.*?)```", (ROOT / "docs/guide/claude-agent.md").read_text(), re.DOTALL)
    asked: list[str] = []
    script = [("price_of", {"order": "7"}, ["4200 cents"]), ("pay", {"order": "7"}, ["paid"])]
    with fake_api(asked.append, script) as address:
        env = {
            "HOME": str(tmp_path),
            "ANTHROPIC_BASE_URL": address,
            "ANTHROPIC_API_KEY": "none",
            "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
        }
        tail = f"import asyncio\noptions = ClaudeAgentOptions(env={env}, tools=[], setting_sources=[])\n"
        tail += "print(asyncio.run(settle(options)))\n"
        (tmp_path / "guide.py").write_text("\n".join([*blocks, tail]))
        assert programs.run([sys.executable, "guide.py"], tmp_path) == "waits\n"
        programs.run([*PERDURE, "approve", "clerk-1"], tmp_path)
        assert programs.run([sys.executable, "guide.py"], tmp_path) == "done\n"
    assert asked == ["price_of", "pay", "end"]  # no model call twice

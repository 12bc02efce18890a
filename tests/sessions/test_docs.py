"""What the guide and the example show."""

from __future__ import annotations

import signal
import subprocess
import sys
from pathlib import Path

from tests.runtime.kit import Place

ROOT = Path(__file__).parents[2]


def test_the_example_dies_in_its_transaction_and_goes_on_in_it(postgres_url: str, tmp_path: Path) -> None:
    place = Place(tmp_path / ".perdure" / "perdure.db")
    (tmp_path / ".perdure").mkdir()
    script = [sys.executable, str(ROOT / "examples" / "kept_transaction.py"), postgres_url]
    try:
        first = subprocess.run(script, cwd=tmp_path, capture_output=True, text=True, timeout=60, check=False)
        assert first.returncode == -signal.SIGKILL, first.stderr
        second = subprocess.run(script, cwd=tmp_path, capture_output=True, text=True, timeout=60, check=False)
        assert second.returncode == 0, second.stderr
    finally:
        place.clear()
    backend = first.stdout.split("backend ")[1].split(";")[0]
    assert f"still in the transaction of backend {backend}: [('Walden',)]" in second.stdout


def test_every_python_block_of_the_guide_compiles() -> None:
    text = (ROOT / "docs" / "guide" / "sessions.md").read_text()
    blocks = [part.split("```")[0] for part in text.split("```python\n")[1:]]
    assert len(blocks) >= 4
    for block in blocks:
        lines = [f"    {line}" for line in block.splitlines()]
        compile("async def shown():\n" + "\n".join(lines), "sessions.md", "exec")

"""Run `perdure demo` and draw what it printed as docs/pictures/demo.svg: python tools/record_demo.py

The picture is animated by CSS alone, follows the reader's light or dark look, and fetches nothing. Its lines are those
of the run, in their order, at an even pace. Where animations are off, all lines stand there at once.
"""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Iterable
from dataclasses import dataclass
from html import escape
from pathlib import Path

PICTURE = Path(__file__).resolve().parents[1] / "docs" / "pictures" / "demo.svg"
COMMAND = [sys.executable, "-m", "perdure", "--no-color", "demo"]
LINE_HEIGHT, WIDTH, TOP, LEFT = 19, 920, 52, 22
PACE = {"command": 0.1, "title": 0.9, "bad": 1.6}  # seconds before a line of this look; 0.22 before any other
STYLE = """
text { font: 13px ui-monospace, SFMono-Regular, Menlo, Consolas, monospace; white-space: pre; fill: #1f2328 }
.frame { fill: #f6f8fa; stroke: #d1d9e0 } .dot { fill: #d1d9e0 }
.command, .title { font-weight: 600 } .note { fill: #59636e } .journal { fill: #0550ae }
.bad { fill: #b3261e; font-weight: 600 } .good { fill: #116329 } .head { fill: #59636e }
@media (prefers-color-scheme: dark) {
  text { fill: #e6edf3 } .frame { fill: #0d1117; stroke: #3d444d } .dot { fill: #3d444d }
  .note, .head { fill: #9198a1 } .journal { fill: #79c0ff } .bad { fill: #ff8a80 } .good { fill: #7ee787 }
}
@media (prefers-reduced-motion: no-preference) {
  .line { animation: appear 0.2s linear both }
  @keyframes appear { from { opacity: 0 } to { opacity: 1 } }
}
"""


@dataclass(frozen=True)
class Line:
    text: str
    look: str


def lines_of(said: str) -> list[Line]:
    """The lines of a run with their looks; lines of one form that follow
    each other are shown as the first and the last."""
    found = [Line("$ perdure demo", "command")]
    for text in _shortened(line for line in said.splitlines() if line.strip()):
        found.append(Line(text, _look(text)))
    return found


def _shortened(lines: Iterable[str]) -> list[str]:
    kept: list[str] = []
    for line in lines:
        form = re.sub(r"\d+", "0", line)
        forms = [re.sub(r"\d+", "0", former) for former in kept[-2:]]
        if "statement 0 of 0" in form and forms == [form, form]:
            kept[-1] = line
        else:
            kept.append(line)
    return kept


def _look(text: str) -> str:
    if text.strip().startswith("kill -9"):
        return "bad"
    if text.strip().startswith("(from the journal"):
        return "journal"
    if text.startswith("  what ") and "correct" in text:
        return "head"
    if text.endswith(" yes"):
        return "good"
    return "title" if not text.startswith(" ") else "plain"


def draw(lines: list[Line]) -> str:
    height = TOP + LINE_HEIGHT * len(lines) + 8
    shown, moment = [], 0.0
    for number, line in enumerate(lines):
        moment += PACE.get(line.look, 0.22)
        place = f'x="{LEFT}" y="{TOP + LINE_HEIGHT * number}" style="animation-delay:{moment:.2f}s"'
        shown.append(f'<text class="line {line.look}" {place}>{escape(line.text)}</text>')
    dots = "".join(f'<circle class="dot" cx="{x}" cy="20" r="5"/>' for x in (22, 40, 58))
    told = "An agent is killed inside a database transaction; the same command again goes on in that transaction"
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}" width="{WIDTH}" height="{height}" '
        f'role="img" aria-label="{told}">\n<style>{STYLE}</style>\n'
        f'<rect class="frame" x="0.5" y="0.5" width="{WIDTH - 1}" height="{height - 1}" rx="8"/>{dots}\n'
        + "\n".join(shown)
        + "\n</svg>\n"
    )


def main() -> None:
    done = subprocess.run(COMMAND, capture_output=True, text=True, check=True)
    PICTURE.parent.mkdir(exist_ok=True)
    PICTURE.write_text(draw(lines_of(done.stdout)), encoding="utf-8")
    print(f"wrote {PICTURE}")


if __name__ == "__main__":
    main()

"""The pages of the documentation and the blocks of code on them.

A comment above a block tells the tests how to run it. Readers do not see it.

    <!-- continues -->            the block goes on with the program of the block before it
    <!-- given … -->              Python that the fragment needs; a line `[the block]` says where the fragment goes
    <!-- file: agent.py -->       the block is written to that file, and commands further down run it
    <!-- run -->                  a console block whose commands are run and whose output is compared
    <!-- run, killed after: x --> as `run`, but what `timeout -s KILL` starts is killed once it has printed that line
    <!-- run, stopped after: x -->  as `run`, but a command that prints that line is stopped then, as by Ctrl-C
    <!-- run, closed after: x --> as `run`, but the terminal of a command that prints that line is closed then
    <!-- run by tests/x.py -->    another test runs the block

`run` may be followed by lines of shell: they make what the block takes for granted. A block of console, shell or Python
without one of these comments is Python that runs as it is; a test refuses any other.
"""

from __future__ import annotations

import re
import textwrap
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PAGES = [ROOT / "README.md", *sorted(path for path in (ROOT / "docs").rglob("*.md") if "decisions" not in path.parts)]

_BLOCK = re.compile(
    r"(?:<!-- (?P<marker>(?:(?!-->).)*?) ?-->\n)?^ *```(?P<language>\w+)[^\n]*\n(?P<text>.*?)^ *```$",
    re.DOTALL | re.MULTILINE,
)
PLACE = "[the block]"


@dataclass(frozen=True)
class Block:
    language: str
    text: str
    marker: str
    line: int

    @property
    def word(self) -> str:
        return re.split(r"[\s:,]", self.marker, maxsplit=1)[0] if self.marker else ""

    def argument(self, prefix: str) -> str:
        return self.marker.removeprefix(prefix).strip()

    @property
    def first_line(self) -> str:
        return self.marker.partition("\n")[0].strip()

    @property
    def given_shell(self) -> str:
        """What a console block takes for granted, as lines of shell."""
        return self.marker.partition("\n")[2]

    @property
    def tester(self) -> str:
        return self.argument("run by") if self.marker.startswith("run by") else ""

    @property
    def program(self) -> str:
        """The code to run: the block, inside what its marker gives."""
        if self.word != "given":
            return self.text
        given = self.argument("given")
        if PLACE not in given:
            return f"{given}\n{self.text}"
        place = next(line for line in given.splitlines() if line.strip() == PLACE)
        indent = place[: -len(PLACE)]
        return given.replace(place, textwrap.indent(self.text.rstrip("\n"), indent)) + "\n"


def blocks_of(page: Path) -> list[Block]:
    text = page.read_text(encoding="utf-8")
    found = []
    for match in _BLOCK.finditer(text):
        line = text.count("\n", 0, match.start("language")) + 1
        block = textwrap.dedent(match["text"])
        found.append(Block(match["language"], block, (match["marker"] or "").strip(), line))
    return found


def name_of(page: Path) -> str:
    return str(page.relative_to(ROOT))

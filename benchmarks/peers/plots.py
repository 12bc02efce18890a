"""A picture of ratios: a row for each line, a dot for each peer, a logarithmic scale. It follows the reader's look."""

from __future__ import annotations

import math
from html import escape
from statistics import median

from benchmarks.peers.contestants import CONTESTANTS, FIGURES
from benchmarks.peers.results import Results

_WIDTH, _LEFT, _RIGHT, _TOP, _ROW = 920, 330, 24, 66, 26
_LABELS = {
    "chain": "chain of 1,000 steps, by default",
    "waited": "chain, each step on disk first",
    "crowd": "100 tasks × 20 steps at once",
    "worker": "one-step tasks through a worker",
    "size": "bytes for each step",
    "restart": "kill, new process, first new step",
    "resume": "the same, once the code is loaded",
    "turns bytes": "LangGraph 500 turns: bytes",
    "turns last turn": "LangGraph 500 turns: turn 500",
    "turns get_tuple": "LangGraph 500 turns: newest checkpoint",
    "chat bytes": "LangGraph chat of 500: bytes",
    "chat last turn": "LangGraph chat of 500: turn 500",
    "chat get_tuple": "LangGraph chat of 500: newest checkpoint",
}
_STYLE = """\
text { font: 13px system-ui, sans-serif; fill: #1f2328 } .note { fill: #59636e; font-size: 12px }
.grid { stroke: #d1d9e0 } .even { stroke: #59636e; stroke-width: 1.5 } .back { fill: #ffffff }
.DBOS { fill: #0550ae; stroke: #0550ae } .LangGraph { fill: #116329; stroke: #116329 }
.Temporal { fill: #9a3412; stroke: #9a3412 } .Restate { fill: #7a2fa0; stroke: #7a2fa0 }
@media (prefers-color-scheme: dark) {
  text { fill: #e6edf3 } .note { fill: #9198a1 } .back { fill: #0d1117 }
  .grid { stroke: #3d444d } .even { stroke: #9198a1 }
  .DBOS { fill: #79c0ff; stroke: #79c0ff } .LangGraph { fill: #7ee787; stroke: #7ee787 }
  .Temporal { fill: #ffa657; stroke: #ffa657 } .Restate { fill: #d2a8ff; stroke: #d2a8ff }
}"""


def picture_of(results: Results, ours: str) -> str:
    """How many times better perdure is than each peer that is compared with `ours`, and the range of the rounds."""
    peers = [one for one in CONTESTANTS.values() if one.beside == ours and one.name != "perdure"]
    rows = [name for name in FIGURES if any(results.ratios(name, one.key) for one in peers)]
    every = [ratio for name in rows for one in peers for ratio in results.ratios(name, one.key)] or [1.0]
    first = min(math.floor(math.log10(min(every))), -1)
    last = max(math.ceil(math.log10(max(every))), 1)

    def x(ratio: float) -> float:
        return _LEFT + (math.log10(ratio) - first) / (last - first) * (_WIDTH - _LEFT - _RIGHT)

    height = _TOP + _ROW * len(rows) + 40
    title = f"How many times better perdure is, on {CONTESTANTS[ours].store}"
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {_WIDTH} {height}" width="{_WIDTH}" height="{height}" '
        f'role="img" aria-label="{escape(title)}; the table beside it has the figures">',
        f"<style>\n{_STYLE}\n</style>",
        f'<rect class="back" width="{_WIDTH}" height="{height}" rx="8"/>',
        f'<text x="16" y="26" font-weight="600">{escape(title)}</text>',
    ]
    for number, name in enumerate(dict.fromkeys(one.name for one in peers)):
        at = 16 + 110 * number
        parts.append(f'<circle class="{name}" cx="{at + 5}" cy="44" r="5"/><text x="{at + 16}" y="48">{name}</text>')
    bottom = _TOP + _ROW * len(rows)
    for power in range(first, last + 1):
        at, kind = x(10.0**power), "even" if power == 0 else "grid"
        parts.append(f'<line class="{kind}" x1="{at:.1f}" y1="{_TOP - 6}" x2="{at:.1f}" y2="{bottom}"/>')
        parts.append(f'<text class="note" x="{at:.1f}" y="{bottom + 16}" text-anchor="middle">{10.0**power:g} ×</text>')
    parts.append(f'<text class="note" x="{x(1) - 8:.1f}" y="{bottom + 32}" text-anchor="end">the peer is better</text>')
    parts.append(f'<text class="note" x="{x(1) + 8:.1f}" y="{bottom + 32}">perdure is better</text>')
    for row, name in enumerate(rows):
        y = _TOP + _ROW * row + _ROW / 2
        parts.append(f'<text x="16" y="{y + 4:.1f}">{escape(_LABELS[name])}</text>')
        for one in peers:
            if ratios := results.ratios(name, one.key):
                ends = f'x1="{x(min(ratios)):.1f}" x2="{x(max(ratios)):.1f}" y1="{y}" y2="{y}"'
                told = f"{one.name}: {median(ratios):.2g} ×"
                parts.append(
                    f'<g class="{one.name}"><title>{told}</title><line {ends} stroke-width="2"/>'
                    f'<circle cx="{x(median(ratios)):.1f}" cy="{y}" r="5"/></g>'
                )
    return "\n".join([*parts, "</svg>", ""])

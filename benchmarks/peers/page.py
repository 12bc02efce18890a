"""The page docs/explanation/peers.md and its pictures, made from the recorded results alone."""

from __future__ import annotations

from pathlib import Path
from statistics import median

from benchmarks.peers import plots
from benchmarks.peers.contestants import CONTESTANTS, FIGURES, LINES, NOTES, Contestant
from benchmarks.peers.results import Results

DOCS = Path(__file__).resolve().parents[2] / "docs"
PAGE = DOCS / "explanation" / "peers.md"
PICTURES = {"peers-sqlite": "perdure-sqlite", "peers-postgres": "perdure-postgres"}
_STORES = {"perdure-sqlite": "On SQLite, and servers with a store of their own", "perdure-postgres": "On PostgreSQL"}

_HEAD = """\
# Measured beside its peers

The same work on perdure, DBOS, LangGraph, Temporal and Restate: in one run, on one machine, all syncing what they
commit. Each measurement is a process of its own with a new store. The {rounds} rounds are interleaved: every line is
measured on one after the other, so that a busy moment of the machine falls on all of them.

Only ratios mean something elsewhere. Speed is also seldom what decides: a model call takes seconds, a step here
milliseconds. [The comparison](comparison.md) tells how they behave.

- **Date**: {date}
- **Machine**: {processor}, {cores} cores, {system}, {disk}, Python {python}. Load at the start of the
  measurements: median {load}, between {least} and {most}.
- **Versions**: {versions}

{warning}\
A cell shows the median, and in brackets the smallest and the largest of the rounds. Below it stands how many times
better perdure is in the median of the rounds. **Bold** marks where the peer is better.
"""

_OURS = """\
By default a `@step` of perdure is recorded behind the code: it is on disk before anything that relies on it, and a
crash before that repeats it ([when exactly](on-disk.md)). That is the first chain. The second chain uses `@effect`,
whose record is on disk before the next call begins.
"""

_REPEAT = """\
## Repeat it

```text
make bench-peers                                      all of it; writes this page
make bench-peers ARGS="--only chain --rounds 1"       one line, only printed
```

Each peer has its own environment in `build/peers`, installed from pinned requirements in
`benchmarks/peers/requirements`. What cannot be installed is left out and named here, with the reason. The programs are
in `benchmarks/peers/programs`.
"""


def write(results: Results) -> None:
    """Write the page and its pictures."""
    PAGE.write_text(page_of(results), encoding="utf-8")
    for name, ours in PICTURES.items():
        (DOCS / "pictures" / f"{name}.svg").write_text(plots.picture_of(results, ours), encoding="utf-8")


def page_of(results: Results) -> str:
    parts = [_head(results)]
    for name, ours in PICTURES.items():
        picture = f"![How many times better perdure is](../pictures/{name}.svg)"
        parts.append(f"## {_STORES[ours]}\n\n{picture}\n\n{_table(results, ours)}")
    parts += [_better(results), _settings(results), _missing(results), _REPEAT]
    return "\n".join(part for part in parts if part)


def _head(results: Results) -> str:
    machine = results.machine
    return _HEAD.format(
        rounds=results.rounds,
        date=results.date,
        load=f"{median(results.loads):g}",
        least=f"{min(results.loads):g}",
        most=f"{max(results.loads):g}",
        versions=", ".join(f"{name} {found}" for name, found in sorted(results.versions.items())) + ".",
        warning=_warning(results),
        **{name: machine[name] for name in ("processor", "cores", "system", "disk", "python")},
    )


def _warning(results: Results) -> str:
    if median(results.loads) <= float(results.machine["cores"]):
        return ""
    return (
        "**The machine had other work at the time, more than it has cores.** That makes every figure worse and the\n"
        "ratios less exact; the range tells how much.\n\n"
    )


def compared_with(ours: str) -> list[Contestant]:
    return [one for one in CONTESTANTS.values() if one.beside == ours and one.key != ours and one.name != "perdure"]


def _table(results: Results, ours: str) -> str:
    peers = compared_with(ours)
    rows = [("", "perdure", *(one.name for one in peers))]
    rows.append(("---",) * len(rows[0]))
    for figure, (_, what, unit) in FIGURES.items():
        cells = [_cell(results, figure, one) for one in peers]
        if any(cell != "–" for cell in cells):
            rows.append((f"{what}, {unit}", _value(results, figure, ours) or "–", *cells))
    return "\n".join(f"| {' | '.join(row)} |" for row in rows) + "\n"


def _cell(results: Results, figure: str, peer: Contestant) -> str:
    line = FIGURES[figure][0].name
    if peer.key in results.failed.get(line, {}):
        return "failed"
    value = _value(results, figure, peer.key)
    ratios = results.ratios(figure, peer.key)
    if value is None or not ratios:
        return "–"
    told = f"{_plain(median(ratios))} ×"
    return f"{value}<br>{told if median(ratios) >= 1 else f'**{told}**'}"


def _value(results: Results, figure: str, key: str) -> str | None:
    middle, found = results.median_of(figure, key), results.values.get(figure, {}).get(key)
    if middle is None or not found:
        return None
    return f"{_plain(middle)} ({_plain(min(found))}–{_plain(max(found))})"


def _plain(number: float) -> str:
    return f"{number:,.0f}" if number >= 100 else f"{number:.1f}" if number >= 10 else f"{number:.2f}"


def _better(results: Results) -> str:
    """Where a peer is better than we are, in words."""
    found = []
    for peer in CONTESTANTS.values():
        for figure, (_, what, unit) in FIGURES.items():
            ratios = results.ratios(figure, peer.key) if peer.name != "perdure" else []
            if ratios and median(ratios) < 1:
                ours, theirs = (results.median_of(figure, key) for key in (peer.beside, peer.key))
                assert ours is not None and theirs is not None
                told = f"{_plain(theirs)} {unit}, perdure {_plain(ours)}"
                found.append(f"- **{peer.name}** ({peer.store}), {what}: {told}.")
    return "## Where a peer is better\n\n" + ("\n".join(found) or "In no line of this run.") + "\n"


def _settings(results: Results) -> str:
    lines = ["## How each of them is set", "", "Asked of the connection that was measured, or of the server:", ""]
    for key, settings in results.durability.items():
        lines.append(f"- {CONTESTANTS[key].name} ({CONTESTANTS[key].store}): {settings}.")
    lines += ["", _OURS, *(f"- **{name}**: {' '.join(notes)}" for name, notes in NOTES.items())]
    return "\n".join(lines) + "\n"


def _missing(results: Results) -> str:
    found = [f"- **{who}**: {why}" for who, why in results.left_out.items()]
    for line, failures in results.failed.items():
        for key, why in failures.items():
            peer = CONTESTANTS[key]
            found.append(f"- **{peer.name}** ({peer.store}) failed in `{LINES[line].name}`: {why}")
    return "## Left out\n\n" + "\n".join(found) + "\n" if found else ""

"""Measure perdure on this machine, beside the bare disk and database."""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path

import click

from perdure import bench
from perdure.bench import Figure, Report
from perdure.cli.base import Invocation, Verb
from perdure.cli.output import Block, Cell, Piece, Table, line, safe

_COLUMNS = ("what", "perdure", "prototype", "floor", "ratio", "budget", "")


@click.command(cls=Verb)
@click.option(
    "--engine",
    type=click.Choice([*bench.ENGINES, "all"]),
    default="sqlite",
    show_default=True,
    help="Measure this engine.",
)
@click.option(
    "--url",
    metavar="URL",
    help="Measure on this PostgreSQL server, in new databases (default: PERDURE_TEST_POSTGRES, else its own server).",
)
@click.option(
    "--folder",
    type=click.Path(exists=True, file_okay=False, path_type=Path),
    metavar="FOLDER",
    help="Measure the disk of this folder (default: that of temporary files, or /var/tmp if they are in memory).",
)
@click.option("--quick", is_flag=True, help="Take fewer rounds and smaller samples, for a result in a few seconds.")
@click.option(
    "--only",
    type=click.Choice(bench.NAMES),
    multiple=True,
    help="Measure only this line; repeatable (default: all lines).",
)
@click.option("--check", is_flag=True, help="Exit with code 1 if a budget is missed.")
@click.pass_obj
def command(
    call: Invocation, engine: str, url: str | None, folder: Path | None, quick: bool, only: tuple[str, ...], check: bool
) -> None:
    """Measure perdure on this machine. Each figure stands beside its floor, measured in the same run.

    The floor is the time that the bare library and disk need for the same work. The ratio of the two is what perdure
    adds, on any machine. bench does not touch your store: it creates its own and removes it.

    \b
    perdure bench --quick
    perdure bench --engine all --only checkpoint --only tasks
    perdure bench --engine postgres --url postgresql://localhost/postgres --check
    """
    if call.store_url is not None:
        raise click.UsageError("bench creates its own store; choose the place with --folder or --url")
    progress = _Progress(is_shown=not call.json and sys.stderr is not None and sys.stderr.isatty())
    engines = bench.ENGINES if engine == "all" else (engine,)
    try:
        report = asyncio.run(
            bench.measure(
                engines, url=url, folder=folder, quick=quick, only=only, must=engine != "all", say=progress.say
            )
        )
    finally:
        progress.clear()
    call.answer(report, *_blocks(report))
    if check and report.missed:
        raise click.exceptions.Exit(1)


class _Progress:
    """One line on the terminal that says what is being measured."""

    def __init__(self, *, is_shown: bool) -> None:
        self._is_shown = is_shown

    def say(self, text: str) -> None:
        if self._is_shown:
            click.echo(f"\r\033[K{safe(text)} …", nl=False, err=True)

    def clear(self) -> None:
        if self._is_shown:
            click.echo("\r\033[K", nl=False, err=True)


# ── for people ───────────────────────────────────────────────────────────────────────────────────


def _blocks(report: Report) -> list[Block]:
    blocks: list[Block] = []
    for section in report.sections:
        title = f"{section.engine}: {section.where}"
        blocks.append(Table(_COLUMNS, [_row(figure) for figure in section.figures], title=title))
        remarks = dict.fromkeys(remark for figure in section.figures for remark in _remarks(figure))
        blocks += [line(Cell(f"  {remark}", "faint")) for remark in remarks]
    blocks += [line(Cell(f"{engine} was not measured: {why}", "changed")) for engine, why in report.left_out.items()]
    machine = report.machine
    blocks.append(
        line(
            Cell(
                f"Python {machine['python']}, {machine['system']}, {machine['cores']} cores, load {machine['load']}; "
                f"medians of interleaved rounds{', quick' if report.quick else ''}; --json shows more",
                "faint",
            )
        )
    )
    return blocks


def _row(figure: Figure) -> list[Piece]:
    verdicts = {True: Cell("met", "completed"), False: Cell("missed", "failed"), None: Cell("")}
    return [
        figure.what,
        _amount(figure.figure, figure.unit),
        _amount(figure.prototype, figure.unit),
        _amount(figure.floor, figure.unit),
        f"{figure.ratio:.2f} ×" if figure.ratio is not None else "",
        figure.budget.text if figure.budget is not None else "",
        verdicts[figure.met],
    ]


def _remarks(figure: Figure) -> list[str]:
    remarks = []
    if figure.is_noisy:
        remarks.append(f"{figure.name}: the floor itself varied {figure.floor_spread:.1f} × while it was measured")
    detail = figure.detail
    if "reads_per_task" in detail:
        remarks.append(
            f"a task: {detail['reads_per_task']:.1f} reads, {detail['writes_per_task']:.1f} writes, "
            f"{detail['writes_per_commit']:.0f} writes a commit; {detail['ms_per_task']:.2f} ms, of which reading "
            f"{detail['ms_reading_per_task']:.2f}, committing {detail['ms_committing_per_task']:.2f} (they overlap)"
        )
    if "times_a_peers_queue" in detail:
        remarks.append(f"tasks through a worker: {detail['times_a_peers_queue']:.0f} × the queue of a library peer")
    if "leases_lost" in detail:
        remarks.append(f"commits of the four: {detail['commits']}, leases lost: {detail['leases_lost']}")
    return remarks


def _amount(value: float | None, unit: str) -> str:
    if value is None:
        return ""
    digits = 0 if unit in ("/s", "") or value >= 1000 else 3 if value < 1 else 2 if value < 10 else 1
    number = f"{value:,.{digits}f}"
    return f"{number}{'' if unit == '/s' else ' '}{unit}".strip()

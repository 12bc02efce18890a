"""Remove old checkpoints and finished tasks, and free the space."""

from __future__ import annotations

import re
from datetime import timedelta
from typing import Any

import click

from perdure.cli.base import Invocation, Verb, length
from perdure.cli.output import Block, Cell, Table, line

_SIZE = re.compile(r"(\d+)\s*(?:([kMGT])i?)?B?", re.ASCII)
_FACTORS = {None: 1, "k": 10**3, "M": 10**6, "G": 10**9, "T": 10**12}


def size(text: str) -> int:
    """`500000`, `500kB`, `20M`, `1GB`."""
    found = _SIZE.fullmatch(text)
    if found is None:
        raise click.BadParameter(f"{text!r} is not a size; write 500kB, 20MB or 1GB")
    return int(found[1]) * _FACTORS[found[2]]


@click.command(cls=Verb)
@click.option(
    "--keep-last",
    type=click.IntRange(1),
    metavar="N",
    help="Keep the newest N checkpoints of each task (default: all).",
)
@click.option(
    "--keep-for",
    type=length,
    metavar="7d",
    help="Remove checkpoints older than this, never the newest (default: none).",
)
@click.option(
    "--keep-bytes",
    type=size,
    metavar="20MB",
    help="Keep the newest checkpoints of each task up to this size (default: no limit).",
)
@click.option(
    "--finished-for", type=length, metavar="30d", help="Delete tasks that ended longer ago than this (default: none)."
)
@click.option(
    "--archived-for",
    type=length,
    metavar="7d",
    help="Delete tasks that were archived longer ago than this (default: none).",
)
@click.option("--dry-run", is_flag=True, help="Print what would be removed, and change nothing.")
@click.option(
    "--shrink/--no-shrink",
    default=None,
    help="Shrink the file of a SQLite store, or do not (default: when enough space is free).",
)
@click.pass_obj
async def command(
    call: Invocation,
    keep_last: int | None,
    keep_for: timedelta | None,
    keep_bytes: int | None,
    finished_for: timedelta | None,
    archived_for: timedelta | None,
    dry_run: bool,
    shrink: bool | None,
) -> None:
    """Remove old checkpoints and finished tasks, and free the space.

    Without options, gc removes what the tasks' own configs allow and what dead processes left behind. It never removes
    the state of a task, a pinned or labelled checkpoint, or data that an unfinished task needs. A deleted task leaves
    a tombstone.
    """
    from perdure._runtime import tidy_cuts
    from perdure._tasks import Policy, collect

    if call.server is not None:
        lengths = {"keep_for": keep_for, "finished_for": finished_for, "archived_for": archived_for}
        asked: dict[str, Any] = {"keep_last": keep_last, "keep_bytes": keep_bytes}
        asked |= {name: None if one is None else one.total_seconds() for name, one in lengths.items()}
        _tell(call, await call.job("/v1/store/gc", {"policy": asked, "dry_run": dry_run, "shrink": shrink}))
        return
    policy = Policy(
        keep_last=keep_last,
        keep_for=keep_for,
        keep_bytes=keep_bytes,
        finished_for=finished_for,
        archived_for=archived_for,
    )
    report = await collect(call.store, policy, dry_run=dry_run, shrink=shrink)
    cuts = await tidy_cuts(call.store, dry_run=dry_run)
    counts = ("checkpoints", "tasks", "chunks", "forgotten", "workers", "bytes", "rebased", "file_bytes")
    lists = ("pruned", "deleted", "held_back")
    told = {name: getattr(report, name) for name in counts}
    told |= {name: [one._asdict() for one in getattr(report, name)] for name in lists}
    _tell(call, {**told, "cuts": len(cuts), "dry_run": dry_run})


def _tell(call: Invocation, report: dict[str, Any]) -> None:
    parts = [f"{report['checkpoints']:,} checkpoints", f"{report['tasks']:,} tasks"]
    parts += [f"{report['chunks']:,} orphaned chunks"] if report["chunks"] else []
    parts += [f"{report['forgotten']:,} expired memories"] if report["forgotten"] else []
    parts += [f"{report['workers']:,} dead workers"] if report["workers"] else []
    parts += [f"{report['cuts']:,} saved workspaces"] if report["cuts"] else []
    verb, about = ("would remove", "about ") if report["dry_run"] else ("removed", "")
    said = f"{verb}: {', '.join(parts)}; {about}{max(report['bytes'], 0):,} bytes"
    blocks: list[Block] = [line(said)]
    if report["file_bytes"]:
        blocks.append(line(f"the store is {report['file_bytes']:,} bytes smaller"))
    if report["held_back"]:
        rows = [(Cell(held["task_id"], "strong"), held["why"]) for held in report["held_back"]]
        blocks.append(Table(("task", "why"), rows, "not removed"))
    call.answer(report, *blocks)

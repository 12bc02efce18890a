"""Print the plan of a restore: what is kept, rebuilt, lost, run again and skipped."""

from __future__ import annotations

from typing import TYPE_CHECKING

from perdure.cli.output.blocks import Block, Fields, Table, line

if TYPE_CHECKING:
    from perdure._model import Verdict
    from perdure._runtime import Finding, RestorePlan, RestoreReport


def blocks(plan: RestorePlan) -> list[Block]:
    """The plan of a restore, as blocks."""
    unsaved = "not saved; the units that the keeper holds" if plan.units else "its runtime was never saved"
    head = f"from checkpoint {plan.checkpoint}" if plan.checkpoint else unsaved
    found: list[Block] = [line(f"task {plan.task_id}: {head}")]
    if plan.units:
        rows = [[each.name, each.level, _why(each.verdict)] for each in plan.units]
        found.append(Table(["unit", "comes back", "because"], rows))
    pairs = [
        *((f"refused by {each.name}", [each.why]) for each in plan.refusals),
        *((f"changed ({each.policy})", [f"{each.name}: {each.why}"]) for each in _other_changes(plan)),
        *(("missing", [f"{reference}: {why}"]) for reference, why in plan.missing),
        *(("damaged", [name]) for name in plan.damaged),
        *(("run again", [name]) for name in plan.rerun),
        ("skipped", [f"{plan.skipped} finished calls are not run again"]),
        *([("then", list(plan.then))] if plan.then else []),
    ]
    return [*found, Fields(pairs)]


def report(found: RestoreReport) -> Table:
    """The report of a restore, as a table."""
    rows = [[each.name, each.level, _why(each.verdict)] for each in found.units]
    rows += [["", "warning", text] for text in (*found.warnings, *found.credentials)]
    return Table(["unit", "came back", "because"], rows, title=f"restored on {found.host}")


def _why(verdict: Verdict) -> str:
    return f"{verdict.reason} ({'; '.join(verdict.differs)})" if verdict.differs else verdict.reason


def _other_changes(plan: RestorePlan) -> list[Finding]:
    return [each for each in plan.findings if not each.same and not each.refuses]

"""The plan and the report of a restore, in words for people and for the model. Pure.

A plan and the report of the restore that follows it say the same of every unit, or the report says where they
differ. A report for a model is short, bounded and free of secrets. It is plain text, whatever names it contains.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import msgspec

from perdure._model import Level, Verdict
from perdure._runtime.context import Finding
from perdure._runtime.secrets import redaction

_LEVELS: tuple[Level, ...] = ("kept", "imaged", "rebuilt", "lost")
# Surroundings that are rebuilt in every new process.
_RETURNING = ("environment", "directory", "variables")
_MOST_CHANGED, _LONGEST_REASON = 10, 200
# About a thousand tokens.
_MOST = 4000


@dataclass(frozen=True, slots=True)
class UnitLine:
    """One unit and how it comes back."""

    name: str
    kind: str
    verdict: Verdict

    @property
    def level(self) -> Level:
        return self.verdict.level


@dataclass(frozen=True, slots=True, kw_only=True)
class RestorePlan:
    """The plan of a restore of this checkpoint. Making the plan changes nothing."""

    task_id: str
    checkpoint: str
    units: Sequence[UnitLine]
    findings: Sequence[Finding] = ()
    skipped: int = 0  # recorded calls that will not run again
    rerun: Sequence[str] = ()  # calls that were cut off, and run again or are settled first
    missing: Sequence[tuple[str, str]] = ()  # secrets that are not here: reference, reason
    damaged: Sequence[str] = ()  # newer checkpoints that cannot be read
    notes: Sequence[str] = ()
    then: Sequence[str] = ()  # what happens after it, in order: what runs next, what is settled first and how

    @property
    def refusals(self) -> list[Finding]:
        return [finding for finding in self.findings if finding.refuses]

    def at(self, level: Level) -> list[str]:
        return [line.name for line in self.units if line.level == level]

    @property
    def lost(self) -> list[str]:
        return self.at("lost")


@dataclass(frozen=True, slots=True, kw_only=True)
class RestoreReport:
    """The report of a restore."""

    plan: RestorePlan
    host: str
    at_ms: int
    from_host: str = ""
    credentials: Sequence[str] = ()
    warnings: Sequence[str] = field(default_factory=tuple)

    @property
    def units(self) -> Sequence[UnitLine]:
        return self.plan.units

    @property
    def lost(self) -> list[str]:
        return self.plan.lost

    def level(self, name: str) -> Level:
        return next(line.level for line in self.units if line.name == name)

    def for_model(self, limit: int = _MOST) -> str:
        """The report for a model's context: at most `limit` characters, always closed."""
        body = redaction.redact("\n".join(_lines(self)))
        opening, closing = "<restore_report>\n", "\n</restore_report>"
        room = limit - len(opening) - len(closing)
        text = _as_text(body)
        if len(text) > room:
            cut = "\n… and more: `perdure show` has the rest"
            text = text[: max(room - len(cut), 0)].rpartition("\n")[0] + cut
        return f"{opening}{text}{closing}"


def _lines(report: RestoreReport) -> list[str]:
    plan = report.plan
    moved = f" on {report.host}, saved on {report.from_host}" if report.from_host != report.host else ""
    lines = [f"Task {plan.task_id} was restored from checkpoint {plan.checkpoint}{moved}."]
    for level in ("lost", "rebuilt", "imaged", "kept"):  # what is gone first: it must not be cut off
        lines += [line.verdict.for_model(f"{line.name} ({line.kind})") for line in plan.units if line.level == level]
    lines += [f"changed: {found.name}: {found.why}" for found in plan.findings if not found.same]
    lines += [f"warning: {warning}" for warning in report.warnings]
    lines += [f"credential: {told}" for told in report.credentials]
    if plan.damaged:
        lines.append(f"damaged checkpoints were passed over: {', '.join(plan.damaged)}")
    if plan.skipped:
        lines.append(f"{plan.skipped} finished calls are not run again.")
    lines += [f"was cut off, and is run again or settled first: {name}" for name in plan.rerun]
    return lines


def _as_text(text: str) -> str:
    """Escape a name, so that it cannot look like a tag: anyone may have chosen it."""
    return text.replace("<", "‹").replace(">", "›")


# ── stored form ──────────────────────────────────────────────────────────────────────────────────


def to_data(report: RestoreReport) -> Any:
    return redaction.redact_value(msgspec.to_builtins(report))


def changed(report: RestoreReport) -> list[list[str]]:
    """The units that did not come back as they were: name, level and reason, lost ones first. For a person who was
    away."""
    found = [one for level in ("lost", "rebuilt") for one in report.units if one.level == level]
    shown = [one for one in found if one.level == "lost" or one.kind not in _RETURNING]
    return [
        [one.name, one.level, redaction.redact(one.verdict.reason)[:_LONGEST_REASON]] for one in shown[:_MOST_CHANGED]
    ]


def from_data(data: Any) -> RestoreReport:
    return msgspec.convert(data, RestoreReport)


def with_units(plan: RestorePlan, units: Sequence[UnitLine]) -> RestorePlan:
    return replace(plan, units=units)

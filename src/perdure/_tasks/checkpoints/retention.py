"""Find the checkpoints of a task that can be removed, and the work that must be done first. Pure.

A checkpoint is removed when a limit says so: enough newer ones, too old, too many bytes. Never removed are the state, a
pinned or a labelled one, the newest good one, and checkpoint 0, the last resort of `invalidate_if`. A checkpoint that
stays but builds on a removed one is made a keyframe first, so that no chain is broken at any moment.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from datetime import timedelta
from typing import NamedTuple

from perdure._ground.durations import require_timedelta
from perdure._model import Config
from perdure._store import FrameRow
from perdure.errors import InvalidInput


@dataclass(frozen=True, slots=True, kw_only=True)
class Policy:
    """Limits on the checkpoints to keep. A limit of None does not apply; every other one does."""

    keep_last: int | None = None  # checkpoints of a task
    keep_for: timedelta | None = None  # since a checkpoint was made
    keep_bytes: int | None = None  # of a task's checkpoints, as they are stored
    finished_for: timedelta | None = None  # finished tasks, since they ended; then they are deleted
    archived_for: timedelta | None = None  # archived tasks, since they were archived

    def __post_init__(self) -> None:
        if self.keep_last is not None and self.keep_last < 1:
            raise InvalidInput("keep_last is at least 1: the newest checkpoint is never removed")
        if self.keep_bytes is not None and self.keep_bytes < 0:
            raise InvalidInput(f"keep_bytes is {self.keep_bytes}; it counts bytes, so 0 or more")
        for name in ("keep_for", "finished_for", "archived_for"):
            object.__setattr__(self, name, require_timedelta(name, getattr(self, name)))

    @property
    def limits_checkpoints(self) -> bool:
        return (self.keep_last, self.keep_for, self.keep_bytes) != (None, None, None)

    def of_task(self, config: Config) -> Policy:
        """The policy for one task: its own config overrides the general one."""
        return replace(
            self,
            keep_last=self.keep_last if config.keep_last is None else config.keep_last,
            keep_for=self.keep_for if config.keep_for is None else config.keep_for,
        )


class Plan(NamedTuple):
    """The actions on a task's checkpoints, in this order."""

    rebase: tuple[int, ...]  # become keyframes; oldest first, so that each shortens the chains after it
    prune: tuple[int, ...]  # go; newest first, so that none is removed while another builds on it
    bytes_freed: int  # about: what a keyframe will take is only known when it is made


def plan(rows: Sequence[FrameRow], state_seq: int, policy: Policy, now_ms: int) -> Plan:
    """The checkpoints that the policy removes (`rows`: all of a task's, oldest first)."""
    if not policy.limits_checkpoints:
        return Plan((), (), 0)
    safe = {row.seq for row in rows if row.pinned or row.label} | _cornerstones(rows, state_seq)
    gone = {row.seq for row in _past_limits(rows, policy, now_ms) if row.seq not in safe}
    sizes = _Sizes(rows)
    for seq in sorted(gone):
        sizes.remove(seq)
    bytes_left = sizes.total
    if policy.keep_bytes is not None:
        rest = [row for row in rows if row.seq not in safe and row.seq not in gone]
        more, bytes_left = _down_to(policy.keep_bytes, sizes, sorted(rest, key=lambda row: (_is_good(row), row.seq)))
        gone.update(more)
    rebase = [row.seq for row in rows if row.seq not in gone and row.base in gone]
    return Plan(tuple(rebase), tuple(sorted(gone, reverse=True)), sum(row.stored for row in rows) - bytes_left)


def _down_to(limit: int, sizes: _Sizes, candidates: Sequence[FrameRow]) -> tuple[list[int], int]:
    """The number of first candidates to remove, and the bytes that remain.

    When the limit cannot be reached, remove the number that leaves the fewest bytes: a keyframe in place of a short
    delta can take more than the removed ones free.
    """
    best, smallest = 0, sizes.total
    for count, row in enumerate(candidates, 1):
        if smallest <= limit:
            break
        sizes.remove(row.seq)
        if sizes.total < smallest:
            best, smallest = count, sizes.total
    return [row.seq for row in candidates[:best]], smallest


def _cornerstones(rows: Sequence[FrameRow], state_seq: int) -> set[int]:
    newest = max((row.seq for row in rows if _is_good(row)), default=0)
    # The newest that carries what the task had around it: a restore begins there.
    saved = max((row.seq for row in rows if _is_good(row) and row.cause == "save"), default=0)
    return {0, state_seq, newest, saved}


def _is_good(row: FrameRow) -> bool:
    """True if a resume can begin there: not set aside, and on the task's current line."""
    return bool(row.valid) and not row.superseded


def _past_limits(rows: Sequence[FrameRow], policy: Policy, now_ms: int) -> Iterable[FrameRow]:
    last = policy.keep_last
    # Checkpoints that cannot be resumed from must not displace those that can: both kinds are counted separately.
    enough = {row.seq for row in rows[:-last]} - _newest_good(rows, last) if last is not None else set()
    end = now_ms - policy.keep_for // timedelta(milliseconds=1) if policy.keep_for is not None else None
    return (row for row in rows if row.seq in enough or (end is not None and row.at <= end))


def _newest_good(rows: Sequence[FrameRow], count: int) -> set[int]:
    return {row.seq for row in [row for row in rows if _is_good(row)][-count:]}


class _Sizes:
    """The bytes that remain while checkpoints are removed and others become keyframes."""

    def __init__(self, rows: Sequence[FrameRow]) -> None:
        self._rows = {row.seq: row for row in rows}
        self._now = {row.seq: row.stored for row in rows}
        self._built_on: dict[int, list[int]] = {}
        self._packed: dict[int, float] = {}  # a keyframe's stored bytes for each byte of its state
        for row in rows:
            if row.base is None:
                self._packed[row.seq] = row.stored / max(row.size, 1)
            else:
                self._built_on.setdefault(row.base, []).append(row.seq)
                self._packed[row.seq] = self._packed.get(row.base, 1.0)
        self.total = sum(self._now.values())

    def remove(self, seq: int) -> None:
        self.total -= self._now.pop(seq)
        for child in self._built_on.get(seq, ()):
            if child in self._now:
                keyframe = int(self._rows[child].size * self._packed[child])
                self.total += keyframe - self._now[child]
                self._now[child] = keyframe

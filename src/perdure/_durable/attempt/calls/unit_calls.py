"""The place in a durable function from which something is asked of a live unit.

A unit that does each thing once has to know who asks: the task's line of the journal and the path of the call. In a
step's body that is the step's own path and a number, counted anew each time the body is run.
"""

from __future__ import annotations

from typing import NamedTuple

from perdure._durable.attempt.attempt import Attempt
from perdure._durable.attempt.scopes import current


class UnitCall(NamedTuple):
    attempt: Attempt
    scope: str  # the path of the step whose body is running, or of the function's main scope
    is_body: bool

    @property
    def line(self) -> str:
        return f"{self.attempt.uid}/{self.attempt.line}"

    def next_path(self, unit: str) -> str:
        """The path of what is asked of the unit now."""
        return f"{self.scope}|{unit}#{self.attempt.cursor.track(self.scope).count(f'unit {unit}')}"

    def coming_path(self, unit: str) -> str:
        """The path of what will be asked of the unit next."""
        return f"{self.scope}|{unit}#{self.attempt.cursor.track(self.scope).counts.get(f'unit {unit}', 0) + 1}"


def unit_call() -> UnitCall | None:
    """Identify the caller for a unit, if a durable function is calling."""
    scope = current.get()
    return None if scope is None else UnitCall(scope.attempt, scope.path, scope.is_body)

"""One finding of a lint: the rule, the place, the problem, and what to do."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Finding:
    rule: str
    where: str
    what: str
    do: str

"""A unit as the keeper describes it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any


@dataclass
class Record:
    """One unit: what it is, whether it lives, and how it ended."""

    uid: str
    kind: str
    name: str
    owner: Mapping[str, str]
    recipe: Mapping[str, Any]
    made_at: float
    pid: int
    epoch: int
    ended: int | None
    ended_at: float | None
    facts: Mapping[str, Any]
    about: Mapping[str, Any]
    writer: int
    limits: Mapping[str, float] = field(default_factory=dict)
    writer_label: str = ""  # who writes through whatever process, as a person through a server
    writer_left: float = 0.0  # seconds for which the label holds it
    start: int = 0  # with its pid, which process it is

    @classmethod
    def read(cls, told: Mapping[str, Any]) -> Record:
        return cls(**{name: told[name] for name in cls.__dataclass_fields__ if name in told})

    @property
    def is_alive(self) -> bool:
        return self.ended is None

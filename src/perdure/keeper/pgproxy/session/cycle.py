"""One batch sent to the server and its answer, up to ReadyForQuery."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from perdure.keeper.pgproxy.protocol import Outcome, calls

OURS = 0  # the number of no client: cycles that the session itself asked for
ENDING = -1  # a cycle of ours that also ends what a dead client had begun


@dataclass(slots=True)
class Cycle:
    """Everything that leads to one ReadyForQuery."""

    client: int
    kind: str  # query or sync; "copy" while its Sync is lost in a COPY
    outcome: Outcome
    entry: Any = None  # for recording_session.py
    asked: calls.Asked | None = None  # the call it belongs to

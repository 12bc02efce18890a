"""The time that an open transaction waits for a client. Pure.

A transaction without a client holds locks and keeps the server from cleaning up, so there is always a limit. The
server's own time-outs end the whole session; the transaction is rolled back a little before, so that the rest of the
session stays.
"""

from __future__ import annotations

from dataclasses import dataclass

# Before the server's own end: a tenth of its time-out, within these seconds.
_MARGIN_PART, _MARGIN_LEAST, _MARGIN_MOST = 0.1, 0.05, 5.0


@dataclass(slots=True)
class Hold:
    """All in seconds; a time-out of 0 is none."""

    limit: float
    idle_timeout: float = 0.0  # idle_in_transaction_session_timeout
    transaction_timeout: float = 0.0
    began: float = 0.0  # the transaction
    spoke: float = 0.0  # the last answer of the server
    left: float = 0.0  # the last client

    def deadline(self) -> tuple[float, str]:
        """When an orphaned transaction is rolled back, and by whose limit."""
        ends = [(self.left + self.limit, "the hold limit")]
        if self.idle_timeout:
            ends.append((self.spoke + _before(self.idle_timeout), "idle_in_transaction_session_timeout"))
        if self.transaction_timeout:
            ends.append((self.began + _before(self.transaction_timeout), "transaction_timeout"))
        return min(ends)

    def capped(self) -> tuple[float, str]:
        """The longest time a transaction is held, and which limit says so."""
        limits = [(self.limit, "the hold limit")]
        limits += [(self.idle_timeout, "idle_in_transaction_session_timeout")] if self.idle_timeout else []
        limits += [(self.transaction_timeout, "transaction_timeout")] if self.transaction_timeout else []
        return min(limits)


def _before(timeout: float) -> float:
    return max(timeout - min(max(timeout * _MARGIN_PART, _MARGIN_LEAST), _MARGIN_MOST), timeout / 2)

"""The meaning of PostgreSQL's errors: a lost connection, a passing conflict, or one of our own errors."""

from __future__ import annotations

from typing import Any

import psycopg

from perdure._store.contract import Again
from perdure._store.postgres import address
from perdure.errors import (
    PerdureError,
    StoreBusy,
    StoreDamaged,
    StoreFull,
    StoreUnavailable,
    StoreUnreachable,
)

_KEPT = "all that was acknowledged; this write changed nothing"

# The server ends this connection, or is one that cannot serve us now (a standby, one starting up, one
# without a free place): another try may find another server, or the same one ready.
_ENDED = {"57P01", "57P02", "57P03", "57P05", "25P03", "25006", "53300"}
# A pooler gave us another server connection than the one that prepared the statement.
NOT_PREPARED = {"26000", "42P05"}
_NO_SCHEMA = {"42P01", "3F000", "42703"}
# The functions of the server that refuse what a new connection will get: to write where a standby has taken the
# place of the primary, and a statement that was prepared before a migration changed its columns.
_NOT_HERE = {"call_bool_check_hook", "RevalidateCachedQuery"}


def is_lost(error: Exception, connection: psycopg.Connection[Any] | None) -> bool:
    """True if the connection is gone, so that only a new one can tell the outcome."""
    if not isinstance(error, psycopg.Error):
        return False
    state = error.sqlstate or ""
    if state in _ENDED or state.startswith("08") or (connection is not None and connection.closed):
        return True
    if state == "0A000":
        return error.diag.source_function in _NOT_HERE
    return not state and connection is None


def is_without_schema(error: BaseException | None) -> bool:
    return isinstance(error, psycopg.Error) and error.sqlstate in _NO_SCHEMA


def _is_race(error: Exception) -> bool:
    """True if write_memory met a key that another session added at the same moment."""
    return isinstance(error, psycopg.errors.NotNullViolation) and error.diag.table_name == "memory"


def in_our_words(error: Exception, place: str, params: dict[str, Any]) -> Exception:
    """The same trouble as callers know it; a PerdureError stays as it is."""
    if isinstance(error, (PerdureError, Again)):
        return error
    what = address.without_secrets(str(error).strip().partition("\n")[0], params)
    state = error.sqlstate or "" if isinstance(error, psycopg.Error) else ""
    if state in ("40P01", "40001") or _is_race(error):
        return Again(what)
    if state in ("55P03", "57014"):
        return StoreBusy(
            f"another session has held rows of {place} for too long: {what}",
            kept=_KEPT,
            do="look for it in pg_stat_activity (a stopped process, an open transaction), end it, and call again",
        )
    if state == "53100":
        return StoreFull(
            f"no space left for {place}", kept=_KEPT, do="free some space (`perdure gc` helps) and call again"
        )
    if state in ("XX001", "XX002"):
        return StoreDamaged(
            f"{place} is damaged: {what}", kept="the database as it is", do="restore it from a backup, or fail over"
        )
    if state in _NO_SCHEMA:
        return StoreUnavailable(
            f"{place} has lost tables of perdure's: {what}", kept=_KEPT, do="restore the schema `perdure` from a backup"
        )
    if state == "42501":
        return StoreUnavailable(
            f"{place} does not let us in: {what}",
            kept=_KEPT,
            do="grant the role CREATE on the database once, or all on the schema `perdure`",
        )
    if not isinstance(error, psycopg.Error):
        what = f"{type(error).__name__}: {what}"
    return StoreUnavailable(
        f"{place} refused a statement: {what}",
        kept=_KEPT,
        do="`perdure doctor` checks the store; this is a fault in perdure if it finds none",
    )


def unreachable(error: Exception, place: str, params: dict[str, Any], *, tried: float, kept: str = "") -> PerdureError:
    what = address.without_secrets(str(error).strip().partition("\n")[0], params)
    since = f" for {tried:.0f} s" if tried else ""
    return StoreUnreachable(
        f"{place} cannot be reached{since}: {what}",
        kept=kept or _KEPT,
        do="check that the server runs and the address is right (PERDURE_URL, or --store), then call again",
    )

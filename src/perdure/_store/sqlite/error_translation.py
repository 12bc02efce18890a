"""Errors of SQLite and of its file in our words: what happened, what was kept, what to do."""

from __future__ import annotations

import apsw

from perdure._store.sqlite.page_damage import is_of_a_page
from perdure.errors import PerdureError, StoreBusy, StoreDamaged, StoreFull, StoreUnavailable

_UNCHANGED = "all that was acknowledged; this write changed nothing"


class Trouble:
    """Translates errors of SQLite or its file inside the block into ours. One for all blocks of a store."""

    __slots__ = ("_patience", "_place")

    def __init__(self, place: str, patience: float) -> None:
        self._place, self._patience = place, patience

    def __enter__(self) -> None:
        pass

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        # One of the system has a number; one without is what a signal's handler raised, a TimeoutError mostly.
        if isinstance(error, apsw.Error) or (isinstance(error, OSError) and error.errno is not None):
            raise self.explain(error) from error

    def explain(self, error: apsw.Error | OSError) -> PerdureError:
        if isinstance(error, OSError):
            return self._unusable(error.strerror or str(error))
        if isinstance(error, apsw.FullError):
            return StoreFull(
                f"no space left for {self._place}",
                kept=_UNCHANGED,
                do="free some space (`perdure gc` helps) and call again",
            )
        if is_of_a_page(error):
            return StoreDamaged(
                f"{self._place} is damaged: a page of it does not fit its checksum",
                kept="the file as it is; nothing was written to that page",
                do="stop all programs that use it, copy the file and its -wal away, and restore them from a backup. "
                "If this is a copy that another program made (`VACUUM INTO`, `.backup`): `perdure doctor --adopt-copy`",
            )
        if isinstance(error, apsw.CorruptError | apsw.NotADBError):
            return StoreDamaged(
                f"{self._place} is damaged: {error}",
                kept="the file as it is",
                do="`perdure doctor` tells what can be read; restore the file from a backup if it cannot",
            )
        if isinstance(error, apsw.BusyError | apsw.LockedError):
            return StoreBusy(
                f"another program has held {self._place} for {self._patience:.0f} s",
                kept=_UNCHANGED,
                do="end the program that has it open, and try again",
            )
        if isinstance(error, apsw.IOError | apsw.CantOpenError | apsw.ReadOnlyError | apsw.PermissionsError):
            return self._unusable(str(error))
        return StoreUnavailable(
            f"{self._place} refused a statement: {error}",
            kept=_UNCHANGED,
            do="`perdure doctor` checks the store; this is a fault in perdure if it finds none",
        )

    def _unusable(self, why: str) -> StoreUnavailable:
        return StoreUnavailable(
            f"cannot use {self._place}: {why}",
            kept=_UNCHANGED,
            do="check the disk, and that you may read and write the file and its folder",
        )

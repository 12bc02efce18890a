"""psycopg connections into a kept session.

Outside durable functions `con.transaction()` is psycopg's own. Inside, a block outlives the attempt: see blocks.py.
"""

from __future__ import annotations

from contextlib import AbstractAsyncContextManager
from typing import TYPE_CHECKING, Any

import psycopg
from psycopg.pq import TransactionStatus

from perdure._durable import current_run
from perdure._ground.hop import Call
from perdure._runtime.blocks import kept_block
from perdure.errors import TransactionLost

if TYPE_CHECKING:
    from perdure._runtime.postgres import PostgresSession


class KeptConnection(psycopg.AsyncConnection[Any]):
    """psycopg's connection, into a kept session."""

    session: PostgresSession
    over: str = ""

    def transaction(  # type: ignore[override]
        self, savepoint_name: str | None = None, force_rollback: bool = False
    ) -> AbstractAsyncContextManager[Any]:
        run = current_run()
        if run is None or savepoint_name is not None or force_rollback:
            return super().transaction(savepoint_name, force_rollback)
        return kept_block(run, self, _asks_to_be_undone)

    def cursor(self, *args: Any, **kwargs: Any) -> Any:
        if self.over:
            raise TransactionLost(self.label, self.over)
        return super().cursor(*args, **kwargs)

    async def __aexit__(self, *error: Any) -> None:
        run = current_run()
        if run is not None and run.is_ending:
            self.cut_off()
            return
        await super().__aexit__(*error)

    # ── for blocks ──────────────────────────────────────────────────────────────────────────────

    @property
    def label(self) -> str:
        return self.session.name

    async def known(self) -> dict[str, Any]:
        await Call(self.session.refresh)
        return {**self.session.blocks, "lost": self.session.verdict.reason}

    async def enter_block(self, line: str, number: int) -> None:
        if self.info.transaction_status == TransactionStatus.IDLE:
            mark = f"/* perdure.block {line} {number} */"
            await self.execute(f"BEGIN {mark}" if self.autocommit else mark)
        else:
            await self.execute(f"SAVEPOINT perdure_{number}")

    async def commit_block(self, number: int) -> None:
        if not await self._is_outer(number):
            await self.execute(f"RELEASE SAVEPOINT perdure_{number}")
        elif self.info.transaction_status == TransactionStatus.INERROR:
            await self.rollback()
            raise TransactionLost(self.label, "a statement in it had failed")
        else:
            await self.commit()

    async def undo_block(self, number: int) -> None:
        if await self._is_outer(number):
            await self.rollback()
        else:
            await self.execute(f"ROLLBACK TO SAVEPOINT perdure_{number}")
            await self.execute(f"RELEASE SAVEPOINT perdure_{number}")

    async def _is_outer(self, number: int) -> bool:
        opened = (await self.known())["open"]
        return opened[:1] == [number] or number not in opened

    def cut_off(self) -> None:
        self.pgconn.finish()


def _asks_to_be_undone(error: BaseException) -> bool:
    return isinstance(error, psycopg.Rollback) and error.transaction is None

"""Kill the client, the proxy or both at a random point of a transaction, and look at what is left.

One round: a client inserts rows in one transaction and commits, telling each acknowledged statement. It is killed
somewhere. Whoever comes next finds the same transaction with all that was acknowledged, or a verdict; at no time does
anybody else see a part of it.
"""

from __future__ import annotations

import asyncio
import contextlib
import random
import time
from typing import Any

import psycopg

from perdure._runtime.sessions.postgres import PostgresSession
from tests.sessions.kit import Stage
from tests.support.processes import ChildDied, Link, say

ROWS = 6
WAYS = ("simple", "bound", "prepared", "large", "copy", "pipeline")
VICTIMS = ("client", "proxy", "both", "all")  # all: also what the connection is parked in


async def insert_all(link: Link, session: PostgresSession, number: int, way: str, at: int) -> None:
    """Insert the rows from `at` on and commit, telling what was acknowledged."""
    con = await session.connect()
    say(link, "begun")
    for row in range(at, ROWS):
        await _insert(con, number, row, way)
        say(link, row)
    await con.commit()
    say(link, "committed")
    await asyncio.Event().wait()


async def _insert(con: Any, number: int, row: int, way: str) -> None:
    insert = "INSERT INTO rounds VALUES (%s, %s, %s)"
    if way == "simple":
        await con.execute(f"INSERT INTO rounds VALUES ({number}, {row}, '')")
    elif way == "copy":
        async with con.cursor() as cursor, cursor.copy("COPY rounds FROM STDIN") as copy:
            await copy.write_row((number, row, ""))
    elif way == "pipeline":
        async with con.pipeline():
            await con.execute(insert, (number, row, ""))
    else:
        await con.execute(insert, (number, row, "x" * 20_000 if way == "large" else ""), prepare=way == "prepared")


class Rounds:
    """Rounds of killing in one session."""

    def __init__(self, stage: Stage) -> None:
        self.stage = stage
        self.lost = self.kept = self.hopeless = 0
        stage.outside("CREATE TABLE rounds (number int, row int, what text, PRIMARY KEY (number, row))")
        self.eyes = psycopg.connect(stage.url, autocommit=True)

    async def round(self, seed: int) -> None:
        dice = random.Random(seed)
        way, victim = dice.choice(WAYS), dice.choice(VICTIMS)
        self.hopeless += victim == "all"
        session = await self.stage.open()
        told = self._kill_somewhere(dice, seed, way, victim)
        acknowledged = [row for row in told if isinstance(row, int)]
        await self._look(seed, session.backend_pid if victim == "client" else None, acknowledged, "committed" in told)

    def _kill_somewhere(self, dice: random.Random, seed: int, way: str, victim: str) -> list[Any]:
        client = self.stage.client(insert_all, seed, way, 0)
        client.heard()
        told: list[Any] = []
        moment = dice.randrange(ROWS + 2)
        while len(told) < moment and "committed" not in told:
            told.append(client.heard())
        end = time.perf_counter() + dice.random() * 0.0015
        while time.perf_counter() < end:
            pass
        if victim != "client":
            self.stage.kill_proxy()
        if victim == "all":
            self.stage.kill_parking()
        client.kill()
        with contextlib.suppress(psycopg.Error, ChildDied):  # it may have noticed that the proxy was gone
            while True:
                told.append(client.heard())
        return told

    async def _look(self, seed: int, pid: int | None, acknowledged: list[int], committed: bool) -> None:
        session = await self.stage.open()
        seen = self._rows(seed)
        assert seen in (0, ROWS), f"{seen} of {ROWS} rows are seen from outside"
        assert seen == ROWS or not committed, "what was committed is gone"
        con = await session.connect()
        inside = (
            (await (await con.execute(f"SELECT count(*) FROM rounds WHERE number = {seed}")).fetchone())[0]
            if (con.info.transaction_status != psycopg.pq.TransactionStatus.INERROR)
            else None
        )
        if session.level == "lost":
            self.lost += 1
            assert inside in (0, ROWS)
            self._check_told(session, seen)
        elif inside is None:
            self._check_failed(session)
        else:
            self.kept += 1
            self._check_kept(session, pid, acknowledged, inside, seen)
        await self._finish(con, seed, inside)

    def _check_kept(
        self, session: PostgresSession, pid: int | None, acknowledged: list[int], inside: int, seen: int
    ) -> None:
        assert pid is None or session.backend_pid == pid
        assert len(acknowledged) <= inside <= len(acknowledged) + 1, (acknowledged, inside, session.last_outcome)
        outcome = session.last_outcome
        if inside == len(acknowledged) + 1 and seen == 0:
            assert outcome is not None and outcome.state != "never sent", outcome

    def _check_told(self, session: PostgresSession, seen: int) -> None:
        """What is said about a COMMIT is what has become of it."""
        outcome = session.last_outcome
        if outcome is not None and outcome.statement == "COMMIT":
            assert {"done": ROWS, "undone": 0}[outcome.state] == seen, outcome

    def _check_failed(self, session: PostgresSession) -> None:
        """A COPY that was cut fails its transaction; nothing else does."""
        assert session.last_outcome is not None
        assert session.last_outcome.transaction == "failed"

    async def _finish(self, con: Any, seed: int, inside: int | None) -> None:
        """Go on where the dead one was, to the end."""
        if inside is None:
            await con.rollback()
            inside = 0
        for row in range(inside, ROWS):
            await _insert(con, seed, row, "bound")
        await con.commit()
        await con.close()
        assert self._rows(seed) == ROWS

    def _rows(self, seed: int) -> int:
        found = self.eyes.execute("SELECT count(*) FROM rounds WHERE number = %s", (seed,)).fetchone()
        assert found is not None
        return int(found[0])

    def close(self) -> None:
        self.eyes.close()

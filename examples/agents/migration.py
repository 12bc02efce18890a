"""A migration of ten statements, each done once. Kill it anywhere and run it again.

python examples/agents/migration.py      # the database is shop.db
"""

import asyncio
import sqlite3

from perdure import Perdure, durable, transaction


def connect() -> sqlite3.Connection:
    con = sqlite3.connect("shop.db")
    con.execute("CREATE TABLE IF NOT EXISTS applied (number INTEGER)")
    return con


@transaction(connect)
async def apply(con: sqlite3.Connection, number: int) -> int:
    con.execute("INSERT INTO applied VALUES (?)", (number,))  # a marker is committed with it
    return number


@durable
async def migrate(statements: int) -> int:
    for number in range(1, statements + 1):
        await apply(number)
        print("statement", number, flush=True)
    return statements


async def main() -> None:
    async with Perdure() as app:
        print("done:", await app.run("migration-7", migrate, 10), "statements", flush=True)


asyncio.run(main())

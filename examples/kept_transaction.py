"""Die inside a transaction and go on in it: run it twice, with the address of a PostgreSQL server.

python examples/kept_transaction.py postgresql://user@host/db
python examples/kept_transaction.py postgresql://user@host/db
"""

import asyncio
import os
import signal
import sys

from perdure import Perdure


async def main(dsn: str) -> None:
    async with Perdure() as app:
        task = await app.tasks.open("move-the-books")
        rt = await app.runtime(task.id)
        db = await rt.postgres("main", dsn, hold="10m")
        con = await db.connect()
        print(f"{db.level}: {db.verdict.reason}")
        if con.info.transaction_status.name == "IDLE":
            await con.execute("CREATE TEMP TABLE books (title text)")
            await con.execute("INSERT INTO books VALUES ('Walden')")
            print(f"in a transaction of backend {con.info.backend_pid}; now this process is killed", flush=True)
            os.kill(os.getpid(), signal.SIGKILL)
        rows = await (await con.execute("SELECT title FROM books")).fetchall()
        print(f"still in the transaction of backend {con.info.backend_pid}: {rows}")
        await con.commit()
        await db.end()


if len(sys.argv) < 2:
    sys.exit(__doc__)
asyncio.run(main(sys.argv[1]))

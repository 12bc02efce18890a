"""The agent of `perdure demo`: ten steps of work and one payment, written as anybody would write it.

Its payment service is a file that keeps what was paid under which key, as a real one would.
"""

from __future__ import annotations

import asyncio
import json
import sys
from pathlib import Path
from typing import Any

from perdure._app import Perdure
from perdure._durable import DID_NOT_HAPPEN, Happened, durable, effect, idempotency_key, step

FOLDER = Path(sys.argv[1] if len(sys.argv) > 1 else ".")
SECONDS = float(sys.argv[2]) if len(sys.argv) > 2 else 0.12
FILES = ["models", "views", "urls", "forms", "admin", "signals", "tasks", "tests"]


def note(file: str, line: str) -> None:
    with (FOLDER / file).open("a") as log:
        log.write(line + "\n")


@step
async def refactor(name: str) -> int:
    await asyncio.sleep(SECONDS)  # a model thinks
    note("ran.log", f"refactor {name}")
    return len(name) * 10


@step
async def run_tests(lines: int) -> str:
    await asyncio.sleep(SECONDS)
    note("ran.log", "run_tests")
    return f"{lines} lines, all green"


async def find_payment(cents: int) -> object:
    """What the payment service answers when it is asked for a key."""
    paid = FOLDER / "payments.log"
    for line in paid.read_text().splitlines() if paid.exists() else ():
        found = json.loads(line)
        if found["key"] == idempotency_key():
            return Happened(found)
    return DID_NOT_HAPPEN


@effect(verify=find_payment)
async def pay(cents: int) -> dict[str, Any]:
    receipt = {"key": idempotency_key(), "cents": cents}
    note("payments.log", json.dumps(receipt))
    return receipt


@durable
async def refactor_everything(cents: int) -> str:
    lines = 0
    for name in FILES[:5]:
        lines += await refactor(name)
        say(f"refactored {name}")
    receipt = await pay(cents)
    say(f"paid {receipt['cents']} cents for more tokens")
    for name in FILES[5:]:
        lines += await refactor(name)
        say(f"refactored {name}")
    return await run_tests(lines)


def say(text: str) -> None:
    print(text, flush=True)


async def main() -> None:
    async with Perdure(FOLDER / "perdure.db") as app:
        result = await app.run("refactor-everything", refactor_everything, 500)
        say(f"finished: {result}")


if __name__ == "__main__":
    asyncio.run(main())

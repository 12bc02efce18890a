"""The program that tells the keeper which tasks have ended, since the keeper cannot read the store.

Standard input: the uids of tasks, as a JSON list. Standard output: the status of each ended task and how many seconds
ago it ended, or "gone" for a uid that the store does not know. PERDURE_URL names the store. The program writes nothing
to the store, and prints nothing to standard output if it cannot read the store.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence

from perdure._app import Perdure
from perdure._ground.bridge import drive
from perdure._model import FINISHED
from perdure._store import Store, TaskRow
from perdure._tasks import store_of
from perdure.errors import PerdureError


async def told(store: Store, uids: Sequence[str]) -> dict[str, tuple[str, float]]:
    found: dict[str, tuple[str, float]] = {}
    now = store.clock.now_ms()
    for uid in uids:
        rows = await store.rows(TaskRow, "get_task_by_uid", uid=uid)
        if not rows:
            found[uid] = ("gone", 0.0)
        elif rows[0].status in FINISHED:
            found[uid] = (rows[0].status, (now - (rows[0].finished_at or now)) / 1000)
    return found


async def _main() -> None:
    async with Perdure() as app:
        print(json.dumps(await told(store_of(app.tasks), json.load(sys.stdin))))


def main() -> None:
    try:
        drive(_main())
    except PerdureError as error:
        sys.exit(str(error))


if __name__ == "__main__":
    main()

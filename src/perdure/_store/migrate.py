"""Find the migrations that a store still needs, and refuse a store with unknown ones. Pure.

A migration is a numbered file. `0002_name.sql` only adds, so that processes of the release before it
work on beside the new ones. `0002_name.post.sql` takes away what only that older release used; it runs
once a later migration is known too, that is one release later, or at once in a new store.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from pathlib import Path
from typing import NamedTuple

from perdure.errors import StoreNewer


class Migration(NamedTuple):
    name: str
    number: int
    is_post: bool
    script: str


def load(folder: Path) -> list[Migration]:
    found = []
    for path in sorted(folder.glob("*.sql")):
        name = path.name.removesuffix(".sql")
        found.append(Migration(name, int(name[:4]), name.endswith(".post"), path.read_text(encoding="utf-8")))
    return sorted(found, key=lambda step: (step.number, step.is_post))


def pending(steps: Sequence[Migration], applied: Collection[str], place: str) -> list[Migration]:
    """The migrations to run, in order.

    Raises:
        StoreNewer: the store has had a migration we do not know; it must not be touched.
    """
    unknown = sorted(set(applied) - {step.name for step in steps})
    if unknown:
        raise StoreNewer(
            f"{place} was made by a newer perdure: it has had the migration {unknown[-1]!r}",
            kept="the store, untouched",
            do="upgrade perdure here, or use another store",
        )
    newest = max(step.number for step in steps)
    return [
        step for step in steps if step.name not in applied and (not step.is_post or not applied or step.number < newest)
    ]

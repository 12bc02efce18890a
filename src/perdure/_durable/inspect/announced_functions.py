"""Which durable functions the workers of a store know, with what they take: as each worker announces it in its row.

A process without the code of a function can start it by name, check the arguments, and say who would carry it out.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from msgspec import Struct

from perdure._durable.declare import function_for, known_versions
from perdure._durable.inspect.situation import is_live
from perdure._durable.values import arguments_schema
from perdure._store import Store, WorkerRow
from perdure._tasks import Tasks, store_of

# A larger schema is not announced: every process reads the rows of all workers.
_MOST_BYTES = 16 * 1024


class FunctionInfo(Struct, frozen=True, kw_only=True):
    """One version of a durable function, as live workers know it."""

    name: str
    version: int
    queues: Sequence[str]  # that these workers take tasks from
    arguments: Mapping[str, Any] | None  # JSON Schema of an object; None if no worker has announced it
    workers: Sequence[str]


def announcement() -> list[list[Any]]:
    """The functions of this process: name, version, and the JSON Schema of what each takes."""
    return [[name, version, _schema_here(name, version)] for name, version, _ in known_versions()]


def _schema_here(name: str, version: int) -> dict[str, Any] | None:
    function = function_for(name, version)
    if function is None:
        return None
    schema = arguments_schema(function.signature)
    return schema if len(json.dumps(schema, default=str)) <= _MOST_BYTES else None


async def functions(tasks: Tasks) -> Sequence[FunctionInfo]:
    """The durable functions that live workers know, by name and version."""
    return await read_functions(store_of(tasks))


async def read_functions(store: Store) -> list[FunctionInfo]:
    found: dict[tuple[str, int], FunctionInfo] = {}
    for row in await store.rows(WorkerRow, "read_workers"):
        if not is_live(store, row):
            continue
        for name, version, queues, schema in _told(row.knows):
            before = found.get((name, version))
            found[name, version] = FunctionInfo(
                name=name,
                version=version,
                queues=sorted({*queues, *(before.queues if before else ())}),
                arguments=schema if schema is not None else before.arguments if before else None,
                workers=[*(before.workers if before else ()), row.id],
            )
    return [found[key] for key in sorted(found)]


def _told(knows: str | None) -> list[tuple[str, int, list[str], dict[str, Any] | None]]:
    """What a worker has announced. Older workers announce no schemas; an unreadable row announces nothing."""
    try:
        said = json.loads(knows or "{}")
        schemas = {(str(one[0]), int(one[1])): one[2] for one in said.get("takes") or ()}
        known = [(str(one[0]), int(one[1])) for one in said.get("functions") or ()]
        queues = [str(one) for one in said.get("queues") or ()]
    except (ValueError, TypeError, LookupError, AttributeError):
        return []
    return [(*one, queues, found if isinstance(found := schemas.get(one), dict) else None) for one in known]

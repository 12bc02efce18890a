"""The contract of the HTTP server: every route killed at every point, and asked all that its OpenAPI file allows.

python -m tests.torture --part server-kills --seeds 0-99
python -m tests.torture --part schemathesis --seeds 0-3

A seed of server-kills is a pair of a route and a point, on SQLite when it is even and on PostgreSQL when it is odd; a
seed of schemathesis is a run over all routes.
"""

from __future__ import annotations

import asyncio
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from perdure.server.shapes.openapi import operation_id
from perdure.server.table import routes
from tests.server import killing
from tests.server.test_schemathesis import ask_everything, prepare
from tests.support import postgres
from tests.support.processes import nursery

PAIRS = killing.pairs()


def run_kills(seed: int) -> None:
    name, point = PAIRS[seed // 2 % len(PAIRS)]
    with _store(seed) as (url, _), nursery() as children:
        asyncio.run(killing.once_though_killed(name, point, url, children))


def run_schemathesis(seed: int) -> None:
    with _store(seed) as (url, folder):
        key, known = asyncio.run(prepare(url))
        names = [operation_id(route) for route in routes() if not route.streams]
        ask_everything(url, folder, key, known, names, None)


@contextmanager
def _store(seed: int) -> Iterator[tuple[str, Path]]:
    with tempfile.TemporaryDirectory() as folder:
        if seed % 2 == 0:
            yield f"sqlite://{folder}/store/p.db", Path(folder)
        else:
            postgres.ensure_server()
            with postgres.fresh_database() as url:
                yield url, Path(folder)

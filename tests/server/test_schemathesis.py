"""schemathesis asks a live server what its OpenAPI file allows and what it does not; no answer breaks the file.

A sample of the routes is asked here, another one each day; `make torture` asks them all.
"""

from __future__ import annotations

import datetime
import json
import os
import random
import subprocess
import sys
from pathlib import Path

import pytest

from perdure.server.shapes.openapi import operation_id
from perdure.server.table import routes
from tests.support.http_server import make_key, serving
from tests.support.server_processes import environment, live_server

HERE = Path(__file__).parent
SAMPLE = 12  # routes for each engine
SECONDS = 12  # for the random part
CONFIG = """\
[checks.missing_required_header]
expected-statuses = [400, 401, 403, 404, 406, 415, 422, 428]
[checks.negative_data_rejection]
expected-statuses = [400, 401, 403, 404, 405, 406, 409, 410, 412, 413, 415, 422, 428, 429]
# A schema says which fields a body has. That a pause of one reason needs a payload of its own, or that an id has no
# control characters, it cannot say: those requests are answered with 422.
[checks.positive_data_acceptance]
enabled = false
# After twenty wrong credentials in a minute an address is answered 429; security/test_auth_matrix.py asks with them.
[checks.ignored_auth]
enabled = false
"""


def ask_everything(
    url: str, folder: Path, key: str, known: dict[str, list[str]], names: list[str], seconds: int | None
) -> None:
    """Run schemathesis over these operations. It fails the test with what schemathesis has printed."""
    config = folder / "schemathesis.toml"
    config.write_text(CONFIG, encoding="utf-8")
    chosen = [part for name in names for part in ("--include-operation-id", name)]
    settings = {"PERDURE_SERVER_RATE": "1000000", "PERDURE_SERVER_BURST": "1000000"}
    with live_server(url, command="serve", **settings) as server:
        command = [
            sys.executable, "-m", "schemathesis.cli", "--config-file", str(config), "run",
            f"http://{server.host}/openapi.json", "--header", f"Authorization: Bearer {key}", *chosen,
            "--phases", "coverage,fuzzing", "--max-examples", "15", "--request-timeout", "65", "--continue-on-failure",
            "--suppress-health-check", "all", "--no-color", *(["--max-time", str(seconds)] if seconds else []),
        ]  # fmt: skip
        env = environment(
            url, SCHEMATHESIS_HOOKS="tests.server.schemathesis_hooks", PERDURE_KNOWN_IDS=json.dumps(known)
        )
        ran = subprocess.run(
            command, cwd=folder, env=env, capture_output=True, encoding="utf-8", timeout=20 * 60, check=False
        )
        assert server.process.poll() is None, "the server has ended"
    assert ran.returncode == 0, ran.stdout[-20_000:] + ran.stderr[-5_000:]


async def prepare(url: str) -> tuple[str, dict[str, list[str]]]:
    """A store with tasks in several states. Returns a key for everything, and what path parts may name."""
    async with serving(url) as server:
        key = await make_key(server, "admin")
        app = server.app_of("default")
        for name in ("running", "paused", "done", "failed", "a/b:c?é"):
            await app.tasks.create(name, state={"n": 1})
        await (await app.tasks.handle("paused")).pause("Go on?")
        await (await app.tasks.handle("done")).complete({"n": 2})
        await (await app.tasks.handle("failed")).fail({"type": "ValueError", "message": "no"})
        other = await server.desk.keys.make("other", ["viewer"])
    return key, {"task": ["running", "paused", "done", "failed", "a%2Fb%3Ac%3F%C3%A9"], "key": [other.key.id]}


@pytest.mark.parametrize("engine", ["sqlite", "postgres"])
async def test_no_request_breaks_the_contract(engine, tmp_path, request):
    url = str(request.getfixturevalue("postgres_url")) if engine == "postgres" else f"sqlite://{tmp_path}/store/p.db"
    key, known = await prepare(url)
    day = datetime.date(2026, 1, 1) if os.environ.get("CI") else datetime.datetime.now(datetime.UTC).date()
    names = [operation_id(route) for route in routes() if not route.streams]  # a stream has no end to wait for
    sample = random.Random(f"{day} {engine}").sample(names, min(SAMPLE, len(names)))
    ask_everything(url, tmp_path, key, known, sorted(sample), SECONDS)

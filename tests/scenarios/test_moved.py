"""A service, a shell with all in it, a workspace and a database session go to a machine of another name and home."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psycopg
import pytest

from perdure._ground.config import find_address
from perdure._runtime import end_keeper
from tests.scenarios import moved
from tests.scenarios.test_s5_host import on
from tests.support.ports import free_port


@pytest.fixture
def stores(tmp_path: Path) -> Iterator[tuple[str, str]]:
    found = (f"sqlite://{tmp_path}/a/p.db", f"sqlite://{tmp_path}/b/p.db")
    yield found
    for store in found:
        end_keeper(find_address(store))


def rows(dsn: str) -> list[int]:
    with psycopg.connect(dsn) as connection:
        return [x for (x,) in connection.execute("SELECT x FROM rows ORDER BY x").fetchall()]


@pytest.mark.req("R97", "R106", "R107", "R109")
def test_a_task_with_all_it_has_around_it_is_finished_on_another_machine(
    stores: tuple[str, str], postgres_url: str, tmp_path: Path
) -> None:
    home_a, home_b, bundle = tmp_path / "home-a", tmp_path / "home-b", tmp_path / "moved.perdure"
    home_a.mkdir()
    home_b.mkdir()
    with psycopg.connect(postgres_url, autocommit=True) as connection:
        connection.execute("CREATE TABLE rows (x int)")
    env = {"PERDURE_KEY": moved.KEY, moved.DSN: postgres_url}
    number = str(free_port())
    a, b = stores

    def at(host: str, home: Path, *argv: str) -> Any:
        return json.loads(on(host, home, *argv, **env))

    assert at("host-a", home_a, "tests.scenarios.moved", a, number)["status"] == "paused"
    assert rows(postgres_url) == []
    told = at("host-a", home_a, "perdure", "--json", "--store", a, "export", "moved", str(bundle), "--move")
    assert told["is_signed"]
    at("host-a", home_a, "perdure", "--json", "--store", a, "keep", "stop", "--units")

    came = at("host-b", home_b, "perdure", "--json", "--store", b, "import", str(bundle))
    assert (came["host"], came["is_signed"], came["is_trusted"], came["workspace"]) == ("host-a", True, True, True)
    at("host-b", home_b, "perdure", "--json", "--store", b, "approve", "moved")
    ended = at("host-b", home_b, "tests.scenarios.moved", b, number)

    found = ended["result"]
    assert ended["status"] == "completed" and (found["began"], found["ended"]) == ("host-a", "host-b")
    assert rows(postgres_url) == [1, 2]
    assert found["said"] == [
        "chosen 36 hello ada 0027 withheld",
        "noclobber",
        "alias shout='echo HEY'",
        "trap -- 'echo bye' SIGUSR1",
        str(home_b / "desk" / "notes"),
        "half done",
        "host-b",
        str(home_b),
        "1",
    ]
    assert found["again"] == 0, "what was asked of it by key is known, and was not done again"
    differs = " ".join(found["differs"])
    assert "variable DEPLOY_TOKEN was not written down" in differs and "background jobs" in differs
    assert found["web"] == {"answers": True, "cwd": str(home_b / "desk")}
    levels = {name: found["restored"][name] for name in ("workspace", "service web", "shell main")}
    assert levels == {"workspace": "rebuilt", "service web": "rebuilt", "shell main": "rebuilt"}
    assert found["opened"] == {"shell": "rebuilt", "session": "lost"}
    assert all("it was on host-a" in why for why in found["why"])
    assert (home_b / "desk" / "notes" / "plan.md").read_text() == "half done\n"

"""Killed just before or just after a commit, a call is in the store as a whole, or not at all."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

import perdure
from perdure._ground import crash_points as crash
from tests.support.processes import ChildDied, Link, Nursery
from tests.torture.kills import RUNNERS, Death, Home, go_on, kill_and_check, look
from tests.torture.verbs import VERBS

# What must be found after a death at each place of the path every write takes.
FOUND = {"committer.before_commit": "before", "engine.before_commit": "before", "committer.after_commit": "after"}
# Its parts go ahead in transactions of their own, so the first commit is not yet the call's.
SEVERAL_COMMITS = {"large_checkpoint"}
# Each call by one way of calling or the other, in turn.
CALLS = [(verb, list(RUNNERS)[number % 2]) for number, verb in enumerate(VERBS)]


def _of(home: Home, place: str) -> str:
    return place.replace("engine.", "postgres." if home.kind == "postgresql" else "sqlite.")


@pytest.mark.req("R11", "R23", "R28")
@pytest.mark.parametrize("place", FOUND)
@pytest.mark.parametrize("verb, runner", CALLS)
def test_a_call_killed_at_its_commit_is_there_as_a_whole_or_not_at_all(
    home: Home, verb: str, runner: str, place: str
) -> None:
    found = kill_and_check(home, verb, runner, Death("place", place=_of(home, place)))
    if verb not in SEVERAL_COMMITS:
        assert found == FOUND[place]


@pytest.mark.req("R11")
@pytest.mark.parametrize("place", ["engine.before_migrated", "committer.before_commit", "committer.after_commit"])
def test_a_store_whose_maker_was_killed_is_made_by_the_next_process(
    home: Home, children: Nursery, folder: Path, place: str, request: pytest.FixtureRequest
) -> None:
    if home.kind == "postgresql":  # a database nobody has made a store in yet
        home = Home(request.getfixturevalue("postgres_url"))
    child = children.start(make_and_die, home, _of(home, place))
    with pytest.raises(ChildDied):
        child.heard()
    tasks = children.run(look, home)["tasks"]
    assert list(tasks) == (["first"] if place == "committer.after_commit" else [])
    children.run(go_on, home)


async def make_and_die(_: Link, home: Home, place: str) -> None:
    crash.arm(place)
    await home.open().tasks.create("first", state={})


def test_no_place_on_the_path_of_a_write_is_forgotten() -> None:
    store = Path(perdure.__file__).parent / "_store"
    places = {name for file in store.rglob("*.py") for name in re.findall(r'crash\.place\("(.+?)"\)', file.read_text())}
    known = {name.replace("engine.", f"{engine}.") for name in FOUND for engine in ("sqlite", "postgres")}
    assert places == known | {"sqlite.before_migrated", "postgres.before_migrated"}

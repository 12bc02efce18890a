"""S2 beside its matrix: lines that drop, targets that are busy, undoing that is killed, markers that are not."""

from __future__ import annotations

import uuid
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.scenarios import s2
from tests.scenarios.kit import undoing
from tests.scenarios.kit.effects_server import effects_server
from tests.scenarios.kit.shop import Shop
from tests.support import postgres
from tests.support.processes import Nursery
from tests.torture.kills import Home


@pytest.mark.req("R64")
@pytest.mark.parametrize("mode", s2.MODES)
@pytest.mark.parametrize("name", ["charge", "mail"])
def test_a_line_that_drops_after_the_commit_means_one_effect(
    name: str, mode: str, folder: Path, children: Nursery
) -> None:
    home = Home(f"sqlite://{folder}/p.db")
    with effects_server(honours_keys=mode == "a", can_be_asked=mode == "b") as target:
        target.faults[name] = ["drop"]
        how, found, ledger = children.run(undoing.order_once, home, Shop(mode, target.address, folder))
        assert how == ("paused" if mode == "c" else "ended"), found
        if mode == "c":
            assert found.startswith(f"outcome unknown: {name}(") and ledger[-1] == (name, "uncertain", 1)
        assert target.count(name) == 1
        assert len(target.keys_of(name)) == 1


@pytest.mark.req("R68", "R63")
@pytest.mark.parametrize("mode", s2.MODES)
def test_a_busy_target_is_a_definite_failure_and_is_asked_again_with_the_same_key(
    mode: str, folder: Path, children: Nursery
) -> None:
    home = Home(f"sqlite://{folder}/p.db")
    with effects_server() as target:
        target.faults["charge"] = ["busy", "busy"]
        how, found, ledger = children.run(undoing.order_once, home, Shop(mode, target.address, folder))
        assert how == "ended", found
        assert ledger[0] == ("charge", "done", 3)
        assert (target.count("charge"), len(target.keys_of("charge")), len(target.requests)) == (1, 1, 5)


# ── cancel at effect four ────────────────────────────────────────────────────────────────────────


@pytest.fixture(params=["sqlite", "postgres"])
def home(request: pytest.FixtureRequest, folder: Path) -> Iterator[Home]:
    if request.param == "sqlite":
        yield Home(f"sqlite://{folder}/p.db")
        return
    yield Home(request.getfixturevalue("database"), uuid.uuid4().hex)


@pytest.mark.req("R36", "R70")
@pytest.mark.parametrize("count", [1, 2, 3])
@pytest.mark.parametrize("place", ["undo.before", "effect.intended", "effect.done", "effect.recorded", ""])
def test_cancel_at_effect_four_undoes_three_two_one_even_when_it_is_killed(
    home: Home, folder: Path, children: Nursery, place: str, count: int
) -> None:
    with effects_server(honours_keys=True) as target:
        shop = Shop("a", target.address, folder)
        target.faults["book"] = ["", "", "", "kill"]
        assert children.start(undoing.travel, home, shop).wait() == -9
        assert target.count("book") == 4

        # The fourth is uncertain: by its key the target knows it again, and then it is undone with the others.
        caller = children.start(undoing.call_off, home, shop, place, count + (1 if "effect." in place else 0))
        if place:
            assert caller.wait() == -9
            assert children.run(undoing.carry_on_trip, home, shop) == "cancelled"
        else:
            assert caller.heard() == "cancelled"
        undone = [what.split(" ")[0] for name, what in target.done if name == "unbook"]
        assert undone == ["dinner", "car", "hotel", "flight"]
        assert target.count("book") == 4 and len(target.keys_of("unbook")) == 4


# ── transactions ─────────────────────────────────────────────────────────────────────────────────


@pytest.fixture(params=["sqlite", "postgres"])
def place(request: pytest.FixtureRequest, folder: Path) -> Iterator[str]:
    if request.param == "sqlite":
        yield str(folder / "user.db")
        return
    with postgres.fresh_database() as url:
        yield url


@pytest.mark.req("R65")
@pytest.mark.parametrize("point", [*range(undoing.STATEMENTS), "transaction.before_commit", "transaction.committed"])
def test_killed_at_any_statement_there_is_a_marker_where_there_are_rows(
    place: str, point: int | str, folder: Path, children: Nursery
) -> None:
    undoing.prepare_rows(place)
    home, dies_after = Home(f"sqlite://{folder}/p.db"), point if isinstance(point, int) else -1
    child = children.start(undoing.fill, home, place, dies_after, point if isinstance(point, str) else "")
    assert child.wait() == -9
    was_committed = point == "transaction.committed"
    assert undoing.rows_and_markers(place) == ((undoing.STATEMENTS, 1) if was_committed else (0, 0))
    assert children.run(undoing.fill, home, place, -1, "") == undoing.STATEMENTS
    assert undoing.rows_and_markers(place) == (undoing.STATEMENTS, 1)

"""S2, never charge twice: each effect killed at each point, once, for each sort of target."""

from __future__ import annotations

import uuid
from pathlib import Path

import pytest

from tests.scenarios import s2
from tests.support.processes import Nursery
from tests.torture.kills import Home


@pytest.mark.req("R59", "R63", "R64")
@pytest.mark.parametrize("case", s2.all_cases(), ids=lambda case: "-".join(case).replace(" ", "_"))
def test_every_effect_happens_exactly_once(case: s2.Case, folder: Path, children: Nursery) -> None:
    s2.run(case, Home(f"sqlite://{folder}/p.db"), folder, children)


@pytest.mark.req("R63", "R64")
@pytest.mark.parametrize("mode", s2.MODES)
@pytest.mark.parametrize("point", s2.POINTS)
def test_so_it_does_on_postgres(point: str, mode: str, folder: Path, children: Nursery, database: str) -> None:
    name = s2.NAMES[(s2.POINTS.index(point) + s2.MODES.index(mode)) % 5]
    s2.run(s2.Case(name, point, mode), Home(database, uuid.uuid4().hex), folder, children)


@pytest.mark.req("R64")
@pytest.mark.parametrize("choice", ["done", "retry"])
@pytest.mark.parametrize("point", ["after intent", "before reply"])
def test_what_a_person_answers_is_done_even_when_they_are_wrong(
    point: str, choice: str, folder: Path, children: Nursery
) -> None:
    s2.run(s2.Case("charge", point, "c"), Home(f"sqlite://{folder}/p.db"), folder, children, choice=choice)


@pytest.mark.req("R64")
@pytest.mark.parametrize("name", s2.NAMES)
@pytest.mark.parametrize("point", ["before reply", "before log", "during log"])
def test_the_control_without_the_ledger_does_it_twice(point: str, name: str, folder: Path, children: Nursery) -> None:
    with pytest.raises(AssertionError, match=f"'{name}': 2"):
        s2.run(s2.Case(name, point, "c"), Home(f"sqlite://{folder}/p.db"), folder, children, has_ledger=False)

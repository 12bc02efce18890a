"""A damaged store: a sample of `python -m tests.torture --part damage`."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support import postgres
from tests.support.processes import nursery
from tests.torture import damage


@pytest.fixture(scope="module", params=["sqlite", "postgres"])
def scene(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[damage.Scene]:
    if request.param == "postgres":
        try:
            postgres.ensure_server()
        except postgres.ServerUnavailable as problem:
            pytest.skip(str(problem))
    with nursery() as children:
        folder: Path = tmp_path_factory.mktemp("damage")
        yield damage.SCENES[request.param](children, folder)
    damage.end_scenes()


@pytest.mark.req("R95", "R23")
@pytest.mark.parametrize("seed", range(6))
def test_a_command_gives_the_right_answer_or_an_error_of_ours_and_no_effect_is_repeated(
    scene: damage.Scene, seed: int
) -> None:
    with nursery() as children:
        scene.check(children, seed)

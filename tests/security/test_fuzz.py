"""A sample of the fuzzers: `make torture` runs a minute of each."""

from __future__ import annotations

import pytest

from tests.torture import fuzz_bundle, fuzz_envelope


@pytest.mark.req("R109")
@pytest.mark.parametrize("seed", range(4))
def test_a_changed_bundle_is_refused_or_harmless(seed: int) -> None:
    fuzz_bundle.run(seed)


@pytest.mark.req("R79")
@pytest.mark.parametrize("seed", range(4))
def test_a_changed_record_is_noticed(seed: int) -> None:
    fuzz_envelope.run(seed)


def test_the_corpora_are_there() -> None:
    assert len(list(fuzz_bundle.CORPUS.glob("*.perdure"))) >= 9 and len(list(fuzz_envelope.CORPUS.iterdir())) >= 7

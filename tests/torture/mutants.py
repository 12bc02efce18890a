"""Switch one rule of perdure off, and see that a round of honesty notices; a seed is a number in the list of mutants.

python -m tests.torture --part mutants
"""

from __future__ import annotations

from perdure.errors import PerdureError
from tests.honesty import rounds
from tests.honesty.mutants import ANY, MUTANTS, rounds_about
from tests.honesty.oracle import SILENT, Violation

MOST_ROUNDS = 30


class Unnoticed(Exception):
    """A rule is switched off, and no round noticed."""


def run(seed: int) -> None:
    name = list(MUTANTS)[seed]
    mutant = MUTANTS[name]
    tried = rounds_about(mutant, MOST_ROUNDS)
    if len(tried) == 1 and (found := rounds.play(tried[0])):  # a staged round; drawn ones are run by the part honesty
        raise Unnoticed(f"{name}: no rule is switched off, and {tried[0]} has something to say: {found}")
    for one in tried:
        try:
            found = rounds.play(one, name)
        except (PerdureError, TimeoutError) as error:  # so broken that the round cannot be played
            found = [Violation(SILENT, "all", f"{type(error).__name__}: {error}")]
        for violation in found:
            what, kind = mutant.noticed_as
            if violation.what == what and kind in (violation.kind, ANY):
                print(f"mutant {name!r} is noticed by {one}: {violation}", flush=True)
                return
    raise Unnoticed(f"{name}: {mutant.rule!r} is switched off, and {len(tried)} rounds have nothing to say")

"""S2 in full: each of 90 cases fifty times, killed for real and carried on afresh; every tenth on PostgreSQL.

python -m tests.torture --part s2 --seeds 0-4499
"""

from __future__ import annotations

import uuid

from tests.scenarios import s2
from tests.support import postgres
from tests.support.folders import fast_folder
from tests.support.processes import nursery
from tests.torture.kills import Home

REPETITIONS = 50


def run(seed: int) -> None:
    """One case; the seed says which, and on which engine."""
    cases = s2.all_cases()
    case = cases[seed % len(cases)]
    with fast_folder() as folder, nursery() as children:
        if seed // len(cases) % 10 == 9:
            with postgres.fresh_database() as url:
                s2.run(case, Home(url, uuid.uuid4().hex), folder, children)
        else:
            s2.run(case, Home(f"sqlite://{folder}/p.db"), folder, children)

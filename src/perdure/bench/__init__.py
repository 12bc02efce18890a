"""`perdure bench`: measure perdure beside the floor of this machine, in turns.

figures.py     figures, budgets and reports; pure
rounds.py      take turns
bare.py        the floors: bare disk, bare apsw, bare psycopg
stage.py       the place of a measurement: folders, databases; server.py starts a PostgreSQL
programme.py   the lines that are measured, in order
lines/         the lines: one module for each subject
"""

from perdure.bench.figures import Figure, Report, Section
from perdure.bench.programme import ENGINES, NAMES, measure
from perdure.bench.server import running as running_server

__all__ = ["ENGINES", "NAMES", "Figure", "Report", "Section", "measure", "running_server"]

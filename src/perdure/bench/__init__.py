"""`perdure bench`: our figures beside the floor of this very machine, measured in turns.

figures.py     what a figure, a budget and a report are; pure
rounds.py      taking turns
bare.py        the floors: bare disk, bare apsw, bare psycopg
stage.py       where it happens: folders, databases; server.py starts a PostgreSQL
programme.py   which lines are measured, in which order
lines/         the lines: one module for each subject
"""

from perdure.bench.figures import Figure, Report, Section
from perdure.bench.programme import ENGINES, NAMES, measure
from perdure.bench.server import running as running_server

__all__ = ["ENGINES", "NAMES", "Figure", "Report", "Section", "measure", "running_server"]

"""perdure over HTTP: the verbs of `app.tasks` and its neighbours, with the same guarantees.

Written by tools/make_doors.py from the table in __init__.py.
"""

from perdure.server.assembly import Desk, make_app
from perdure.server.requests import Answer, Ask, Caller, Scope, Streamed
from perdure.server.serving import Server
from perdure.server.settings import Settings, load_settings
from perdure.server.table import Route, routes
__all__ = [
    "Desk",
    "make_app",
    "Answer",
    "Ask",
    "Caller",
    "Scope",
    "Streamed",
    "Server",
    "Settings",
    "load_settings",
    "Route",
    "routes",
]

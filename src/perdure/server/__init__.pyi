"""perdure over HTTP: the verbs of `app.tasks` and its neighbours, with the same guarantees.

Written by tools/make_doors.py from the table in __init__.py.
"""

from perdure.server.access import cookie_of
from perdure.server.assembly import make_app
from perdure.server.checkup import examine_server
from perdure.server.credentials import ApiKey, ApiKeys, Session, Sessions, Vault, scopes_of
from perdure.server.process import (
    Listener,
    RunningServers,
    Vitals,
    bind,
    bind_unix,
    has_uvicorn,
    log_to_stderr,
    refuse_open_door,
    require_uvicorn,
    serve,
)
from perdure.server.desk import Desk
from perdure.server.http import Answer, Ask, Caller, Handler, Scope, Services, Streamed
from perdure.server.pipeline import Server
from perdure.server.settings import Settings, load_settings
from perdure.server.table import Raw, Route, Unread, routes
__all__ = [
    "cookie_of",
    "make_app",
    "examine_server",
    "ApiKey",
    "ApiKeys",
    "Session",
    "Sessions",
    "Vault",
    "scopes_of",
    "Listener",
    "RunningServers",
    "Vitals",
    "bind",
    "bind_unix",
    "has_uvicorn",
    "log_to_stderr",
    "refuse_open_door",
    "require_uvicorn",
    "serve",
    "Desk",
    "Answer",
    "Ask",
    "Caller",
    "Handler",
    "Scope",
    "Services",
    "Streamed",
    "Server",
    "Settings",
    "load_settings",
    "Raw",
    "Route",
    "Unread",
    "routes",
]

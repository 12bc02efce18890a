"""Advice that names commands, for callers without a command line: the requests that do the same.

Errors of the library say `perdure resume ID`. One table maps each command to its route. A command without a route is
for the machine where the store is, and stays as it is. The client gives its callers the commands back.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Mapping
from urllib.parse import quote

_TASK = "/v1/tasks/{task}"
ROUTES: Mapping[str, str] = {
    "api-keys list": "GET /v1/api-keys",
    "api-keys make": "POST /v1/api-keys",
    "answer": "POST /v1/inbox/{pause}/answer",
    "approve": "POST /v1/inbox/{pause}/approve",
    "archive": f"POST {_TASK}/archive",
    "attach": f"GET {_TASK}/units",
    "audit export": "GET /v1/audit/heads",
    "audit verify": "POST /v1/audit/verify",
    "cancel": f"POST {_TASK}/cancel",
    "checkpoints": f"GET {_TASK}/checkpoints",
    "complete": f"POST {_TASK}/complete",
    "create": "POST /v1/tasks",
    "delete": f"DELETE {_TASK}",
    "doctor": "POST /v1/store/doctor",
    "drain": "POST /v1/workers/drain",
    "effects": f"GET {_TASK}/effects",
    "events": f"GET {_TASK}/events",
    "export": f"POST {_TASK}/export",
    "fork": f"POST {_TASK}/fork",
    "frames": f"GET {_TASK}/frames",
    "gc": "POST /v1/store/gc",
    "history": f"GET {_TASK}/history",
    "import": "POST /v1/import",
    "inbox": "GET /v1/inbox",
    "journal": f"GET {_TASK}/journal",
    "keep restart": "POST /v1/keeper/restart",
    "keep status": "GET /v1/keeper",
    "keep stop": "POST /v1/keeper/stop",
    "keys list": "GET /v1/store",
    "keys rotate": "POST /v1/store/reseal",
    "kill-switch list": "GET /v1/switches",
    "kill-switch off": "DELETE /v1/switches/{task}",
    "kill-switch on": "PUT /v1/switches/{task}",
    "open": "POST /v1/tasks",
    "pause": f"POST {_TASK}/pause",
    "reject": "POST /v1/inbox/{pause}/reject",
    "resume": f"POST {_TASK}/resume",
    "resume --plan": f"GET {_TASK}/plan",
    "rollback": f"POST {_TASK}/rollback",
    "schedule list": "GET /v1/schedules",
    "show": f"GET {_TASK}",
    "signal": f"POST {_TASK}/signal",
    "take": f"POST {_TASK}/take",
    "tasks": "GET /v1/tasks",
    "trigger list": "GET /v1/triggers",
    "units": "GET /v1/units",
    "webhooks deliveries": "GET /v1/webhooks/{hook}/deliveries",
    "webhooks enable": "POST /v1/webhooks/{hook}/enable",
    "webhooks list": "GET /v1/webhooks",
    "where": f"GET {_TASK}/situation",
    "workers": "GET /v1/workers",
}
# Commands for the machine where the store is: they start processes there, or hold a secret that no request carries.
LOCAL = frozenset({"run", "worker", "up", "serve", "link", "keys generate", "api-keys rotate", "lint", "mcp install"})
# In backquotes a command ends with them. Without, it begins the advice or follows a colon or an "or", and ends before
# the next "or" or punctuation.
_COMMAND = re.compile(r"`perdure ([^`]+)`|(?:^|(?<=: )|(?<= or ))perdure ([^`;,]+?)(?= or |[;,]|$)")
_PART = re.compile(r"\{[a-z]+\}")


def over_http(advice: str) -> str:
    """The same advice with requests in the place of commands."""
    return _COMMAND.sub(lambda found: _request(found[1] or found[2]) or found[0], advice)


def _request(command: str) -> str | None:
    try:
        words = shlex.split(command)
    except ValueError:
        return None
    options = {word for word in words if word.startswith("--")}
    for count in (2, 1):
        name = " ".join(words[:count])
        if name in ROUTES:
            route = ROUTES["resume --plan" if name == "resume" and "--plan" in options else name]
            names = [word for word in words[count:] if not word.startswith("--")]
            return f"`{_with_name(route, names[0] if names else '')}`"
    return None


def _with_name(route: str, name: str) -> str:
    """The route with what the command names, unless that is a placeholder such as ID, or an answer's task."""
    if not name or name.isupper() or "{pause}" in route:
        return route
    return _PART.sub(lambda _: quote(name, safe="@:+~"), route, count=1)

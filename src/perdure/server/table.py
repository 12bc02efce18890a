"""Every route of the server, in one table: the router, the OpenAPI file, the docs and the auth matrix read it.

Each noun declares its own routes beside its handlers (`ROUTES` in nouns/*/*.py); this module gathers them and refuses a
table that contradicts itself. A handler that is in no table cannot be reached.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from importlib import import_module
from typing import Any, Literal, TypeAlias

from msgspec import Struct

from perdure.server.http import Handler, Scope

Method: TypeAlias = Literal["GET", "POST", "PUT", "PATCH", "DELETE"]
# Who may come in: nobody needs a credential; the path holds a token; the body holds a one-time code; any known caller;
# a browser's session only; a caller with all of the route's scopes.
Who: TypeAlias = Literal["nobody", "token", "code", "anyone", "session", "scoped"]
Need: TypeAlias = Literal["no", "may", "must"]

NOUNS = (  # one a line
    "operate.service",
    "operate.sessions",
    "operate.keys",
    "automation.webhooks",
    "operate.metrics",
    "task.tasks",
    "task.task_list",
    "task.control",
    "task.attempts",
    "task.checkpoints",
    "task.journal",
    "task.family",
    "task.recall",
    "task.artifacts",
    "live.streams",
    "live.task_streams",
    "operate.jobs",
    "task.bulk",
    "live.switches",
    "live.units",
    "live.inbox",
    "live.now",
    "automation.callbacks",
    "automation.schedules",
    "automation.triggers",
    "operate.workers",
    "operate.store",
    "task.bundles",
)


class Nothing(Struct, frozen=True, forbid_unknown_fields=True):
    """The query or the body of a route that takes none."""


class Unread(Struct, frozen=True):
    """A query that belongs to the page in the browser: the server takes it and does not look at it."""


class Raw(Struct, frozen=True):
    """A body that the handler reads itself: `ask.content`."""


class Route(Struct, frozen=True, kw_only=True):
    """One method on one path."""

    method: Method
    path: str  # "/v1/tasks/{task}/cancel": a part in braces matches one segment of the raw path
    handler: Handler
    does: str  # one sentence, for the docs and the OpenAPI file
    scopes: tuple[Scope, ...] = ()
    who: Who = "scoped"
    query: type[Struct] = Nothing
    body: type[Struct] | None = None  # None: a body is refused
    media: str = "application/json"  # of the body
    answer: Any = None  # the type of the answer's value; None: no body
    rehearsal: Any = None  # the type of the answer to a dry run, where that is another one
    status: int = 200  # when it went well
    statuses: tuple[int, ...] = ()  # others that are particular to this route
    once: Need = "no"  # Idempotency-Key
    match: Need = "no"  # If-Match
    headers: Mapping[str, Need] = {}  # others that mean something to the route: {"Perdure-Fence": "may"}
    body_limit: int | None = None  # bytes; None: the setting `body_limit`
    holds_state: bool = False  # the body holds a task's state or result: the setting `state_limit` counts
    streams: bool = False
    answers: str = "application/json"  # media type of the answer

    @property
    def segments(self) -> tuple[str, ...]:
        return tuple(self.path.split("/")[1:])

    @property
    def name(self) -> str:
        """Its name in logs, metrics and the OpenAPI file, without the values that a caller put into the path."""
        return f"{self.method} {self.path}"

    @property
    def writes(self) -> bool:
        return self.method != "GET"

    @property
    def takes_a_key(self) -> bool:
        """True if an Idempotency-Key counts: what it names belongs to one caller, so there has to be one."""
        return self.writes and self.who in ("anyone", "session", "scoped")


Nouns: TypeAlias = Mapping[str, tuple[Route, ...]]  # the routes that each file of nouns/ declares


@lru_cache(maxsize=1)
def routes_by_noun() -> Nouns:
    """All routes, in the order of the nouns."""
    found = {noun: tuple(import_module(f"perdure.server.nouns.{noun}").ROUTES) for noun in NOUNS}
    check(tuple(route for routes in found.values() for route in routes))
    return found


@lru_cache(maxsize=1)
def routes() -> tuple[Route, ...]:
    """All routes, in the order of the nouns."""
    return tuple(route for found in routes_by_noun().values() for route in found)


def check(found: tuple[Route, ...]) -> None:
    """
    Raises:
        ValueError: these routes contradict each other.
    """
    seen: set[str] = set()
    for route in found:
        shape = "/".join("{}" if part.startswith("{") else part for part in route.segments)
        if f"{route.method} {shape}" in seen:
            raise ValueError(f"two routes answer {route.method} {route.path}")
        seen.add(f"{route.method} {shape}")
        if (route.who == "scoped") != bool(route.scopes):
            raise ValueError(f"{route.name}: a route has scopes exactly when its callers need them")
        if route.method == "GET" and (route.body is not None or route.once != "no"):
            raise ValueError(f"{route.name}: a GET has neither a body nor an Idempotency-Key")
    _check_no_word_hides_an_id(found)


def _check_no_word_hides_an_id(found: tuple[Route, ...]) -> None:
    """A fixed word beside an id (`/v1/tasks/counts`, `/v1/tasks/{task}`) would hide the task with that id."""
    for one in found:
        for other in found:
            if len(one.segments) != len(other.segments) or one is other:
                continue
            pairs = list(zip(one.segments, other.segments, strict=True))
            if all(a == b or a.startswith("{") or b.startswith("{") for a, b in pairs) and any(
                a.startswith("{") != b.startswith("{") for a, b in pairs
            ):
                raise ValueError(f"{one.path} and {other.path} can match the same address")

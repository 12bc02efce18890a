"""The reference page of the HTTP API (docs/reference/http.md), made from the table of routes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgspec
from msgspec import Struct

from perdure.server.credentials import PRESETS
from perdure.server.http import SCOPE_MEANINGS
from perdure.server.shapes.openapi import about_noun, headers_of, title_of
from perdure.server.shapes.statuses import EVERYWHERE, PARTICULAR, good_statuses, problem_statuses
from perdure.server.table import Nouns, Raw, Route

_WHO = {
    "nobody": "none",
    "token": "the token in the address",
    "code": "a link's code",
    "anyone": "any",
    "session": "a session",
}
_TOP = """\
# HTTP API

Every route of `perdure serve`. `python tools/make_openapi.py` writes this page from the server's table of routes; the
same table makes `GET /openapi.json`, which has the shapes of all bodies and answers. [The guide](../guide/server.md)
shows how to begin.

Bodies and answers are JSON. Moments are ISO 8601 in UTC, lengths of time are seconds, bytes are base64. An answer that
is not 2xx is `application/problem+json` with `code`, `detail`, `kept` (what was kept) and `do` (what to do).

- `{task}` is a task's id as one percent-encoded segment, or `~` and its uid.
- A body's field or a parameter that the route does not know is refused.
- `Idempotency-Key`: a request repeated with the same key is carried out once and answered the same, for 24 hours. The
  same key with another request is refused with 422.
- `If-Match`: the `ETag` that the caller has seen. If the thing has changed since, the answer is 412.
- Lists are `{"items", "next", "as_of", "approximate"}`. `next` is the cursor of the following page.
"""


def as_text(nouns: Nouns) -> str:
    """The page as it is committed."""
    parts = [_TOP, _scopes(), _everywhere()]
    parts += [_noun(noun, routes) for noun, routes in nouns.items()]
    return "\n".join(parts)


def _scopes() -> str:
    rows = [
        (f"`{scope}`", meaning, ", ".join(name for name, scopes in PRESETS.items() if scope in scopes))
        for scope, meaning in SCOPE_MEANINGS.items()
    ]
    return "## Scopes\n\n" + _table(("scope", "allows to", "presets that have it"), rows)


def _everywhere() -> str:
    rows = [(str(status), meaning) for status, meaning in sorted({**EVERYWHERE, **PARTICULAR}.items())]
    return (
        "## Statuses of problems\n\n"
        f"Any route can answer {_joined(EVERYWHERE)}. The tables below name the others.\n\n"
        + _table(("status", "means"), rows)
    )


def _noun(noun: str, routes: tuple[Route, ...]) -> str:
    rows = [
        (f"`{route.name}`", route.does, _needs(route), _takes(route), _joined(_statuses(route))) for route in routes
    ]
    title = title_of(noun)
    head = f"## {title[0].upper()}{title[1:]}\n\n{about_noun(noun)}\n\n"
    return head + _table(("route", "does", "credential", "takes", "answers"), rows)


def _needs(route: Route) -> str:
    return " + ".join(f"`{scope}`" for scope in route.scopes) or _WHO[route.who]


def _takes(route: Route) -> str:
    told = []
    if names := _names(route.query, "?"):
        told.append(names)
    if route.body is Raw:
        told.append(f"`{route.media}`")
    elif route.body is not None and (names := _names(route.body, "")):
        told.append(names)
    told += [f"`{name}`{'' if need == 'must' else ' (optional)'}" for name, need in headers_of(route).items()]
    return "; ".join(told)


def _names(shape: type[Struct], before: str) -> str:
    """The names of a shape's fields, those that are needed in bold."""
    told = []
    for field in msgspec.structs.fields(shape):
        name = "tag.*" if before and field.name == "tags" else field.encode_name
        told.append(f"**`{before}{name}`**" if field.required else f"`{before}{name}`")
    return " ".join(told)


def _statuses(route: Route) -> list[int]:
    return [*good_statuses(route), *(status for status in problem_statuses(route) if status not in EVERYWHERE)]


def _joined(numbers: Any) -> str:
    return " ".join(map(str, numbers))


def _table(head: tuple[str, ...], rows: Sequence[tuple[str, ...]]) -> str:
    lines = [head, ("---",) * len(head), *rows]
    return "\n".join(f"| {' | '.join(cell.replace('|', chr(92) + '|') for cell in line)} |" for line in lines) + "\n"

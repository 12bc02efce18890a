"""The OpenAPI 3.1 document, made from the table of routes and the shapes of what they take and give.

The document is committed as src/perdure/server/openapi.json and served at GET /openapi.json.
`python tools/make_openapi.py` writes it anew, together with docs/reference/http.md.
"""

from __future__ import annotations

import json
import re
from importlib import import_module
from typing import Any, get_type_hints

import msgspec
from msgspec import Struct

from perdure.server.http import SCOPE_MEANINGS
from perdure.server.shapes.json_schema import Schema, Schemas, records_in
from perdure.server.shapes.statuses import good_statuses, meaning_of, problem_statuses
from perdure.server.table import Need, Nouns, Raw, Route

VERSION = "1"  # of the API: the 1 of /v1
KEY_PATTERN = "^[!-~]([ -~]{0,198}[!-~])?$"
_HEADERS = {
    "Idempotency-Key": (
        KEY_PATTERN,
        "Names this one request. Repeated with the same key it is carried out once, and answered the same.",
    ),
    "If-Match": ('^"v[0-9]{1,18}"$', "The ETag of what the caller has seen. If it has changed since: 412."),
    "If-Range": ('^"[0-9a-f]{64}"$', "The ETag of the file that the Range is of."),
    "Perdure-Base": (
        "^[0-9]{1,18}$",
        "The checkpoint that the state was made from (0: the first state). What others wrote since is kept.",
    ),
    "Perdure-Fence": ("^[!-~]{1,400}$", "The fence of the attempt, from POST /v1/tasks/{task}/attempt."),
    "Perdure-Holder": ("^[!-~]{1,400}$", "The token of the holder, from POST /v1/holders."),
    "Perdure-Input-Id": ("^[!-~]{1,200}$", "Names this one input. Repeated with the same id it is typed once."),
    "Last-Event-ID": ("^[!-~]{1,200}$", "The id of the last event that was received; the stream continues after it."),
    "webhook-id": ("^[!-~]{1,200}$", "Names the message that is signed, as Standard Webhooks has it."),
    "webhook-timestamp": ("^[0-9]{1,12}$", "When the message was signed, in seconds since 1970."),
    "webhook-signature": ("^[ -~]{1,4096}$", "The signatures, each as v1, and base64; for tokens that want one."),
    "Range": ("^bytes=[0-9]{1,18}-[0-9]{0,18}$", "One range of bytes."),
}


def document(nouns: Nouns) -> dict[str, Any]:
    """The contract as an OpenAPI document."""
    table = tuple(route for routes in nouns.values() for route in routes)
    schemas = Schemas(both=_shared_records(table))
    paths: dict[str, dict[str, Any]] = {}
    for noun, routes in nouns.items():
        for route in routes:
            paths.setdefault(route.path, {})[route.method.lower()] = _operation(noun, route, schemas)
    _refuse_doubles(table)
    return {
        "openapi": "3.1.0",
        "info": {
            "title": "perdure",
            "version": VERSION,
            "description": "Keeps long-running agents going. Every answer that is not 2xx is application/problem+json.",
            "license": {"name": "Apache-2.0", "identifier": "Apache-2.0"},
        },
        "servers": [{"url": "/"}],
        "tags": [{"name": title_of(noun), "description": about_noun(noun)} for noun in nouns],
        "paths": paths,
        "components": {
            "schemas": {"Problem": PROBLEM, **dict(sorted(schemas.components.items()))},
            "responses": {str(status): _problem(status) for status in _all_problems(table)},
            "parameters": {name: _header(name) for name in sorted({name for r in table for name in headers_of(r)})},
            "securitySchemes": _SECURITY,
        },
    }


def as_text(nouns: Nouns) -> str:
    """The document as it is committed."""
    return json.dumps(document(nouns), indent=1, ensure_ascii=False) + "\n"


def operation_id(route: Route) -> str:
    """A name of the route that is made from its address alone: POST /v1/tasks/{task}/pause is post_tasks_task_pause."""
    words = [re.sub(r"\W+", "_", part.strip("{}")) for part in route.segments if part not in ("", "v1")]
    return "_".join([route.method.lower(), *(words or ["root" if route.path == "/" else "server"])])


def title_of(noun: str) -> str:
    return noun.rpartition(".")[2].replace("_", " ")


def about_noun(noun: str) -> str:
    """The first line of the module that declares a noun's routes."""
    return (import_module(f"perdure.server.nouns.{noun}").__doc__ or "").partition("\n")[0]


def headers_of(route: Route) -> dict[str, Need]:
    """The headers that mean something to this route, and whether it needs them."""
    given: dict[str, Need] = {**route.headers}
    if route.takes_a_key:
        given["Idempotency-Key"] = "must" if route.once == "must" else "may"
    if route.match != "no":
        given["If-Match"] = route.match
    return given


PROBLEM: Schema = {
    "type": "object",
    "description": "Why a request was refused (RFC 9457): what happened, what was kept, what to do.",
    "properties": {
        "type": {"type": "string", "format": "uri"},
        "title": {"type": "string"},
        "status": {"type": "integer"},
        "code": {"type": "string", "description": "Which problem it is; stable, for programs."},
        "detail": {"type": "string", "description": "What happened, for people."},
        "kept": {"type": "string"},
        "do": {"type": "string", "description": "What to do next; a request is in backquotes."},
        "cli": {"type": "string", "description": "The same with commands of `perdure`, where there are some."},
        "instance": {"type": "string", "description": "The pattern of the route's address."},
        "request_id": {"type": "string"},
        "retryable": {"type": "boolean", "description": "Whether the same request can succeed later."},
        "values": {"type": "object", "additionalProperties": True},
        "errors": {
            "type": "array",
            "items": {
                "type": "object",
                "properties": {
                    "path": {"type": "array", "items": {"type": ["string", "integer"]}},
                    "message": {"type": "string"},
                },
            },
        },
    },
    "required": [
        "type", "title", "status", "code", "detail", "kept", "do", "instance", "request_id", "retryable", "values",
        "errors",
    ],
}  # fmt: skip

_SECURITY = {
    "key": {
        "type": "http",
        "scheme": "bearer",
        "bearerFormat": "prd_<id>_<secret>",
        "description": "An API key of `perdure api-keys make`. Scopes: "
        + " · ".join(f"{scope}: {meaning}" for scope, meaning in SCOPE_MEANINGS.items()),
    },
    "session": {
        "type": "apiKey",
        "in": "cookie",
        "name": "perdure-7420",
        "description": "A browser's session. The name carries the port; behind https it is `__Host-perdure`. "
        "Requests that change something also need `Origin` and `Perdure-Client`.",
    },
}


def _operation(noun: str, route: Route, schemas: Schemas) -> dict[str, Any]:
    made: dict[str, Any] = {
        "operationId": operation_id(route),
        "tags": [title_of(noun)],
        "summary": route.does,
        "security": _security(route),
    }
    if parameters := _parameters(route, schemas):
        made["parameters"] = parameters
    if route.body is not None:
        made["requestBody"] = _body(route, schemas)
    made["responses"] = {
        **{str(status): _good(route, status, schemas) for status in good_statuses(route)},
        **({"304": {"description": "It is as `If-None-Match` says."}} if route.method == "GET" else {}),
        **{str(status): {"$ref": f"#/components/responses/{status}"} for status in problem_statuses(route)},
    }
    if route.streams:
        made["x-perdure-streams"] = True
    return made


def _security(route: Route) -> list[dict[str, list[str]]]:
    if route.who in ("nobody", "token", "code"):
        return []
    scopes: list[str] = [*route.scopes]
    return [{"session": scopes}] if route.who == "session" else [{"key": scopes}, {"session": scopes}]


def _parameters(route: Route, schemas: Schemas) -> list[dict[str, Any]]:
    in_path = [
        {"name": part[1:-1], "in": "path", "required": True, "schema": {"type": "string", "minLength": 1}}
        for part in route.segments
        if part.startswith("{")
    ]
    shared = [{"$ref": f"#/components/parameters/{name}"} for name, need in headers_of(route).items() if need == "may"]
    needed = [{**_header(name), "required": True} for name, need in headers_of(route).items() if need == "must"]
    return [*in_path, *_query(route.query, schemas), *needed, *shared]


def _query(shape: type[Struct], schemas: Schemas) -> list[dict[str, Any]]:
    hints = get_type_hints(shape)
    return [
        _tags()
        if field.name == "tags"
        else {
            "name": field.encode_name,
            "in": "query",
            **({"required": True} if field.required else {}),
            "schema": _query_schema(schemas.of(hints[field.name], "request"), field),
        }
        for field in msgspec.structs.fields(shape)
    ]


def _query_schema(schema: Schema, field: msgspec.structs.FieldInfo) -> Schema:
    """A parameter has a value or is left out: there is no null in an address."""
    if isinstance(kinds := schema.get("type"), list):
        kinds = [kind for kind in kinds if kind != "null"]
        schema = {**schema, "type": kinds[0] if len(kinds) == 1 else kinds}
    if "anyOf" in schema:
        choices = [one for one in schema["anyOf"] if one != {"type": "null"}]
        schema = choices[0] if len(choices) == 1 else {**schema, "anyOf": choices}
    if isinstance(field.default, str | int | float | bool):
        schema = {**schema, "default": field.default}
    return schema


def _tags() -> dict[str, Any]:
    return {
        "name": "tags",
        "in": "query",
        "style": "form",
        "explode": True,
        "description": "`tag.<key>=<value>`: tasks with all of these tags.",
        "schema": {
            "type": "object",
            "patternProperties": {"^tag\\..": {"type": "string"}},
            "additionalProperties": False,
        },
    }


def _header(name: str) -> dict[str, Any]:
    pattern, about = _HEADERS[name]
    return {"name": name, "in": "header", "description": about, "schema": {"type": "string", "pattern": pattern}}


def _body(route: Route, schemas: Schemas) -> dict[str, Any]:
    if route.body is None or route.body is Raw:
        return {"required": True, "content": {route.media: {}}}
    needs_one = any(field.required for field in msgspec.structs.fields(route.body))
    return {"required": needs_one, "content": {route.media: {"schema": schemas.of(route.body, "request")}}}


def _good(route: Route, status: int, schemas: Schemas) -> dict[str, Any]:
    made: dict[str, Any] = {"description": _GOOD.get(status, "Done.")}
    if route.answer is not None:
        made["content"] = {route.answers: {"schema": _answer(route, schemas)}}
    elif route.streams or route.answers != "application/json":
        made["content"] = {route.answers: {}}
    return made


def _answer(route: Route, schemas: Schemas) -> dict[str, Any]:
    kinds = [kind for kind in (route.answer, route.rehearsal) if kind is not None]
    found = [schemas.of(kind, "answer") for kind in kinds]
    return found[0] if len(found) == 1 else {"anyOf": found}


_GOOD = {
    200: "Done.",
    201: "Made.",
    202: "Accepted: it is written down, and will be carried out.",
    204: "Done; the answer is empty.",
    206: "A part of it.",
}


def _problem(status: int) -> dict[str, Any]:
    schema = {"$ref": "#/components/schemas/Problem"}
    return {"description": meaning_of(status), "content": {"application/problem+json": {"schema": schema}}}


def _all_problems(table: tuple[Route, ...]) -> list[int]:
    return sorted({status for route in table for status in problem_statuses(route)})


def _shared_records(table: tuple[Route, ...]) -> frozenset[type[Any]]:
    given = [records_in(route.body) for route in table if route.body is not None]
    told = [records_in(kind) for route in table for kind in (route.answer, route.rehearsal) if kind is not None]
    return frozenset().union(*given) & frozenset().union(*told)


def _refuse_doubles(table: tuple[Route, ...]) -> None:
    ids = [operation_id(route) for route in table]
    if doubles := sorted({one for one in ids if ids.count(one) > 1}):
        raise ValueError(f"two routes are called {doubles[0]}: give one of them another address")

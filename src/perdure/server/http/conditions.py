"""The headers that say under which condition a request is carried out: Idempotency-Key and If-Match."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping

from perdure.server.http.problems import HttpProblem
from perdure.server.http.requests import Caller
from perdure.server.table import Route

_ETAG = re.compile(r'"v([0-9]{1,18})"')


def key_in(route: Route, headers: Mapping[str, str], caller: Caller) -> str | None:
    key = headers.get("idempotency-key")
    if not route.takes_a_key:
        return None
    if key is None:
        if route.once == "must":
            raise HttpProblem(
                400,
                "key_required",
                "this request needs an Idempotency-Key",
                do="send one of 1 to 200 printable characters, a new one for each thing to be done",
            )
        return None
    if not 1 <= len(key) <= 200 or not key.isascii() or not key.isprintable():
        raise HttpProblem(400, "bad_request", "an Idempotency-Key has 1 to 200 printable ASCII characters")
    scoped = "\0".join((caller.how, caller.credential, caller.namespace, route.name, key))
    return f"http-{hashlib.sha256(scoped.encode()).hexdigest()}"


def version_in(route: Route, headers: Mapping[str, str]) -> int | None:
    given = headers.get("if-match")
    if given is None:
        if route.match == "must":
            raise HttpProblem(
                428, "match_required", "this request needs If-Match", do="send the ETag of what you have seen"
            )
        return None
    found = _ETAG.fullmatch(given.strip())
    if found is None:
        raise HttpProblem(400, "bad_request", 'If-Match has the form "v12", as ETag has')
    return int(found[1])

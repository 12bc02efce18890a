"""Work out the statuses that a route can answer from its line in the table.

The OpenAPI file, the reference page and the auth matrix read this. A status that every request can meet before it
reaches a route's handler is listed once, in EVERYWHERE.
"""

from __future__ import annotations

from perdure.server.table import Route

# What any request can be answered, whatever its route: by the wire, the guard, the pipeline or the store.
EVERYWHERE = {
    400: "The query, a header or the JSON is malformed.",
    404: "There is nothing at this address; or what it names is not there, or not the caller's.",
    406: "The route has nothing in a media type that `Accept` allows.",
    408: "The request took too long to arrive.",
    413: "The body is too large, or the route takes none.",
    414: "The address is longer than 8 kB.",
    421: "The server is not known by the name in `Host`.",
    429: "The caller asks too often. `Retry-After` says when to try again.",
    431: "The headers are too many or too large.",
    500: "A defect, or a record that cannot be read. The log has the request id.",
    503: "The store cannot be reached. `Retry-After` says when to try again.",
}
PARTICULAR = {
    401: "The credential is missing or not valid.",
    403: "The credential does not allow this.",
    409: "What is there does not allow it now. `code` says why.",
    410: "It has ended.",
    412: "It has changed since: `ETag` has its present version.",
    415: "The body has another media type, or is compressed.",
    416: "The range lies outside of the file.",
    422: "The body does not fit. `errors` has the path of each fault.",
    428: "`If-Match` is needed.",
    501: "This server cannot do that.",
    507: "The disk of the store is full.",
}


def good_statuses(route: Route) -> list[int]:
    """The statuses of a request that was carried out, the usual one first."""
    return [route.status, *(status for status in route.statuses if status < 300)]


def problem_statuses(route: Route) -> list[int]:
    """The statuses of problems that a request to this route can be answered, in order."""
    found = {status for status in route.statuses if status >= 400} | EVERYWHERE.keys()
    if route.who != "nobody" or route.path.startswith("/v1"):
        found |= {403}
    if route.who not in ("nobody", "token", "code"):
        found |= {401}
    if route.body is not None:
        found |= {415}
    if route.path.startswith("/v1") and _takes_something(route):
        found |= {422}
    if route.writes and route.path.startswith("/v1"):
        found |= {409, 507}
    if route.takes_a_key:
        found |= {409, 422}
    if route.match != "no":
        found |= {412}
    if route.match == "must":
        found |= {428}
    return sorted(found)


def _takes_something(route: Route) -> bool:
    return bool("{" in route.path or route.body is not None or route.query.__struct_fields__ or route.headers)


def meaning_of(status: int) -> str:
    return {**EVERYWHERE, **PARTICULAR}.get(status, "The request was refused.")

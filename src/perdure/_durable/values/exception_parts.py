"""The parts of a declared exception, and how it is made again from them: its arguments and its attributes.

A class with its own `__reduce__` says which call makes it again: that call is stored, if it calls the class. A class
with its own `__init__` and no such call is made again without `__init__`, because `args` seldom match its parameters:
the object is created, then `args` and the attributes are set. No class is looked up by a name in the data here: the
caller passes the class that the code declared.

Attributes that are responses or requests of an HTTP client, and pydantic's validation errors, are recognized by their
shape. Anything else that is not data is left out, and named: the class can then say by `__getstate__` what to keep.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from contextlib import suppress
from typing import Any

from perdure._ground.encoding import codec
from perdure._ground.traceback_text import TRACE
from perdure.errors import NotStorable

ARGS, STATE, LEFT_OUT, VALIDATION, BY_CLASS = "args", "state", "left_out", "validation", "by_class"
REDUCED = "reduced"
# The record that an exception was made from, stored on the exception.
RECORDED = "_perdure_recorded"
_NOT_ATTRIBUTES = {RECORDED, TRACE}
_CLIENTS = ("httpx", "httpx2", "requests")
_MOST_BODY = 256_000  # bytes of a response that are kept
_PRIVATE_HEADERS = {"set-cookie", "authorization", "proxy-authorization", "cookie"}


def parts_of(error: BaseException) -> dict[str, Any]:
    """The parts of the exception, as data."""
    if _is_validation(type(error)):
        return {VALIDATION: [error.title, _findings(error)], ARGS: []}  # type: ignore[attr-defined]
    if (reduced := _reduced(error)) is not None:
        return reduced
    own = _own_state(error)
    state: dict[str, Any] = {}
    left_out: dict[str, str] = {}
    for name, value in (_attributes(error) if own is None else own).items():
        try:
            state[name] = _plain(value)
        except NotStorable:
            left_out[name] = type(value).__name__
    try:
        parts: dict[str, Any] = {ARGS: [_plain(one) for one in _arguments_of(error)]}
    except NotStorable:
        parts = {ARGS: [str(error)]}
        if own is None:
            left_out[ARGS] = ", ".join(type(one).__name__ for one in error.args)
    if state or _has_own_init(type(error)):
        parts[STATE] = codec.encode(state)
    if left_out:
        parts[LEFT_OUT] = left_out
    return parts


def made_of(cls: type[BaseException], parts: dict[str, Any]) -> BaseException | None:
    """Make the exception again; None if the class does not say how."""
    if VALIDATION in parts:
        return _validation_error(cls, *parts[VALIDATION])
    if REDUCED in parts:
        given, kept = codec.decode(parts[REDUCED])
        return _called(cls, [_whole(one) for one in given], {name: _whole(value) for name, value in kept.items()})
    args = [_whole(one) for one in parts[ARGS]]
    state = codec.decode(parts[STATE]) if STATE in parts else {}
    if ARGS in parts.get(LEFT_OUT, ()):
        return None
    if not _has_own_init(cls) or STATE not in parts:  # an older perdure has written no state
        error = cls(*args)
    elif any(not name.startswith("_") for name in parts.get(LEFT_OUT, ())):
        return None  # half of it would be worse than none: code relies on its attributes
    else:
        error = _bare(cls, args)
    _put_back(error, {name: _whole(value) for name, value in state.items()})
    return error


def advice_for(parts: dict[str, Any]) -> str:
    """What to define so that the exception survives whole; '' if nothing was left out."""
    left_out: dict[str, str] = parts.get(LEFT_OUT) or {}
    if not left_out:
        return ""
    names = ", ".join(f"{name} ({kind})" for name, kind in left_out.items())
    return f"{names} cannot be kept: define __getstate__ in {parts['type']}, which gives what can be, as a dict"


# ── taking apart ─────────────────────────────────────────────────────────────────────────────────


def _arguments_of(error: BaseException) -> list[Any]:
    """An OSError keeps the names of its files apart from its args."""
    if isinstance(error, OSError) and error.filename is not None and len(error.args) == 2:
        second = [] if error.filename2 is None else [None, error.filename2]
        return [*error.args, error.filename, *second]
    return list(error.args)


def _attributes(error: BaseException) -> dict[str, Any]:
    found = dict(vars(error)) if hasattr(error, "__dict__") else {}
    for cls in type(error).__mro__:
        slots = cls.__dict__.get("__slots__", ())
        for name in (slots,) if isinstance(slots, str) else slots:
            with suppress(AttributeError):  # it was never set
                found.setdefault(name, getattr(error, name))
    return {name: value for name, value in found.items() if name not in _NOT_ATTRIBUTES and name != "__dict__"}


def _reduced(error: BaseException) -> dict[str, Any] | None:
    """The call of its own class that makes it again, as the class says. None if there is none, or if it needs more than
    data."""
    own = {name for cls in type(error).__mro__ if cls.__module__ != "builtins" for name in cls.__dict__}
    if "__reduce__" not in own:
        return None
    with suppress(Exception):  # the user's own code
        taken_apart = error.__reduce__()
        if not isinstance(taken_apart, tuple) or taken_apart[0] is not type(error):
            return None
        args = [_plain(one) for one in taken_apart[1]]
        state = taken_apart[2] if len(taken_apart) > 2 and taken_apart[2] is not None else {}
        kept = {name: _plain(value) for name, value in state.items() if name not in _NOT_ATTRIBUTES}
        if str(_called(type(error), args, kept)) == str(
            error
        ):  # what cannot be made again now is taken apart otherwise
            return {REDUCED: codec.encode([args, kept]), ARGS: []}
    return None


def _own_state(error: BaseException) -> dict[str, Any] | None:
    """The state that the class itself says to keep, for a copy or for pickle."""
    own = {name for cls in type(error).__mro__ if cls.__module__ != "builtins" for name in cls.__dict__}
    state: Any = None
    if "__getstate__" in own:
        state = error.__getstate__()
    elif "__reduce__" in own:
        taken_apart = error.__reduce__()
        state = taken_apart[2] if isinstance(taken_apart, tuple) and len(taken_apart) > 2 else None
    return (
        {name: value for name, value in state.items() if name not in _NOT_ATTRIBUTES}
        if isinstance(state, dict)
        else None
    )


def _has_own_init(cls: type[BaseException]) -> bool:
    return any(
        "__init__" in one.__dict__ or "__new__" in one.__dict__ for one in cls.__mro__ if one.__module__ != "builtins"
    )


# ── making again ─────────────────────────────────────────────────────────────────────────────────


def _called(cls: type[BaseException], args: list[Any], state: dict[str, Any]) -> BaseException:
    error = cls(*args)
    _put_back(error, state)
    return error


def _bare(cls: type[BaseException], args: list[Any]) -> BaseException:
    """An instance with these arguments, made by the builtin exception that the class is derived from."""
    builtin: Any = next(one for one in cls.__mro__ if one.__module__ == "builtins")
    error: BaseException = builtin.__new__(cls, *args)
    with suppress(TypeError):  # a few builtin ones want arguments of a certain number and kind
        builtin.__init__(error, *args)
    error.args = tuple(args)
    return error


def _put_back(error: BaseException, state: dict[str, Any]) -> None:
    own = any("__setstate__" in cls.__dict__ for cls in type(error).__mro__ if cls.__module__ != "builtins")
    if own:
        error.__setstate__(state)
        return
    for name, value in state.items():
        with suppress(AttributeError):  # a property, or a slot that takes no value
            object.__setattr__(error, name, value)


# ── HTTP clients ─────────────────────────────────────────────────────────────────────────────────


def _plain(value: Any) -> Any:
    """The value, if it is data; a request or a response of an HTTP client as data."""
    client, kind = type(value).__module__.partition(".")[0], type(value).__name__
    if client in _CLIENTS and kind in ("Request", "PreparedRequest", "Response"):
        take = _of_response if kind == "Response" else _of_request
        return {BY_CLASS: [client, kind], **take(value)}
    codec.encode(value)  # which says so, if it is not
    return value


def _of_request(request: Any) -> dict[str, Any]:
    return {"method": str(request.method), "url": str(request.url)}


def _of_response(response: Any) -> dict[str, Any]:
    body = b""
    with suppress(Exception):  # one that was not read to its end has none
        body = bytes(response.content)[:_MOST_BODY]
    headers = {str(key): str(value) for key, value in dict(response.headers).items()}
    request = None
    with suppress(Exception):  # one that was made by hand has none
        request = _of_request(response.request)
    return {
        "status": int(response.status_code),
        "headers": {key: value for key, value in headers.items() if key.lower() not in _PRIVATE_HEADERS},
        "body": body,
        "request": request,
    }


def _whole(value: Any) -> Any:
    """The request or response again, if its client is imported here; any other value as it is."""
    if not isinstance(value, dict) or BY_CLASS not in value:
        return value
    client, kind = value[BY_CLASS]
    module = sys.modules.get(client) if client in _CLIENTS else None
    make = _MAKERS.get((client, "Response" if kind == "Response" else "Request"))
    return value if module is None or make is None else make(module, value)


def _httpx_request(module: Any, found: dict[str, Any]) -> Any:
    return module.Request(found["method"], found["url"])


def _httpx_response(module: Any, found: dict[str, Any]) -> Any:
    request = found["request"]
    headers = {key: value for key, value in found["headers"].items() if key.lower() not in _OF_TRANSFER}
    return module.Response(
        found["status"],
        headers=headers,
        content=found["body"],
        request=None if request is None else _httpx_request(module, request),
    )


def _requests_request(module: Any, found: dict[str, Any]) -> Any:
    return module.Request(found["method"], found["url"]).prepare()


def _requests_response(module: Any, found: dict[str, Any]) -> Any:
    response = module.Response()
    response.status_code, response._content = found["status"], found["body"]
    response.headers.update(found["headers"])
    if found["request"] is not None:
        response.request = _requests_request(module, found["request"])
        response.url = found["request"]["url"]
    return response


# The body is kept as the client had read it.
_OF_TRANSFER = {"content-encoding", "content-length", "transfer-encoding"}
_MAKERS: dict[tuple[str, str], Callable[[Any, dict[str, Any]], Any]] = {
    ("httpx", "Request"): _httpx_request,
    ("httpx", "Response"): _httpx_response,
    ("httpx2", "Request"): _httpx_request,
    ("httpx2", "Response"): _httpx_response,
    ("requests", "Request"): _requests_request,
    ("requests", "Response"): _requests_response,
}


# ── pydantic ─────────────────────────────────────────────────────────────────────────────────────


def _is_validation(cls: type[BaseException]) -> bool:
    return cls.__module__.startswith("pydantic_core") and cls.__name__ == "ValidationError"


def _findings(error: Any) -> list[Any]:
    """Each thing that is wrong: its type, what to say, where, and the input if that is data."""
    found = []
    for one in error.errors(include_url=False, include_context=False):
        given = one.get("input")
        try:
            codec.encode(given)
        except NotStorable:
            given = repr(given)
        found.append([one["type"], one["msg"], list(one["loc"]), given])
    return found


def _validation_error(cls: Any, title: str, findings: list[Any]) -> BaseException:
    custom = sys.modules["pydantic_core"].PydanticCustomError
    lines = [
        {"type": custom(kind, said.replace("{", "{{").replace("}", "}}")), "loc": tuple(where), "input": given}
        for kind, said, where, given in findings
    ]
    made: BaseException = cls.from_exception_data(title, lines)
    return made

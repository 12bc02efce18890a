"""A declared exception comes back as itself, with its attributes, whatever its `__init__` takes; live and in replay."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from types import ModuleType
from typing import Any

import msgspec
import pydantic
import pytest

from perdure._durable.declare.functions import step
from perdure._durable.values import exception_parts as error_parts
from perdure._ground.encoding import codec
from perdure.errors import StepFailed
from tests.replay.kit import play, play_again


class ToolError(Exception):
    """Its arguments are not what its `__init__` takes."""

    def __init__(self, tool: str, *, status: int, detail: dict[str, Any]) -> None:
        self.tool, self.status, self.detail = tool, status, detail
        super().__init__(f"{tool} answered {status}")


class QuotaError(ToolError):
    """Derived from one that is declared."""


class Slotted(Exception):
    __slots__ = ("code",)

    def __init__(self, code: int) -> None:
        self.code = code
        super().__init__("slotted")


class FileTrouble(OSError):
    def __init__(self, name: str) -> None:
        self.name = name
        super().__init__(2, "not there", name)


class Counted(Exception):
    """Made from its arguments, as many are; and somebody has put something on it."""


class Made(Exception):
    """One whose `__init__` is called is noticed."""

    made = 0

    def __init__(self, text: str) -> None:
        Made.made += 1
        super().__init__(text)


class Live(Exception):
    """Holds something that is no data, and does not say what to keep."""

    def __init__(self, connection: object) -> None:
        self.connection, self.port = connection, 5432
        super().__init__("lost")


class Told(Live):
    """The same, and says it."""

    def __getstate__(self) -> dict[str, Any]:
        return {"port": self.port}


async def raised(error: Callable[[], BaseException], *declared: type[BaseException]) -> list[BaseException]:
    """What the code catches: the first time, and in a replay."""
    caught: list[BaseException] = []

    @step(raises=declared)
    async def act() -> None:
        raise error()

    async def program() -> None:
        try:
            await act()
        except Exception as found:
            caught.append(found)

    first = await play(program)
    assert first.error is None
    await play_again(program, journal=first.journal)
    assert len(caught) == 2
    return caught


async def test_an_exception_with_an_init_of_its_own_comes_back_with_its_attributes() -> None:
    for found in await raised(lambda: ToolError("search", status=503, detail={"retry": [1, 2]}), ToolError):
        assert type(found) is ToolError
        assert (found.tool, found.status, found.detail) == ("search", 503, {"retry": [1, 2]})
        assert str(found) == "search answered 503"


async def test_one_that_is_derived_from_a_declared_one_comes_back_as_itself() -> None:
    for found in await raised(lambda: QuotaError("search", status=429, detail={}), ToolError):
        assert type(found) is QuotaError and found.status == 429


async def test_slots_and_what_a_builtin_exception_keeps_come_back() -> None:
    for found in await raised(lambda: Slotted(7), Slotted):
        assert type(found) is Slotted and found.code == 7
    for found in await raised(lambda: FileTrouble("a.txt"), FileTrouble):
        assert type(found) is FileTrouble
        assert (found.errno, found.filename, found.name) == (2, "a.txt", "a.txt")


async def test_what_was_put_on_an_exception_comes_back_too() -> None:
    def made() -> BaseException:
        error = Counted("three", 3)
        error.add_note("a note")
        error.where = "here"  # type: ignore[attr-defined]
        return error

    for found in await raised(made, Counted):
        assert type(found) is Counted and found.args == ("three", 3)
        assert found.__notes__ == ["a note"] and found.where == "here"  # type: ignore[attr-defined]


async def test_the_init_of_an_exception_is_not_called_to_make_it_again() -> None:
    Made.made = 0
    for found in await raised(lambda: Made("once"), Made):
        assert type(found) is Made
    assert Made.made == 1


async def test_an_exception_of_the_standard_library_comes_back() -> None:
    def parse() -> BaseException:
        with pytest.raises(json.JSONDecodeError) as caught:
            json.loads("{nothing")
        return caught.value

    for found in await raised(parse, json.JSONDecodeError):
        assert type(found) is json.JSONDecodeError
        assert (found.pos, found.lineno, found.doc) == (1, 1, "{nothing")


async def test_a_validation_error_of_pydantic_comes_back() -> None:
    class Page(pydantic.BaseModel):
        number: int
        name: str

    def check() -> BaseException:
        with pytest.raises(pydantic.ValidationError) as caught:
            Page.model_validate({"number": "many {}", "name": 3})
        return caught.value

    expected = [("int_parsing", ("number",), "many {}"), ("string_type", ("name",), 3)]
    for found in await raised(check, pydantic.ValidationError):
        assert type(found) is pydantic.ValidationError and found.title == "Page"
        assert [(one["type"], one["loc"], one["input"]) for one in found.errors()] == expected
        assert "valid integer" in str(found)


async def test_one_that_holds_what_cannot_be_kept_says_what_to_define() -> None:
    for found in await raised(lambda: Live(object()), Live):
        assert type(found) is StepFailed and found.type_name == "Live"
        assert "connection (object)" in str(found.do) and "__getstate__" in str(found.do)
    for found in await raised(lambda: Told(object()), Told):
        assert type(found) is Told and found.port == 5432


async def test_a_record_names_no_class_that_the_code_has_not_declared() -> None:
    @step(raises=[ToolError])
    async def act() -> None:
        raise ToolError("search", status=503, detail={})

    async def program() -> str:
        with pytest.raises(StepFailed) as caught:
            await act()
        return caught.value.type_name

    async def first_program() -> None:
        with pytest.raises(ToolError):
            await act()

    first = await play(first_program)
    (position, entry) = first.journal[0]
    told = codec.decode(entry.error or b"")
    for name in ("Popen", "SystemExit", "KeyboardInterrupt"):
        forged = msgspec.structs.replace(entry, error=codec.encode({**told, "type": name}))
        assert (await play(program, journal=[(position, forged)])).result() == name


class Request:
    __module__ = "httpx"

    def __init__(self, method: str, url: str) -> None:
        self.method, self.url, self.headers = method, url, {"authorization": "secret"}


class Response:
    __module__ = "httpx"

    def __init__(self, status_code: int, *, headers: dict[str, str], content: bytes, request: Any) -> None:
        self.status_code, self.headers, self.content, self.request = status_code, headers, content, request


class HTTPStatusError(Exception):
    """As HTTP clients have it."""

    def __init__(self, message: str, *, request: Any, response: Any) -> None:
        self.request, self.response = request, response
        super().__init__(message)


async def test_an_http_status_error_comes_back_with_its_response(monkeypatch: pytest.MonkeyPatch) -> None:
    client = ModuleType("httpx")
    client.Request, client.Response = Request, Response  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "httpx", client)

    def fail() -> BaseException:
        request = Request("GET", "https://example.org/x")
        headers = {"retry-after": "3", "set-cookie": "secret"}
        return HTTPStatusError(
            "busy", request=request, response=Response(503, headers=headers, content=b"later", request=request)
        )

    for found in await raised(fail, HTTPStatusError):
        assert type(found) is HTTPStatusError
        assert (found.response.status_code, found.response.content) == (503, b"later")
        assert found.response.headers == {"retry-after": "3"}
        assert found.request.url == "https://example.org/x"


class Copyable(Exception):
    """As some drivers' errors are: an attribute that is no data, and a way to be copied without it."""

    def __init__(self, message: str, *, connection: object) -> None:
        super().__init__(message)
        self.connection, self.code = connection, 7

    def __reduce__(self) -> tuple[Any, ...]:
        return (type(self), self.args, {"connection": None, "code": self.code})


def test_an_exception_that_can_be_copied_is_kept_as_its_copy() -> None:
    error = Copyable("refused", connection=object())
    again = error_parts.made_of(Copyable, error_parts.parts_of(error))
    assert type(again) is Copyable and (again.code, again.connection, str(again)) == (7, None, "refused")

"""Every kind of unit keeps the same promises, the built-in ones and one that anybody writes in thirty lines."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime
from importlib import metadata
from pathlib import Path
from typing import Any

import pytest

from perdure._ground.secrets.crypto import Key, KeyRing
from perdure._runtime import kinds
from perdure._runtime.conformance import check_unit_type
from perdure._runtime.context.context import Context
from perdure._runtime.context.unit_types import Place, UnitType
from perdure._runtime.kinds import HttpSession, KeptWorkspace, QueuedRequest, RateLimits, RequestQueue
from perdure._runtime.kinds import registry as unit_types
from perdure._runtime.secrets.credentials import Token
from perdure._runtime.workspace.cuts import Workspace
from perdure.errors import InvalidInput


# A third party's kind, whole: a counter in a file.
class Counter:
    def __init__(self, path: Path, number: int) -> None:
        self.path, self.number = path, number
        path.write_text(str(number))


class CounterType(UnitType):
    kind = "counter"

    async def capture(self, live: Counter, place: Place) -> Any:
        return {"path": str(live.path), "number": live.number}

    async def restore(self, recipe: Any, place: Place) -> Counter:
        before = Path(recipe["path"]).read_text()
        counter = Counter(Path(recipe["path"]), recipe["number"])
        counter.before = before  # type: ignore[attr-defined]
        return counter

    async def rollback(self, live: Counter, place: Place) -> None:
        live.path.write_text(live.before)  # type: ignore[attr-defined]


@pytest.mark.req("R88")
async def test_a_third_partys_kind_of_thirty_lines_passes_the_kit(tmp_path: Path) -> None:
    await check_unit_type(
        CounterType(),
        make=lambda: Counter(tmp_path / "count", 7),
        same=lambda a, b: a.number == b.number,
        folder=tmp_path,
    )


class Leaky(CounterType):
    kind = "leaky"

    async def rollback(self, live: Counter, place: Place) -> None:
        live.path.with_name("left behind").write_text("x")


class Nosy(CounterType):
    kind = "nosy"

    async def validate(self, recipe: Any, place: Place) -> Any:
        place.context.env["TOUCHED"] = "1"
        return await super().validate(recipe, place)


class Forgetful(CounterType):
    kind = "forgetful"

    async def restore(self, recipe: Any, place: Place) -> Counter:
        return await super().restore({**recipe, "number": 0}, place)


@pytest.mark.parametrize(
    "broken, promise", [(Leaky, "left something"), (Nosy, "touched something"), (Forgetful, "not what was captured")]
)
async def test_a_kind_that_breaks_a_promise_does_not_pass(broken: type[UnitType], promise: str, tmp_path: Path) -> None:
    with pytest.raises(AssertionError, match=promise):
        await check_unit_type(
            broken(),
            make=lambda: Counter(tmp_path / "count", 7),
            same=lambda a, b: a.number == b.number,
            folder=tmp_path,
        )


def _file(folder: Path) -> Any:
    (folder / "data").write_bytes(b"0123456789")
    file = (folder / "data").open("rb")
    file.seek(4)
    return file


def _session() -> HttpSession:
    token = Token("planted-token-value", datetime(2031, 1, 1, tzinfo=UTC))
    return HttpSession("https://x.example", {"Accept": "text/html"}, token=token)


def _queue(folder: Path) -> RequestQueue:
    queue = RequestQueue(folder / "queue")
    queue.add(QueuedRequest("one", "POST", "https://x.example", body=b"\x00"))
    return queue


def _limits() -> RateLimits:
    limits = RateLimits()
    limits.allow("llm", limit=10, seconds=60)
    limits.take("llm")
    return limits


def _workspace(folder: Path) -> KeptWorkspace:
    (folder / "work").mkdir(exist_ok=True)
    (folder / "work/a").write_text("a")
    return KeptWorkspace(Workspace(folder / "work", folder / "home", ring=KeyRing([Key("conformance", bytes(32))])))


BUILT_IN: dict[str, tuple[Callable[[Path, Context], Any], Callable[[Any, Any], bool]]] = {
    "blob": (lambda folder, context: b"opaque", lambda a, b: a == b),
    "environment": (lambda folder, context: context, lambda a, b: True),
    "directory": (lambda folder, context: context, lambda a, b: True),
    "variables": (lambda folder, context: context, lambda a, b: True),
    "file_position": (lambda folder, context: _file(folder), lambda a, b: b.tell() == 4),
    "http": (lambda folder, context: _session(), lambda a, b: a.token == b.token and a.headers == b.headers),
    "queue": (lambda folder, context: _queue(folder), lambda a, b: a.waiting == b.waiting),
    "rate_limits": (lambda folder, context: _limits(), lambda a, b: a.left("llm") == b.left("llm") == 9),
    "workspace": (lambda folder, context: _workspace(folder), lambda a, b: a.workspace.root == b.workspace.root),
}


@pytest.mark.req("R88")
@pytest.mark.parametrize("kind", BUILT_IN)
async def test_a_built_in_kind_passes_the_kit(kind: str, tmp_path: Path) -> None:
    make, same = BUILT_IN[kind]
    unit_type = unit_types.type_of(kind)
    assert unit_type is not None
    await check_unit_type(unit_type, make=lambda context: make(tmp_path, context), same=same, folder=tmp_path)


def test_the_kit_is_run_over_every_built_in_kind() -> None:
    by_processes = {"kept"}  # needs a keeper: tests/runtime/test_save.py
    assert {unit_type.kind for unit_type in kinds.BUILT_IN} == set(BUILT_IN) | by_processes


def test_a_kind_of_an_installed_package_is_found_by_its_name_and_no_other_is(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[str] = []

    def points(*, group: str, name: str) -> list[Any]:
        asked.append(name)
        found = metadata.EntryPoint("counter", f"{__name__}:CounterType", group)
        monkeypatch.setattr(metadata.EntryPoint, "load", lambda self: CounterType)
        return [found] if name == "counter" else []

    monkeypatch.setattr(unit_types, "entry_points", points)
    assert isinstance(unit_types.type_of("counter"), CounterType)
    assert unit_types.type_of("os:system") is None
    unit_types._types.pop("counter")


def test_two_kinds_of_one_name_are_refused() -> None:
    class Other(UnitType):
        kind = "blob"

    unit_types.type_of("blob")
    with pytest.raises(InvalidInput, match="two unit types"):
        unit_types.register(Other())
    with pytest.raises(InvalidInput, match="no kind"):
        unit_types.register(UnitType())

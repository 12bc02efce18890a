"""Units over HTTP: output by offset without a byte lost or doubled, and typing by the one who has the right."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx2
import pytest

from perdure import Perdure
from perdure._runtime import hide_mark_numbers
from perdure.server import Caller, make_app
from tests.runtime.kit import Place
from tests.support.asking import ALL
from tests.support.live_server import listening

UNIT = "/v1/tasks/work/units/main"
BYTES = {"Content-Type": "application/octet-stream"}
CAT = ["bash", "--norc", "-c", "echo ready; exec cat"]


class ByName:
    """Callers who say who they are."""

    async def identify(self, request: Any, route: Any) -> Caller:
        name = request.headers.get("x-name", "ada")
        scopes = frozenset({"tasks:read"}) if name == "eve" else ALL | {"units:type"}
        return Caller("default", scopes, name, "key", f"key-of-{name}")


@pytest.fixture
def place(tmp_path: Path) -> Iterator[Place]:
    place = Place(tmp_path / "store" / "perdure.db")
    try:
        yield place
    finally:
        place.clear()


@pytest.fixture
def http(place: Place) -> Iterator[httpx2.Client]:
    server = make_app(place.url)
    server._guard, server._identity = None, ByName()
    with listening(server) as address, httpx2.Client(base_url=address, timeout=120, trust_env=False) as client:
        yield client


async def begin(place: Place, argv: list[str] = CAT, **named: Any) -> None:
    async with Perdure(place.url) as app:
        await app.tasks.open("work", state={})
        await (await app.runtime("work")).shell("main", argv, **named)


def type_in(http: httpx2.Client, id: str, data: bytes, name: str = "ada") -> httpx2.Response:
    headers = {**BYTES, "Perdure-Input-Id": id, "X-Name": name}
    return http.post(f"{UNIT}/input", content=data, headers=headers)


def read_until(http: httpx2.Client, text: bytes, at: int = 0) -> tuple[bytes, int]:
    """Follow the output from an offset until it has this; all of it, and the offset after it."""
    seen = b""
    while text not in seen:
        with http.stream("GET", f"{UNIT}/output?from={at + len(seen)}&follow=1") as answer:
            assert answer.status_code == 200, answer.read()
            assert int(answer.headers["perdure-offset"]) == at + len(seen)
            for piece in answer.iter_raw():
                seen += piece
                if text in seen:
                    break
    return seen, at + len(seen)


async def test_units_are_listed_and_shown(place, http):
    assert http.get("/v1/units").json()["items"] == []
    await begin(place)
    read_until(http, b"ready")
    (unit,) = http.get("/v1/units?kind=shell&alive=true").json()["items"]
    assert (unit["task"], unit["name"], unit["argv"], unit["writer"]) == ("work", "main", CAT, None)
    assert http.get("/v1/tasks/work/units").json()["items"][0]["uid"] == unit["uid"]
    assert http.get(UNIT).json()["uid"] == unit["uid"]
    assert http.get("/v1/tasks/work/units/none").status_code == 404
    (hidden,) = http.get("/v1/units", headers={"X-Name": "eve"}).json()["items"]
    assert not {"argv", "cwd", "running", "why"} & hidden.keys()
    for path in (UNIT, f"{UNIT}/output", f"{UNIT}/commands"):
        assert http.get(path, headers={"X-Name": "eve"}).status_code == 403
    assert type_in(http, "i", b"no", "eve").status_code == 403


async def test_output_goes_on_at_the_byte_where_it_was_cut(place, http):
    await begin(place, ["bash", "--norc", "-c", "seq -w 1 20000; exec cat"])
    seen, at = b"", 0
    while not seen.endswith(b"20000\r\n"):
        with http.stream("GET", f"{UNIT}/output?from={at}&follow=1") as answer:  # the line breaks after one piece
            piece = next(answer.iter_raw(1000))
        seen, at = seen + piece, at + len(piece)
    assert seen.split() == [f"{number:05}".encode() for number in range(1, 20001)]
    beyond = http.get(f"{UNIT}/output?from={at + 10}")
    assert (beyond.status_code, beyond.json()["values"]["end"]) == (416, at)
    assert http.get(f"{UNIT}/output?from={at}").status_code == 204


async def test_one_types_at_a_time_and_each_input_once(place, http):
    await begin(place)
    _, at = read_until(http, b"ready\r\n")
    early = type_in(http, "i1", b"early\n")
    assert (early.status_code, early.json()["code"]) == (409, "unit_held")
    assert http.put(f"{UNIT}/writer", json={}).json()["writer"] == "ada"
    shown = http.get(UNIT, headers={"X-Name": "bob"}).json()["writer"]
    assert (shown["name"], shown["is_person"], shown["you"]) == ("ada", True, False)
    assert http.get(UNIT).json()["writer"]["you"] is True
    for _ in range(3):
        assert type_in(http, "i2", b"once\n").status_code == 204
    refused = http.put(f"{UNIT}/writer", json={}, headers={"X-Name": "bob"})
    assert (refused.status_code, refused.json()["values"]["by"]) == (409, "ada")
    assert type_in(http, "i3", b"bob\n", "bob").json()["values"]["by"] == "ada"
    assert http.put(f"{UNIT}/writer", json={"take": True}, headers={"X-Name": "bob"}).status_code == 200
    assert type_in(http, "i4", b"ada\n").status_code == 409
    assert type_in(http, "i5", b"end\n", "bob").status_code == 204
    seen, _ = read_until(http, b"end\r\nend\r\n", at)
    assert seen == b"once\r\nonce\r\nend\r\nend\r\n"
    assert http.delete(f"{UNIT}/writer", headers={"X-Name": "bob"}).status_code == 204
    assert http.get(UNIT).json()["writer"] is None


async def test_an_input_needs_an_id_and_has_a_size(place, http):
    await begin(place)
    http.put(f"{UNIT}/writer", json={})
    assert http.post(f"{UNIT}/input", content=b"x", headers=BYTES).json()["code"] == "input_id_required"
    assert type_in(http, "bad id!", b"x").status_code == 422
    assert type_in(http, "i1", b"x" * (64 * 1024 + 1)).status_code == 413
    assert http.post(f"{UNIT}/input", content=b"x", headers={"Perdure-Input-Id": "i"}).status_code == 415


async def test_a_secret_is_typed_only_when_it_is_asked_for_and_kept_nowhere(place, http, tmp_path, caplog):
    caplog.set_level("DEBUG")
    asks = "read -sp 'Password: ' word; echo; echo got ${#word}; exec cat"
    await begin(place, ["bash", "--norc", "-c", f"echo ready; read line; {asks}"])
    http.put(f"{UNIT}/writer", json={})
    _, at = read_until(http, b"ready")
    secret = b"correct-horse-battery\n"
    refused = http.post(f"{UNIT}/answer", content=secret, headers=BYTES)
    assert (refused.status_code, refused.json()["code"]) == (409, "not_asked")
    type_in(http, "i1", b"\n")
    read_until(http, b"Password: ", at)
    while http.get(UNIT).json()["waiting"] != "secret":
        pass
    assert http.post(f"{UNIT}/answer", content=secret, headers=BYTES).status_code == 204
    seen, _ = read_until(http, b"got 21")
    assert b"horse" not in seen and "horse" not in caplog.text and "horse" not in refused.text
    for folder, _, files in os.walk(tmp_path):
        for name in files:
            assert b"correct-horse" not in (Path(folder) / name).read_bytes(), name


async def test_a_unit_is_resized_signalled_and_ended(place, http):
    await begin(
        place, ["bash", "--norc", "-c", "trap 'echo INT; stty size' INT; echo ready; while :; do read -t 1 _; done"]
    )
    http.put(f"{UNIT}/writer", json={})
    _, at = read_until(http, b"ready")
    assert http.put(f"{UNIT}/size", json={"rows": 33, "columns": 77}).status_code == 204
    assert http.post(f"{UNIT}/signal", json={"signal": "INT"}).status_code == 204
    read_until(http, b"33 77", at)
    assert http.post(f"{UNIT}/signal", json={"signal": "DANCE"}).status_code == 422
    assert http.delete(UNIT).status_code == 202
    end = http.get(UNIT).json()["end"]
    over = http.get(f"{UNIT}/output?from={end}&follow=1")
    assert (over.status_code, "perdure-ended" in over.headers) == (204, True)
    assert http.put(f"{UNIT}/writer", json={}).status_code == 410


async def test_the_commands_of_a_shell_are_listed_and_its_marks_keep_their_numbers(place, http):
    async with Perdure(place.url) as app:
        await app.tasks.open("work", state={})
        shell = await (await app.runtime("work")).shell("main", env={"PS1": "$ ", "PATH": os.environ["PATH"]})
        await shell.run("echo one")
        await shell.run("false")
        raw = (await (await app.units.get("work", "main")).output(0)).data
    numbers = set(re.findall(rb"133;[^\x07]*;p=(\w+)", raw))
    found = http.get(f"{UNIT}/commands").json()["items"]
    assert [(one["text"], one["code"]) for one in found] == [("echo one", 0), ("false", 1)]
    whole = http.get(f"{UNIT}/output").content
    assert numbers and b"\x1b]133;" in whole and not any(number in whole for number in numbers)
    assert len(whole) == len(raw)
    for start in range(0, len(whole), 7):  # wherever it is cut
        assert http.get(f"{UNIT}/output?from={start}").content == whole[start:]


def test_the_number_of_a_mark_is_hidden_however_output_is_cut():
    whole = b"a\x1b]133;C;id=77;p=123456\x07b;p=123456\x1b]133;A;k=1;p=123456\x07c"
    hidden = hide_mark_numbers(b"", whole)
    assert hidden == b"a\x1b]133;C;id=00;p=000000\x07b;p=123456\x1b]133;A;k=1;p=000000\x07c"
    for cut in range(len(whole)):
        assert hide_mark_numbers(b"", whole[:cut]) + hide_mark_numbers(whole[:cut], whole[cut:]) == hidden

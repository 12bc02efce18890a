"""With a key, the keeper's records are sealed; without one, no secret of an answer's head is in clear."""

from __future__ import annotations

import json
import os
import signal
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest

from perdure import Secret
from perdure._ground.secrets.crypto import generate
from perdure._runtime.keeper_client import client
from perdure.keeper.core import units as keeper_units
from tests.runtime.kit import Place, is_alive, until
from tests.runtime.test_requests import Target

pytestmark = pytest.mark.req("R142")
PLAIN = "a-plain-value-of-the-environment"
TYPED = "a-plain-value-that-was-typed"
COOKIE = "hunter22-of-the-server"
LASTS = "import time; time.sleep(1000)"


@pytest.fixture
def key(monkeypatch: pytest.MonkeyPatch) -> str:
    key = generate("first")
    monkeypatch.setenv("PERDURE_KEY", key)
    return key


@pytest.fixture
def target() -> Iterator[Target]:
    target = Target(headers={"Set-Cookie": f"session={COOKIE}", "X-Region": PLAIN})
    target.go.set()
    yield target
    target.server.shutdown()
    target.server.server_close()


def found_on_disk(place: Place, *texts: str) -> list[tuple[str, str]]:
    """Which of these texts stand in which files of the keeper's folder."""
    return _found((place.home,), texts)


def found_in(place: Place, *texts: str) -> list[tuple[str, str]]:
    """The same, and of the folder in memory."""
    return _found((place.home, Path(place.socket).parent), texts)


def _found(folders: Sequence[Path], texts: Sequence[str]) -> list[tuple[str, str]]:
    files = [file for folder in folders for file in folder.rglob("*") if file.is_file()]
    assert any(file.name == "unit.json" for file in files)
    return [(file.name, text) for file in files for text in texts if text.encode() in file.read_bytes()]


def gone(place: Place) -> None:
    """As after a restart of the machine: keeper, anchor and what the anchor had in memory are gone."""
    place.kill_anchor()
    client.client_for(place.home).close()


async def test_with_a_key_nothing_of_an_environment_or_a_recipe_is_in_clear(place: Place, key: str) -> None:
    env = {"HOME": "/", "REGION": PLAIN}
    argv = [sys.executable, "-c", LASTS, "--region", PLAIN]
    async with place.runtime() as rt:
        web = await rt.service("web", argv, env=env)
        shell = await rt.shell("main", env=env)
        await shell.run(f"export MINE={TYPED}")
        assert (await shell.run("echo $MINE $REGION")).output.strip() == f"{TYPED} {PLAIN}"
        files = {file for file in place.home.rglob("*") if file.is_file()}
        assert {file.name for file in files} >= {"unit.json", "state", "history"}
        assert found_on_disk(place, PLAIN, TYPED, key.partition(":")[2]) == []
        # The next keeper has the key from the anchor.
        place.kill_keeper()
        assert (await rt.service("web", argv, env=env)).pid == web.pid
        assert (await shell.run("echo $MINE")).output.strip() == TYPED
        assert place.ask("status")["unreadable"] == []


async def test_sealed_units_are_rebuilt_by_whoever_has_the_key(place: Place, key: str) -> None:
    env = {"HOME": "/", "REGION": PLAIN}
    async with place.runtime() as rt:
        shell = await rt.shell("main", env=env)
        await shell.run(f"export MINE={TYPED}")
        pid = shell.record.pid
        gone(place)
        os.kill(pid, signal.SIGKILL)
        until(lambda: not is_alive(pid))
    async with place.runtime() as rt:
        again = await rt.shell("main", env=env, rebuild="auto")
        assert again.level == "rebuilt"
        assert (await again.run("echo $MINE $REGION")).output.strip() == f"{TYPED} {PLAIN}"
        assert found_on_disk(place, TYPED, PLAIN) == []


async def test_a_record_whose_key_is_missing_waits_for_it(
    place: Place, key: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    argv = [sys.executable, "-c", LASTS]
    async with place.runtime() as rt:
        web = await rt.service("web", argv, rebuild="never")
        pid = web.pid
        gone(place)
        os.kill(pid, signal.SIGKILL)
        until(lambda: not is_alive(pid))
    client._clients.clear()
    monkeypatch.delenv("PERDURE_KEY")
    async with place.runtime("another") as rt:
        await rt.service("mine", argv)
        [said] = place.ask("status")["unreadable"]
        assert said == f"{web.uid}: it is sealed, and no key was given yet: open the store with its key"
        assert [one["name"] for one in place.ask("units")["units"]] == ["mine"]
        clear = [json.loads(file.read_text())["format"] for file in place.home.glob("units/*/unit.json")]
        assert sorted(clear) == [keeper_units.FORMAT, keeper_units.FORMAT + 1]
    monkeypatch.setenv("PERDURE_KEY", key)
    async with place.runtime() as rt:
        assert (await rt.service("web", argv, rebuild="never")).level == "lost"
        assert place.ask("status")["unreadable"] == []
        # What was in clear before is sealed from now on.
        formats = [json.loads(file.read_text())["format"] for file in place.home.glob("units/*/unit.json")]
        assert formats == [keeper_units.FORMAT + 1] * 2


async def test_a_new_key_seals_all_again(place: Place, key: str, monkeypatch: pytest.MonkeyPatch) -> None:
    async with place.runtime() as rt:
        shell = await rt.shell("main", env={"HOME": "/", "REGION": PLAIN})
        await shell.run("true")
    monkeypatch.setenv("PERDURE_KEY", f"{(new := generate('second'))},{key}")
    async with place.runtime() as rt:
        assert (await rt.shell("main")).uid == shell.uid
    gone(place)
    client._clients.clear()
    monkeypatch.setenv("PERDURE_KEY", new)
    async with place.runtime("another") as rt:
        await rt.shell("mine")
        assert [one["name"] for one in place.ask("units")["units"]] == ["main", "mine"]
        assert place.ask("status")["unreadable"] == []


async def test_a_sealed_record_of_another_unit_is_not_taken_for_this_ones(place: Place, key: str) -> None:
    argv = [sys.executable, "-c", LASTS]
    async with place.runtime() as rt:
        one, other = await rt.service("one", argv), await rt.service("other", argv)
        there = [place.home / "units" / unit.uid / "unit.json" for unit in (one, other)]
        moved = json.loads(there[1].read_text()) | {"uid": one.uid}
        place.kill_keeper()
        there[0].write_text(json.dumps(moved))
        place.kill_keeper()
        [said] = place.ask("status")["unreadable"]
        assert said.startswith(one.uid) and "does not open" in said
        assert (await rt.service("other", argv)).pid == other.pid


async def test_the_program_that_seals_is_started_again(place: Place, key: str) -> None:
    async with place.runtime() as rt:
        shell = await rt.shell("main", env={"HOME": "/"})
        for child in _children_of(place.keeper):
            os.kill(child, signal.SIGKILL)
        assert (await shell.run("echo on")).output.strip() == "on"
        assert _children_of(place.keeper)


def _children_of(pid: int) -> list[int]:
    return [int(child) for child in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]


# ── heads of answers ─────────────────────────────────────────────────────────────────────────────


async def test_without_a_key_no_cookie_of_an_answer_is_written_down(place: Place, target: Target) -> None:
    async with place.runtime() as rt:
        req = await rt.request("one", "POST", target.url)
        await req.read()
        assert (await req.head()).headers["set-cookie"] == f"session={COOKIE}"
        assert found_in(place, COOKIE) == []
        place.kill_keeper()
        head = await (await rt.request("one", "POST", target.url)).head()
        assert head.headers["set-cookie"] == f"session={COOKIE}"
        gone(place)
    async with place.runtime() as rt:
        head = await (await rt.request("one", "POST", target.url)).head()
        assert (head.headers["set-cookie"], head.headers["x-region"]) == ("[secret]", PLAIN)
        assert len(target.asked) == 1


async def test_with_a_key_the_whole_head_is_sealed_and_outlives_the_machine(
    place: Place, key: str, target: Target
) -> None:
    async with place.runtime() as rt:
        req = await rt.request("one", "POST", target.url, headers={"X-Mine": TYPED})
        await req.read()
        assert found_in(place, COOKIE, PLAIN, TYPED) == []
        gone(place)
    async with place.runtime() as rt:
        head = await (await rt.request("one", "POST", target.url, headers={"X-Mine": TYPED})).head()
        assert (head.headers["set-cookie"], head.headers["x-region"]) == (f"session={COOKIE}", PLAIN)
        assert len(target.asked) == 1
        assert found_in(place, COOKIE, PLAIN, TYPED) == []


# ── what stands in clear ─────────────────────────────────────────────────────────────────────────

CONTENTS = ("state", "service", "piped", "stderr", "stdin", "typed", "printed", "asked", "answered", "statement", "row")
SECRETS = {"DEPLOY_TOKEN": "planted-token-8f2e", "DB_PASSWORD": "planted-password-77aa"}


def content(what: str) -> str:
    return f"content-that-was-{what}"


async def test_with_a_key_only_output_and_answers_are_on_disk_in_clear(
    place: Place, key: str, target: Target, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in SECRETS.items():
        monkeypatch.setenv(name, value)
    env = {"HOME": "/", **{name: Secret("env", name).reference for name in SECRETS}}
    target.first = content("answered").encode()
    async with place.runtime() as rt:
        task = await rt._task()
        await task.checkpoint({"is": content("state")})
        prints = f"print({content('service')!r}); {LASTS}"
        says = [sys.executable, "-uc", prints, f"--password={SECRETS['DB_PASSWORD']}"]
        web = await rt.service("web", says, env=env)
        until(lambda: found_in(place, content("service")))
        shell = await rt.shell("main", env=env)
        await shell.run(f"export MINE={content('typed')}; echo {content('printed')}", key="once")
        piped = f"cat >/dev/null; echo {content('piped')}; echo {content('stderr')} >&2"
        command = await rt.command(["sh", "-c", piped], key="once", stdin=content("stdin"), env=env)
        await command.result()
        headers = {"Authorization": Secret("env", "DEPLOY_TOKEN")}
        request = await rt.request("plan", "POST", target.url, headers=headers, json={"asked": content("asked")})
        await request.read()
        books = await rt.sqlite("books", tmp_path / "books.db")
        await books.execute("CREATE TABLE kept (text)")
        await books.execute("BEGIN")
        await books.execute(f"INSERT INTO kept VALUES ('{content('row')}') /* {content('statement')} */")
        assert (web.level, found_in(place, *SECRETS.values())) == ("kept", [])
        on_disk = [file for file in place.home.parent.rglob("*") if file.is_file()]
        in_clear = {(told, file.name) for told in CONTENTS for file in on_disk if _holds(file, content(told))}
        assert in_clear == {("service", "output"), ("piped", "output"), ("stderr", "errors"), ("answered", "body")}
        assert not [file for file in on_disk for value in SECRETS.values() if _holds(file, value)]


def _holds(file: Path, text: str) -> bool:
    return text.encode() in file.read_bytes()

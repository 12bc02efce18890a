"""No secret that a filter knows stands in the keeper's folders."""

from __future__ import annotations

import os
import signal
import sys
from pathlib import Path

import pytest

from perdure import errors
from perdure._runtime.keeper_client import client
from tests.runtime.kit import Place, is_alive, until
from tests.runtime.test_requests import Target

pytestmark = pytest.mark.req("R142")
TOKEN = "hunter22-of-the-agent"
ENV = {"HOME": "/", "PS1": "$ "}
SAYS = "import sys, time; open(sys.argv[1], 'w').write(sys.argv[-1]); time.sleep(1000)"


def kept_in(place: Place) -> list[Path]:
    """Files in the keeper's folders that have the token in them."""
    folders = (place.home, Path(place.socket).parent)
    return [
        file
        for folder in folders
        for file in folder.rglob("*")
        if file.is_file() and TOKEN.encode() in file.read_bytes()
    ]


async def test_a_command_line_with_a_secret_is_run_and_not_written_down(place: Place, tmp_path: Path) -> None:
    out = tmp_path / "said"
    argv = [sys.executable, "-c", SAYS, str(out), "--token", TOKEN]
    async with place.runtime() as rt:
        web = await rt.service("web", argv, restart="on-failure")
        until(lambda: out.exists() and out.read_text() == TOKEN)
        assert kept_in(place) == []
        assert web.record.recipe["argv"][-1] == "[secret]"
        assert TOKEN not in str(place.ask("units"))
        # Another process of the agent finds it; it is started again by the keeper, and by the next one.
        place.kill_keeper()
        assert (await rt.service("web", argv, restart="on-failure")).level == "kept"
        out.unlink()
        os.kill(web.pid, signal.SIGKILL)
        until(lambda: out.exists() and out.read_text() == TOKEN, "it was not started again with its secret")
        client.client_for(place.home).close()


async def test_without_its_secrets_a_command_is_not_made_again_by_halves(place: Place, tmp_path: Path) -> None:
    argv = [sys.executable, "-c", SAYS, str(tmp_path / "said"), "--token", TOKEN]
    async with place.runtime() as rt:
        web = await rt.service("web", argv, rebuild="never")
        pid = web.pid
        place.kill_anchor()
        os.kill(pid, signal.SIGKILL)
        until(lambda: not is_alive(pid))
        client.client_for(place.home).close()
    async with place.runtime() as rt:
        shown = [*argv[:-1], "[secret]"]
        with pytest.raises(errors.InvalidInput, match="secrets in it"):
            await rt.service("web", shown, rebuild="auto")
        again = await rt.service("web", argv, rebuild="auto")
        assert again.level == "rebuilt"
        until(lambda: (tmp_path / "said").exists() and (tmp_path / "said").read_text() == TOKEN)
        assert kept_in(place) == []


@pytest.mark.parametrize(
    "headers, query",
    [({"Authorization": f"Bearer {TOKEN}"}, ""), ({"X-Api-Key": TOKEN}, ""), ({}, f"?q=1&api_key={TOKEN}")],
)
async def test_the_secrets_of_a_request_are_sent_and_not_written_down(
    place: Place, headers: dict[str, str], query: str
) -> None:
    target = Target()
    target.go.set()
    try:
        async with place.runtime() as rt:
            req = await rt.request("one", "POST", target.url + query, headers=headers, body=TOKEN.encode())
            await req.read()
            again = await rt.request("one", "POST", target.url + query, headers=headers, body=TOKEN.encode())
            path, sent, body = target.asked[0]
            assert again.uid == req.uid and len(target.asked) == 1
            assert TOKEN in path + str(sent) and body == TOKEN.encode()
            assert kept_in(place) == [] and TOKEN not in str(place.ask("units"))
    finally:
        target.server.shutdown()
        target.server.server_close()

"""Client, server and keeper are killed in the middle of a command: the next pair goes on."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.mcp import matrix
from tests.mcp.kit import Pair, call, make_key, over_http, over_stdio, parameters, serving
from tests.runtime.kit import Place, until

COMMAND = "cd /usr; X=kept; echo first; touch {here}; while [ ! -e {go} ]; do sleep 0.02; done; echo last; (exit 7)"


@pytest.mark.req("R150")
@pytest.mark.parametrize("which", ["client", "server", "keeper", "all", "twice"])
async def test_the_new_pair_has_the_whole_output_code_variable_and_folder(
    place: Place, tmp_path: Path, which: str
) -> None:
    here, go = tmp_path / "here", tmp_path / "go"
    arguments = {"command": COMMAND.format(here=here, go=go), "command_id": "work", "wait_seconds": 40}
    for _ in range(2 if which == "twice" else 1):
        pair = Pair(place, [("run_command", arguments)])
        until(here.exists)
        server = pair.server
        if which in ("keeper", "all"):
            place.kill_keeper()
        pair.kill(*([server] if which in ("server", "all", "twice") else []))
    async with over_stdio(place) as client:
        ran = await call(client, "read_output", command_id="work")
        assert (ran["status"], ran["output"]) == ("running", "first\n")
        go.touch()
        done = await call(client, "run_command", **arguments)
        assert (done["status"], done["exit_code"], done["output"]) == ("exited", 7, "first\nlast\n")
        after = await call(client, "run_command", command="echo $X in $PWD", wait_seconds=30)
        assert after["output"] == "kept in /usr\n"


async def test_over_http_too_a_new_pair_goes_on_and_a_dead_session_is_nothing_to_lose(
    place: Place, tmp_path: Path
) -> None:
    here, go = tmp_path / "here", tmp_path / "go"
    arguments = {"command": COMMAND.format(here=here, go=go), "command_id": "work", "wait_seconds": 40}
    with serving(place) as server:
        key = make_key(place, "agent", "units:type")
        pair = Pair(place, [("run_command", arguments)], f"{server.told['url']}/mcp", key)
        until(here.exists)
        server.process.kill()
        pair.kill()
    with serving(place) as server:
        told = {"Content_Type": "application/json", "Accept": "application/json, text/event-stream"}
        told |= {"Authorization": f"Bearer {key}", "Mcp_Session_Id": "0123456789abcdef"}  # of the server before
        body = b'{"jsonrpc": "2.0", "id": 1, "method": "tools/list"}'
        assert server.ask("POST", "/mcp", body, **told).status == 200
        async with over_http(server, key) as client:
            assert (await call(client, "read_output", command_id="work"))["output"] == "first\n"
            go.touch()
            done = await call(client, "run_command", **arguments)
            assert (done["status"], done["exit_code"], done["output"]) == ("exited", 7, "first\nlast\n")
            after = await call(client, "run_command", command="echo $X in $PWD", wait_seconds=30)
            assert after["output"] == "kept in /usr\n"


async def test_a_result_that_nobody_waited_for_is_there_after_all_of_them_died(place: Place, tmp_path: Path) -> None:
    done = tmp_path / "done"
    asked = {"command": f"echo result; touch {done}", "command_id": "work", "wait_seconds": 0}
    pair = Pair(place, [("run_command", asked)])
    until(done.exists)
    pair.kill(pair.server)
    place.kill_keeper()
    async with over_stdio(place) as client:
        found = await call(client, "read_output", command_id="work", wait_seconds=30)
        assert (found["status"], found["exit_code"], found["output"]) == ("exited", 0, "result\n")


async def test_a_client_that_vanishes_in_the_middle_of_a_call_leaves_nothing_held(place: Place, tmp_path: Path) -> None:
    here, go = tmp_path / "here", tmp_path / "go"
    asked = {"command": COMMAND.format(here=here, go=go), "command_id": "work", "wait_seconds": 50}
    pair = Pair(place, [("run_command", asked)])
    until(here.exists)
    pair.kill()  # its server finds that out by itself
    async with over_stdio(place) as client:
        await call(client, "save_state", state={"free": True})
        assert (await call(client, "stop_command", command_id="work"))["status"] == "exited"
        assert (await call(client, "run_command", command="echo free", wait_seconds=30))["output"] == "free\n"


async def test_two_clients_share_a_shell_one_after_the_other(place: Place) -> None:
    async with over_stdio(place) as one, over_stdio(place) as other:
        for n, client in enumerate((one, other, one)):
            ran = await call(client, "run_command", command=f"N=${{N}}{n}; echo $N", wait_seconds=30)
            assert ran["output"] == "012"[: n + 1] + "\n"
        await call(one, "save_state", state={"by": "one"})
        await call(other, "save_state", state={"by": "other"})
        assert (await call(one, "where_was_i"))["state"] == {"by": "other"}
    assert parameters(place).args == ["-m", "perdure", "mcp"]


@pytest.mark.parametrize("transport", ["stdio", "http"])
async def test_at_random_moments_too_nothing_is_lost_and_nothing_done_twice(
    place: Place, transport: matrix.Transport
) -> None:
    """A sample; `make torture ARGS="--part coding-agents"` goes on."""
    assert (await matrix.storm(place, 3, 23, transport)).total() >= 3

"""A real client at each version of the protocol, over stdio and HTTP; versions, keys and bodies that are not good."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from tests.mcp.kit import VERSIONS, call, make_key, over_http, over_stdio, parameters, refused, serving, speak
from tests.runtime.kit import Place

AGENT = ("agent", "units:type", "tasks:control")


async def drive_a_task(client: Any, version: str) -> None:
    assert client.session.protocol_version == version
    assert len((await client.list_tools()).tools) == 14
    assert (await call(client, "where_was_i"))["status"] == "new"
    await call(client, "save_state", state={"goal": "ship", "next": ["test"]})
    ran = await call(client, "run_command", command="echo hello", wait_seconds=30)
    assert (ran["status"], ran["exit_code"], ran["output"]) == ("exited", 0, "hello\n")
    found = await call(client, "where_was_i")
    assert found["state"] == {"goal": "ship", "next": ["test"]}
    assert [one["name"] for one in found["shells"]] == ["main"]


@pytest.mark.req("R150")
@pytest.mark.parametrize("version", VERSIONS)
async def test_a_client_drives_a_task_over_stdio(place: Place, version: str, monkeypatch: Any) -> None:
    async with over_stdio(place, speak(monkeypatch, version)) as client:
        await drive_a_task(client, version)


@pytest.mark.parametrize("version", VERSIONS)
async def test_a_client_drives_a_task_over_http(place: Place, version: str, monkeypatch: Any) -> None:
    with serving(place) as server:
        async with over_http(server, make_key(place, *AGENT), speak(monkeypatch, version)) as client:
            await drive_a_task(client, version)


async def test_the_same_http_client_goes_on_after_its_server_was_killed(place: Place) -> None:
    with serving(place) as server:
        key, port = make_key(place, *AGENT), str(server.port)
        async with over_http(server, key) as client:
            await call(client, "run_command", command="cd /usr; X=kept", wait_seconds=30)
            server.process.kill()
            server.process.wait()
            command = [sys.executable, "-m", "perdure", "serve", "--json", "--port", port, "--no-access-log"]
            with subprocess.Popen(
                command, env=parameters(place).env, stdout=subprocess.PIPE, text=True, cwd="/"
            ) as again:
                try:
                    assert again.stdout is not None and again.stdout.readline()
                    ran = await call(client, "run_command", command="echo $X in $PWD", wait_seconds=30)
                    assert ran["output"] == "kept in /usr\n"
                finally:
                    again.kill()


def first_answer(place: Place, *messages: dict[str, Any]) -> dict[str, Any]:
    given = "".join(json.dumps({"jsonrpc": "2.0", **message}) + "\n" for message in messages)
    done = subprocess.run(
        [sys.executable, "-m", "perdure", "mcp"],
        input=given, env=parameters(place).env, capture_output=True, text=True, check=False, timeout=120,
    )  # fmt: skip
    found: dict[str, Any] = json.loads(done.stdout.splitlines()[0])
    return found


def hello(version: str) -> dict[str, Any]:
    who = {"protocolVersion": version, "capabilities": {}, "clientInfo": {"name": "t", "version": "1"}}
    return {"id": 1, "method": "initialize", "params": who}


@pytest.mark.parametrize(
    "line, code, id",
    [
        (b"{not json", -32700, None),
        (b"[1]", -32600, None),
        (b'{"id":7,"method":"ping"}', -32600, 7),
        (b'{"jsonrpc":"2.0","id":7,"method":"ping","params":[1]}', -32600, 7),
        (b'{"jsonrpc":"2.0","id":"seven","method":5}', -32600, "seven"),
        (b'{"jsonrpc":"2.0","id":7,"method":"ping","params":{"half":"\\ud83d"}}', -32700, 7),
        (b'{"jsonrpc":"2.0","id":7,"method":"ping","params":' + b'{"a":' * 500 + b"1" + b"}" * 501, -32700, 7),
        (b'{"a":' * 100_000, -32700, None),
    ],
    ids=["no JSON", "no object", "no version", "a list", "no method", "half a character", "deep", "too deep"],
)
def test_a_line_that_is_not_a_request_is_answered_and_the_next_one_is_read(
    place: Place, line: bytes, code: int, id: object
) -> None:
    with raw_server(place) as ask:
        assert ask(json.dumps({"jsonrpc": "2.0", **hello(VERSIONS[0])}).encode())["id"] == 1
        told = ask(b"\n" + line)
        assert (told["error"]["code"], told["id"]) == (code, id)
        assert ask(b'{"jsonrpc":"2.0","method":5}\n{"jsonrpc":"2.0","id":8,"method":"ping"}')["id"] == 8


@contextmanager
def raw_server(place: Place) -> Iterator[Callable[[bytes], dict[str, Any]]]:
    """Takes lines, and gives the next message of the server."""
    command = [sys.executable, "-m", "perdure", "mcp"]
    with subprocess.Popen(
        command, env=parameters(place).env, stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as process:  # fmt: skip
        assert process.stdin is not None and process.stdout is not None
        write, read = process.stdin, process.stdout

        def ask(lines: bytes) -> dict[str, Any]:
            write.write(lines + b"\n")
            write.flush()
            found: dict[str, Any] = json.loads(read.readline())
            return found

        try:
            yield ask
        finally:
            process.kill()


@pytest.mark.parametrize("version", ["1999-01-01", "3000-01-01", "", "x" * 5000])
def test_a_version_nobody_knows_is_answered_with_one_that_is_known(place: Place, version: str) -> None:
    assert first_answer(place, hello(version))["result"]["protocolVersion"] in VERSIONS


def test_over_http_a_version_nobody_knows_is_an_error(place: Place) -> None:
    with serving(place) as server:
        key = make_key(place, *AGENT)
        body = json.dumps({"jsonrpc": "2.0", "id": 1, "method": "tools/list"}).encode()
        reply = server.ask(
            "POST", "/mcp", body, Authorization=f"Bearer {key}", Content_Type="application/json",
            Accept="application/json, text/event-stream", MCP_Protocol_Version="3000-01-01",
        )  # fmt: skip
        assert reply.status == 400
        assert b"protocolVersion" in reply.body


@pytest.mark.parametrize("body", [b"", b"{", b"[]", b"null", b'{"jsonrpc":"2.0"}', b"\xff"])
def test_over_http_a_body_that_is_no_request_is_refused(place: Place, body: bytes) -> None:
    with serving(place) as server:
        key = make_key(place, *AGENT)
        told = {"Authorization": f"Bearer {key}", "Content_Type": "application/json", "Accept": "application/json"}
        assert server.ask("POST", "/mcp", body, **told).status in (400, 406)


def test_over_http_there_is_nothing_without_a_key_or_under_a_foreign_name(place: Place) -> None:
    with serving(place) as server:
        key = make_key(place, *AGENT)
        told = {"Content_Type": "application/json", "Accept": "application/json"}
        assert server.ask("POST", "/mcp", b"{}", **told).status == 401
        assert server.ask("POST", "/mcp", b"{}", Authorization="Bearer prd_no", **told).status == 401
        told["Authorization"] = f"Bearer {key}"
        assert server.ask("POST", "/mcp", b"{}", **{**told, "Host": "evil.example"}).status in (400, 403, 421)
        ping = b'{"jsonrpc":"2.0","id":1,"method":"ping"}'
        assert server.ask("POST", "/mcp", ping, **told).status == 200
        for foreign in ({"Origin": "http://evil.example"}, {"Sec_Fetch_Site": "cross-site"}):
            assert server.ask("POST", "/mcp", ping, **told, **foreign).status == 403
        assert server.ask("GET", "/mcp", Authorization=f"Bearer {key}", Accept="text/event-stream").status == 405


async def test_over_http_a_key_does_only_what_its_scopes_say(place: Place) -> None:
    with serving(place) as server:
        async with over_http(server, make_key(place, "viewer")) as client:
            assert (await call(client, "where_was_i"))["status"] == "new"
            assert "units:type" in await refused(client, "run_command", command="touch /tmp/never")
            assert "tasks:write" in await refused(client, "save_state", state={})


async def test_nothing_is_opened_before_the_first_call(place: Place, tmp_path: Path) -> None:
    async with over_stdio(place) as client:
        await client.list_tools()
        await client.list_resources()
        assert not (tmp_path / "store").exists()
        await call(client, "save_state", state={"a": 1})
        assert (tmp_path / "store" / "perdure.db").exists()


async def test_resources_tell_of_a_task_and_of_a_commands_output(place: Place) -> None:
    async with over_stdio(place) as client:
        await call(client, "run_command", command="seq 3", command_id="count", wait_seconds=30)
        [listed] = (await client.list_resources()).resources
        assert "main" in (await client.read_resource(listed.uri)).contents[0].text
        assert "1\n2\n3\n" in (await client.read_resource("perdure://output/count")).contents[0].text
        assert len((await client.list_resource_templates()).resource_templates) == 2
        with pytest.raises(Exception, match="no resource"):
            await client.read_resource("perdure://other/x")

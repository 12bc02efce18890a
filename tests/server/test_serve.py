"""`perdure serve`, `perdure up`, `perdure link` and `perdure api-keys`, as a person starts them."""

from __future__ import annotations

import json
import os
import signal
import socket
import stat
import subprocess
import sys
from pathlib import Path

import pytest

from perdure.errors import Conflict, InvalidInput, NotAllowed
from perdure.server import load_settings
from perdure.server.process import bind, bind_unix
from tests.support.ports import free_port
from tests.support.server_processes import environment, live_server, read_reply, started

PATIENCE = 120
WORKER = Path(__file__).parents[1] / "worker" / "agent.py"


@pytest.fixture
def store(tmp_path: Path) -> str:
    """The address of a store that exists."""
    url = f"sqlite://{tmp_path}/store/p.db"
    perdure(url, "open", "task")
    return url


def perdure(url: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "perdure", *arguments]
    return subprocess.run(command, capture_output=True, text=True, env=environment(url), timeout=PATIENCE, check=False)


def test_serve_prints_the_store_the_link_and_how_to_stop(store):
    port = free_port()
    with started(store, "serve", "--port", str(port)) as server:
        assert server.stdout is not None
        first, second, third = (server.stdout.readline() for _ in range(3))
        assert first.startswith("store  ") and first.endswith("p.db\n")
        assert second.startswith(f"open   http://127.0.0.1:{port}/link#")
        assert third == "stop   Ctrl-C\n"
        server.send_signal(signal.SIGTERM)
        assert server.wait(PATIENCE) == 0
        assert server.stdout.read() == ""


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_server_ends_with_zero_when_it_is_told_to(store, number):
    with live_server(store, command="serve") as server:
        assert server.ask("GET", "/healthz").status == 200
        server.process.send_signal(number)
        assert server.process.wait(PATIENCE) == 0
    assert perdure(store, "link").returncode == 3  # it has left


def test_the_link_of_a_server_opens_a_session_once(store):
    with live_server(store, command="serve") as server:
        url, _, code = server.told["link"].partition("#")
        page = server.ask("GET", "/link")
        assert url.endswith("/link") and page.status == 200 and code.encode() not in page.body
        body = json.dumps({"code": code}).encode()
        begun = server.ask("POST", "/v1/session", body, Content_Type="application/json")
        again = server.ask("POST", "/v1/session", body, Content_Type="application/json")
        assert (begun.status, again.status) == (201, 401)
        cookie = begun.headers["set-cookie"].partition(";")[0]
        assert cookie.startswith(f"perdure-{server.port}=")
        assert server.ask("GET", "/v1/session", Cookie=cookie).json["may_change_namespace"] is True


def test_link_makes_a_new_link_to_the_running_server(store):
    with live_server(store, command="serve") as server:
        made = perdure(store, "link", "--scope", "viewer", "--json")
        assert made.returncode == 0
        told = json.loads(made.stdout)
        assert told["url"] == server.told["url"]
        body = json.dumps({"code": told["link"].partition("#")[2]}).encode()
        begun = server.ask("POST", "/v1/session", body, Content_Type="application/json")
        assert begun.json["scopes"] == ["tasks:read", "data:read"] and begun.json["may_change_namespace"] is False


def test_without_a_server_there_is_no_link(store):
    none = perdure(store, "link")
    assert none.returncode == 3 and "perdure serve" in none.stderr


def test_a_link_does_not_lead_to_a_server_that_was_killed(store):
    with live_server(store, command="serve") as server:
        server.process.kill()
        server.process.wait(PATIENCE)
    assert perdure(store, "link").returncode == 3


def test_api_keys_are_made_listed_rotated_and_revoked(store):
    made = json.loads(perdure(store, "api-keys", "make", "ci", "--scope", "viewer", "--for", "30d", "--json").stdout)
    assert made["key"].startswith(f"prd_{made['id']}_") and made["scopes"] == ["tasks:read", "data:read"]
    with live_server(store, command="serve") as server:
        assert server.ask("GET", "/v1", Authorization=f"Bearer {made['key']}").status == 200
        rotated = json.loads(perdure(store, "api-keys", "rotate", made["id"], "--overlap", "0s", "--json").stdout)
        assert server.ask("GET", "/v1", Authorization=f"Bearer {made['key']}").status == 401
        assert server.ask("GET", "/v1", Authorization=f"Bearer {rotated['key']}").status == 200
        assert perdure(store, "api-keys", "revoke", made["id"]).returncode == 0
        assert server.ask("GET", "/v1", Authorization=f"Bearer {rotated['key']}").status == 401
    listed = perdure(store, "api-keys", "list")
    assert "revoked" in listed.stdout and rotated["key"][-43:] not in listed.stdout
    assert perdure(store, "api-keys", "revoke", "nothing").returncode == 3
    assert perdure(store, "api-keys", "make", "x", "--scope", "vewer").returncode == 2


def test_serve_refuses_a_port_in_use_and_up_takes_the_next(store):
    with bind("127.0.0.1", 0).socket as taken:
        port = taken.getsockname()[1]
        refused = perdure(store, "serve", "--port", str(port))
        assert refused.returncode == 4 and f"port {port}" in refused.stderr
        with started(store, "up", "--json", "--port", str(port)) as server:
            assert server.stdout is not None
            told = json.loads(server.stdout.readline())
            assert port < int(told["url"].rpartition(":")[2]) <= port + 20


def test_a_small_answer_does_not_wait_for_an_acknowledgement():
    with bind("127.0.0.1", 0).socket as door:
        assert door.proto == socket.IPPROTO_TCP  # asyncio sets TCP_NODELAY only where the socket says so


def test_serve_without_a_store_exits_with_seven(tmp_path):
    missing = perdure(f"sqlite://{tmp_path}/none/p.db", "serve", "--port", "0")
    assert missing.returncode == 7 and not (tmp_path / "none").exists()


@pytest.mark.threat("T23")
@pytest.mark.parametrize("host", ["0.0.0.0", "::"])
def test_serve_beyond_this_machine_needs_a_key_and_tls(store, host):
    without_key = perdure(store, "serve", "--port", "0", "--host", host)
    assert without_key.returncode == 5 and "API key" in without_key.stderr
    perdure(store, "api-keys", "make", "ci", "--scope", "viewer")
    in_the_clear = perdure(store, "serve", "--port", "0", "--host", host)
    assert in_the_clear.returncode == 5 and "--origin" in in_the_clear.stderr
    plain = perdure(store, "serve", "--port", "0", "--host", host, "--origin", "http://perdure.example")
    assert plain.returncode == 5


def test_serve_beyond_this_machine_is_reached_by_its_origin(store):
    perdure(store, "api-keys", "make", "ci", "--scope", "viewer")
    options = ["--host", "0.0.0.0", "--origin", "https://perdure.example"]
    with started(store, "serve", "--json", "--port", "0", *options) as process:
        assert process.stdout is not None
        assert json.loads(process.stdout.readline())["link"].startswith("https://perdure.example/link#")


def test_options_that_will_not_do_are_refused(store):
    for options in (
        ["--origin", "nonsense"],
        ["--trust-proxy", "nonsense"],
        ["--port", "70000"],
        ["--host", "300.1.1.1"],
    ):
        assert perdure(store, "serve", "--port", "0", *options).returncode == 2


@pytest.mark.threat("T23")
def test_a_unix_socket_is_for_its_user_alone(store, tmp_path):
    path = tmp_path / "run" / "perdure.sock"
    with live_server(store, "--socket", str(path), command="serve") as server:
        assert stat.S_IMODE(path.stat().st_mode) == 0o600
        assert stat.S_IMODE(path.parent.stat().st_mode) == 0o700
        with socket.socket(socket.AF_UNIX) as connection:
            connection.connect(str(path))
            connection.sendall(b"GET /v1/session HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n")
            me = read_reply(connection)
        assert me.status == 200 and me.json["how"] == "socket" and "keys:admin" in me.json["scopes"]
        server.process.terminate()
        assert server.process.wait(PATIENCE) == 0
    assert not path.exists()


def test_a_unix_socket_in_a_folder_of_others_is_refused(tmp_path):
    folder = tmp_path / "open"
    folder.mkdir()
    folder.chmod(0o755)
    with pytest.raises(NotAllowed):
        bind_unix(str(folder / "s"))


def test_the_unix_socket_of_a_dead_server_is_replaced_and_that_of_a_live_one_is_not(tmp_path):
    tmp_path.chmod(0o700)
    path = str(tmp_path / "s")
    with bind_unix(path), pytest.raises(Conflict):
        bind_unix(path)
    with bind_unix(path):
        assert os.path.exists(path)
    (tmp_path / "file").touch()
    with pytest.raises(InvalidInput):
        bind_unix(str(tmp_path / "file"))
    assert (tmp_path / "file").exists()


def test_up_serves_beside_its_workers_and_restarts_a_server_that_was_killed(store):
    with started(store, "up", f"{WORKER}:app", "--json", "--port", "0", "--no-access-log") as up:
        assert up.stdout is not None
        told: dict[str, object] = {}
        while "url" not in told:
            told = json.loads(up.stdout.readline())
        port, pid = int(str(told["url"]).rpartition(":")[2]), int(str(told["pid"]))
        assert pid != up.pid
        os.kill(pid, signal.SIGKILL)
        with socket.create_connection(("127.0.0.1", port), PATIENCE) as connection:  # never refused: it waits
            connection.sendall(f"GET /healthz HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\nConnection: close\r\n\r\n".encode())
            assert read_reply(connection).status == 200
        up.send_signal(signal.SIGTERM)
        assert up.wait(PATIENCE) == 0


def test_up_ends_when_its_server_may_not_serve_like_that(store):
    refused = perdure(store, "up", f"{WORKER}:app", "--port", "0", "--host", "0.0.0.0")
    assert refused.returncode == 5


def test_up_alone_says_how_to_add_workers(store):
    with started(store, "up", "--port", "0") as up:
        assert up.stderr is not None
        assert "perdure up MODULE:APP" in up.stderr.readline()


def test_a_new_secret_ends_the_sessions_of_before(store):
    with live_server(store, command="serve") as server:
        body = json.dumps({"code": server.told["link"].partition("#")[2]}).encode()
        begun = server.ask("POST", "/v1/session", body, Content_Type="application/json")
        secret = begun.headers["set-cookie"].partition(";")[0].partition("=")[2]
    for options, expected in [([], 200), (["--new-secret"], 401)]:
        with live_server(store, *options, command="serve") as server:
            assert server.ask("GET", "/v1", Cookie=f"perdure-{server.port}={secret}").status == expected


def test_the_log_has_one_line_a_request_and_no_secret(store):
    key = perdure(store, "api-keys", "make", "ci", "--scope", "viewer").stdout.strip()
    with live_server(store, "--access-log", command="serve") as server:
        code = server.told["link"].partition("#")[2]
        body = json.dumps({"code": code}).encode()
        begun = server.ask("POST", "/v1/session", body, Content_Type="application/json")
        server.ask("GET", f"/v1/tasks/secret-name?x={key}", Authorization=f"Bearer {key}")
        server.ask("GET", f"/nothing/{key}", Authorization=f"Bearer {key}")
        server.process.terminate()
        server.process.wait(PATIENCE)
        assert server.process.stderr is not None
        logged = server.process.stderr.read()
    lines = [json.loads(line) for line in logged.splitlines()]
    assert [line["status"] for line in lines] == [201, 400, 404]
    cookie = begun.headers["set-cookie"].partition(";")[0].partition("=")[2]
    assert not [secret for secret in (key[-43:], code, cookie, "secret-name") if secret in logged]


# ── settings ─────────────────────────────────────────────────────────────────────────────────────


def test_settings_come_from_the_file_then_the_environment_then_options(tmp_path):
    (tmp_path / "config.toml").write_text('[server]\nbody_limit = "4MB"\nrate = "9/s"\nsession = "2h"\nport = 1\n')
    environ = {"PERDURE_SERVER_PORT": "2", "PERDURE_SERVER_ORIGINS": "https://a, https://b", "OTHER": "x"}
    settings = load_settings(tmp_path, environ, port=3, host=None)
    assert (settings.body_limit, settings.rate, settings.session.total_seconds()) == (4 * 1024 * 1024, 9, 7200)
    assert (settings.port, settings.host, settings.origins) == (3, "127.0.0.1", ("https://a", "https://b"))


@pytest.mark.parametrize(
    "text, said",
    [
        ('[server]\nbody_limt = 3\n', "body_limit"),
        ('[server]\nrate = "fast"\n', "not a number"),
        ('[server]\nsession = "long"\n', "not a duration"),
        ("server = 3\n", "not a table"),
        ("[server", "cannot read"),
    ],
)  # fmt: skip
def test_a_setting_that_will_not_do_is_refused(tmp_path, text, said):
    (tmp_path / "config.toml").write_text(text)
    with pytest.raises(InvalidInput) as refused:
        load_settings(tmp_path, {})
    assert said in f"{refused.value.what} {refused.value.do}"

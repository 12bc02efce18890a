"""Agents in networks of their own: they reach the server by an address and a key, and nothing else of this machine."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pytest

from tests.support.http_server import make_key, serving
from tests.support.server_processes import live_server

EXAMPLE = Path(__file__).resolve().parents[2] / "examples" / "remote_agent.py"
PATIENCE = 120


def ip(*arguments: str) -> subprocess.CompletedProcess[bytes]:
    return subprocess.run(["ip", *arguments], capture_output=True, check=False)


def can_make_networks() -> bool:
    if os.geteuid() != 0 or shutil.which("ip") is None:
        return False
    name = f"prd-try-{os.getpid()}"
    made = ip("netns", "add", name).returncode == 0
    ip("netns", "delete", name)
    return made


@contextmanager
def network(number: int) -> Iterator[tuple[str, str]]:
    """A network namespace with one cable to this one: its name, and the address of this machine in it."""
    tail = f"{os.getpid() % 10000}{number}"
    name, here, there = f"prd-{tail}", f"prh{tail}", f"prt{tail}"
    subnet = f"10.{200 + number}.{os.getpid() % 250}"
    steps = [
        ("netns", "add", name),
        ("link", "add", here, "type", "veth", "peer", "name", there),
        ("link", "set", there, "netns", name),
        ("address", "add", f"{subnet}.1/24", "dev", here),
        ("link", "set", here, "up"),
        ("-n", name, "address", "add", f"{subnet}.2/24", "dev", there),
        ("-n", name, "link", "set", there, "up"),
    ]
    try:
        for step in steps:
            ran = ip(*step)
            if ran.returncode != 0:
                pytest.skip("network namespaces cannot be wired here")
        yield name, f"{subnet}.1"
    finally:
        ip("link", "delete", here)
        ip("netns", "delete", name)


@pytest.mark.skipif(not can_make_networks(), reason="network namespaces need root and iproute2")
async def test_an_agent_in_another_network_is_killed_and_goes_on_in_a_third(shared_url, tmp_path):
    async with serving(shared_url) as server:
        key = await make_key(server, "agent", "tasks:control")
    with ExitStack() as stack:
        up = stack.enter_context(live_server(shared_url, "--host", "0.0.0.0", "--insecure-http", command="serve"))
        first, second = stack.enter_context(network(1)), stack.enter_context(network(2))

        with agent(first, up.port, key, tmp_path) as running:
            assert running.stdout is not None
            said = [running.stdout.readline().strip() for _ in range(4)]
            assert said == ["read one", "read two", "read three", "paused"]
            running.kill()

        with agent(second, up.port, key, tmp_path) as running:
            told, _ = running.communicate(timeout=PATIENCE)
            assert told.splitlines() == ["resumed after 3", "read four", "read five", "read six", "completed"]

        record = up.ask("GET", "/v1/tasks/reader", Host=f"127.0.0.1:{up.port}", Authorization=f"Bearer {key}").json
        assert record["status"] == "completed"
        assert record["result"] == {"read": ["one", "two", "three", "four", "five", "six"]}
        assert len(record["attempts"]) >= 2


@contextmanager
def agent(place: tuple[str, str], port: int, key: str, folder: Path) -> Iterator[subprocess.Popen[str]]:
    """The example in a network of its own, with an empty environment and nothing of perdure to import."""
    name, address = place
    command = ["ip", "netns", "exec", name, sys.executable, "-I", "-S", str(EXAMPLE), f"http://{address}:{port}", key]
    with subprocess.Popen(
        command, cwd=folder, env={"PATH": os.environ["PATH"]}, stdout=subprocess.PIPE, text=True
    ) as run:
        try:
            yield run
        finally:
            run.kill()


async def test_the_example_goes_on_after_a_kill_on_one_machine_too(shared_url, tmp_path):
    async with serving(shared_url) as server:
        key = await make_key(server, "agent", "tasks:control")
    with live_server(shared_url, command="serve") as up:
        command = [sys.executable, "-I", "-S", str(EXAMPLE), f"http://{up.host}", key]
        with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as first:
            assert first.stdout is not None
            assert [first.stdout.readline().strip() for _ in range(2)] == ["read one", "read two"]
            first.kill()
        with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as second:
            assert second.stdout is not None
            for line in second.stdout:
                if line == "paused\n":
                    head = {"Authorization": f"Bearer {key}", "Content_Type": "application/json"}
                    assert up.ask("POST", "/v1/tasks/reader/resume", b"{}", **head).status == 200
        assert line == "completed\n"
        record = up.ask("GET", "/v1/tasks/reader", Authorization=f"Bearer {key}").json
        assert record["result"] == {"read": ["one", "two", "three", "four", "five", "six"]}

"""Artifacts over HTTP: what was recorded is sent, whole, as an attachment; nothing else ever is."""

from __future__ import annotations

import hashlib
import os
from pathlib import Path
from typing import Any

import httpx2
import pytest

from perdure.memory import DurableTaskState
from perdure.memory.layers import task_state
from perdure.server.nouns.task import artifacts
from tests.server.streaming import a_server
from tests.support.http_server import make_key, request, serving

pytestmark = pytest.mark.threat("T24")
PAGE = b"<script>alert(1)</script>"
NAMES = ("page.html", "image.svg", "paper.pdf", 'a";filename=evil.html', "sub/ünï code.txt", "empty")


@pytest.fixture
def base(tmp_path: Path) -> Path:
    folder = tmp_path / "base"
    folder.mkdir()
    return folder


def sha(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


async def record(server: Any, base: Path, files: dict[str, bytes], id: str = "one") -> Any:
    app = server.app_of("default")
    task = await app.tasks.create(id, state={})
    await record_more(server, base, files, id)
    return task


async def record_more(server: Any, base: Path, files: dict[str, bytes], id: str = "one") -> None:
    async with server.app_of("default").memory(id, [DurableTaskState(base_dir=base)]) as memory:
        for path, data in files.items():
            await memory.layer("task_state").write_artifact(path, data)


async def test_every_artifact_is_listed_and_comes_as_an_attachment_without_a_type(shared_url, base):
    files = {name: PAGE + name.encode() if name != "empty" else b"" for name in NAMES}
    async with serving(shared_url) as server:
        task = await record(server, base, files)
        async with task.attempt():
            await task.checkpoint({"n": 1})
        await record_more(server, base, {"late": b"late"})
        viewer, reader = await make_key(server, "viewer"), await make_key(server, "tasks:read")
        listed = (await request(server, "GET", "/v1/tasks/one/artifacts", key=viewer)).json["items"]
        assert [item["path"] for item in listed] == [*files, "late"]
        assert [item["sha256"] for item in listed] == [sha(data) for data in [*files.values(), b"late"]]
        assert [item["size"] for item in listed] == [len(data) for data in [*files.values(), b"late"]]
        assert (listed[0]["checkpoint"], listed[-1]["checkpoint"]) == (None, 1)
        assert all(item["at"] for item in listed)
        hidden = (await request(server, "GET", "/v1/tasks/one/artifacts", key=reader)).json["items"]
        assert {frozenset(item) for item in hidden} == {frozenset({"sha256", "size", "at", "checkpoint"})}
        for data in files.values():
            path = f"/v1/tasks/~{task.uid}/artifacts/{sha(data)}"
            reply = await request(server, "GET", path, key=viewer)
            assert (reply.status, reply.body) == (200, data)
            assert reply.headers["content-type"] == "application/octet-stream"
            assert reply.headers["content-disposition"].startswith("attachment; filename*=UTF-8''")
            assert not set(reply.headers["content-disposition"].partition("''")[2]) & set('"; /<>')
            assert reply.headers["x-content-type-options"] == "nosniff"
            assert "sandbox" in reply.headers["content-security-policy"]
            assert reply.headers["content-length"] == str(len(data))
            head = await request(server, "HEAD", path, key=viewer)
            assert (head.status, head.body) == (200, b"")
            assert (await request(server, "GET", path, key=reader)).status == 403


RANGES = {
    "bytes=0-2": (206, b"012", "bytes 0-2/10"),
    "bytes=7-": (206, b"789", "bytes 7-9/10"),
    "bytes=-3": (206, b"789", "bytes 7-9/10"),
    "bytes=8-99": (206, b"89", "bytes 8-9/10"),
    "bytes=10-": (416, None, "bytes */10"),
    "bytes=5-2": (416, None, "bytes */10"),
    "bytes=-0": (416, None, "bytes */10"),
    "bytes=0-1,4-5": (200, b"0123456789", None),
    "lines=0-1": (200, b"0123456789", None),
    "bytes=-": (200, b"0123456789", None),
    "bytes=" + "9" * 40 + "-": (200, b"0123456789", None),
}


async def test_one_range_is_served(quick_url, base):
    async with serving(quick_url) as server:
        await record(server, base, {"digits": b"0123456789"})
        key, path = await make_key(server, "viewer"), f"/v1/tasks/one/artifacts/{sha(b'0123456789')}"
        for asked, (status, body, told) in RANGES.items():
            reply = await request(server, "GET", path, key=key, headers={"range": asked})
            assert (reply.status, reply.headers.get("content-range")) == (status, told), asked
            assert body is None or reply.body == body, asked
        for tag, status in ((f'"{path[-64:]}"', 206), ('"other"', 200)):
            headers = {"range": "bytes=0-2", "if-range": tag}
            assert (await request(server, "GET", path, key=key, headers=headers)).status == status


async def test_what_is_not_what_was_recorded_is_not_sent(shared_url, base, tmp_path, monkeypatch):
    """The same refusal for a file that is gone, was changed, or has a link or a pipe in its place."""
    secret = tmp_path / "secret"
    secret.write_bytes(b"k3pt-bytes")
    folder = tmp_path / "folder"
    folder.mkdir()
    (folder / "file").write_bytes(b"k3pt-bytes")
    async with serving(shared_url) as server:
        await record(server, base, {"file": b"k3pt-bytes", "sub/file": b"below"})
        key, file = await make_key(server, "viewer"), base / "file"
        path, below = (f"/v1/tasks/one/artifacts/{sha(data)}" for data in (b"k3pt-bytes", b"below"))

        async def told(path: str = path) -> tuple[int, str]:
            reply = await request(server, "GET", path, key=key)
            assert b"k3pt-bytes" not in reply.body and str(tmp_path).encode() not in reply.body
            return reply.status, reply.code

        file.write_bytes(b"other")
        assert await told() == (410, "changed")
        file.unlink()
        assert await told() == (410, "changed")
        for put in (
            lambda: file.symlink_to(secret),  # with the very bytes that were recorded
            lambda: os.mkfifo(file),
            lambda: file.mkdir(),
        ):
            put()
            assert await told() == (410, "changed")
            file.rmdir() if file.is_dir() else file.unlink()
        (base / "sub").rename(base / "sub-before")
        (base / "sub").symlink_to(base / "sub-before")
        assert await told(below) == (410, "changed")
        for unknown in ("0" * 64, "x", "..%2Ffile", sha(b"nothing")):
            assert await told(f"/v1/tasks/one/artifacts/{unknown}") == (404, "not_found")
        other = await make_key(server, "viewer", namespace="other")
        assert (await request(server, "GET", path, key=other)).code == "not_found"
        await (await server.app_of("default").tasks.handle("one")).complete({})
        again = await server.app_of("default").tasks.open("one", again=True)
        listed = await request(server, "GET", f"/v1/tasks/~{again.uid}/artifacts", key=key)
        assert listed.json["items"] == []  # another task with the same id has none of them


async def test_a_file_of_another_machine_says_where_it_lies(quick_url, base, monkeypatch):
    async with serving(quick_url) as server:
        here = task_state.this_process()
        with monkeypatch.context() as elsewhere:
            elsewhere.setattr(task_state, "this_process", lambda: here._replace(host="far-away"))
            await record(server, base, {"file": b"k3pt-bytes"})
        key = await make_key(server, "viewer")
        reply = await request(server, "GET", "/v1/tasks/one/artifacts/" + sha(b"k3pt-bytes"), key=key)
        assert (reply.status, reply.code, reply.json["values"]) == (409, "elsewhere", {"host": "far-away"})


async def test_a_link_that_is_swapped_while_a_file_is_sent_changes_nothing_and_a_write_cuts_the_line(
    shared_url, base, tmp_path, monkeypatch
):
    """Over a real socket, with a reader that has taken a part when the file is exchanged."""
    large = os.urandom(4096) * 16_384  # 64 MiB: more than sockets hold on the way
    (tmp_path / "secret").write_bytes(b"secret")
    with a_server(shared_url) as (address, _):
        async with serving(shared_url) as setting_up:
            await record(setting_up, base, {"file": large})
        path, file = f"{address}/v1/tasks/one/artifacts/{sha(large)}", base / "file"
        with httpx2.Client(timeout=120, trust_env=False) as client:
            with client.stream("GET", path) as answer:
                parts = answer.iter_raw()
                first = next(parts)
                file.rename(base / "old")
                file.symlink_to(tmp_path / "secret")
                assert sha(first + b"".join(parts)) == sha(large)
            file.unlink()
            (base / "old").rename(file)
            with client.stream("GET", path) as answer:
                parts = answer.iter_raw()
                next(parts)
                with file.open("r+b") as writing:
                    writing.seek(-10, os.SEEK_END)
                    writing.write(b"otherwise!")
                with pytest.raises(httpx2.RemoteProtocolError):
                    b"".join(parts)
            assert client.get(path).status_code == 410
    assert artifacts.ROUTES[1].scopes == ("data:read",)

"""Requests to addresses that somebody else chose reach the public internet and nothing else."""

from __future__ import annotations

import asyncio
import gzip
import socket
from ipaddress import IPv4Address, IPv6Address

import pytest
from hypothesis import given
from hypothesis import strategies as st

from perdure._ground.reach import Rules, Sender, is_allowed, is_own, read_address, sender
from perdure.errors import AddressRefused
from tests.support.receivers import PUBLIC, Receiver, answer

REFUSED_ADDRESSES = [
    "127.0.0.1",
    "127.255.255.254",
    "0.0.0.0",
    "::1",
    "::",
    "::ffff:127.0.0.1",
    "::ffff:7f00:1",
    "::127.0.0.1",
    "64:ff9b::7f00:1",
    "64:ff9b:1::7f00:1",
    "64:ff9b:1:7f00:0:100::",
    "2002:7f00:1::",
    "2001:0:4136:e378:8000:63bf:80ff:fffe",
    "fe80::1%lo",
    "fe80::1",
    "fd00::1",
    "fec0::1",
    "ff02::1",
    "10.0.0.1",
    "172.16.0.1",
    "172.31.255.255",
    "192.168.0.1",
    "100.64.0.1",
    "169.254.169.254",
    "169.254.170.2",
    "192.0.0.192",
    "198.18.0.1",
    "192.0.2.1",
    "203.0.113.1",
    "198.51.100.1",
    "224.0.0.1",
    "240.0.0.1",
    "255.255.255.255",
    "192.88.99.1",
    "192.31.196.1",
    "192.52.193.1",
    "192.175.48.1",
    "2001:db8::1",
    "3fff::1",
    "5f00::1",
    "100::1",
    "2620:4f:8000::1",
    "64:ff9b::a9fe:a9fe",
    "::ffff:169.254.169.254",
    "2606:4700::5efe:10.0.0.1",
    "2606:4700:0:0:200:5efe:127.0.0.1",
    "4000::1",
    "localhost",
    "1.2.3",
    "01.2.3.4",
]

REFUSED_HOSTS = [
    "127.0.0.1",
    "127.1",
    "0",
    "0.0.0.0",
    "0x7f000001",
    "0x7f.0.0.1",
    "2130706433",
    "017700000001",
    "0177.0.0.1",
    "127.0.0.01",
    "localhost",
    "localhost.",
    "LOCALHOST",
    "a.localhost",
    "[::1]",
    "[::]",
    "[::ffff:127.0.0.1]",
    "[::ffff:7f00:1]",
    "[::127.0.0.1]",
    "[64:ff9b::7f00:1]",
    "[2002:7f00:1::]",
    "[fe80::1%25lo]",
    "[fe80::1]",
    "[fd00::1]",
    "[fec0::1]",
    "[ff02::1]",
    "10.0.0.1",
    "169.254.169.254",
    "metadata.google.internal",
    "printer",
    "printer.local",
    "user@hooks.example.com",
    "user:pw@hooks.example.com",
    "good@127.0.0.1",
    "hooks.example.com:22",
    "hooks.example.com:25",
    "hooks.example.com:6379",
    "hooks.example.com:65536",
    "hooks.example.com:0",
    "hooks.example.com:-1",
    "hooks.example.com:443:443",
    "127。0。0。1",
    "１２７.0.0.1",
    "xn--pypal-4ve.com",
    "xn--.com",
    "xn--a.com",
    "xn--8g7ccp.com",
    "xn--80ak6aa92e-.com",
    "exa_mple.com",
    "hooks..example.com",
    ".example.com",
    "-a.example.com",
    "%31%32%37.0.0.1",
    "hooks.example.com%00.evil.com",
]

REFUSED_ADDRESS_TEXTS = [
    "http://hooks.example.com/",
    "http://user@good@127.0.0.1/",
    "https://good#@127.0.0.1/",
    "https://good.example.com#@127.0.0.1/",
    "https://good.example.com\\@127.0.0.1",
    "https://good.example.com\\.evil/",
    "https:///hooks.example.com/",
    "https:hooks.example.com",
    "//hooks.example.com/",
    "https://hooks.example.com/a b",
    "https://hooks.example.com/\r\nHost: evil",
    "https://hooks.example.com/\t",
    " https://hooks.example.com/",
    "https://hooks.example.com/é",
    "file:///etc/passwd",
    "gopher://hooks.example.com/",
    "ftp://hooks.example.com/",
    "unix:/run/x.sock",
    "javascript:alert(1)",
    "https://",
    "",
    "https://hooks.example.com/" + "a" * 3000,
]


@pytest.mark.parametrize("address", REFUSED_ADDRESSES)
def test_an_address_that_is_not_public_is_refused(address):
    assert not is_allowed(address)


@pytest.mark.parametrize(
    "address", [PUBLIC, "1.1.1.1", "2606:4700::1111", "64:ff9b::101:101", "::ffff:1.1.1.1", "2606:4700::5efe:1.1.1.1"]
)
def test_a_public_address_is_allowed(address):
    assert is_allowed(address)


@pytest.mark.parametrize("address", ["127.0.0.1", "::1", "10.1.2.3", "fd00::1", "192.168.1.1", "::ffff:10.0.0.1"])
def test_a_private_address_is_allowed_where_an_operator_says_so(address):
    assert is_allowed(address, is_private_allowed=True)


@pytest.mark.parametrize("address", ["169.254.169.254", "fe80::1", "0.0.0.0", "224.0.0.1", "64:ff9b::a9fe:a9fe"])
def test_a_metadata_service_is_refused_even_there(address):
    assert not is_allowed(address, is_private_allowed=True)


@given(st.ip_addresses())
def test_what_python_calls_private_is_never_allowed(address: IPv4Address | IPv6Address):
    if not address.is_global or address.is_multicast:
        is_nat64 = isinstance(address, IPv6Address) and is_allowed(IPv4Address(int(address) & 0xFFFFFFFF))
        assert not is_allowed(address) or is_nat64


@given(st.ip_addresses(v=4))
def test_an_address_inside_another_is_judged_too(inner: IPv4Address):
    for prefix in ("::ffff:", "64:ff9b::", "2606:4700::5efe:"):
        assert is_allowed(f"{prefix}{inner}") == is_allowed(inner)


@pytest.mark.threat("T11")
@pytest.mark.parametrize("host", REFUSED_HOSTS)
async def test_a_host_of_the_corpus_is_refused_without_a_connection(host):
    async with Receiver() as receiver:
        sending = receiver.sender()
        reply = await sending.post(f"https://{host}/", {}, b"{}")
        assert reply.status is None
        assert reply.trouble.startswith("refused the address")
        assert not sending.dialled and not receiver.connections


@pytest.mark.parametrize("text", REFUSED_ADDRESS_TEXTS)
def test_an_oddly_written_address_is_refused(text):
    with pytest.raises(AddressRefused):
        read_address(text)


@pytest.mark.parametrize("text", ["https://münchen.example.com/", "https://xn--mnchen-3ya.example.com./a?b=c%20d"])
def test_a_name_in_another_alphabet_is_taken_in_its_encoded_form(text):
    if text.isascii():
        assert read_address(text).host == "xn--mnchen-3ya.example.com"
    else:
        with pytest.raises(AddressRefused):
            read_address(text)


@given(st.text())
def test_whatever_is_read_is_a_plain_host(text: str):
    try:
        parts = read_address(f"https://{text}")
    except AddressRefused:
        return
    assert parts.host.isascii() and "@" not in parts.host and parts.port == 443


# ── what is connected to ─────────────────────────────────────────────────────────────────────────


async def test_an_allowed_one_reaches_the_checked_address_with_its_name():
    async with Receiver() as receiver:
        sending = receiver.sender()
        reply = await sending.post("https://hooks.example.com/in?x=1", {"webhook-id": "m1"}, b'{"a":1}')
        assert reply.status == 204
        assert sending.dialled == [PUBLIC]
        (got,) = receiver.got
        assert (got.line, got.name, got.headers["host"]) == ("POST /in?x=1 HTTP/1.1", *["hooks.example.com"] * 2)
        assert (got.body, got.headers["webhook-id"]) == (b'{"a":1}', "m1")


@pytest.mark.parametrize("other", ["127.0.0.1", "169.254.169.254", "::ffff:10.0.0.1", "fe80::1%eth0"])
async def test_a_name_with_one_private_address_is_refused(other):
    async with Receiver() as receiver:
        sending = receiver.sender(addresses={"hooks.example.com": [PUBLIC, other]})
        reply = await sending.post("https://hooks.example.com/", {}, b"")
        assert reply.trouble.startswith("refused the address") and not sending.dialled


@pytest.mark.parametrize("host", ["127.0.0.1.nip.io", "localtest.me"])
async def test_a_public_name_of_a_private_address_is_refused(host):
    async with Receiver() as receiver:
        sending = receiver.sender(addresses={host: ["127.0.0.1"]})
        assert not (await sending.post(f"https://{host}/", {}, b"")).is_good
        assert not sending.dialled
        with pytest.raises(AddressRefused):
            await sending.check(f"https://{host}/")


@pytest.mark.threat("T11")
async def test_a_name_that_changes_its_answer_is_looked_up_once_and_pinned():
    async with Receiver() as receiver:
        addresses = {"hooks.example.com": [PUBLIC]}
        sending = receiver.sender(addresses=addresses)
        inner = sending._resolve

        async def rebind(host: str, port: int) -> list[str]:
            found = list(await inner(host, port))
            addresses[host] = ["127.0.0.1"]  # from now on
            return found

        sending._resolve = rebind
        assert (await sending.post("https://hooks.example.com/", {}, b"")).status == 204
        assert sending.dialled == [PUBLIC] and sending.looked_up == ["hooks.example.com"]
        assert not (await sending.post("https://hooks.example.com/", {}, b"")).is_good
        assert sending.dialled == [PUBLIC]


async def test_an_address_of_this_machine_is_refused_though_it_is_public():
    async with Receiver() as receiver:
        sending = receiver.sender()
        sending._owns = lambda address: address == PUBLIC
        reply = await sending.post("https://hooks.example.com/", {}, b"")
        assert "this machine" in reply.trouble and not sending.dialled


def test_the_machine_knows_its_own_addresses():
    assert is_own("127.0.0.1")
    assert not is_own("192.0.2.77") and not is_own("2001:db8::77")


async def test_the_name_of_this_machine_is_refused():
    reply = await Sender().post(f"https://{socket.gethostname()}/", {}, b"")
    assert reply.status is None


@pytest.mark.parametrize("status", [301, 302, 307, 308])
async def test_a_redirect_is_not_followed(status):
    async with Receiver(answers=[answer(status, Location="http://169.254.169.254/latest/meta-data")]) as receiver:
        sending = receiver.sender()
        reply = await sending.post("https://hooks.example.com/", {}, b"")
        assert (reply.status, reply.is_good) == (status, False)
        assert sending.dialled == [PUBLIC] and receiver.connections == 1


async def test_a_certificate_for_another_name_is_refused():
    async with Receiver(names=("other.example.com",)) as receiver:
        reply = await receiver.sender().post("https://hooks.example.com/", {}, b"")
        assert "certificate" in reply.trouble and not receiver.got


async def test_a_certificate_of_an_unknown_authority_is_refused():
    async with Receiver(is_trusted=False) as receiver:
        reply = await receiver.sender().post("https://hooks.example.com/", {}, b"")
        assert "certificate" in reply.trouble and not receiver.got


async def test_proxies_of_the_environment_are_not_used(monkeypatch):
    for name in ("HTTPS_PROXY", "https_proxy", "ALL_PROXY", "HTTP_PROXY"):
        monkeypatch.setenv(name, "http://127.0.0.1:1")
    async with Receiver() as receiver:
        assert (await receiver.sender().post("https://hooks.example.com/", {}, b"")).status == 204


# ── what comes back ──────────────────────────────────────────────────────────────────────────────


async def _endless(writer: asyncio.StreamWriter) -> None:
    writer.write(b"HTTP/1.1 200 OK\r\n\r\n")
    while True:
        writer.write(b"x" * 65536)
        await writer.drain()


async def _endless_head(writer: asyncio.StreamWriter) -> None:
    writer.write(b"HTTP/1.1 200 OK\r\n")
    while True:
        writer.write(b"a: b\r\n" * 100)
        await writer.drain()


async def _endless_chunks(writer: asyncio.StreamWriter) -> None:
    writer.write(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n")
    while True:
        writer.write(b"1000\r\n" + b"x" * 4096 + b"\r\n")
        await writer.drain()


@pytest.mark.parametrize(
    "given",
    [
        answer(200, b"x" * 10_000_000),
        b"HTTP/1.1 200 OK\r\nContent-Length: 99999999999\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nContent-Length: -1\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nfffffff\r\n",
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n",
        b"HTTP/1.1 100 Continue\r\n\r\n" * 20,
        b"HTTP/1.1 200 OK\r\n" + b"x" * 100_000,
        b"SSH-2.0-OpenSSH_9.9\r\n",
        b"",
        _endless,
        _endless_head,
        _endless_chunks,
    ],
)
async def test_an_answer_that_is_too_large_or_not_http_counts_as_a_failure(given):
    async with Receiver(answers=[given]) as receiver:
        reply = await receiver.sender().post("https://hooks.example.com/", {}, b"")
        assert not reply.is_good and reply.trouble and len(reply.body) <= 64 * 1024


async def test_a_compressed_answer_is_not_unpacked():
    bomb = gzip.compress(b"\0" * 10_000_000)
    async with Receiver(answers=[answer(200, bomb, Content_Encoding="gzip")]) as receiver:
        reply = await receiver.sender().post("https://hooks.example.com/", {}, b"")
        assert reply.is_good and reply.body == bomb


async def test_a_chunked_answer_is_read():
    head = b"HTTP/1.1 103 Early\r\nLink: x\r\n\r\nHTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"
    whole = head + b"2\r\nhi\r\n0\r\n\r\n"
    async with Receiver(answers=[whole]) as receiver:
        reply = await receiver.sender().post("https://hooks.example.com/", {}, b"")
        assert (reply.status, reply.body) == (200, b"hi")


async def test_a_receiver_that_does_not_end_its_answer_is_left(monkeypatch):
    monkeypatch.setattr(sender, "IN_ALL", 0.3)

    async def hang(writer: asyncio.StreamWriter) -> None:
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nab")
        await asyncio.Event().wait()

    async with Receiver(answers=[hang]) as receiver:
        reply = await receiver.sender().post("https://hooks.example.com/", {}, b"")
        assert reply.status is None and "whole answer" in reply.trouble


async def test_a_resolver_that_hangs_is_left(monkeypatch):
    monkeypatch.setattr(sender, "TO_RESOLVE", 0.1)

    async def hang(host: str, port: int) -> list[str]:
        await asyncio.Event().wait()
        return []

    reply = await Sender(resolve=hang).post("https://hooks.example.com/", {}, b"")
    assert reply.status is None


async def test_two_at_a_time_go_to_one_host_and_eight_in_all():
    running: dict[str, int] = {}
    most: dict[str, int] = {}
    release = asyncio.Event()
    full = asyncio.Event()

    async def dial(address: str, port: int, trust: object, name: str | None) -> object:
        for key in (str(name), "all"):
            running[key] = running.get(key, 0) + 1
            most[key] = max(most.get(key, 0), running[key])
        if running["all"] == 8:
            full.set()
        await release.wait()
        for key in (str(name), "all"):
            running[key] -= 1
        raise OSError("nobody is there")

    async def resolve(host: str, port: int) -> list[str]:
        return [PUBLIC]

    sending = Sender(resolve=resolve, dial=dial)
    posts = [asyncio.create_task(sending.post(f"https://h{n % 10}.example.com/", {}, b"")) for n in range(100)]
    await full.wait()
    release.set()
    replies = await asyncio.gather(*posts)
    assert all("nobody is there" in reply.trouble for reply in replies)
    assert most.pop("all") == 8 and set(most.values()) <= {1, 2}
    assert not sending._gates and not sending._users


async def test_http_is_for_receivers_on_this_machine_only():
    rules = Rules(is_private_allowed=True)

    async def resolve(host: str, port: int) -> list[str]:
        return ["10.0.0.1"]

    reply = await Sender(rules, resolve=resolve).post("http://box.example.com/", {}, b"")
    assert "http is for receivers on this machine" in reply.trouble


async def test_a_header_cannot_carry_another_one():
    async with Receiver() as receiver:
        reply = await receiver.sender().post("https://hooks.example.com/", {"x": "a\r\nHost: evil"}, b"")
        assert reply.status is None and not receiver.got


async def test_a_body_that_is_too_large_is_not_sent():
    async with Receiver() as receiver:
        reply = await receiver.sender().post("https://hooks.example.com/", {}, b"x" * 300_000)
        assert reply.status is None and not receiver.connections

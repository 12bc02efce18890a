"""The parts of the proxy that only think: messages, proofs, the end of what was half read, the session's rules."""

from __future__ import annotations

import contextlib
import json
from base64 import b64decode

import pytest
from hypothesis import given
from hypothesis import strategies as st

from perdure.keeper.pgproxy.hold import Hold
from perdure.keeper.pgproxy.login.scram import ProofRefused, Scram
from perdure.keeper.pgproxy.protocol import resync, wire
from perdure.keeper.pgproxy.recovery.notebook import IDLE, SENT, Notebook, to_json
from perdure.keeper.pgproxy.session.blocks import Blocks
from perdure.keeper.pgproxy.session.session import Session

# ── messages ─────────────────────────────────────────────────────────────────────────────────────


@given(
    messages=st.lists(st.tuples(st.sampled_from([b"Q", b"P", b"S", b"d"]), st.binary(max_size=60)), max_size=20),
    cuts=st.lists(st.integers(1, 40)),
)
def test_messages_come_whole_out_of_any_pieces(messages: list[tuple[bytes, bytes]], cuts: list[int]) -> None:
    whole = [wire.message(kind, body) for kind, body in messages]
    rest, frames, found = b"".join(whole), wire.Frames(), []
    for cut in [*cuts, len(rest) or 1]:
        found += [message for _, message in frames.feed(rest[:cut])]
        rest = rest[cut:]
    found += [message for _, message in frames.feed(rest)]
    assert found == whole
    assert frames.is_between


@pytest.mark.parametrize("data", [b"Q\0\0\0\0", b"Q\xff\xff\xff\xff", b"Q\0\0\0\3"])
def test_what_is_no_message_is_refused(data: bytes) -> None:
    with pytest.raises(wire.Broken):
        list(wire.Frames().feed(data))


@given(data=st.binary(max_size=200))
def test_a_first_message_is_read_or_refused_whatever_it_is(data: bytes) -> None:
    try:
        found = wire.read_startup(data)
    except wire.Broken:
        return
    assert found is None or found.size <= len(data)


def test_a_first_message_says_who_comes() -> None:
    data = wire.startup_message({"user": "a", "database": "b"})
    assert wire.read_startup(data[:-1]) is None
    found = wire.read_startup(data)
    assert found is not None
    assert (found.kind, found.parameters) == ("start", {"user": "a", "database": "b"})
    cancel = wire.read_startup(wire.cancel_message(4711, b"key!"))
    assert cancel is not None
    assert (cancel.kind, cancel.pid, cancel.key) == ("cancel", 4711, b"key!")


# ── passwords ────────────────────────────────────────────────────────────────────────────────────


def test_the_example_of_rfc_7677() -> None:
    nonce = b64decode("rOprNGfwEbeRWgbNEkqO")
    proof = Scram("pencil", nonce, "user")
    assert proof.first() == b"n,,n=user,r=rOprNGfwEbeRWgbNEkqO"
    server = b"r=rOprNGfwEbeRWgbNEkqO%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0,s=W22ZaJ0SNY7soEsUEjb6gQ==,i=4096"
    assert proof.final(server).endswith(b",p=dHzbZapWIk4jUhN+Ute9ytag9zjfMHgsqmmiz7AndVQ=")
    proof.check(b"v=6rriTRBi23WpRR/wtup+mMhUZUn/dB5nLTJRsjl95G4=")
    with pytest.raises(ProofRefused, match="prove"):
        proof.check(b"v=AAAATRBi23WpRR/wtup+mMhUZUn/dB5nLTJRsjl95G4=")


@pytest.mark.parametrize(
    "server", [b"", b"r=other,s=AAAA,i=4096", b"r=rOpr,s=AAAA,i=0", b"e=other-error", b"r=x,s=!,i=x"]
)
def test_a_server_that_makes_no_sense_is_refused(server: bytes) -> None:
    with pytest.raises(ProofRefused):
        Scram("pencil", b64decode("rOpr")).final(server)


# ── resync ───────────────────────────────────────────────────────────────────────────────────────


@given(
    past=st.binary(max_size=300),
    bits=st.lists(st.booleans(), min_size=64, max_size=64),
    status=st.sampled_from([b"I", b"T", b"E"]),
    piece=st.integers(1, 70),
)
def test_the_answer_is_found_after_any_past_in_any_pieces(
    past: bytes, bits: list[bool], status: bytes, piece: int
) -> None:
    sequence = b"".join((b"3\0\0\0\4" if bit else b"") + b"Z\0\0\0\5" + status for bit in bits)
    stream, answer = past + sequence + b"rest", resync.ResyncAnswer(bits)
    for at in range(0, len(stream), piece):
        if answer.feed(stream[at : at + piece]):
            break
    assert answer.status == status
    assert answer.past == past


def test_the_outcome_is_read_from_the_end_of_the_past() -> None:
    error = wire.complaint(b"E", "ERROR", "22012", "division by zero")
    half_a_row = b"xx\0\0\1D"
    assert resync.tail(half_a_row + wire.message(b"C", b"INSERT 0 3\0")) == ("INSERT 0 3", {})
    tag, said = resync.tail(half_a_row + error)
    assert (tag, said["C"], said["M"]) == ("", "22012", "division by zero")
    assert resync.tail(half_a_row) == ("", {})


# ── the session's rules ──────────────────────────────────────────────────────────────────────────


def ready(session: Session, status: bytes = b"I", tag: bytes = b"SELECT 1") -> None:
    session.server_said(wire.message(b"C", tag + b"\0") + wire.ready(status))


def sent(session: Session) -> bytes:
    out = bytes(session.to_server)
    session.to_server.clear()
    return out


def test_nothing_goes_to_the_server_before_a_boundary() -> None:
    session = Session()
    session.attach()
    parse, sync = wire.message(b"P", b"\0SELECT 1\0\0\0"), wire.SYNC
    session.client_said(parse)
    assert sent(session) == b""
    session.client_said(sync[:3])
    assert sent(session) == b""
    session.client_said(sync[3:])
    assert sent(session) == parse + sync


def test_a_dead_clients_answer_reaches_nobody_and_is_remembered() -> None:
    session = Session()
    session.attach()
    session.client_said(wire.query("INSERT INTO t VALUES (1)"))
    session.detach()
    assert not session.is_quiet
    ready(session, b"T", b"INSERT 0 1")
    assert session.is_quiet
    assert session.outcome is not None
    assert (session.outcome.tag, session.outcome.transaction, session.outcome.handed_over) == (
        "INSERT 0 1",
        "open",
        False,
    )
    session.attach()
    assert session.to_client == b""


def test_rows_are_passed_on_in_pieces_without_being_gathered() -> None:
    session = Session()
    session.attach()
    session.client_said(wire.query("SELECT"))
    row = wire.message(b"D", b"x" * 1000)
    session.server_said(row[:100])
    assert session.to_client == row[:100]
    session.server_said(row[100:])
    ready(session)
    assert bytes(session.to_client).startswith(row)


def test_the_sessions_own_questions_are_answered_to_nobody() -> None:
    session = Session()
    session.attach()
    session.ask(wire.query("ROLLBACK"))
    session.client_said(wire.query("SELECT 1"))
    ready(session, tag=b"ROLLBACK")
    assert session.to_client == b""
    ready(session)
    assert wire.message(b"C", b"SELECT 1\0") in bytes(session.to_client)


def test_parameters_are_heard_also_in_answers_to_nobody() -> None:
    session = Session()
    session.attach()
    session.ask(wire.query("RESET ALL"))
    session.server_said(wire.parameter("TimeZone", "UTC"))
    assert session.parameters == {"TimeZone": "UTC"}
    assert session.to_client == wire.parameter("TimeZone", "UTC")


@given(st.data())
def test_any_conversation_cut_anywhere_leaves_the_session_quiet(data: st.DataObject) -> None:
    """Whatever a client says and wherever it dies: once the server has answered, the next may come in."""
    session = Session(data.draw(st.sampled_from([b"I", b"T", b"E"])))
    session.attach()
    batches = [
        wire.query("SELECT 1"),
        wire.message(b"P", b"name\0SELECT 1\0\0\0") + wire.message(b"B", b"portal\0name\0\0\0\0\0\0\0") + wire.SYNC,
        wire.message(b"P", b"\0SELECT 1\0\0\0") + wire.FLUSH,
        wire.message(b"C", b"Sname\0") + wire.SYNC,
    ]
    said = b"".join(data.draw(st.lists(st.sampled_from(batches), max_size=6)))
    with contextlib.suppress(wire.Broken):  # a query behind a Flush: whoever says that is cut off
        session.client_said(said[: data.draw(st.integers(0, len(said)))])
    session.detach()
    owed = sent(session)
    for kind, _ in wire.Frames().feed(owed):
        if kind in b"QS":
            session.server_said(wire.ready(session.status))
    assert session.is_quiet
    assert not session.names


def test_a_pool_may_not_end_what_it_did_not_begin() -> None:
    session = Session(b"T")
    session.attach(guarded=True)
    session.client_said(wire.query("ROLLBACK"))
    assert sent(session) == b""
    assert b"is kept" in session.to_client
    session.to_client.clear()
    session.client_said(wire.message(b"P", b"\0rollback;\0\0\0") + wire.message(b"B", b"\0" * 8) + wire.SYNC)
    assert sent(session) == b""
    assert session.to_client.endswith(wire.ready(b"T"))
    session.client_said(wire.query("ROLLBACK TO SAVEPOINT a"))
    assert sent(session) == b"", "a savepoint of somebody else"
    session.client_said(wire.query("SAVEPOINT a"))
    ready(session, b"T", b"SAVEPOINT")
    session.client_said(wire.query("ROLLBACK TO SAVEPOINT a"))
    assert b"ROLLBACK TO SAVEPOINT" in sent(session)


# ── what is kept beside ──────────────────────────────────────────────────────────────────────────


def test_a_notebook_is_read_by_whoever_maps_it_and_refuses_what_is_too_large() -> None:
    first = Notebook.new()
    second = Notebook(first.fd)
    assert second.read() == {}
    assert first.write(to_json({"a": 1}))
    first.phase = SENT
    assert (second.read(), second.phase) == ({"a": 1}, SENT)
    assert not first.write(b"x" * (1 << 20))
    second.phase = IDLE
    assert (first.read(), first.phase) == ({"a": 1}, IDLE)


@given(st.lists(st.dictionaries(st.text(max_size=5), st.integers(), max_size=4), min_size=1, max_size=6))
def test_a_notebook_has_what_was_written_last(pages: list[dict[str, int]]) -> None:
    notebook = Notebook.new()
    for page in pages:
        assert notebook.write(json.dumps(page).encode())
        assert notebook.read() == page


def test_a_hold_ends_by_the_nearest_limit() -> None:
    hold = Hold(600, left=1000, spoke=900, began=500)
    assert hold.deadline() == (1600, "the hold limit")
    hold.idle_timeout = 100
    assert hold.deadline()[1] == "idle_in_transaction_session_timeout"
    assert 950 < hold.deadline()[0] < 1000
    hold.transaction_timeout = 60
    assert hold.capped() == (60, "transaction_timeout")


def test_blocks_are_read_from_the_statements_that_pass() -> None:
    blocks = Blocks()
    blocks.asked(b"BEGIN /* perdure.block uid/1 1 */")
    blocks.asked(b"SAVEPOINT perdure_2")
    assert blocks.facts() == {"line": "uid/1", "last": 2, "open": [1, 2], "ended": {}}
    blocks.asked(b"RELEASE SAVEPOINT perdure_2")
    blocks.transaction_ended("COMMIT")
    assert Blocks.of(blocks.facts()).ended == {"number": 1, "how": "COMMIT", "outcome": "committed"}
    assert not blocks.asked(b"SELECT 'BEGIN /* perdure.block x 9 */'") or blocks.open == []

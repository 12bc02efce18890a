"""The oracle finds hand-made lies, and has nothing to say of an honest round."""

from __future__ import annotations

from copy import deepcopy
from typing import Any

import pytest

from tests.honesty.oracle import FALSE, NEEDLESS, ORPHAN, REPEATED, SILENT, Case, judge, transaction_told
from tests.honesty.plan import Fault, Part, Plan

KILLED = "kill anchor"


def told(level: str, reason: str, **parts: Any) -> dict[str, Any]:
    whole = {"same": [], "differs": [], "since": [], "waiting": None, "assume": []}
    return {"level": level, "reason": reason, **whole, **parts}


def case_of(part: Part, *faults: str, **facts: Any) -> Case:
    plan = Plan(1, (part,), tuple(Fault(verb, 0.0) for verb in faults), False)
    return Case(plan, **{name: {part.kind: value} for name, value in facts.items()})


_SHELL = Part("shell", "running", {"rebuild": "auto", "number": 7})
_DONE = {"code": 0, "output": "fin\n", "length": 4, "gap": 0}
_POSTGRES = Part("postgres", "open", {"rebuild": "auto", "rows": 2})
_SQLITE = Part("sqlite", "open", {"rows": 2})
_KEPT_TRANSACTION = told("kept", "the same backend (9), its transaction is open", same=["the transaction is open"])
_LOST_TRANSACTION = told("lost", "the server was restarted")
_REBUILT = told("rebuilt", "its process was gone (it was killed); a new one was made from its recipe")


def honest() -> dict[str, Case]:
    return {
        "shell": case_of(
            _SHELL,
            "kill agent",
            said={"pid": [5]},
            told=told("kept", "the same process (5), held by the keeper"),
            used={"long": _DONE, "first": _DONE, "probe": {"code": 0, "output": "5 7\n"}},
            seen={"is_alive": True, "effects": {"first": 1, "begun": 1, "over": 1, "probe": 1}, "flood": 9},
        ),
        "shell rebuilt": case_of(
            _SHELL,
            KILLED,
            said={"pid": [5]},
            told=_REBUILT,
            used={
                "long": {"error": "EffectUncertain", "text": ""},
                "first": _DONE,
                "probe": {"code": 0, "output": "6 7\n"},
            },
            seen={"is_alive": False, "effects": {"first": 1, "begun": 1, "probe": 1}, "flood": 9},
        ),
        "shell at a half-typed line": case_of(
            Part("shell", "half", _SHELL.options),
            "kill agent",
            said={"pid": [5]},
            told=told("kept", "the same process (5), held by the keeper"),
            used={"probe": {"error": "ShellBusy", "text": ""}},
            seen={"is_alive": True, "effects": {"first": 1}, "flood": 9},
        ),
        "shell at a password": case_of(
            Part("shell", "secret", _SHELL.options),
            "kill agent",
            said={"pid": [5]},
            told=told("kept", "the same process (5), held by the keeper", waiting="secret"),
            used={"waiting": "secret", "probe": {"error": "ShellBusy", "text": ""}},
            seen={"is_alive": True, "effects": {"first": 1}, "flood": 9},
        ),
        "flood": case_of(
            Part("shell", "flooded", _SHELL.options),
            "kill agent",
            said={"pid": [5]},
            told=told("kept", "the same process (5), held by the keeper"),
            used={
                "long": {"code": 0, "output": "", "length": 4, "gap": 5},
                "first": _DONE,
                "probe": {"code": 0, "output": "5 7\n"},
            },
            seen={"is_alive": True, "effects": {"first": 1, "begun": 1, "over": 1, "probe": 1}, "flood": 9},
        ),
        "service": case_of(
            Part("service", "up", {"restart": "on-failure"}),
            "kill agent",
            told=told("kept", "the same process (5), held by the keeper"),
            used={},
            seen={"first": "a", "alive": ["a"], "answers": "a", "seconds": 0},
        ),
        "service rebuilt": case_of(
            Part("service", "up", {"restart": "never"}),
            KILLED,
            told=_REBUILT,
            seen={"first": "a", "alive": ["b"], "answers": "b", "seconds": 0},
        ),
        "service restarted": case_of(
            Part("service", "up", {"restart": "on-failure"}),
            "kill service",
            told=told("kept", "restarted by the keeper", differs=["process 5 ended, process 6 was started"]),
            seen={"first": "a", "alive": ["b"], "answers": "b", "seconds": 0},
        ),
        "postgres": case_of(
            _POSTGRES,
            "kill agent",
            said={"inserted": [0, 1]},
            told=_KEPT_TRANSACTION,
            used={"transaction": "open", "inside": [0, 1]},
            seen={
                "is_backend_alive": True,
                "is_in_transaction": True,
                "backend_does": "idle in transaction",
                "rows_then": [],
                "rows_end": [0, 1],
                "is_there": True,
            },
        ),
        "postgres lost": case_of(
            _POSTGRES,
            KILLED,
            said={"inserted": [0, 1]},
            told=_LOST_TRANSACTION,
            used={"transaction": "rolled back", "again": True},
            seen={
                "is_backend_alive": False,
                "is_in_transaction": False,
                "backend_does": "",
                "rows_then": [],
                "rows_end": [0, 1],
                "is_there": True,
            },
        ),
        "postgres committed": case_of(
            _POSTGRES,
            KILLED,
            said={"inserted": [0, 1], "committed": [None]},
            told=told("lost", "the server was restarted; its last COMMIT was committed"),
            used={"transaction": "committed"},
            seen={
                "is_backend_alive": False,
                "is_in_transaction": False,
                "backend_does": "",
                "rows_then": [0, 1],
                "rows_end": [0, 1],
                "is_there": True,
            },
        ),
        "sqlite": case_of(
            _SQLITE,
            "kill agent",
            said={"inserted": [0, 1]},
            told=told("kept", "the holder kept it", same=["the transaction is open"]),
            used={"transaction": "open", "inside": [0, 1], "commit": True},
            seen={
                "is_same_file": True,
                "is_held": True,
                "is_locked": True,
                "rows_then": [],
                "rows_end": [0, 1],
                "is_there": True,
            },
        ),
        "sqlite lost": case_of(
            _SQLITE,
            KILLED,
            said={"inserted": [0, 1]},
            told=told("lost", "its holder died"),
            used={"transaction": "rolled back", "again": True},
            seen={
                "is_same_file": True,
                "is_held": True,
                "is_locked": False,
                "rows_then": [],
                "rows_end": [0, 1],
                "is_there": True,
            },
        ),
        "request": case_of(
            Part("request", "whole", {"size": 4}),
            "kill agent",
            told=told("kept", "it was answered; the answer is kept"),
            used={"body": b"body"},
            seen={"posts": 1, "body": b"body", "is_fetched": False},
        ),
        "request cut off": case_of(
            Part("request", "under way", {"size": 4}),
            KILLED,
            told=told("lost", "it was ended by signal 9"),
            used={"body": {"error": "RequestFailed", "text": ""}},
            seen={"posts": 1, "body": b"body", "is_fetched": False},
        ),
        "file": case_of(
            Part("file", "written", {"marked": 3}),
            "kill agent",
            told=told("kept", "the same open file"),
            used={"place": 3},
            seen={"is_same": True, "is_intact": True, "places": [3]},
        ),
        "file changed": case_of(
            Part("file", "written", {"marked": 3}),
            "file rewritten",
            told=told("lost", "it was changed"),
            seen={"is_same": True, "is_intact": False, "places": [3]},
        ),
        "listener": case_of(
            Part("listener", "queued"),
            "kill agent",
            told=told("kept", "held open by the keeper", since=["1 connections wait in its queue"]),
            used={"heard": b"hello"},
            seen={"inode_before": "8", "inode": "8", "queued": b"hello"},
        ),
        "listener rebuilt": case_of(
            Part("listener", "queued"),
            KILLED,
            told=told("rebuilt", "a new one was made", differs=["connections that waited in its queue were broken"]),
            used={},
            seen={"inode_before": "8", "inode": "9", "queued": b"hello"},
        ),
        "pipe": case_of(
            Part("pipe", "unread"),
            "kill agent",
            told=told("kept", "held open by the keeper", since=["5 bytes wait in it to be read"]),
            used={"heard": b"hello"},
            seen={"unread": b"hello"},
        ),
        "pipe rebuilt": case_of(
            Part("pipe", "unread"),
            KILLED,
            told=told("rebuilt", "a new one was made", differs=["what was written into it and not read is gone"]),
            used={"heard": b""},
            seen={"unread": b"hello"},
        ),
        "socket": case_of(
            Part("socket", "unread"),
            "kill agent",
            told=told("kept", "held open by the keeper"),
            used={"heard": b"hello"},
            seen={"peer": "open", "got": b"still here", "unread": b"hello", "is_connected": True},
        ),
        "socket lost": case_of(
            Part("socket", "quiet"),
            KILLED,
            told=told("lost", "its descriptors were lost with the anchor"),
            seen={"peer": "open", "got": b"", "unread": b"", "is_connected": False},
        ),
    }


@pytest.mark.parametrize("name", honest())
def test_an_honest_round_has_no_violation(name: str) -> None:
    assert judge(honest()[name]) == []


LIES: list[tuple[str, str, dict[str, Any], str]] = [
    # A unit is called the same that is not, or gone that is not.
    ("shell", "seen", {"is_alive": False}, FALSE),
    ("shell", "used", {"probe": {"code": 0, "output": "6 7\n"}}, FALSE),
    ("shell", "used", {"probe": {"code": 0, "output": "5 8\n"}}, FALSE),
    ("shell rebuilt", "seen", {"is_alive": True}, FALSE),
    ("shell rebuilt", "used", {"probe": {"code": 0, "output": "5 7\n"}}, FALSE),
    ("shell rebuilt", "used", {"probe": {"code": 0, "output": "6 \n"}}, FALSE),
    ("shell at a password", "used", {"waiting": "prompt"}, FALSE),
    ("shell at a password", "used", {"probe": {"code": 0, "output": "5 7\n"}}, FALSE),
    ("shell at a half-typed line", "used", {"probe": {"code": 0, "output": "5 7\n"}}, FALSE),
    ("flood", "used", {"long": {"code": 0, "output": "", "length": 4, "gap": 0}}, FALSE),
    ("service", "seen", {"alive": [], "answers": ""}, FALSE),
    ("service", "seen", {"alive": ["b"], "answers": "b"}, FALSE),
    ("service", "told", {"reason": "restarted by the keeper"}, FALSE),
    ("service rebuilt", "seen", {"alive": ["a"], "answers": "a"}, FALSE),
    ("service rebuilt", "told", {"level": "lost"}, FALSE),
    ("postgres", "seen", {"is_backend_alive": False}, FALSE),
    ("postgres", "seen", {"is_in_transaction": False}, FALSE),
    ("postgres", "used", {"transaction": "none"}, FALSE),
    ("postgres", "used", {"inside": [0]}, FALSE),
    ("postgres", "used", {"inside": [0, 1, 1, 1]}, FALSE),
    ("postgres", "seen", {"rows_end": []}, FALSE),
    ("postgres lost", "seen", {"is_backend_alive": True, "backend_does": "idle in transaction"}, FALSE),
    ("postgres lost", "seen", {"rows_then": [0, 1]}, FALSE),
    ("postgres committed", "seen", {"rows_then": []}, FALSE),
    ("postgres committed", "seen", {"rows_end": []}, FALSE),
    ("postgres committed", "seen", {"rows_then": [0]}, FALSE),
    ("sqlite", "seen", {"is_same_file": False}, FALSE),
    ("sqlite", "seen", {"is_held": False}, FALSE),
    ("sqlite", "seen", {"is_locked": False}, FALSE),
    ("sqlite", "seen", {"rows_end": None}, FALSE),
    ("sqlite lost", "seen", {"is_locked": True}, FALSE),
    ("sqlite lost", "seen", {"rows_then": [0, 1]}, FALSE),
    ("request", "used", {"body": b"bo"}, FALSE),
    ("request", "used", {"body": b"bodY"}, FALSE),
    ("request", "used", {"body": {"error": "UnitEnded", "text": ""}}, FALSE),
    ("request cut off", "seen", {"is_fetched": True}, FALSE),
    ("file", "seen", {"is_same": False}, FALSE),
    ("file", "seen", {"is_intact": False}, FALSE),
    ("file", "used", {"place": 0}, FALSE),
    ("file changed", "seen", {"is_intact": True}, FALSE),
    ("listener", "seen", {"inode": "9"}, FALSE),
    ("listener", "used", {"heard": None}, FALSE),
    ("listener rebuilt", "seen", {"inode": "8"}, FALSE),
    ("listener", "told", {"since": []}, FALSE),
    ("listener rebuilt", "told", {"differs": []}, FALSE),
    ("pipe", "used", {"heard": b""}, FALSE),
    ("pipe", "told", {"since": []}, FALSE),
    ("pipe rebuilt", "told", {"differs": []}, FALSE),
    ("socket", "seen", {"peer": "reset"}, FALSE),
    ("socket", "seen", {"got": b""}, FALSE),
    ("socket lost", "seen", {"is_connected": True}, FALSE),
    # There was one before.
    ("postgres", "told", {"reason": "new; nothing was kept before"}, FALSE),
    ("service", "told", {"reason": "made now"}, FALSE),
    # Something was done twice.
    ("shell", "seen", {"effects": {"first": 2, "begun": 1, "over": 1, "probe": 1}}, REPEATED),
    ("shell", "seen", {"effects": {"first": 1, "begun": 2, "over": 1, "probe": 1}}, REPEATED),
    ("shell", "seen", {"effects": {"first": 1, "begun": 1, "over": 0, "probe": 1}}, FALSE),
    ("shell at a half-typed line", "seen", {"effects": {"first": 1, "half": 1}}, REPEATED),
    ("service", "seen", {"seconds": 1}, REPEATED),
    ("service rebuilt", "seen", {"alive": ["a", "b"]}, REPEATED),
    ("postgres lost", "seen", {"rows_end": [0, 0, 1, 1]}, REPEATED),
    ("sqlite lost", "seen", {"rows_end": [0, 0, 1, 1]}, REPEATED),
    ("request", "seen", {"posts": 2}, REPEATED),
    # It was given up without need.
    ("pipe", "told", {"level": "rebuilt", "differs": ["what was not read is gone"]}, NEEDLESS),
    ("service", "told", {"level": "lost"}, NEEDLESS),
    ("postgres", "told", {"level": "lost"}, NEEDLESS),
]


@pytest.mark.parametrize("name, part, lie, expected", LIES, ids=lambda value: str(value)[:60])
def test_a_lie_is_found(name: str, part: str, lie: dict[str, Any], expected: str) -> None:
    case = deepcopy(honest()[name])
    [facts] = getattr(case, part).values()
    facts |= lie
    assert expected in [violation.what for violation in judge(case)]


def test_an_error_in_place_of_a_verdict_is_found() -> None:
    case = honest()["pipe"]
    case.told["pipe"] = {"error": "KeeperUnavailable", "text": "it does not answer"}
    assert [violation.what for violation in judge(case)] == [SILENT]


def test_a_unit_that_cannot_be_used_was_not_kept() -> None:
    case = honest()["listener"]
    case.used["listener"] = {"error": "OSError", "text": "bad file descriptor"}
    assert FALSE in [violation.what for violation in judge(case)]


def test_what_is_left_behind_is_found() -> None:
    case = honest()["pipe"]
    case.orphans.append("proxy 7 outlived its keeper")
    assert [violation.what for violation in judge(case)] == [ORPHAN]


def test_after_the_folder_was_removed_a_unit_may_be_new() -> None:
    case = honest()["pipe"]
    case.told["pipe"]["reason"] = "made now"
    assert FALSE in [violation.what for violation in judge(case)]
    case.plan = Plan(1, case.plan.parts, (Fault("remove store", 0.0),), False)
    assert judge(case) == []


def test_after_the_folder_was_removed_the_session_of_the_forgotten_task_may_hold_a_lock() -> None:
    locked = {"error": "SqlFailed", "text": "database is locked (BusyError)"}
    case = case_of(Part("migration", "bare", {"rows": 2}), told=locked, seen={"rows_end": []})
    assert [violation.what for violation in judge(case)] == [SILENT]
    case.plan = Plan(1, case.plan.parts, (Fault("remove store", 0.0),), False)
    assert judge(case) == []


@pytest.mark.parametrize(
    "verdict, outcome, believed",
    [
        (_KEPT_TRANSACTION, None, "open"),
        (told("kept", "the same backend (9), its transaction is failed"), None, "failed"),
        (told("kept", "the same backend (9), in no transaction"), ["done", "COMMIT", False], "committed"),
        (told("kept", "the same backend (9), in no transaction"), ["done", "COMMIT", True], "rolled back"),
        (told("kept", "the same backend (9), in no transaction"), ["unknown", "COMMIT", False], "uncertain"),
        (told("kept", "the same backend (9), in no transaction"), ["done", "INSERT 0 1", False], "none"),
        (told("kept", "new; nothing was kept before"), None, "rolled back"),
        (_LOST_TRANSACTION, None, "rolled back"),
        (told("lost", "the server was restarted; whether COMMIT was done is not known"), None, "uncertain"),
        (told("lost", "the server was restarted; its transaction was committed"), None, "committed"),
        (told("rebuilt", "x", same=["the transaction: 2 batches were applied again"]), None, "open"),
    ],
)
def test_what_is_believed_of_a_transaction(verdict: dict[str, Any], outcome: list[Any] | None, believed: str) -> None:
    assert transaction_told(verdict, outcome) == believed

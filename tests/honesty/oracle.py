"""Compare what was told with what was seen from outside. Pure: it can be given any lie, and must find it.

A case holds, by the kind of unit,
    said   what the agent heard before it died: each insert and commit that was acknowledged, each command's result
    told   the verdict its heir was given, or the error instead
    used   what came of using the unit in the belief that the verdict is true
    moved, used_there   the same on another machine; `told` and `used` are then of the first one, if it is there again
    seen   evidence; see `rounds.Round.look`
and what was left behind once all units had been ended.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from tests.honesty.plan import Part, Plan

FALSE, REPEATED, ORPHAN, SILENT, NEEDLESS = (
    "false verdict",
    "repeated effect",
    "orphan",
    "no verdict",
    "needless loss",
)
# Whatever else these end, every unit outlives them.
_HARMLESS = frozenset({"kill agent", "kill keeper"})
_HARMLESS_FOR = {"postgres": frozenset({"kill proxy"})}
# With its folder, all that was known of a unit is gone; that it is new is then the truth.
_FORGETS = ("remove store",)


@dataclass(frozen=True)
class Violation:
    what: str
    kind: str
    why: str

    def __str__(self) -> str:
        return f"{self.what}: {self.kind}: {self.why}"


@dataclass
class Case:
    plan: Plan
    said: dict[str, dict[str, list[Any]]] = field(default_factory=dict)
    told: dict[str, dict[str, Any]] = field(default_factory=dict)
    used: dict[str, Any] = field(default_factory=dict)
    seen: dict[str, dict[str, Any]] = field(default_factory=dict)
    moved: dict[str, dict[str, Any]] = field(default_factory=dict)
    used_there: dict[str, Any] = field(default_factory=dict)
    orphans: list[str] = field(default_factory=list)


def judge(case: Case) -> list[Violation]:
    found = [Violation(ORPHAN, "all", orphan) for orphan in case.orphans]
    if case.plan.moves:
        return found + [violation for part in case.plan.parts for violation in _moved(case, part)]
    for part in case.plan.parts:
        told = case.told.get(part.kind) or {"error": "nothing", "text": "it was never opened"}
        if part.kind == "migration":
            found += _migration(case, part, told)
        if part.kind == "file" and case.plan.has(*_FORGETS) and "No such file" in str(told.get("text")):
            continue  # there is no record and no file: what is told is true
        if part.kind == "migration" and case.plan.has(*_FORGETS) and "database is locked" in str(told.get("text")):
            continue  # by the session of the task that was forgotten, which is kept for its hold
        if "error" in told:
            found.append(Violation(SILENT, part.kind, f"{told['error']}: {told['text']}"))
            continue
        view = View(case, part, told)
        if view.is_new and case.plan.has(*_FORGETS) and part.kind != "service":
            continue
        found += view.common()
        found += _RULES[part.kind](view)
    return found


def is_new(told: Mapping[str, Any]) -> bool:
    """True if it was said that there was nothing before."""
    reason = str(told["reason"])
    return told["level"] == "kept" and (reason.startswith("new") or reason == "made now")


def transaction_told(told: Mapping[str, Any], outcome: list[Any] | None) -> str:
    """What somebody believes of the transaction who was told this: open, failed, committed, rolled back, uncertain,
    or none, which says nothing of the one that was there."""
    said = " ".join([told["reason"], *told["same"], *told["since"]])
    if told["level"] == "lost":
        return _ending_told(" ".join([said, *(line for line in told["assume"] if "rolled back already" in line)]))
    if is_new(told):
        return "rolled back"
    if "transaction is failed" in said:
        return "failed"
    if "transaction is open" in said or "the transaction:" in said:
        return "open"
    return outcome_told(outcome, said)


def _ending_told(said: str) -> str:
    if any(words in said for words in ("uncertain", "not known", "unknown", "rolled back already")):
        return "uncertain"
    return "committed" if "was committed" in said or "is committed" in said else "rolled back"


def outcome_told(outcome: list[Any] | None, said: str = "") -> str:
    if "transaction was committed" in said:
        return "committed"
    if outcome is None or "COMMIT" not in str(outcome[1]).upper():
        return "uncertain" if "uncertain" in said else "none"
    state, _, has_failed = outcome
    if has_failed or state == "undone":
        return "rolled back"
    return "committed" if state == "done" else "uncertain"


class View:
    """One unit of a case."""

    def __init__(self, case: Case, part: Part, told: dict[str, Any]) -> None:
        self.case, self.part, self.told = case, part, told
        self.said = case.said.get(part.kind, {})
        self.seen = case.seen.get(part.kind, {})
        used = case.used.get(part.kind)
        self.used: dict[str, Any] = used if isinstance(used, dict) else {}
        self.level, self.reason = str(told["level"]), str(told["reason"])
        self.is_new = is_new(told)

    @property
    def all_said(self) -> str:
        return " ".join([self.reason, *self.told["differs"], *self.told["since"], *self.told["assume"]])

    @property
    def is_kept(self) -> bool:
        return self.level == "kept" and not self.is_new

    def false(self, why: str) -> Violation:
        return Violation(FALSE, self.part.kind, f"told {self.level!r} ({self.reason}); {why}")

    def repeated(self, why: str) -> Violation:
        return Violation(REPEATED, self.part.kind, f"told {self.level!r} ({self.reason}); {why}")

    def common(self) -> Iterator[Violation]:
        """What holds for every kind."""
        if self.level not in ("kept", "imaged", "rebuilt", "lost"):
            yield self.false("there is no such level")
        if self.is_new and not self.case.plan.has(*_FORGETS):
            yield self.false("there was one before")
        faults = {fault.verb for fault in self.case.plan.faults}
        if faults <= _HARMLESS | _HARMLESS_FOR.get(self.part.kind, frozenset()) and self.level != "kept":
            yield Violation(NEEDLESS, self.part.kind, f"told {self.level!r} ({self.reason}); only {sorted(faults)}")
        if "error" in self.used:
            yield self.false(f"using it: {self.used['error']}: {self.used.get('text')}")


def _shell(view: View) -> Iterator[Violation]:
    is_alive, used, state = view.seen["is_alive"], view.used, view.part.state
    if view.is_kept and not is_alive:
        yield view.false("its process is dead")
    if view.level in ("lost", "rebuilt") and is_alive:
        yield view.false("its process lives")
    if view.is_kept and state == "secret" and used.get("waiting") != "secret":
        yield view.false(f"it waits for a password, and {used.get('waiting')!r} is told")
    probe = used.get("probe")
    if view.is_kept and state in ("secret", "half") and not (isinstance(probe, dict) and probe.get("error")):
        yield view.false(f"it is not at its empty prompt, and ran a command: {probe}")
    if state == "half" and view.seen["effects"].get("half"):
        yield view.repeated("a line that was half typed was run")
    if view.is_kept and state not in ("secret", "half"):
        yield from _kept_shell(view, probe)
    if view.level == "rebuilt" and isinstance(probe, dict) and "output" in probe:
        pid, _, number = probe["output"].strip().partition(" ")
        if pid == str(view.said["pid"][0]):
            yield view.false("it has the same pid as before")
        if number != str(view.part.options["number"]) and not any(
            " N " in f" {line} " for line in view.told["differs"]
        ):
            yield view.false(f"N was {view.part.options['number']}, is {number!r}, and nothing is said of it")
    yield from _commands(view)


def _kept_shell(view: View, probe: Any) -> Iterator[Violation]:
    expected = f"{view.said['pid'][0]} {view.part.options['number']}"
    if not isinstance(probe, dict) or probe.get("output", "").strip() != expected:
        yield view.false(f"it should answer {expected!r}, and gave {probe}")


def _commands(view: View) -> Iterator[Violation]:
    """Every command by a key is run once at most, and exactly once when its result is told."""
    effects = view.seen["effects"]
    for mark, key in (("first", "first"), ("begun", "long"), ("over", "long"), ("probe", "probe")):
        times = effects.get(mark, 0)
        if times > 1:
            yield view.repeated(f"{mark!r} was done {times} times")
        result = view.used.get(key)
        if isinstance(result, dict) and result.get("code") == 0 and times != 1:
            yield view.false(f"{key!r} is told as done, and {mark!r} was done {times} times")
    if view.part.state == "flooded":
        yield from _flood(view, [*view.said.get("ran", []), view.used.get("long")])


def _flood(view: View, results: list[Any]) -> Iterator[Violation]:
    """Of an output that is too long to be kept whole, the rest is counted; a gap of 1 says that nobody can count it."""
    whole = view.seen["flood"]
    for result in results:
        is_done = isinstance(result, dict) and result.get("code") == 0
        if is_done and result["gap"] != 1 and result["length"] + result["gap"] < whole:
            yield view.false(f"of {whole} bytes {result['length']} are given, {result['gap']} told as gone")


def _service(view: View) -> Iterator[Violation]:
    first, alive, answers = view.seen["first"], view.seen["alive"], view.seen["answers"]
    if view.seen["seconds"] or len(alive) > 1:
        yield view.repeated(f"it ran twice at once: {view.seen['seconds']} found another one at their start")
    is_said_restarted = "restart" in " ".join([view.reason, *view.told["differs"], *view.told["since"]])
    if view.is_kept and not alive:
        yield view.false("no process of it lives")
    if view.is_kept and alive and answers != first and not is_said_restarted:
        yield view.false(f"it was {first} and {answers} answers")
    if view.is_kept and answers == first and is_said_restarted:
        yield view.false("it is the same process as ever")
    if view.level == "rebuilt" and answers == first:
        yield view.false("the same process answers")
    if view.level == "rebuilt" and not alive:
        yield view.false("no process of it lives")
    if view.level == "lost" and alive:
        yield view.false(f"{alive} lives")


def _transaction(view: View) -> Iterator[Violation]:
    """What both engines must hold to."""
    then, end = view.seen["rows_then"], view.seen["rows_end"]
    inserted, wanted = view.said.get("inserted", []), list(range(view.part.options["rows"]))
    transaction = view.used.get("transaction")
    is_acknowledged = "committed" in view.said
    if then is not None and then and set(then) != {*wanted} and set(then) != {*wanted, len(wanted)}:
        yield view.false(f"half of a transaction is committed: {then}")
    repeated = sorted(row for row, times in Counter(end or ()).items() if times > 1)
    if repeated:
        yield view.repeated(f"the transaction was told as {transaction!r}; committed rows are {end}")
    if is_acknowledged and view.seen["is_there"] and not set(wanted) <= set(end or ()):
        yield view.false(f"COMMIT was acknowledged, and rows are {end}")
    is_visible = view.seen["is_there"] and view.part.state != "idle"
    if transaction == "committed" and is_visible and not set(wanted) <= set(then or ()):
        yield view.false(f"the transaction is told as committed, and rows are {then}")
    if transaction == "rolled back" and is_visible and then and not is_acknowledged:
        yield view.false(f"the transaction is told as rolled back, and rows are {then}")
    if transaction == "open":
        inside = view.used.get("inside")
        if inside is None or inside[: len(inserted)] != inserted or len(inside) > len(inserted) + 1:
            yield view.false(f"{inserted} were inserted, {inside} are in the transaction")
        if view.used.get("commit", True) is True and Counter(end or ()) != Counter(inside):
            yield view.false(f"COMMIT of {inside} succeeded, and rows are {end}")


def _postgres(view: View) -> Iterator[Violation]:
    transaction = view.used.get("transaction")
    if view.is_kept and not view.seen["is_backend_alive"]:
        yield view.false("its backend is gone")
    if view.is_kept and view.seen["is_backend_alive"]:
        if transaction == "open" and not view.seen["is_in_transaction"]:
            yield view.false("its backend is in no transaction")
        if transaction not in ("open", "failed") and view.seen["is_in_transaction"]:
            yield view.false("its backend is in a transaction")
    if view.level in ("lost", "rebuilt") and view.seen["is_backend_alive"]:
        yield view.false(f"its backend lives, {view.seen['backend_does']!r}")
    yield from _transaction(view)


def _sqlite(view: View) -> Iterator[Violation]:
    is_open = view.used.get("transaction") == "open"
    if view.is_kept and not view.seen["is_same_file"]:
        yield view.false("the file is gone, or another one")
    if view.is_kept and not view.seen["is_held"]:
        yield view.false("no process has the file open")
    if view.is_kept and view.seen["is_same_file"] and is_open != view.seen["is_locked"]:
        yield view.false(f"the transaction is open: {is_open}; the file is locked: {view.seen['is_locked']}")
    if view.level == "lost" and view.seen["is_locked"]:
        yield view.false("somebody still holds the lock of its transaction")
    yield from _transaction(view)


def _request(view: View) -> Iterator[Violation]:
    if view.seen["posts"] > 1:
        yield view.repeated(f"it was sent {view.seen['posts']} times")
    body, expected = view.used.get("body"), view.seen["body"]
    if isinstance(body, bytes) and body != expected:
        yield view.false(f"{len(body)} bytes are given as the whole answer of {len(expected)}, or others than came")
    is_said_whole = view.level == "kept" and "answered" in view.reason
    if is_said_whole and not isinstance(body, bytes):
        yield view.false(f"the answer is told as kept, and cannot be read: {body}")
    if view.level == "lost" and view.seen["is_fetched"]:
        yield view.false("its program still reads the answer")


def _file(view: View) -> Iterator[Violation]:
    is_same, is_intact = view.seen["is_same"], view.seen["is_intact"]
    if view.level in ("kept", "rebuilt") and not view.is_new:
        if not (is_same and is_intact):
            yield view.false(f"the same file is there: {is_same}; unchanged up to the mark: {is_intact}")
        if view.used.get("place") not in view.seen["places"]:
            yield view.false(f"its place is {view.used.get('place')}, not one of {view.seen['places']}")
    if view.level == "lost" and is_same and is_intact:
        yield view.false("the same file is there, unchanged up to the mark")


def _listener(view: View) -> Iterator[Violation]:
    is_same = view.seen["inode"] == view.seen["inode_before"]
    if view.is_kept and not is_same:
        yield view.false("another socket listens, or none")
    if view.level == "rebuilt" and is_same:
        yield view.false("the same socket listens")
    if view.is_kept and view.part.state == "queued" and view.used.get("heard") != view.seen["queued"]:
        yield view.false(f"a connection with {view.seen['queued']!r} waits in it; {view.used.get('heard')!r} came")
    if view.part.state == "queued" and not view.is_new and "queue" not in view.all_said:
        yield view.false("a connection waited in it, and nothing is said of that")


def _pipe(view: View) -> Iterator[Violation]:
    if view.is_kept and view.used.get("heard") != view.seen["unread"]:
        yield view.false(f"{view.seen['unread']!r} was in it; {view.used.get('heard')!r} came")
    if view.level == "rebuilt" and view.seen["unread"] and "not read" not in view.all_said:
        yield view.false("what was written and not read is gone, and nothing is said of it")
    if view.is_kept and view.seen["unread"] and "to be read" not in view.all_said:
        yield view.false("bytes wait in it, and nothing is said of that")


def _socket(view: View) -> Iterator[Violation]:
    peer = view.seen["peer"]
    if view.is_kept and peer == "reset":
        yield view.false("the other end has reset it")
    is_working = view.seen["got"] == b"still here" and view.used.get("heard") == view.seen["unread"]
    if view.is_kept and peer == "open" and not is_working:
        yield view.false(f"the other end got {view.seen['got']!r}; {view.used} came of it here")
    if view.level == "lost" and peer == "open" and view.seen["is_connected"]:
        yield view.false("the other end is still connected")


def _migration(case: Case, part: Part, told: Mapping[str, Any]) -> Iterator[Violation]:
    """Each statement once, and all of them or none, whether or not the task could be finished."""
    rows = Counter(case.seen[part.kind]["rows_end"])
    whole = Counter(range(part.options["rows"]))
    if case.plan.has(*_FORGETS):
        return
    is_told_finished = "error" not in told or "finished" in case.said.get(part.kind, {})
    if any(times > 1 for times in rows.values()):
        again = sorted(row for row, times in rows.items() if times > 1)
        yield Violation(REPEATED, part.kind, f"rows {again} were inserted more than once")
    elif rows and rows != whole:
        yield Violation(FALSE, part.kind, f"{len(rows)} of {len(whole)} rows are committed")
    elif is_told_finished and rows != whole:
        yield Violation(FALSE, part.kind, "the task is told as finished, and its rows are not there")


# ── another machine ──────────────────────────────────────────────────────────────────────────────

# What a unit is there: the keeper that had it is not, so nothing of it is the same.
_ELSEWHERE = {"postgres": "lost", "sqlite": "lost", "request": "lost"}
_HOW_OFTEN = ("first", "begun", "over", "half")


def _moved(case: Case, part: Part) -> Iterator[Violation]:
    """What holds when the task goes on under another keeper, and when it comes back: nothing is called kept that was
    left behind, and nothing is done twice, whichever keeper was asked."""
    told = case.moved.get(part.kind) or {"error": "nothing", "text": "it was never opened"}
    if part.kind == "migration":
        yield from _migration(case, part, told)
    elif "error" in told:
        yield Violation(SILENT, part.kind, f"elsewhere: {told['error']}: {told['text']}")
    else:
        view = View(case, part, told)
        wanted = _ELSEWHERE.get(part.kind, "rebuilt")
        is_answered = part.kind == "request" and part.state == "whole" and view.level == "kept"
        if view.level != wanted and not is_answered:
            yield view.false(f"elsewhere it is {wanted!r}")
        if wanted == view.level and "a keeper that is not here" not in view.all_said:
            yield view.false("nothing is said of the keeper that had it")
    yield from _back(case, part)
    yield from _repeated(case, part)


def _back(case: Case, part: Part) -> Iterator[Violation]:
    """Where the former machine has it still, another one has been in use since."""
    if case.plan.moves == "dead" or part.kind in ("request", "migration"):
        return
    told = case.told.get(part.kind) or {"error": "nothing", "text": "it was never opened"}
    if "error" in told:
        if not (part.kind == "file" and "No such file" in str(told.get("text"))):
            yield Violation(SILENT, part.kind, f"back again: {told['error']}: {told['text']}")
        return
    view = View(case, part, told)
    if view.level == "kept" and "this is older" not in view.all_said:
        yield view.false("another one was in use elsewhere since")


def _repeated(case: Case, part: Part) -> Iterator[Violation]:
    seen = case.seen.get(part.kind, {})
    if part.kind == "shell":
        again = [f"{name} {seen['effects'][name]} times" for name in _HOW_OFTEN if seen["effects"].get(name, 0) > 1]
        if again:
            yield Violation(REPEATED, part.kind, ", ".join(again))
    elif part.kind == "request" and seen["posts"] > 1:
        yield Violation(REPEATED, part.kind, f"it was sent {seen['posts']} times")
    elif part.kind in ("postgres", "sqlite"):
        again = [str(row) for row, times in Counter(seen["rows_end"] or []).items() if times > 1]
        if again:
            yield Violation(REPEATED, part.kind, f"rows {', '.join(again)} were inserted more than once")


_RULES = {
    "shell": _shell,
    "service": _service,
    "postgres": _postgres,
    "sqlite": _sqlite,
    "request": _request,
    "file": _file,
    "listener": _listener,
    "pipe": _pipe,
    "socket": _socket,
    "migration": lambda _: iter(()),
}

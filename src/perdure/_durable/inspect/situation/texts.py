"""Every sentence about why a task is, or is not, running: of the command line, the server and its pages. Pure.

rows.py decides which one is told. A sentence names the actor and the fact; ages are in `since`, which each reader shows
as it likes, and are in the sentence only where they are the point.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from shlex import quote

from perdure._durable.inspect.situation.facts import Facts, LiveWorker, OpenQuestion, SwitchFact, Uncertain
from perdure._ground.durations import shown_length
from perdure._ground.exception_text import in_one_line
from perdure._model import HeldBy, LastError, Pause, SituationKind

MOST_SAID = 160
MOST_HEADLINE = 90
_HEADS: Mapping[SituationKind, str] = {
    "completed": "Completed",
    "cancelled": "Cancelled",
    "failed": "Failed",
    "stopped": "Stopped",
    "cancelling": "Being cancelled",
    "stuck": "Stuck",
    "you": "Waits for you",
    "waiting": "Waits",
    "blocked": "Blocked",
    "stalled": "Stalled",
    "working": "Working",
    "starting": "Starting",
    "idle": "Idle",
}
_ASKED = {
    "approval": "an approval",
    "input": "an answer",
    "effect": "whether an effect happened",
    "credential": "a credential",
    "callback": "a callback",
    "poll": "something outside",
    "timer": "a moment",
    "rate_limit": "a rate limit",
    "task": "another task",
    "signal": "a signal",
    "yield": "its next turn",
}
NO_WORKER = "no worker is running"
ITS_TURN = "a worker takes it when it is its turn"


def worker_command(queue: str = "") -> str:
    """The command that starts a worker for this queue."""
    option = f" --queue {quote(queue)}" if queue not in ("", "default") else ""
    return f"perdure worker{option} module:app"


def start_one(queue: str) -> str:
    return f"`{worker_command(queue)}` starts one, or run the program again that started it"


def headline(kind: SituationKind, say: str) -> str:
    """The sentence a person would say first."""
    return cut(f"{_HEADS[kind]}: {say}" if say else _HEADS[kind], MOST_HEADLINE)


def cut(text: str, most: int = MOST_SAID) -> str:
    line = in_one_line(text)
    return line if len(line) <= most else f"{line[: most - 1]}…"


def clock(when: datetime, now: datetime) -> str:
    """A moment: the time of a day near by, else with its date."""
    is_near = abs(when - now) < timedelta(hours=20)
    return f"{when:%H:%M:%S} UTC" if is_near else f"{when:%Y-%m-%d %H:%M} UTC"


def length(since: datetime, now: datetime) -> str:
    return shown_length(max(now - since, timedelta(0)))


# ── ends ─────────────────────────────────────────────────────────────────────────────────────────


def cancelled(facts: Facts) -> str:
    by = f"by {facts.ended_by}" if facts.ended_by else "cancelled"
    undone = f", {_count(facts.undone, 'effect')} undone" if facts.undone else ""
    return f"{by}{undone}"


def failed(error: LastError | None) -> str:
    return str(error) if error is not None and str(error) else "it failed"


def nothing_follows(facts: Facts) -> str:
    if facts.status == "failed":
        return f"nothing by itself: `perdure resume {quote(facts.id)}` begins a new attempt"
    return f"nothing: it {'was' if facts.status == 'cancelled' else 'has'} {facts.status}"


# ── stopped from outside ─────────────────────────────────────────────────────────────────────────


def stopped(switch: SwitchFact) -> str:
    all_ = "all tasks are " if switch.is_for_all else ""
    return f"{all_}stopped by {switch.user}" + (f": {switch.why}" if switch.why else "")


def how_to_lift(facts: Facts, switch: SwitchFact) -> str:
    off = "perdure kill-switch off" + ("" if switch.is_for_all else f" {facts.id}")
    why = f": {switch.why}" if switch.why else ""
    return f"{switch.user} has stopped it by the kill switch{why}; {off} lets it continue"


def cancelling(facts: Facts) -> str:
    if facts.at_work is not None:
        return "is being cancelled"
    return "is cancelled by the next worker that knows its effects"


def next_of_cancel(facts: Facts) -> str:
    if facts.at_work is not None:
        return "it is being cancelled"
    return "it is to be cancelled, by the next worker that knows its effects, or the program that started it, run again"


def paused(pause: Pause | None) -> str:
    if pause is None:
        return "paused"
    who = str(pause.by.get("user") or "")
    by = f"paused by {who}" if who else "paused"
    return f"{by}: {pause.message}" if pause.message else by


# ── stuck ────────────────────────────────────────────────────────────────────────────────────────


def diverged(pause: Pause | None) -> str:
    return (pause.message if pause is not None else "") or "its code asks for other calls than its journal has"


def advice(facts: Facts) -> str:
    given = facts.pause.details.get("advice") if facts.pause is not None else None
    resume = f"`perdure resume {quote(facts.id)}`"
    return f"{given}; then {resume}" if given else f"put its code right; then {resume}"


def unknown_code(facts: Facts) -> str:
    """Which live workers there are when none of them can take the task."""
    name, live = str(facts.function), facts.workers
    if any(worker.knows(name, facts.version) for worker in live):
        return f"no live worker takes tasks of queue {facts.queue!r}"
    versions = _versions(live, name)
    others = f"; they know {', '.join(f'version {of}' for of in versions)}" if versions else ""
    what = f"{name} version {facts.version}" if facts.version > 1 or versions else name
    return f"no live worker knows {what}{others}"


def start_with_code(facts: Facts) -> str:
    said = unknown_code(facts)
    return said if "queue" in said.partition("takes tasks of ")[2] else f"{said}: start one that has its code"


def not_begun(facts: Facts) -> str:
    return facts.could_not_begin or "its last attempt could not begin"


def next_of_not_begun(facts: Facts) -> str:
    why = facts.could_not_begin or "the reason is not known"
    return f"{ITS_TURN}; its last attempt ({facts.last_process}) could not begin: {why}"


def failed_dependencies(facts: Facts) -> str:
    ended = [f"{id} ({status})" for id, status in facts.dependencies.items() if status in ("failed", "cancelled")]
    return f"it depends on {_list(ended)}"


def workers_there(workers: Sequence[LiveWorker], function: str) -> str:
    """The live workers, and which versions of the function they know."""
    if not workers:
        return "No live worker has registered in this store."
    who = ", ".join(f"pid {one.pid} on {one.host}" for one in workers[:5])
    more = f" and {len(workers) - 5} more" if len(workers) > 5 else ""
    versions = _versions(workers, function)
    knows, does_not = ("it knows", "it does not know") if len(workers) == 1 else ("they know", "they do not know")
    known = f"{knows} version {', '.join(map(str, versions))} of" if versions else does_not
    return f"{_count(len(workers), 'live worker')} ({who}{more}); {known} {function}."


def queues_taken(workers: Sequence[LiveWorker]) -> str:
    """The queues that these workers take tasks of; "" without workers."""
    queues = sorted({queue for worker in workers for queue in worker.queues})
    if not queues:
        return ""
    takes = "It takes" if len(workers) == 1 else "They take"
    return f"{takes} tasks of queue{'' if len(queues) == 1 else 's'} {_list([repr(queue) for queue in queues])}."


def _versions(live: Sequence[LiveWorker], name: str) -> list[int]:
    return sorted({of for worker in live for known, of, _ in worker.functions if known == name})


# ── waiting ──────────────────────────────────────────────────────────────────────────────────────


def question(asked: OpenQuestion) -> str:
    return asked.text or _ASKED.get(asked.kind, "an answer")


def end_of_pause(facts: Facts, *, is_looked_at: bool) -> str:
    """The event that ends the pause of a task without questions."""
    if facts.pause_kind == "approval":
        return "perdure approve or perdure reject"
    return "it continues by itself, or perdure resume" if is_looked_at else "perdure resume"


def wait(facts: Facts, asked: OpenQuestion) -> str:
    """What a task waits for when no person has to answer."""
    due = asked.due_at
    until = f"until {clock(due, facts.now)}" if due is not None else ""
    if asked.kind == "timer":
        return _joined(until, asked.text if asked.text and not asked.text.startswith("until ") else "") or "a moment"
    if asked.kind == "rate_limit":
        of = f"rate limit of {asked.provider}" if asked.provider else "rate limit"
        return f"{until} ({of})" if until else of
    if asked.kind == "task":
        status = facts.awaited.get(asked.topic)
        return f"task {asked.topic} ({status or 'not there yet'})" if asked.topic else "another task"
    if asked.kind == "signal":
        return f"a signal: {asked.topic}" if asked.topic else "a signal"
    if asked.kind == "yield":
        return _ASKED["yield"]
    said = asked.text or _ASKED[asked.kind]
    if asked.kind == "poll" and due is not None:
        ahead = shown_length(max(due - facts.now, timedelta(0)))
        return f"{said}, looked at again in {ahead} ({_count(asked.checks, 'look')})"
    return said


def retry(facts: Facts, *, tries: int | None, most: int | None, due: datetime, error: str) -> str:
    number = f"try {tries + 1} of {most + 1}" if tries is not None and most is not None else "its next attempt"
    return f"{number} at {clock(due, facts.now)}" + (f": {error}" if error else "")


def before_next_attempt(due: datetime) -> str:
    return f"it waits until {due.isoformat(timespec='seconds')} before its next attempt"


def end_of_wait(facts: Facts, question: OpenQuestion, *, needs_command: bool) -> str:
    """What ends a wait; without a worker, also who has to be there."""
    if needs_command:
        return command_needs(facts)
    if facts.workers or question.kind == "signal":
        return question.way_on
    return f"a process has to be there when the wait is over: {start_one(facts.queue)}"


def unnoticed(facts: Facts, *, needs_command: bool) -> str:
    if needs_command:
        return "no live worker may run its command" if facts.workers else "no worker is there to run its command"
    return "no worker is there to notice"


def command_needs(facts: Facts) -> str:
    missing = "no live worker may run" if facts.workers else "no worker is running that may run"
    return f"{missing} its command: start one with PERDURE_POLL_COMMANDS=1, or perdure resume"


def otherwise(asked: OpenQuestion, now: datetime) -> str:
    """What happens when no answer arrives in time."""
    if asked.expires_at is None:
        return ""
    then = {"approve": "it is approved", "reject": "it is rejected", "default": "its default stands"}
    return f"Without an answer by {clock(asked.expires_at, now)}, {then.get(asked.otherwise, 'it fails')}."


def dependencies(facts: Facts) -> str:
    named = {id: status or "not there yet" for id, status in facts.dependencies.items() if status != "completed"}
    still = [f"{id} ({status})" for id, status in named.items()]
    return f"waits for {_list(still)}"


BLOCKED = "it begins when its dependencies have completed"


# ── working ──────────────────────────────────────────────────────────────────────────────────────


def working(facts: Facts) -> str:
    call, progress = facts.call, facts.progress
    if progress is not None and progress.done is not None and (call is None or _is_newer(facts)):
        total = f" of {progress.total:,}" if progress.total is not None else ""
        return f"{progress.operation}, {progress.done:,}{total}"
    if call is not None:
        return f"{call.path} for {length(call.since, facts.now)}" if call.since is not None else call.path
    if progress is not None:
        return progress.operation + (f", {progress.percent:g} %" if progress.percent is not None else "")
    if facts.last_path:
        return f"after {facts.last_path}"
    return f"by {facts.holder}" if facts.holder is not None else "working"


def _is_newer(facts: Facts) -> bool:
    assert facts.progress is not None and facts.call is not None
    return facts.call.since is None or facts.progress.at >= facts.call.since


def stalled(facts: Facts) -> str:
    much = shown_length(timedelta(seconds=facts.stalled_seconds or 0))
    place = f" in {facts.call.path}" if facts.call is not None else ""
    return f"no progress for {much}{place}"


def silent(holder: HeldBy) -> str:
    much, lease = (
        shown_length(timedelta(seconds=seconds)) for seconds in (holder.silent_seconds, holder.lease_seconds)
    )
    return f"host {holder.host} is silent for {much} of its lease of {lease}; then another takes over"


def turn(facts: Facts) -> str:
    dead = _dead(facts.holder)
    if dead:
        return f"{dead}; another takes it over"
    queue = f" in queue {facts.queue}" if facts.queue not in ("", "default") else ""
    if facts.ahead:
        return f"its turn: {facts.ahead} before it{queue}"
    return f"waits for its turn{queue}"


def idle(facts: Facts) -> str:
    dead = _dead(facts.holder)
    if dead:
        return f"{dead}; no process works on it"
    return "open; no process works on it"


def _dead(holder: HeldBy | None) -> str:
    if holder is None or holder.state != "dead":
        return ""
    how = "has died" if holder.silent_seconds == 0 else "is silent"
    return f"its worker (pid {holder.pid} on {holder.host}) {how}"


def settled_first(uncertain: Uncertain, then: str) -> str:
    """What must happen before a task with an uncertain effect continues, and which worker could take it."""
    first = f"whether {uncertain.name} happened is settled first"
    if uncertain.until is not None:
        latest = f"{uncertain.until:%Y-%m-%d %H:%M:%S} UTC"
        first += f" when its process has ended, which may still be alive, or at {latest} at the latest"
    return f"{first}. And {then}" if then else first


# ── details ──────────────────────────────────────────────────────────────────────────────────────


def kept(facts: Facts) -> str:
    """What is kept, and where."""
    held = f"{facts.at_work} holds it." if facts.at_work is not None else "No process is held."
    if not facts.is_function and facts.at_work is None:
        return ""  # its keeper can hold live things of it
    if facts.calls is None or not facts.is_function:
        return held
    if facts.calls == 0:
        return f"No call is on record yet. {held}"
    return f"{_count(facts.calls, 'call')} on record, which will not run again. {held}"


def asked_at(facts: Facts, asked: OpenQuestion) -> str:
    when = f" {length(asked.since, facts.now)} ago" if asked.since is not None else ""
    return f"Asked{when} by {asked.path.removeprefix('|').removeprefix('~')}."


def _count(number: int | None, noun: str) -> str:
    return f"{number or 0:,} {noun}{'' if number == 1 else 's'}"


def _joined(first: str, second: str) -> str:
    return f"{first} ({second})" if first and second else first or second


def _list(names: Sequence[str]) -> str:
    shown = list(names[:4]) + ([f"{len(names) - 4} more"] if len(names) > 4 else [])
    return shown[0] if len(shown) == 1 else ", ".join(shown[:-1]) + f" and {shown[-1]}" if shown else "nothing"

"""The commands a person can use in each situation. Pure.

The server gives each way its method, address and scope (perdure/server/shapes/situation.py).
"""

from __future__ import annotations

from collections.abc import Sequence
from shlex import quote

from perdure._durable.inspect.situation import texts
from perdure._durable.inspect.situation.facts import Facts, OpenQuestion
from perdure._model import Way


def resume(id: str, label: str = "Resume") -> Way:
    return Way(verb="resume", label=label, cli=f"perdure resume {quote(id)}")


def cancel(id: str) -> Way:
    return Way(verb="cancel", label="Cancel…", cli=f"perdure cancel {quote(id)}", danger=True)


def fork(id: str, label: str = "Fork…") -> Way:
    return Way(verb="fork", label=label, cli=f"perdure fork {quote(id)}")


def rollback(id: str) -> Way:
    return Way(verb="rollback", label="Roll back…", cli=f"perdure rollback {quote(id)} CHECKPOINT", danger=True)


def archive(id: str) -> Way:
    return Way(verb="archive", label="Archive", cli=f"perdure archive {quote(id)}")


def pause(id: str, *, now: bool = False) -> Way:
    cli = f"perdure pause {quote(id)}" + (" --now" if now else "")
    body = {"now": True} if now else {}
    return Way(verb="pause", label="Pause now" if now else "Pause", cli=cli, body=body)


def take(id: str) -> Way:
    return Way(verb="take", label="Take it", cli=f"perdure take {quote(id)}", danger=True)


def terminal(id: str) -> Way:
    return Way(verb="terminal", label="Terminal", cli=f"perdure attach {quote(id)}")


def plan(id: str) -> Way:
    return Way(verb="plan", label="What would come back", cli=f"perdure resume {quote(id)} --plan")


def journal(id: str) -> Way:
    return Way(verb="journal", label="Show the journal", cli=f"perdure journal {quote(id)}")


def attach(id: str) -> Way:
    return Way(verb="attach", label="Work on it", cli=f"perdure run {quote(id)} -- COMMAND")


def start_worker(queue: str = "") -> Way:
    """A worker that takes tasks of this queue."""
    return Way(verb="worker", label="Start a worker", cli=texts.worker_command(queue))


def give_key() -> Way:
    return Way(verb="key", label="Give the key", cli="perdure keys list")


def lift(id: str, *, is_for_all: bool) -> Way:
    cli = "perdure kill-switch off" + ("" if is_for_all else f" {quote(id)}")
    return Way(verb="lift", label="Lift the switch", cli=cli, about="" if is_for_all else id)


def look_at(id: str) -> Way:
    return Way(verb="open", label=f"Open {id}", cli=f"perdure show {quote(id)}", about=id)


def of_question(id: str, asked: OpenQuestion) -> Sequence[Way]:
    """The ways to answer a question."""
    name, path = quote(id), asked.path
    if asked.kind == "approval":
        return (
            Way(verb="approve", label="Approve", cli=f"perdure approve {name}", about=path),
            Way(verb="reject", label="Reject", cli=f"perdure reject {name}", about=path),
        )
    if asked.kind == "effect":
        labels = {"done": "It happened…", "retry": "It did not: try again", "fail": "Let it fail"}
        return tuple(
            Way(
                verb="settle",
                label=labels[choice],
                cli=f"perdure answer {name} {choice}",
                about=path,
                body={"choice": choice},
                danger=choice == "retry",
            )
            for choice in asked.choices
        )
    if asked.kind == "signal":
        cli = f"perdure signal {name} {quote(asked.topic)} VALUE"
        return (Way(verb="signal", label="Send the signal…", cli=cli, about=asked.topic, body={"name": asked.topic}),)
    if asked.kind == "input":
        return (Way(verb="answer", label="Answer…", cli=f"perdure answer {name} ANSWER", about=path),)
    if asked.kind == "credential":
        return (resume(id, "It is in its place: resume"),)
    if asked.kind == "callback":
        return (Way(verb="answer", label="Answer for it…", cli=f"perdure answer {name} ANSWER", about=path),)
    return (Way(verb="answer", label="End the wait now", cli=f"perdure answer {name} null", about=path),)


def of_failure(facts: Facts) -> Sequence[Way]:
    return resume(facts.id), fork(facts.id, "Fork before it…"), rollback(facts.id), archive(facts.id)

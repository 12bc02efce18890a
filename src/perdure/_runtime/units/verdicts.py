"""Decide how a unit came back, from its record. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from perdure._model import Verdict
from perdure._runtime.keeper_client import Record

# Statuses the keeper writes when it did not see the end.
_UNSEEN = -1
# What went with the former one when one of these was made again.
_GONE_WITH_IT = {
    "listener": "connections that waited in its queue were broken",
    "pipe": "what was written into it and not read is gone",
    "socket": "the connection is new: its other end has seen the former one end",
}
# Kinds that a restore makes anew without asking: nothing is in them but their process.
MADE_ANEW = frozenset({"service"})
_NEVER_REBUILT = (
    "not rebuilt, as in every shell: background jobs, open descriptors, limits (ulimit), key bindings, completions, "
    "the folder stack"
)


def verdict_of(record: Record, was_made: bool, is_rebuilt: bool, asked: Mapping[str, Any] | None = None) -> Verdict:
    """`asked` is the recipe of this open, which can differ from the one the unit was made with."""
    if not record.is_alive:
        return _lost(record)
    if before := record.about.get("restarted_from"):
        return restarted(record, before)
    if is_rebuilt and record.kind in _GONE_WITH_IT:
        return _remade(record)
    if is_rebuilt:
        return _rebuilt(record)
    if was_made:
        return Verdict("kept", "made now", same=("all of it: it is new",))
    return _kept(record, asked or {})


def _remade(record: Record) -> Verdict:
    """The verdict on a descriptor that was made again: unread data of the old one is lost."""
    why = record.facts.get("why_rebuilt") or "it had ended"
    return Verdict(
        "rebuilt",
        f"the former one was gone ({why}); a new one was made from its recipe",
        differs=(_GONE_WITH_IT[record.kind],),
        do_not_assume=("that what you had sent, or were sent, has arrived",),
    )


def restarted(record: Record, before: Sequence[int]) -> Verdict:
    """The verdict when the keeper has started another process from the same recipe."""
    count = int(record.facts.get("restarts", 0))
    failed = record.facts.get("failed_with")
    since = [] if failed is None else [f"restarted {count} times in all, last because {ending(failed)}"]
    return Verdict(
        "rebuilt",
        f"it was restarted after a failure: it was {_identity(before)}, and is {_identity((record.pid, record.start))}",
        same=("command, folder, environment, output by offset",),
        differs=("the process is new",),
        since_you_left=since,
        do_not_assume=("that it has anything that the former process had in memory",),
    )


def _identity(process: Sequence[int]) -> str:
    pid, start = process
    return f"process {pid} (start {start})" if pid else "another process"


def _kept(record: Record, asked: Mapping[str, Any]) -> Verdict:
    made = record.recipe
    differs = [
        f"{name}: it was made with {made.get(name)!r}, not {asked[name]!r}"
        for name in ("cwd", "umask")
        if name in asked and asked[name] != made.get(name)
    ]
    return Verdict(
        "kept",
        f"the same process ({record.pid}), held by the keeper" if record.pid else "held open by the keeper",
        same=("process, variables, open files, output by offset",) if record.pid else ("all of it",),
        differs=differs,
        since_you_left=_since(record),
        waiting=record.about.get("waiting"),
        do_not_assume=("that it is at its prompt: waiting() tells",) if record.kind == "shell" else (),
    )


def _since(record: Record) -> Sequence[str]:
    about = record.about
    told = []
    if "end" in about and "last_input_at" in about and about["end"] > about["last_input_at"]:
        told.append(f"{about['end'] - about['last_input_at']:,} bytes were put out since the last input")
    if record.facts.get("output_trouble"):
        told.append(str(record.facts["output_trouble"]))
    if about.get("unread"):
        told.append(f"{about['unread']:,} bytes wait in it to be read")
    if about.get("is_closed_by_peer"):
        told.append("its other end has closed its side: what waits can be read, and nothing more will come")
    if about.get("waiting_connections"):
        told.append(f"{about['waiting_connections']:,} connections wait in its queue")
    if about.get("running"):
        told.append(f"still running: {about['running']}")
    if about.get("last_ended"):
        told.append(f"ended last: {about['last_ended']}")
    return told


def _rebuilt(record: Record) -> Verdict:
    recipe = record.facts.get("rebuilt_from", {})
    same = [f"{recipe[name]} {name}" for name in ("variables", "functions", "history") if recipe.get(name)]
    was_in, is_in = recipe.get("directory"), record.recipe.get("cwd")
    if was_in and was_in == is_in:
        same.append(f"directory {was_in}")
    withheld = [name for name in recipe.get("withheld", ()) if name not in record.recipe.get("secret_env", {})]
    differs = [f"variable {name} was not written down, as it may be secret" for name in withheld]
    differs += [f"variable {name} is missing: its secret is not here" for name in record.facts.get("missing", ())]
    differs += [f"not rebuilt: {what}" for what in record.facts.get("not_rebuilt", recipe.get("not_rebuilt", ()))]
    if was_in and was_in != is_in:
        differs.append(f"directory {was_in} is gone: it is in {is_in}")
    if record.kind == "shell" and recipe:
        differs.append(_NEVER_REBUILT)
    elif record.recipe.get("is_shell"):
        differs.append("nothing was known of its variables, functions and folder: they are as in a new shell")
    why = record.facts.get("why_rebuilt") or "it had ended"
    return Verdict(
        "rebuilt",
        f"its process was gone ({why}); a new one was made from its recipe",
        same=same,
        differs=["the process is new", *differs],
        do_not_assume=(
            "that anything the old one had started still runs",
            "that what ran in it has ended well: commands() tells what is known",
        ),
        options=("set what is missing, then go on",),
    )


def _lost(record: Record) -> Verdict:
    options = ["rebuild='auto' makes a new one from its recipe"] if record.recipe.get("argv") else []
    return Verdict(
        "lost",
        str(record.facts.get("why") or ending(record.ended)),
        since_you_left=(ending(record.ended),),
        do_not_assume=("that anything of it still runs", "that what it was doing has been done"),
        options=[*options, "read() gives what it had put out, if the keeper still has it"],
    )


def ending(status: int | None) -> str:
    """The end of a process, in words."""
    if status is None:
        return "it has not ended"
    if status == _UNSEEN:
        return "it ended unseen"
    signal = status & 0x7F
    return f"it was ended by signal {signal}" if signal else f"it ended with exit code {status >> 8}"

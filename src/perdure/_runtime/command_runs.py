"""`perdure run`: any command as a task. Starting it, watching it, and starting it again.

Two units are kept for it: the command, and a recorder, which holds the task's lease, writes down how the command
ended, and stops, continues or ends it when the task is paused, resumed or cancelled. A command that works on the
task itself takes the lease over from the recorder.
"""

from __future__ import annotations

import os
import secrets
import signal
import sys
from collections.abc import Sequence
from typing import Any, Literal

from perdure._ground.bridge import Nap
from perdure._ground.traces import traceparent
from perdure._runtime.keeper_client import Record
from perdure._runtime.task_runtime import Runtime
from perdure._runtime.units import Unit, ending, secrets_of, verdict_of
from perdure.errors import Conflict, UnitEnded

COMMAND, RECORDER = "run", "run-recorder"
Policy = Literal["never", "on-failure", "on-kill"]
_LOOK_SECONDS = 0.02
# The variables that the recorder needs: the store's address and key, and Python's paths.
_NEEDED = ("PATH", "HOME", "USER", "LANG", "LC_ALL", "TZ", "PYTHONPATH", "VIRTUAL_ENV", "PERDURE_KEY")
_NEEDED_IN_TESTS = ("PERDURE_TEST_CLOCK",)


class Command(Unit):
    """A command under `perdure run`."""

    def _check(self) -> None:
        """A command that has ended can still be read."""

    @property
    def is_terminal(self) -> bool:
        return self.record.kind in ("command", "shell")

    async def output(self, start: int, seconds: float = 5.0) -> tuple[bytes, int, int, bool]:
        """Its output from an offset on, after a short wait: bytes, their offset, a gap, and the end."""
        verb = "wait" if self.is_terminal else "more"
        reply = await self.ask(verb, start=start, seconds=seconds)
        status, end = reply.args["status"], reply.args["start"] + len(reply.body)
        return reply.body, reply.args["start"], reply.args["gap"], status is not None and end >= reply.args["end"]

    async def errors(self, start: int) -> bytes:
        """Its standard error, if that is separate from its output."""
        return b"" if self.is_terminal else (await self.ask("read_errors", start=start)).body

    async def type(self, data: bytes) -> None:
        await self.write("send", data, id=secrets.token_hex(12))

    async def resize(self, rows: int, columns: int) -> None:
        await self.write("resize", rows=rows, columns=columns)


async def begin(
    rt: Runtime,
    argv: Sequence[str],
    *,
    policy: Policy,
    size: tuple[int, int] | None,
    stdin: int | None,
) -> Command:
    """Start a command for the task; on a terminal of this size, or on pipes with this input.

    Raises:
        Conflict: there is one already, and it lives.
        UnitEnded: the command could not be started.
    """
    former = await found(rt, COMMAND)
    if former is not None and former.is_alive:
        raise Conflict(
            f"a command runs for this task already (process {former.pid})",
            kept="the command that runs",
            do="`perdure attach` shows it",
        )
    recorder = await _recorder(rt, policy)
    recipe, hidden = rt._recipe(list(argv), None, {})
    recipe["env"] |= handed_over(rt, recorder)
    if size is not None:
        recipe["rows"], recipe["columns"] = size
    kind, fds = ("command", ()) if size is not None else ("piped", () if stdin is None else (stdin,))
    if former is not None:
        await rt._client.ask("forget", unit=former.uid)
    try:
        return await rt._opened(Command, kind, COMMAND, recipe, secrets=hidden, rebuild="never", fds=fds)
    except BaseException:
        await _dismiss(rt, recorder)
        raise


async def _dismiss(rt: Runtime, recorder: Record) -> None:
    """End a recorder that has nothing to record, so that another process can end the task."""
    await rt._client.ask("end", unit=recorder.uid, wait=True)


async def begin_again(rt: Runtime, policy: Policy | None = None) -> Record | None:
    """Start the task's command anew, as it was started first; None when it never had one.

    Its environment is the recorded one; secrets are fetched by their references.
    """
    former = await found(rt, COMMAND)
    if former is None or former.is_alive:
        return former
    known = await found(rt, RECORDER)
    chosen: Policy = policy or (known.recipe["argv"][-1] if known is not None else "never")
    recorder = await _recorder(rt, chosen)
    return await rebuilt(rt, former, recorder)


async def rebuilt(rt: Runtime, former: Record, recorder: Record) -> Record:
    hidden, missing = secrets_of(former)
    if missing:
        raise UnitEnded(COMMAND, f"its environment had secrets that are not here: {', '.join(missing)}")
    reply = await rt._client.ask(
        "rebuild", unit=former.uid, secrets={**hidden, **handed_over(rt, recorder)}, limits=dict(former.limits)
    )
    return Record.read(reply.args["unit"])


def handed_over(rt: Runtime, recorder: Record) -> dict[str, str]:
    """Tell a command the task it runs for, the lease it may take over, and the trace of its spans."""
    owner = rt._owner
    return {
        "PERDURE_TASK": owner.task,
        "PERDURE_TASK_HOLDER": f"{owner.uid}:{recorder.pid}",
        "TRACEPARENT": traceparent(owner.uid),
    }


async def _recorder(rt: Runtime, policy: Policy) -> Record:
    """A recorder that holds the lease, or has left it to a process that works on the task."""
    known = await found(rt, RECORDER)
    while known is not None:  # of a former attempt: it has done its duty, or waits for a command that never came
        await rt._client.ask("end" if known.is_alive else "forget", unit=known.uid, wait=True)
        known = await found(rt, RECORDER)
    store = rt._store
    argv = [sys.executable, "-m", "perdure.cli.recorder", store.namespace, rt._owner.task, policy]
    recipe, hidden = rt._recipe(argv, "/", {})
    needed = {name: os.environ[name] for name in (*_NEEDED, *_NEEDED_IN_TESTS) if name in os.environ}
    url = f"sqlite://{store.address.target}" if store.address.engine == "sqlite" else store.address.target
    recipe["env"] = {
        **{name: value for name, value in needed.items() if name in recipe["env"]},
        "PERDURE_TASK": rt._owner.task,
    }
    hidden = {name: value for name, value in needed.items() if name not in recipe["env"]}
    if store.address.engine == "sqlite":
        recipe["env"]["PERDURE_URL"] = url
    else:
        hidden["PERDURE_URL"] = url
    recipe["secret_env"] = {name: f"secret://env/{name}" for name in hidden}
    recipe["restart"] = "on-failure"
    unit = await rt._opened(Unit, "recorder", RECORDER, recipe, secrets=hidden, rebuild="never")
    while "ready_at" not in (await unit.refresh()).facts:
        if not unit.record.is_alive:
            raise UnitEnded(RECORDER, f"the recorder could not begin: {ending(unit.record.ended)}")
        await Nap(_LOOK_SECONDS)
    return unit.record


async def found(rt: Runtime, name: str) -> Record | None:
    """The task's newest unit of this name."""
    reply = await rt._client.ask("units", task_uid=rt._owner.uid)
    mine = [Record.read(told) for told in reply.args["units"] if told["name"] == name]
    return max(mine, key=lambda one: one.uid, default=None)


async def terminals(rt: Runtime) -> list[Command]:
    """The terminals of a task that a person can watch, newest last."""
    reply = await rt._client.ask("units", task_uid=rt._owner.uid)
    records = [Record.read(told) for told in reply.args["units"]]
    return [
        Command(rt._client, rt._owner, one, verdict_of(one, False, bool(one.about.get("is_rebuilt"))))
        for one in sorted(records, key=lambda one: one.uid)
        if one.kind in ("command", "piped", "shell")
    ]


# ── what an end means ────────────────────────────────────────────────────────────────────────────


def outcome(status: int, policy: Policy) -> tuple[Literal["complete", "fail", "again"], Any]:
    """The outcome of the task after its command has ended in this way. Pure."""
    was_killed = status < 0 or bool(status & 0x7F)
    if not was_killed and status == 0:
        return "complete", {"exit_code": 0}
    if policy == "on-failure" or (policy == "on-kill" and was_killed):
        return "again", None
    if was_killed:
        number = status & 0x7F if status > 0 else 0
        name = signal.Signals(number).name if number else "unseen"
        message = f"the command was interrupted ({name})" if number else "the command ended unseen"
        return "fail", {"message": message, "kind": "interrupted", "signal": number}
    return "fail", {"message": f"exit code {status >> 8}", "kind": "exit", "exit_code": status >> 8}

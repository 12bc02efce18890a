"""What the tools do with shells and services: one call runs a command, waits, and gives its output.

A command goes on when the wait is over, or when the client, this server or the keeper dies. Its result is found again
by its id, in whichever shell it ran.
"""

from __future__ import annotations

import os
import secrets
import signal
import time
from collections.abc import Sequence
from contextlib import suppress
from datetime import timedelta
from typing import TYPE_CHECKING, NamedTuple

from perdure._ground.bridge import Nap
from perdure._ground.ids import check_id
from perdure._runtime import CommandOutput, Runtime, Service, Shell, port
from perdure.errors import (
    EffectUncertain,
    InvalidInput,
    NotAllowed,
    NotFound,
    ShellBusy,
    TimedOut,
    UnitEnded,
    UnitHeld,
)
from perdure.mcp.answers import Ran, ShellInfo, Shells, Status, clean, cut, short
from perdure.mcp.keys import keys_as_text
from perdure.memory import owner_prefix

if TYPE_CHECKING:
    from perdure.types import Storage

# What a command may take before its first look; most have ended by then.
_AT_ONCE = timedelta(milliseconds=300)
_LOOK_SECONDS = 0.5
# So many looks in a row at a program that reads from its terminal, and it is taken to wait for input.
_LOOKS_FOR_INPUT = 3
_STOP_SECONDS = 5.0
_FIRST_LOOK_SECONDS = 0.5  # at a service without a port
_AGAIN = "start_service starts it again, with another command too"
_MOST_OUTPUT = 4 << 20
_SHELL_ENDED = "the shell ended with it; the next command starts it again, as it was at its last prompt"
_BUSY_NOTE = "wait for it (read_output), stop it (stop_command), or use another shell name"
_SECRET_NOTE = "the program asks for a secret; a person answers it: `perdure attach {task} {shell}`. You cannot."


class Seen(NamedTuple):
    """What was read of a command."""

    last: CommandOutput
    text: str
    gap: int


class Terminals:
    """The shells and services of one task."""

    def __init__(self, rt: Runtime, task: str, storage: Storage) -> None:
        self._rt, self._task, self._storage = rt, task, storage

    async def run(self, command: str, shell_name: str, id: str, wait_seconds: float, most: int) -> Ran:
        shell = await self._shell(shell_name)
        key = id or f"{shell_name}-{secrets.token_hex(4)}"
        try:
            await shell.run(command, key=key, timeout=min(_AT_ONCE, timedelta(seconds=wait_seconds)))
        except TimedOut:
            pass
        except (ShellBusy, UnitHeld) as busy:
            return Ran(status="busy", shell=shell_name, note=_BUSY_NOTE, detail=short(busy.what, 500))
        except EffectUncertain:
            note = "the machine was restarted while it ran, so its outcome is not known; look before you run it again"
            return Ran(status="lost", command_id=key, shell=shell_name, note=note)
        finally:
            await _give_back(shell)
        return await self._watched(shell, key, 0, wait_seconds, most)

    async def read(self, id: str, shell_name: str, offset: int, wait_seconds: float, most: int) -> Ran:
        if not id:
            return await self._screen(await self._found(shell_name or "main"), most)
        shell = await self._shell_of(id, shell_name)
        return await self._watched(shell, id, offset, wait_seconds, most)

    async def send(self, shell_name: str, text: str, keys: Sequence[str], wait_seconds: float, most: int) -> Ran:
        typed = text + keys_as_text(keys)
        if not typed:
            raise InvalidInput("there is nothing to type", do="give text, or keys such as Enter or C-c")
        shell = await self._found(shell_name)
        if isinstance(shell, Service):
            raise InvalidInput(f"{shell_name!r} is a service, which reads no keys", do="run it in a shell")
        before = int((await shell.refresh()).about.get("end", 0))
        try:
            await shell.send(typed, refuse_secret=True)
        except NotAllowed:
            return Ran(status="waiting_for_secret", shell=shell_name, note=self._secret_note(shell_name))
        except UnitHeld as held:
            return Ran(status="busy", shell=shell_name, detail=short(held.what, 300))
        finally:
            await _give_back(shell)
        await Nap(wait_seconds)
        return await self._since(shell, before, most)

    async def stop(self, shell_name: str, id: str, force: bool, most: int) -> Ran:
        if id:
            shell = await self._shell_of(id, "")
            if (await shell.output(id)).state != "running":
                return await self._watched(shell, id, 0, 0, most)
        else:
            found = await self._found(shell_name)
            if isinstance(found, Service):
                if found.record.is_alive:
                    await found.end()
                return Ran(status="exited", shell=shell_name, note="the service has ended")
            shell = found
        before = int((await shell.refresh()).about.get("end", 0))
        await shell.signal(signal.SIGKILL if force else signal.SIGINT)
        await _give_back(shell)
        if id:
            return await self._watched(shell, id, 0, _STOP_SECONDS, most)
        end = time.monotonic() + _STOP_SECONDS
        while "running" in (about := (await shell.refresh()).about) and time.monotonic() < end:
            await Nap(0.05)
        ran = await self._since(shell, before, most)
        if "running" not in about:
            ran.status, ran.detail = "exited", short(about.get("last_ended") or "nothing ran", 300)
        return ran

    async def start_service(self, name: str, command: str, port_number: int, wait_seconds: float, most: int) -> Ran:
        check_id(name, "name of a service")
        argv = [os.environ.get("SHELL") or "/bin/sh", "-c", command]
        ready = port(port_number) if port_number else None
        detail = ""
        try:
            service = await self._rt.service(name, argv, ready=ready, timeout=timedelta(seconds=max(1.0, wait_seconds)))
        except TimedOut as late:
            detail, service = short(late.what, 500), await self._rt.service(name, argv)
        except UnitEnded as ended:
            return Ran(status="exited", shell=name, note=_AGAIN, detail=short(ended.why, 2000))
        state = await service.state()
        if service.was_made and ready is None:  # a command that is wrong ends at once
            end = time.monotonic() + min(wait_seconds, _FIRST_LOOK_SECONDS)
            while state.is_alive and time.monotonic() < end:
                await Nap(0.05)
                state = await service.state()
        output, omitted = cut(clean((await service.read()).text), most)
        told = f"process {state.pid}, ports {', '.join(map(str, state.ports)) or 'none'}"
        if not state.is_alive:
            told = _AGAIN
        return Ran(
            status="running" if state.is_alive else "exited",
            shell=name,
            output=output,
            omitted=omitted,
            note=told,
            detail=detail,
        )

    async def list(self) -> Shells:
        return Shells(shells=await shell_infos(self._rt))

    # ── shells ──────────────────────────────────────────────────────────────────────────────────

    async def _shell(self, name: str) -> Shell:
        """The shell of this name, made if it is not there, and made again if it has ended."""
        check_id(name, "name of a shell")
        return await self._rt.shell(name, rebuild="auto")

    async def _found(self, name: str) -> Shell:
        units = [unit.record for unit in await self._rt.units() if unit.name == name]
        newest = max(units, key=lambda record: record.uid, default=None)
        if newest is not None and newest.kind == "service":  # to look at one that has ended does not start it
            return await self._rt.service(name, newest.recipe["argv"], rebuild="never")  # type: ignore[return-value]
        if newest is None or newest.kind != "shell":
            raise NotFound("shell", name, f"task {self._task!r}", do="list_shells tells their names")
        return await self._rt.shell(name, rebuild="auto")

    async def _shell_of(self, id: str, name: str) -> Shell:
        """The shell in which the command with this id ran."""
        names = [unit.name for unit in await self._rt.units() if unit.record.kind == "shell"]
        for one in sorted(set(names), key=lambda one: one != (name or "main")):
            shell = await self._rt.shell(one, rebuild="auto")
            try:
                await shell.output(id)
            except (NotFound, UnitEnded):
                continue
            return shell
        raise NotFound("command", id, f"task {self._task!r}", do="where_was_i and list_shells tell what there is")

    # ── output ──────────────────────────────────────────────────────────────────────────────────

    async def _watched(self, shell: Shell, key: str, offset: int, wait_seconds: float, most: int) -> Ran:
        """The command as it stands when it has ended, waits for somebody, or the time is over."""
        end, looks, now = time.monotonic() + wait_seconds, 0, await shell.output(key, 1 << 62)
        while now.state == "running" and now.waiting != "secret" and (left := end - time.monotonic()) > 0:
            looks = looks + 1 if now.waiting == "prompt" else 0
            if looks >= _LOOKS_FOR_INPUT:
                break
            now = await shell.output(key, 1 << 62, wait=timedelta(seconds=min(_LOOK_SECONDS, left)))
        seen, news = await _read_all(shell, key, offset), await self._news(shell, key)
        return self._told(shell, key, seen, news, most, is_input=looks >= _LOOKS_FOR_INPUT)

    async def _news(self, shell: Shell, key: str) -> str:
        """That the shell is not the one it was, with its first command only. This server lives on for many."""
        if shell.level == "kept":
            return ""
        place = f"{owner_prefix('execution', self._task)}mcp/told/{shell.name}"
        told = await self._storage.get(place)
        if not isinstance(told, list) or told[:1] != [shell.record.uid]:
            await self._storage.put(place, told := [shell.record.uid, key])
        return (
            short(f"the shell is {shell.level}: {shell.verdict.reason}", 500) if told == [shell.record.uid, key] else ""
        )

    def _told(self, shell: Shell, key: str, seen: Seen, news: str, most: int, *, is_input: bool) -> Ran:
        last, note = seen.last, ""
        status: Status = "running"
        if last.state == "ended":
            status, note = "exited", "" if last.cwd else _SHELL_ENDED
        elif last.state == "uncertain":
            status, note = "lost", "the machine was restarted while it ran, so its outcome is not known"
        elif last.waiting == "secret":
            status, note = "waiting_for_secret", self._secret_note(shell.name)
        elif is_input:
            status, note = "waiting_for_input", "it reads from its terminal; send_keys types into it"
        if seen.gap:
            note = "; ".join(filter(None, (note, f"the first {seen.gap} bytes are no longer kept")))
        output, omitted = cut(clean(seen.text), most)
        return Ran(
            status=status,
            exit_code=last.exit_code,
            output=output,
            omitted=omitted,
            next_offset=last.next_offset,
            command_id=key,
            shell=shell.name,
            cwd=last.cwd,
            note=note,
            detail=news,
        )

    async def _since(self, shell: Shell, offset: int, most: int) -> Ran:
        """What a shell has put out since, whichever command it is."""
        found, waiting = await shell.read(offset, plain=True), await shell.waiting()
        output, omitted = cut(clean(found.text), most)
        status: Status = "waiting_for_secret" if waiting == "secret" else "waiting_for_input" if waiting else "running"
        note = self._secret_note(shell.name) if waiting == "secret" else ""
        return Ran(status=status, shell=shell.name, output=output, omitted=omitted, note=note)

    async def _screen(self, shell: Shell, most: int) -> Ran:
        if isinstance(shell, Service):
            state = await shell.state()
            output, omitted = cut(clean((await shell.read()).text), most)
            status: Status = "running" if state.is_alive else "exited"
            return Ran(status=status, shell=shell.name, output=output, omitted=omitted)
        waiting = await shell.waiting()
        status = "waiting_for_secret" if waiting == "secret" else "waiting_for_input" if waiting else "running"
        output, omitted = cut(clean(await shell.screen()), most)
        note = "the screen as it is now; give a command_id for the output of one command"
        return Ran(status=status, shell=shell.name, output=output, omitted=omitted, note=note)

    def _secret_note(self, shell_name: str) -> str:
        return _SECRET_NOTE.format(task=self._task, shell=shell_name)


async def shell_infos(rt: Runtime) -> list[ShellInfo]:
    """The shells, services and commands of a task: of each name the newest one."""
    found = {}
    for unit in sorted(await rt.units(), key=lambda unit: unit.record.uid):
        record, about = unit.record, unit.record.about
        if record.kind in ("shell", "service", "pipes", "command", "piped"):
            found[unit.name] = ShellInfo(
                name=unit.name,
                kind=record.kind,
                alive=record.is_alive,
                running=short(about.get("running") or "", 200),
                waiting=str(about.get("waiting") or ""),
                last=short(about.get("last_ended") or "", 200),
                note="" if record.is_alive else short(record.facts.get("why") or "", 200),
            )
    return list(found.values())


async def _read_all(shell: Shell, key: str, offset: int) -> Seen:
    parts, gap, size = [], 0, 0
    while True:
        found = await shell.output(key, offset)
        parts.append(found.text)
        gap += found.gap
        size += len(found.text)
        if found.is_whole or found.next_offset <= offset or size > _MOST_OUTPUT:
            return Seen(found, "".join(parts), gap)
        offset = found.next_offset


async def _give_back(shell: Shell) -> None:
    """Let another client type into it."""
    with suppress(UnitEnded):  # it ended meanwhile, and belongs to nobody
        await shell.release()

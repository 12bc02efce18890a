"""Shells that know their commands: bash with marks in its prompt, on a terminal the keeper holds.

`run` presses one key, and never Enter. The shell then checks that its line is empty, takes the id of the command from a
file, reads the command itself from another, and refuses an id that it has begun before. If another program gets the
key, or the line is half typed, nothing is run and nothing changes. So after any death it is known whether a command has
begun. Another program on a terminal (a REPL, ssh, psql) is only a Terminal.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
import re
import secrets
import socket
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, ClassVar

from perdure.keeper.core import Answer, Call, KeeperCore, Kind, Refused, Soon, Unit, Verb, is_uid, untrusted
from perdure.keeper.kinds.inputs import OWN
from perdure.keeper.kinds.shell import (
    LARGEST_OUTPUT,
    Command,
    Commands,
    Mark,
    Marks,
    ShellLine,
    ShellState,
    digest,
    ended_output,
    forgotten_output,
    forgotten_result,
    ledger,
    recipe_again,
    recipes,
    running_output,
    told_command,
)
from perdure.keeper.kinds.spooled_program import MOST_PATIENCE
from perdure.keeper.kinds.terminals import Terminal
from perdure.keeper.process import Program, processes
from perdure.keeper.process import terminal_state as ttys

log = logging.getLogger("perdure.keeper")

# How long a new shell may take to its first prompt: the user's own start files are read before.
PROMPT_SECONDS = 30.0
# How long input typed by a former keeper may take to be read.
ON_ITS_WAY_SECONDS = 2.0
# How long the shell may take to answer the key; at its prompt it does so at once.
ANSWER_SECONDS = 10.0
# The shell's word for an id it has begun before.
REFUSED = "again"
# The key (Ctrl-^): once to have the call put on the line, if that is empty, and once to have it taken.
KEY = b"\x1e\x1e"
_REVOKED = b"revoked\n"
_ID = re.compile(r"[A-Za-z0-9_-]{1,80}")


class Shell(Terminal):
    """A terminal; with `is_shell` in its recipe, one whose commands are known."""

    commands: Commands

    def __init__(self, keeper: KeeperCore, unit: Unit) -> None:
        super().__init__(keeper, unit)
        self._is_shell = bool(unit.recipe.get("is_shell"))
        self._state = ShellState(self.place, keeper.units.folder(unit), unit.facts, keeper.units.records)
        self._line: ShellLine | None = None
        self._functions: dict[str, str] = {}  # for the start of one that is made again
        self._at_prompt = False
        self._prompt_at = 0  # its place in the output
        self._has_keys = False  # at this prompt the shell can be asked whether its line is empty
        self._is_coming = True  # the prompt comes next
        self._offer: asyncio.Future[str] | None = None  # what the shell answers to the key
        self._now: Command | None = None
        self._waiters: dict[str, list[asyncio.Future[Command]]] = {}
        self._for_prompt: list[asyncio.Future[None]] = []
        self._for_mark: list[asyncio.Future[None]] = []
        self._is_settled = Soon()  # it has reached its first prompt, and its state is known

    # ── beginning ───────────────────────────────────────────────────────────────────────────────

    def start(self) -> None:
        if self._is_shell:
            state, history = self.unit.recipe.pop("state", None), str(self.unit.recipe.pop("history", ""))
            self._functions = self._state.write_start(state, history)
            mine = self.keeper.units.folder(self.unit) / "commands"
            if known := self.unit.recipe.pop("known", None):  # what was asked of it under another keeper
                untrusted.write(mine, ledger(known))
            former = self.unit.recipe.get("commands_of")
            if former:  # earlier commands are still known, so a key is valid for ever
                old = self.keeper.units.home / _folder_name(former) / "commands"
                with contextlib.suppress(FileNotFoundError):  # it was never asked anything
                    untrusted.write(mine, untrusted.read(old, untrusted.MOST_JOURNAL))
            self._open_commands()
        super().start()

    def line(self) -> int | None:
        if not self._is_shell:
            return None
        ours, theirs = socket.socketpair()
        self.keeper.anchored.put(f"{self.unit.uid}/line", ours.fileno())
        self._line = ShellLine(ours.detach())
        return theirs.detach()

    def command(self) -> Program:
        found = super().command()
        if self._is_shell:
            argv = [*found.argv, "--rcfile", str(self.place / "rc"), "-i"]
            found = replace(found, argv=argv, env={**found.env, **self._functions})
        return found

    def _open_commands(self) -> None:
        live = self.private / "commands"
        if not live.exists():  # a former keeper had them where the shell could write
            untrusted.make_folder(live)
            for file in (self.place / "commands").glob("*.*"):
                untrusted.take_over(file, live / file.name, LARGEST_OUTPUT)
        self.commands = Commands(self.keeper.units.folder(self.unit) / "commands", live)
        self._marks = Marks(int(self.unit.facts.get("looked_at", 0)))

    def recover(self) -> None:
        if self._is_shell:
            self._open_commands()
            open_ones = [one for one in self.commands.all.values() if one.begun_at and not one.has_ended]
            self._now = open_ones[-1] if open_ones else None
            if "nonce" not in self.unit.facts:
                self._line = ShellLine(self.keeper.anchored.get(f"{self.unit.uid}/line")[0])
        super().recover()
        self.saw()  # what a former keeper had not looked at

    def mend(self) -> None:
        super().mend()
        if self._is_shell:
            untrusted.make_folder(self.place / "begun")
            for command in self.commands.all.values():
                if command.begun_at and command.was_asked:  # it must not begin a second time
                    untrusted.write(self.place / "begun" / command.id, b"")
            self.commands.write_again()

    # ── what the output says ────────────────────────────────────────────────────────────────────

    def saw(self) -> None:
        """Look at all unread output: there may be more than one read returns."""
        if self._is_shell:
            while (part := self.log.read(self._marks.looked_at)).data:
                for mark in self._marks.feed(part.start, part.data):
                    if self._is_own(mark):
                        self._marked(mark)

    def _is_own(self, mark: Mark) -> bool:
        """True if the shell itself has made this mark; otherwise it is plain output."""
        if self._line is None:
            return mark.number == self.unit.facts.get("nonce")
        return self._line.was_said(mark.said)

    def _marked(self, mark: Mark) -> None:
        for waiter in self._for_mark:
            if not waiter.done():
                waiter.set_result(None)
        self._for_mark.clear()
        if mark.kind == "C":
            self._began(mark)
        elif mark.kind == "D":
            self._ended(mark)
        elif mark.kind == "K":
            self._answered("busy")
        else:
            self._at_prompt, self._is_coming = True, False
            self._prompt_at, self._has_keys = mark.end, mark.has_keys
            for waiter in self._for_prompt:
                if not waiter.done():
                    waiter.set_result(None)
            self._for_prompt.clear()

    def _began(self, mark: Mark) -> None:
        self._at_prompt = self._is_coming = False
        if mark.id:
            self._answered(mark.id)
        if mark.id == REFUSED:  # a call that was typed twice; the first one counts
            if self._now is not None:
                self.commands.forget(self._now)
            self._now = None
            return
        known = self.commands.all.get(mark.id) if mark.id else None
        command = known or self.commands.typed(mark.end, self.keeper.now())
        if mark.id and self._now is not None and not self._now.was_asked:
            self.commands.forget(self._now)  # the typed call that reads this one
        command.begun_at = command.begun_at or self.keeper.now()
        command.start = mark.end
        self._now = command
        self.commands.save(command)

    def _ended(self, mark: Mark) -> None:
        command, self._now, self._is_coming = self._now, None, True
        cwd = processes.cwd_of(self.leader) or ""
        if command is not None:
            command.code, command.cwd, command.ended_at = mark.code, cwd, self.keeper.now()
            command.end = mark.start
            if not command.was_asked:
                command.text = self._state.last_typed()
            self._finish(command)
        self._settle_untaken(command)
        self.unit.facts["looked_at"] = mark.end
        try:
            self._state.learn(mark.state)
            self.keeper.save(self.unit)
        except OSError as error:  # a full disk: the recipe of the prompt before is still there
            log.warning("what a shell is like could not be written down: %s", error)
        else:
            if self._line is not None:
                self._line.settle(mark.said)
        self._is_settled.give(Answer())

    def _answered(self, answer: str) -> None:
        """The shell has answered to the key: that it is busy, or with the id of the command that begins."""
        if self._offer is not None and not self._offer.done():
            self._offer.set_result(answer)

    def _finish(self, command: Command) -> None:
        part = self.log.read(command.start, max(0, command.end - command.start))
        try:
            self.commands.ended(command, part.data[: max(0, command.end - part.start)])
        except OSError as error:  # the waiting client gets the result; after a restart of the machine it is uncertain
            log.warning("the result of a command could not be written down: %s", error)
        for waiter in self._waiters.pop(command.id, ()):
            if not waiter.done():
                waiter.set_result(command)

    def _settle_untaken(self, ended: Command | None) -> None:
        """A call that was typed and did not begin: something else was on the line."""
        for id in [id for id in self._waiters if ended is None or id != ended.id]:
            command = self.commands.all.get(id)
            if command is not None and not command.begun_at and not self._has_begun(id):
                for waiter in self._waiters.pop(id):
                    if not waiter.done():
                        waiter.set_exception(Refused("busy", what="something else was typed on the same line"))

    def _has_begun(self, id: str) -> bool:
        """The shell has written down that it has begun it; not, that we have taken it back."""
        try:
            return untrusted.read(self._begun(id), len(_REVOKED)) != _REVOKED
        except FileNotFoundError:
            return False
        except OSError:  # something else has its name: it is not begun again
            return True

    def _begun(self, id: str) -> Path:
        folder = self.place / "begun"
        untrusted.make_folder(folder)
        return folder / id

    def exited(self) -> None:
        super().exited()
        if self._is_shell:
            status = self.unit.ended or 0
            if self._now is not None:
                self._now.code = os.waitstatus_to_exitcode(status) if status >= 0 else None
                self._now.end, self._now.ended_at = self.log.end, self.keeper.now()
                self._finish(self._now)
            self._answered("ended")
            self._is_settled.give(Answer())
            for waiter in [waiter for waiters in self._waiters.values() for waiter in waiters]:
                if not waiter.done():
                    waiter.set_exception(Refused("ended", what="the shell has ended"))
            self._waiters.clear()

    # ── commands ────────────────────────────────────────────────────────────────────────────────

    async def run(self, call: Call) -> Answer:
        """The result of a command: the recorded one, that of the running one, or of one that begins now."""
        id, text = call.get("id", str, ""), call.body.decode()
        if not _ID.fullmatch(id) or "\0" in text:
            raise Refused("invalid", what=f"no id or no command: {id!r}")
        if not self._is_shell:
            program = os.path.basename(self.unit.recipe["argv"][0])
            raise Refused(
                "invalid", what=f"run() knows the commands of bash only, and this is {program}: use send() and expect()"
            )
        known = self.commands.known.get(id)
        if known is not None and known["digest"] != digest(text):
            raise Refused("invalid", what="this key belongs to another command")
        command = self.commands.all.get(id)
        if known is not None and (command is None or command.has_ended):
            return self._result(command, known)
        if command is None:
            await self._wait_for_prompt()
            self._check_free()
            command = self.commands.ask(id, text, self.keeper.now())
            await self._hand_over(command)
        elif not await self._has_come_to_begin(command):
            await self._hand_over(command)
        if command.has_ended:
            return self._result(command, self.commands.known[id])
        waiter: asyncio.Future[Command] = self.keeper.loop.create_future()
        self._waiters.setdefault(id, []).append(waiter)
        seconds = call.values.get("within")
        try:
            ended = await asyncio.wait_for(waiter, None if seconds is None else float(seconds))
        except TimeoutError:
            return Answer({"is_running": True})
        return self._result(ended, self.commands.known[id])

    async def _has_come_to_begin(self, command: Command) -> bool:
        """True if an earlier command has begun: it may have been typed, and be on its way."""
        is_patient = self._inputs.has_any(f"{OWN}{command.id}-")
        while not self._has_begun(command.id):
            await self._wait_for_prompt()
            if self._at_prompt and not is_patient and not self._has_begun(command.id):
                self._check_free()
                return False
            changed: asyncio.Future[None] = self.keeper.loop.create_future()
            self._for_mark.append(changed)
            try:
                await asyncio.wait_for(changed, ON_ITS_WAY_SECONDS)
            except TimeoutError:
                is_patient = False
                self._check_free()
        return True

    async def _wait_for_prompt(self) -> None:
        """Between one command and the next, and at the start, the prompt is a moment away; perhaps also while the shell
        itself is in front, after what was typed by hand."""
        seconds = PROMPT_SECONDS if self._is_coming else ON_ITS_WAY_SECONDS
        is_asked = self._now is not None and self._now.was_asked
        is_over = self.has_ended or (self._line is not None and self._line.is_over)
        if self._is_coming or not (self._at_prompt or is_asked or ttys.in_front(self._master) != self.leader):
            if is_over:
                return
            waiter: asyncio.Future[None] = self.keeper.loop.create_future()
            self._for_prompt.append(waiter)
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(waiter, seconds)

    def _check_free(self) -> None:
        """Only the shell itself, at its prompt, with nothing on its line, takes a command; where that is not known,
        it does not."""
        if self.has_ended or not self.unit.is_alive:
            raise Refused("ended", what="the shell has ended")
        if self._line is not None and self._line.is_over:
            raise Refused("busy", what="it has become another program, or closed its line to the keeper")
        if not self._at_prompt or ttys.in_front(self._master) != self.leader:
            running = (self._now.text if self._now else "") or "another program is in front"
            raise Refused("busy", what=running[:200])
        if self._inputs.typed_at >= self._prompt_at:
            raise Refused("busy", what="something was typed and not sent off")
        if self._inputs.keys:
            raise Refused("busy", what="what was typed last is not a whole key, so its line may not be empty")
        if not self._has_keys and self._inputs.is_typed_last:
            raise Refused("busy", what="without its line editor it cannot say whether its line is empty")

    async def _hand_over(self, command: Command) -> None:
        """Have the shell take it.

        Raises:
            Refused: the shell did not, and will not: its line is not empty, or it does not answer.
        """
        untrusted.remove(self._begun(command.id))  # of a time it was taken back
        lines = [
            f'{{ __perdure_begin {command.id} "$?" {recipes.quoted(command.text)}; }} 2>/dev/null || return 125',
            f"{{ __perdure_go {command.id}; }} 2>/dev/null",
            command.text,
        ]
        untrusted.write(self.place / command.id, "\n".join([*lines, ""]).encode())
        call = f' . "$__perdure/{command.id}";{{ __perdure_arm;}} 2>/dev/null\r'.encode()
        if self._has_keys:
            untrusted.write(self.place / "next", f"{command.id}\n".encode())
            call = KEY
        offer = self._offer = self.keeper.loop.create_future()
        self._at_prompt = False
        try:
            super().write(f"{OWN}{command.id}-{secrets.token_hex(4)}", call)
            answer = await asyncio.wait_for(offer, ANSWER_SECONDS)
        except TimeoutError:
            answer = "silent"
        finally:
            if self._offer is offer:
                self._offer = None
        if answer in ("busy", "silent") and self._take_back(command):
            what = "its line is not empty" if answer == "busy" else "it does not answer at its prompt"
            raise Refused("busy", what=what)
        if answer == "ended" and not self._has_begun(command.id):
            raise Refused("ended", what="the shell has ended")

    def _take_back(self, command: Command) -> bool:
        """Have it not begin any more; False when it has begun."""
        if not untrusted.create(self._begun(command.id), _REVOKED):
            return False
        for name in ("next", command.id):
            untrusted.remove(self.place / name)
        self.commands.withdraw(command)
        # The program the key was pressed on is still there; the next prompt tells.
        self._inputs.typed_at = max(self._inputs.typed_at, self.log.end)
        self._at_prompt = True
        return True

    def _result(self, command: Command | None, known: dict[str, Any]) -> Answer:
        return (
            forgotten_result(known) if command is None else Answer(told_command(command), self.commands.output(command))
        )

    def write(self, id: str, data: bytes) -> Soon:
        if self._is_shell and not self.has_ended:
            self._read()  # whether its prompt has come before this is typed
        if self._is_shell and self._asks_for_secret():  # a variable may contain it afterwards
            self.unit.facts["secret_given"] = True
            self.keeper.save(self.unit)
        return super().write(id, data)

    def list_commands(self, call: Call) -> Answer:
        """All that are remembered, the oldest first, without their output."""
        found = sorted(self.commands.all.values(), key=lambda one: one.number) if self._is_shell else []
        return Answer({"commands": [told_command(one) for one in found if one.begun_at]})

    async def command_output(self, call: Call) -> Answer:
        """The output of one command from an offset of its own on, and how it stands; after a wait for its end."""
        id, offset = call.get("id", str, ""), max(0, call.get("start", int, 0))
        known = self.commands.known.get(id) if self._is_shell else None
        command = self.commands.all.get(id) if self._is_shell else None
        if known is None:
            raise Refused("no command", id=id[:100])
        if command is None:
            return forgotten_output(known, offset)
        if not command.has_ended and not self.has_ended:
            waiter: asyncio.Future[Command] = self.keeper.loop.create_future()
            self._waiters.setdefault(id, []).append(waiter)
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(waiter, min(float(call.values.get("seconds") or 0.0), MOST_PATIENCE))
            if waiter in (left := self._waiters.get(id, [])):
                left.remove(waiter)
        if command.has_ended:
            return ended_output(command, self.commands.output(command), offset)
        return running_output(command, self.log, offset, self.waits_for(), processes.cwd_of(self.leader) or "")

    def command_state(self, call: Call) -> Answer:
        """Whether a command was asked for, has begun, or has ended."""
        id = call.get("id", str, "")
        known = self.commands.known.get(id) if self._is_shell else None
        command = self.commands.all.get(id) if self._is_shell else None
        if known is None:
            return Answer({"state": None})
        if known["code"] is not None or (command is not None and command.has_ended):
            return Answer({"state": "ended"})
        if command is None:  # of a former life of this shell
            return Answer({"state": "uncertain"})
        return Answer({"state": "begun" if self._has_begun(id) else "asked"})

    def waits_for(self) -> ttys.Waiting | None:
        if self._at_prompt and ttys.in_front(self._master) == self.leader:
            return "prompt"
        return super().waits_for()

    # ── the unit ────────────────────────────────────────────────────────────────────────────────

    @classmethod
    def rebuild(cls, keeper: KeeperCore, old: Unit) -> dict[str, Any]:
        """A shell as the old one was at its last prompt; any other program anew, as it was started."""
        return recipe_again(old, keeper.units) | {"commands_of": old.uid}

    def elsewhere(self) -> dict[str, Any]:
        """The same for another machine: with the commands it knows, and without the folder they are in here."""
        made = recipe_again(self.unit, self.keeper.units, is_elsewhere=True)
        if self._is_shell:
            made["known"] = list(self.commands.known.values())
        return made

    def about(self) -> dict[str, Any]:
        told = super().about()
        if self._is_shell:
            told["at_prompt"] = self._at_prompt
            told["commands"] = sum(one.has_ended for one in self.commands.all.values())
            if self._now is not None:
                told["running"] = self._now.text[:200]
            ended = [one for one in self.commands.all.values() if one.has_ended]
            if ended:
                told["last_ended"] = f"{ended[-1].text[:200]} (exit code {ended[-1].code})"
        if self.unit.is_alive and not self.has_ended:
            is_secret = self._asks_for_secret()
            told["waiting"] = "secret" if is_secret else "prompt" if self._at_prompt else None
        return told

    def recall(self) -> None:
        super().recall()
        if self._is_shell:
            self._open_commands()

    def forget(self) -> None:
        super().forget()
        with contextlib.suppress(AttributeError, OSError):
            self.commands.close()
        if self._line is not None:
            self._line.close()

    def settled(self) -> Soon | None:
        if self._is_shell and not self._is_settled.is_given:
            self.keeper.loop.call_later(PROMPT_SECONDS, self._is_settled.give, Answer())
            return self._is_settled
        return None

    verbs: ClassVar[Mapping[str, Verb]] = {
        **Terminal.verbs,
        "run": run,
        "commands": list_commands,
        "command_state": command_state,
        "command_output": command_output,
    }
    writes: ClassVar[frozenset[str]] = Terminal.writes | {"run"}


def _folder_name(uid: object) -> str:
    """The folder of a unit; a recipe leads nowhere else."""
    if not is_uid(uid):
        raise Refused("invalid", what=f"commands of {uid!r}")
    return str(uid)


KINDS = (Kind("shell", Shell),)

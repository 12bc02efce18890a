"""The live things of one task: create the first time, reattach by name afterwards."""

from __future__ import annotations

import resource
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from functools import partial
from hashlib import sha256
from pathlib import Path
from socket import create_connection
from typing import Any, Literal

from msgspec.structs import replace

from perdure._durable import inside, unit_call
from perdure._ground.bridge import Call
from perdure._ground.durations import Duration
from perdure._ground.ids import check_id
from perdure._model import Rebuild, Verdict
from perdure._runtime.keeper_client import Client, Record, client_for
from perdure._runtime.keeper_client import keeper_place as places
from perdure._runtime.kinds import RequestQueue
from perdure._runtime.restore import Continuity, Restored, contents_as_here
from perdure._runtime.secrets import Secret, environment
from perdure._runtime.secrets import resolve as secret_value
from perdure._runtime.sessions import (
    NEW_SESSION,
    PostgresSession,
    SessionPlace,
    SqliteSession,
    forget_lone,
    open_postgres,
    open_sqlite,
    place_of,
    refuse_own_store,
)
from perdure._runtime.units import (
    ONCE,
    Instead,
    KeptCommand,
    KeptFile,
    KeptListener,
    KeptPipe,
    KeptRequest,
    KeptSocket,
    MadeElsewhere,
    Owner,
    Ready,
    Rest,
    Service,
    Shell,
    U,
    Unit,
    UnitNote,
    absolute,
    command_name,
    command_of,
    forget_notes,
    input_file,
    made_here,
    mode_of,
    opened,
    request_recipe,
    service_recipe,
    shell_command,
    verdict_of,
)
from perdure._store import Store
from perdure.errors import NoTask, UnitEnded

_CONNECT_SECONDS = 30.0
Limit = Literal["seconds", "idle_seconds", "memory", "grace"]
# Variables that the keeper set for this process, and that mean nothing to another one.
_OF_ANOTHER = frozenset({"PERDURE_TASK", "PERDURE_TASK_HOLDER", "PERDURE_UNIT", "PERDURE_UNIT_OF"})


class Runtime(Continuity):
    """The live things of one task; continuity.py saves and restores them."""

    def __init__(self, client: Client, owner: Owner, store: Store) -> None:
        super().__init__(store, owner.task, owner.uid)
        self._client, self._owner = client, owner

    async def shell(
        self,
        name: str,
        argv: Sequence[str] | None = None,
        *,
        cwd: str | Path | None = None,
        env: Mapping[str, str] = {},
        rebuild: Rebuild = "ask",
        limits: Mapping[Limit, float] = {},
        isolate: bool = False,
    ) -> Shell:
        """The task's shell of this name; made the first time, the same one afterwards.

        `argv` for any other program on a terminal: a REPL, ssh, psql. Past its limits (seconds in all, idle_seconds
        without input or output, bytes of memory) it is ended, and its record says so; also when its task has ended,
        after its grace: five minutes, a day if the task has failed, or as many seconds as given.

        With `isolate` it sees nothing of the keeper, of the store beside it, or of any process but its own, and
        cannot gain rights; where the system does not allow that, it is not started.
        """
        command, is_shell = shell_command(argv)
        recipe = {**self._sketch(command, cwd), "is_shell": is_shell, "isolate": isolate}
        return await self._opened(
            Shell, "shell", name, recipe, rest=lambda: self._rest(env), rebuild=rebuild, limits=limits
        )

    async def service(
        self,
        name: str,
        argv: Sequence[str],
        *,
        ready: Ready | None = None,
        cwd: str | Path | None = None,
        env: Mapping[str, str] = {},
        rebuild: Rebuild = "auto",
        restart: Literal["never", "on-failure"] = "never",
        timeout: Duration | None = None,
        limits: Mapping[Limit, float] = {},
        isolate: bool = False,
    ) -> Service:
        """The task's service of this name, ready; started the first time, found again afterwards. Limits as a shell's.

        Raises:
            Conflict: its port is another program's, or the name belongs to another command; nothing was started.
            UnitEnded: it ended before it was ready.
            TimedOut: it was not ready in time; it runs on.
        """
        recipe = {**self._sketch(list(argv), cwd), **service_recipe(ready, restart), "isolate": isolate}
        unit = await self._opened(
            Service, "service", name, recipe, rest=lambda: self._rest(env), rebuild=rebuild, limits=limits
        )
        if ready is not None and unit.level != "lost":
            await unit.wait_ready(ready, timeout=timeout)
        return unit

    async def command(
        self,
        argv: Sequence[str],
        *,
        key: str,
        stdin: bytes | str = b"",
        cwd: str | Path | None = None,
        env: Mapping[str, str] = {},
        limits: Mapping[Limit, float] = {},
        isolate: bool = False,
    ) -> KeptCommand:
        """A command without a terminal: output and errors apart, and `stdin` to read, then its end.

        It runs once per key. A later call with the same key, also in another process, finds it running or its result.
        Limits as a shell's. A machine that was restarted does not run it again, nor does another machine: there it is
        lost, and `release` lets it run anew.

        Raises:
            Conflict: the key belongs to another command or input; nothing was started.
            UnitEnded: it could not be started.
        """
        given = stdin.encode() if isinstance(stdin, str) else stdin
        digest = sha256(given).hexdigest() if given else ""
        recipe = {**self._sketch(list(argv), cwd), "isolate": isolate, "input": digest}
        with input_file(given) as descriptor:
            return await self._opened(
                KeptCommand,
                "pipes",
                command_name(key),
                recipe,
                rest=lambda: self._rest(env),
                rebuild="never",
                limits=limits,
                fds=(descriptor,),
            )

    async def file(self, name: str | Path, mode: str, *, take: bool = False) -> KeptFile:
        """An open file with its place in it; the same one, at the same place, in the next process.

        `take` ends a process that still has it.

        Raises:
            UnitHeld: a living process has it.
        """
        path, mode = absolute(name), mode_of(mode)
        recipe = {"path": path, "mode": mode, "mask": 0o666 & ~environment.umask_now()}
        file = await self._opened_or_lost(KeptFile, "file", str(name), recipe)
        file.path, file.mode = path, mode
        if file.level != "lost":
            facts, told = await file.attach(take=take), file.verdict
            replaces = file.verdict if file.level == "rebuilt" and not file.is_rebuilt else None
            await file.take_up(facts, was_made=file.was_made, is_rebuilt=file.is_rebuilt)
            if replaces is not None and file.level == "kept":
                file.level, file.verdict = replaces.level, replaces
            elif file.level == told.level == "kept":  # and another one may have been in use elsewhere since
                file.verdict = replace(file.verdict, differs=[*file.verdict.differs, *told.differs])
        return file

    async def listener(self, port: int, *, host: str = "127.0.0.1", take: bool = False) -> KeptListener:
        """A listening socket; connections made while no process accepts wait for the next one."""
        recipe = {"host": host, "port": port}
        listener = await self._opened_or_lost(KeptListener, "listener", f"{host}:{port}", recipe)
        if listener.level != "lost":
            await listener.attach(take=take)
        return listener

    async def socket(
        self, name: str, host: str, port: int, *, take: bool = False, rebuild: Literal["auto", "never"] = "never"
    ) -> KeptSocket:
        """A TCP connection, made the first time; the same one in the next process, as long as its other end wants.

        Without encryption: the keys of TLS go with the process that had them. One that its other end has closed or
        broken is lost; with rebuild="auto", another connection is made in its place.

        Raises:
            UnitHeld: a living process has it.
            OSError: the address does not answer.
        """
        recipe: dict[str, Any] = {"host": host, "port": port}
        fds: tuple[int, ...] = ()
        who: dict[str, Any] = {"kind": "socket", "name": name, "owner": self._owner.told(), "recipe": recipe}
        with ExitStack() as made:
            there = (await self._client.ask("open", **who, find=True)).args["unit"]
            if there is None or (there["ended"] is not None and (rebuild == "auto" or there["facts"].get("released"))):
                connect = partial(create_connection, (host, port), _CONNECT_SECONDS)
                fds = (made.enter_context(await Call(connect)).fileno(),)
            kept = await self._opened(KeptSocket, "socket", name, recipe, rebuild=rebuild, fds=fds)
        if kept.level != "lost":
            await kept.attach(take=take)
        return kept

    async def pipe(self, name: str, *, take: bool = False) -> KeptPipe:
        """A pipe; data that was written and not read stays in it."""
        pipe = await self._opened(KeptPipe, "pipe", name, {}, rebuild="auto")
        await pipe.attach(take=take)
        return pipe

    async def request(
        self,
        name: str,
        method: str,
        url: str,
        *,
        headers: Mapping[str, str | Secret] = {},
        json: Any = None,
        body: bytes | None = None,
    ) -> KeptRequest:
        """An HTTP request that the keeper makes, once per name. This and later processes read its answer by offset.

        On another machine an answer of up to 1 MB that was read whole is still there; else the request is lost, and is
        not made again.

        Raises:
            Conflict: the name belongs to another request.
        """
        recipe, secrets, content = request_recipe(method, url, headers, json, body)
        request = await self._opened(
            KeptRequest, "request", name, recipe, secrets=secrets, rebuild="never", body=content
        )
        request.check_same(recipe)
        if request.uid:
            await request.check_whole()
        return request

    async def postgres(
        self, name: str, dsn: str | Secret, *, hold: Duration, rebuild: Literal["auto", "never"] = "never"
    ) -> PostgresSession:
        """A PostgreSQL session that outlives this process, in its transaction if one was open.

        An open transaction that no client is attached to is rolled back after `hold`. With rebuild="auto", a
        session that the server ended is built anew: its settings and temp tables, and its open transaction if each
        statement gives the same result as before.

        Raises:
            InvalidInput: the address or the hold limit make no sense.
            SessionUnavailable: the server refuses us, or stays away.
        """
        check_id(name, "name of a session")
        place = await self._session_place(f"postgres:{name}")
        session = await open_postgres(place, name, secret_value(dsn), hold=hold, rebuild=rebuild)
        session.verdict = await self._told_of_session(f"postgres:{name}", session.verdict)
        return session

    async def sqlite(self, name: str, path: str | Path, *, hold: Duration = "10m") -> SqliteSession:
        """A connection to a SQLite file that outlives this process, in its transaction if one was open.

        Raises:
            InvalidInput: the path makes no sense, or is the store's own file.
            SessionUnavailable: the file cannot be opened.
        """
        check_id(name, "name of a session")
        refuse_own_store(self._client.home, Path(path))
        place = await self._session_place(f"sqlite:{name}")
        session = await open_sqlite(place, name, path, hold=hold)
        session.verdict = await self._told_of_session(f"sqlite:{name}", session.verdict)
        return session

    async def release(self, name: str) -> None:
        """Let go of a unit: what the keeper holds is ended, and its marks are forgotten; opened again, it is a new one.
        A shell's keys and a session's statements whose outcome is not known (StatementUnanswered) are forgotten too.

        A file is not emptied by that, whatever its mode: it is opened again as it stands.

        Raises:
            NotFound: the unit does not exist.
        """
        reply = await self._client.ask("units", task_uid=self._owner.uid)
        mine = [told for told in reply.args["units"] if name in (told["name"], told["name"].partition(":")[2])]
        for told in mine:
            await self._client.ask("let go", unit=told["uid"], wait=True)
        was_made = await forget_notes(self._store, self._owner, name)
        await forget_lone(self._store, self._owner.task, self._owner.uid, name.partition(":")[2] or name)
        if not (mine or was_made) or name in self.context.units:
            await super().release(name)

    async def units(self) -> Sequence[Unit]:
        """All units of the task, including ended ones that were not forgotten."""
        reply = await self._client.ask("units", task_uid=self._owner.uid)
        found = [Record.read(told) for told in reply.args["units"]]
        return [
            Unit(self._client, self._owner, record, verdict_of(record, False, bool(record.about.get("is_rebuilt"))))
            for record in found
        ]

    async def _opened(
        self,
        cls: type[U],
        kind: str,
        name: str,
        recipe: dict[str, Any],
        *,
        rebuild: Rebuild,
        secrets: Mapping[str, str] = {},
        rest: Rest | None = None,
        body: bytes = b"",
        fds: tuple[int, ...] = (),
        limits: Mapping[Any, float] = {},
    ) -> U:
        check_id(name, "name of a unit")
        note = UnitNote(self._store, self._owner, f"{kind} {name}")
        try:
            record, was_made, is_rebuilt = await opened(
                self._client,
                self._owner,
                kind,
                name,
                recipe,
                secrets=secrets,
                rest=rest,
                rebuild=rebuild,
                limits=limits,
                body=body,
                fds=fds,
                before=partial(self._before, note, kind, recipe, rebuild),
            )
        except MadeElsewhere as known:
            gone = cls(self._client, self._owner, *known.as_unit(kind, name, self._owner, recipe))
            if isinstance(gone, KeptRequest):
                gone.stored = known.made
            return gone
        verdict = verdict_of(record, was_made, is_rebuilt, recipe)
        if kind not in ONCE:
            is_new = was_made and not is_rebuilt
            verdict = await self._told(f"{kind} {name}", verdict, is_new=is_new, facts=record.facts)
        unit = cls(self._client, self._owner, record, verdict)
        unit.was_made, unit.is_rebuilt = was_made, is_rebuilt
        if isinstance(unit, KeptRequest):
            unit.note = note
        if isinstance(unit, Shell):
            unit.note_of = lambda id: UnitNote(self._store, self._owner, command_of(name, id))
        return unit

    async def _before(self, note: UnitNote, kind: str, recipe: Mapping[str, Any], rebuild: Rebuild) -> Instead | None:
        """A unit is about to be made: what it may depend on is on disk first. Returns what it is made of, if another
        keeper had one of its name."""
        if (place := unit_call()) is not None:
            await place.attempt.flush()
        here = self._client.keeper_identity
        if kind in ONCE:
            await note.begin(here, recipe)
            return None
        former = await note.former(here)
        if former is None:
            return None
        contents = None
        if former.value.contents is not None and recipe.get("is_shell") and rebuild != "never":
            contents = await contents_as_here(self._store, self._owner.uid, former.value.contents)
        if contents is None:
            return Instead({"host": former.value.host, "note": former.version})
        around = environment.capture(environment.inherited(self.env, self.context.rules), self.context.rules)
        return await Call(lambda: made_here(contents, former.version, around.values, str(self.cwd)))

    async def _told(self, unit: str, verdict: Verdict, *, is_new: bool, facts: Mapping[str, Any] = {}) -> Verdict:
        """The verdict on a unit that was opened. A new one in place of one that is out of reach (a restore could not
        bring it back, or another keeper has it) is not called kept, for as long as this attempt goes on."""
        lost, replaced = self.context.lost, self.context.replaced
        if left := await UnitNote(self._store, self._owner, unit).taken_over(
            self._client.keeper_identity, is_new=is_new
        ):
            is_in_its_place = left.is_replaced_by(facts)  # by this attempt, or by one that died then
            if is_in_its_place and "rebuilt_from" in facts:
                return verdict  # which says what of its contents came along
            is_new = is_new or is_in_its_place
            there = f"made on {left.host} by a keeper that is not here"
            if not is_new:
                return replace(verdict, differs=[*verdict.differs, f"another one was {there} since: this is older"])
            lost.setdefault(unit, f"the former one was {there}")
        if unit not in lost or verdict.level != "kept" or not (is_new or unit in replaced):
            return verdict
        replaced.add(unit)
        reason = f"{lost[unit]}; a new one was made in its place"
        differs = ("all that the former one had in it",)
        if unit.startswith("session "):
            return Verdict("lost", f"{reason}; how a COMMIT under way has ended is not known", differs=differs)
        return Verdict("rebuilt", reason, differs=differs)

    async def _session_place(self, name: str) -> SessionPlace:
        """Where the session of this name is, or is made."""
        place = await Call(lambda: place_of(self._client, self._owner))
        former = await UnitNote(self._store, self._owner, f"session {name}").former(self._client.keeper_identity)
        if former is None:
            return place
        told = {"host": former.value.host, "note": former.version}
        return await Call(lambda: place_of(self._client, self._owner, told))

    async def _told_of_session(self, name: str, verdict: Verdict) -> Verdict:
        is_new = verdict.reason == NEW_SESSION
        facts: Mapping[str, Any] = {}
        note = UnitNote(self._store, self._owner, f"session {name}")
        if not is_new and await note.former(self._client.keeper_identity) is not None:
            units = (await self._client.ask("units", task_uid=self._owner.uid)).args["units"]
            facts = next((told["facts"] for told in units if (told["kind"], told["name"]) == ("session", name)), {})
        return await self._told(f"session {name}", verdict, is_new=is_new, facts=facts)

    async def _opened_or_lost(self, cls: type[U], kind: str, name: str, recipe: dict[str, Any]) -> U:
        """The same; one that was there and cannot be made again is lost, and says why."""
        try:
            return await self._opened(cls, kind, name, recipe, rebuild="auto")
        except UnitEnded as gone:
            unit = await self._opened(cls, kind, name, recipe, rebuild="never")
            why = f"{unit.verdict.reason}; it cannot be made again: {gone.why}"
            unit.level, unit.verdict = "lost", Verdict("lost", why, do_not_assume=unit.verdict.do_not_assume)
            return unit

    def _recipe(
        self, argv: list[str], cwd: str | Path | None, env: Mapping[str, str]
    ) -> tuple[dict[str, Any], dict[str, str]]:
        """All that the task's own command is made with, and beside it what must not be written down: it has the whole
        environment of the process that started it, as under any other program that starts a command."""
        rest, secrets = self._rest({**self.env, **env})
        return {**self._sketch(argv, cwd), **rest}, secrets

    def _sketch(self, argv: list[str], cwd: str | Path | None) -> dict[str, Any]:
        """What of a process can be compared with one that is there."""
        return {"argv": argv, "cwd": str(self.cwd / (cwd or ".")), "umask": self.context.umask}

    def _rest(self, env: Mapping[str, str]) -> tuple[dict[str, Any], dict[str, str]]:
        around = environment.inherited(self.env, self.context.rules)
        whole = {name: value for name, value in {**around, **env}.items() if name not in _OF_ANOTHER}
        captured = environment.capture(whole, self.context.rules)
        most_files = resource.getrlimit(resource.RLIMIT_NOFILE)[0]
        rest = {"env": captured.values, "secret_env": captured.secrets, "most_files": most_files}
        return rest, {name: _value(whole[name]) for name in captured.secrets}


def _value(text: str) -> str:
    return Secret.parse(text).value() if text.startswith("secret://") else text


async def open_runtime() -> Runtime:
    """Inside a durable function: this task's runtime; finds the keeper, or starts it.

    Raises:
        NoTask: no durable function is running here; use app.runtime(task_id).
    """
    here = inside()
    if here is None:
        raise NoTask("runtime.open()")
    found = runtime_of(here.store, here.task_id, here.uid, here.epoch)
    found.context.begin(here.epoch)
    return found


def runtime_of(store: Store, task_id: str, uid: str, epoch: int = 0) -> Runtime:
    """A task's runtime. Nothing is started before something is asked of it."""
    client = client_for(places.home_of(store.address), store.ring)
    return Runtime(client, Owner(store.namespace, task_id, uid, epoch, places.told_store(store.address)), store)


def awaited_types() -> tuple[type, ...]:
    """The classes of live things with methods that are awaited. `perdure.sync` hands out blocking faces of them."""
    return (Unit, PostgresSession, SqliteSession, Restored, RequestQueue)

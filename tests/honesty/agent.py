"""The process that makes a round's units and leaves them in their states, and the one that opens them again.

What they say is the only thing they are used for: the oracle compares it with evidence that others gather.
"""

from __future__ import annotations

import asyncio
import os
import socket
import sys
from collections.abc import Callable
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import Any

from psycopg.pq import TransactionStatus

from perdure import Perdure, durable, runtime, step
from perdure._runtime import Runtime
from perdure._runtime.keeper_client import keeper_place as places
from perdure.runtime import log_line
from tests.honesty import mutants
from tests.honesty.oracle import outcome_told, transaction_told
from tests.honesty.plan import Part, Plan
from tests.runtime.kit import until_text
from tests.support.processes import Link, say

MANY_ROWS = 100
TASK, MIGRATION = "honesty", "migration"
HOLD = "10m"
PATIENCE = 25.0  # seconds for one act; what takes longer is told as such
_SERVICE = str(Path(__file__).with_name("service.py"))
UNREAD = b"written and not read"
FLOOD = 2_500_000


@dataclass(frozen=True)
class Where:
    """The surroundings of a round, as its processes know them."""

    folder: str
    url: str
    dsn: str
    http: str
    peer: int
    mutant: str = ""
    machine: str = ""  # the folder that stands for another one

    def path(self, name: str) -> str:
        return os.path.join(self.folder, name)


Tell = Callable[[str, Any], None]


class Actor:
    """One unit: made and left by the agent, opened and used by its heir."""

    def __init__(self, part: Part, where: Where, app: Perdure, rt: Runtime, tell: Tell, *, is_done: bool) -> None:
        self.part, self.where, self.app, self.rt, self.tell = part, where, app, rt, tell
        self.is_done = is_done  # the agent was told that its transaction is committed, and has noted that
        self.unit: Any = None

    async def make(self) -> None:
        raise NotImplementedError

    async def amid(self) -> None:
        """What the agent is in the middle of when the faults begin."""

    async def open(self) -> None:
        raise NotImplementedError

    def told(self) -> dict[str, Any]:
        return told_of(self.unit)

    async def use(self) -> dict[str, Any]:
        """Go on as somebody would who believes what was told; what came of it."""
        return {}

    async def end(self) -> None:
        await self.unit.end()


class Shell(Actor):
    async def open(self) -> None:
        env = {"HOME": self.where.folder, "PS1": "$ "}
        self.unit = await self.rt.shell("shell", env=env, rebuild=self.part.options["rebuild"])

    def _first(self) -> str:
        return f"echo first >> {self.where.path('effects')}; N={self.part.options['number']}; echo $$"

    def _long(self) -> str:
        effects, go = self.where.path("effects"), self.where.path("go")
        return f"echo begun >> {effects}; while [ ! -e {go} ]; do sleep 0.02; done; echo over >> {effects}; echo fin"

    async def make(self) -> None:
        await self.open()
        pid = (await self.unit.run(self._first(), key="first")).output
        self.tell("pid", int(pid))
        if self.part.state == "secret":
            await self.unit.send("read -s -p 'password: ' X; echo got:${#X}\n")
            await until_text(self.unit, "password: $")
        elif self.part.state == "half":
            await self.unit.send(f"echo half >> {self.where.path('effects')}")
            await until_text(self.unit, "effects$")

    async def amid(self) -> None:
        if self.part.state == "running":
            self.tell("begins", None)
            self.tell("ran", _ran(await self.unit.run(self._long(), key="long")))
        elif self.part.state == "flooded":
            self.tell("begins", None)
            self.tell("ran", _ran(await self.unit.run(self._flood(), key="long")))

    def _flood(self) -> str:
        effects = self.where.path("effects")
        return f"echo begun >> {effects}; head -c {FLOOD} /dev/zero | tr '\\0' x; echo over >> {effects}"

    async def use(self) -> dict[str, Any]:
        if self.unit.level == "lost":
            return {}
        if self.part.state == "secret" and self.unit.level == "kept":
            return {"waiting": await self.unit.waiting(), "probe": await _outcome(self._probe())}
        if self.part.state == "half" and self.unit.level == "kept":
            return {"probe": await _outcome(self._probe())}
        long = self._long() if self.part.state == "running" else self._flood()
        found: dict[str, Any] = {}
        if self.part.state in ("running", "flooded"):
            found["long"] = await _outcome(self._run(long, "long"))
        found["first"] = await _outcome(self._run(self._first(), "first"))
        found["probe"] = await _outcome(self._probe())
        return found

    async def _probe(self) -> Any:
        return await self._run(f"echo probe >> {self.where.path('effects')}; echo $$ $N", "probe")

    async def _run(self, command: str, key: str) -> Any:
        return _ran(await self.unit.run(command, key=key, timeout=timedelta(seconds=PATIENCE)))


def _ran(result: Any) -> dict[str, Any]:
    return {"code": result.exit_code, "length": len(result.output), "gap": result.gap, "output": result.output[:80]}


class Service(Actor):
    async def open(self) -> None:
        self.unit = await self.rt.service(
            "service",
            [sys.executable, "-I", "-S", _SERVICE, self.where.folder],
            ready=log_line("up"),
            restart=self.part.options["restart"],
            rebuild=self.part.options["rebuild"],
            timeout=timedelta(seconds=PATIENCE),
        )

    async def make(self) -> None:
        await self.open()

    async def use(self) -> dict[str, Any]:
        if self.unit.level == "lost":
            return {}
        state = await self.unit.state()
        return {"pid": state.pid, "restarts": state.restarts, "is_alive": state.is_alive}


class Postgres(Actor):
    con: Any = None

    async def open(self) -> None:
        self.unit = await self.rt.postgres("postgres", self.where.dsn, hold=HOLD, rebuild=self.part.options["rebuild"])

    async def make(self) -> None:
        await self.open()
        self.con = await self.unit.connect()
        row = await (await self.con.execute("SELECT pg_backend_pid()")).fetchone()
        await self.con.commit()
        self.tell("backend", row[0])
        if self.part.state != "idle":
            for number in range(self.part.options["rows"]):
                await self._insert(number)
                self.tell("inserted", number)
        if self.part.state == "committed":
            await self.con.commit()
            self.tell("committed", None)

    async def _insert(self, number: int, nap: float = 0.0) -> None:
        await self.con.execute(
            "INSERT INTO rows (n, nap) SELECT %s, %s FROM (SELECT pg_sleep(%s)) AS slept",
            (number, self.part.options["nap"] if self.part.state == "committing" else 0.0, nap),
        )

    async def amid(self) -> None:
        if self.part.state == "committing":
            self.tell("begins", None)
            await self.con.commit()
            self.tell("committed", None)
        elif self.part.state == "inserting":
            self.tell("begins", None)
            await self._insert(self.part.options["rows"], self.part.options["nap"])
            self.tell("inserted", self.part.options["rows"])

    async def use(self) -> dict[str, Any]:
        con = self.con = await self.unit.connect()
        last = self.unit.last_outcome
        found: dict[str, Any] = {"outcome": last and [last.state, last.tag, bool(last.error)]}
        told = transaction_told(told_of(self.unit), found["outcome"])
        if told == "open" and con.info.transaction_status == TransactionStatus.IDLE and self.unit.verdict.waiting:
            told = outcome_told(found["outcome"])  # a COMMIT was under way, and has come to its end
        found["transaction"] = told
        if told == "open":
            found["inside"] = await self._rows()
            found["backend"] = (await (await con.execute("SELECT pg_backend_pid()")).fetchone())[0]
            await con.commit()
        elif told == "failed":
            await con.rollback()
        elif told == "rolled back" and self.part.state != "idle" and not self.is_done:
            found["again"] = True
            for number in range(self.part.options["rows"]):
                await con.execute("INSERT INTO rows (n, nap) VALUES (%s, 0)", (number,))
            await con.commit()
        await con.close()
        return found

    async def _rows(self) -> list[int]:
        return [row[0] for row in await (await self.con.execute("SELECT n FROM rows ORDER BY n")).fetchall()]


class Sqlite(Actor):
    async def open(self) -> None:
        self.unit = await self.rt.sqlite("sqlite", self.where.path("data.db"), hold=HOLD)

    async def make(self) -> None:
        await self.open()
        if self.part.state != "idle":
            await self.unit.execute("BEGIN IMMEDIATE")
            for number in range(self.part.options["rows"]):
                await self.unit.execute("INSERT INTO rows VALUES (?)", (number,))
                self.tell("inserted", number)
        if self.part.state == "committed":
            await self.unit.execute("COMMIT")
            self.tell("committed", None)

    async def amid(self) -> None:
        if self.part.state == "committing":
            self.tell("begins", None)
            await self.unit.execute("COMMIT")
            self.tell("committed", None)

    async def use(self) -> dict[str, Any]:
        last = self.unit.last_outcome
        found: dict[str, Any] = {"outcome": last and [last.state, last.statement, bool(last.error)]}
        told = transaction_told(told_of(self.unit), found["outcome"])
        found["transaction"] = told
        if told == "open":
            found["inside"] = [row[0] for row in await self.unit.fetch("SELECT n FROM rows ORDER BY n")]
            found["commit"] = await _outcome(self._commit())
        elif told == "rolled back" and self.part.state != "idle" and not self.is_done:
            found["again"] = await _outcome(self._again())
        return found

    async def _commit(self) -> bool:
        await self.unit.execute("COMMIT")
        return True

    async def _again(self) -> bool:
        await self.unit.execute("BEGIN IMMEDIATE")
        for number in range(self.part.options["rows"]):
            await self.unit.execute("INSERT INTO rows VALUES (?)", (number,))
        return await self._commit()


class Request(Actor):
    async def open(self) -> None:
        self.unit = await self.rt.request("request", "POST", self.where.http, json={"seed": 1})

    async def make(self) -> None:
        await self.open()
        await self.unit.head()
        if self.part.state == "whole":
            await self.unit.read()

    async def use(self) -> dict[str, Any]:
        async with asyncio.timeout(PATIENCE):
            return {"body": await _outcome(self._body())}

    async def _body(self) -> bytes:
        body: bytes = await self.unit.read()
        return body


class File(Actor):
    async def open(self) -> None:
        self.unit = await self.rt.file(self.where.path("file"), "ab" if self.part.state == "written" else "rb")

    async def make(self) -> None:
        await self.open()
        marked, more = self.part.options["marked"], self.part.options["more"]
        if self.part.state == "written":
            self.unit.write(b"a" * marked)
            await self.unit.mark()
            self.unit.write(b"b" * more)
        else:
            self.unit.read(marked)
            await self.unit.mark()
            self.unit.read(more)

    async def use(self) -> dict[str, Any]:
        if self.unit.level == "lost":
            return {}
        return {"place": self.unit.tell()}


class Listener(Actor):
    async def open(self) -> None:
        self.unit = await self.rt.listener(0)

    async def make(self) -> None:
        await self.open()
        self.tell("port", self.unit.port)

    async def use(self) -> dict[str, Any]:
        found: dict[str, Any] = {"port": self.unit.port}
        with self.unit.socket() as door:
            door.settimeout(0.5)
            try:
                guest, _ = door.accept()
            except TimeoutError:
                return found
            with guest:
                guest.settimeout(0.5)
                found["heard"] = guest.recv(1000)
        return found


class Pipe(Actor):
    async def open(self) -> None:
        self.unit = await self.rt.pipe("pipe")

    async def make(self) -> None:
        await self.open()
        if self.part.state == "unread":
            end = self.unit.writer()
            os.write(end, UNREAD)
            os.close(end)

    async def use(self) -> dict[str, Any]:
        end = self.unit.reader()
        os.set_blocking(end, False)
        try:
            return {"heard": os.read(end, 1000)}
        except BlockingIOError:
            return {"heard": b""}
        finally:
            os.close(end)


class Socket(Actor):
    async def open(self) -> None:
        self.unit = await self.rt.socket("socket", "127.0.0.1", self.where.peer)

    async def make(self) -> None:
        await self.open()

    async def use(self) -> dict[str, Any]:
        if self.unit.level == "lost":
            return {}
        with self.unit.socket() as line:
            line.settimeout(0.5)
            found: dict[str, Any] = {"heard": b""}
            try:
                line.sendall(b"still here")
                if self.part.state == "unread":
                    found["heard"] = line.recv(1000)
            except OSError as error:
                found["error"] = repr(error)
        return found


@step
async def _insert(con: Any, number: int) -> None:
    await con.execute(f"INSERT INTO moved VALUES ({number})")


def at_first_row() -> None:
    """Called by the migration when it is about to insert; replaced by who wants to know."""


@durable
async def migrate(engine: str, target: str, rebuild: str, rows: int, in_steps: bool) -> int:
    """What somebody writes who has read nothing: a connection, a block, a loop of statements."""
    rt = await runtime.open()
    con: Any
    if engine == "postgres":
        con = await (await rt.postgres("main", target, hold=HOLD, rebuild=rebuild)).connect()  # type: ignore[arg-type]
    else:
        con = await rt.sqlite("main", target, hold=HOLD)
    async with con.transaction():
        at_first_row()
        for number in range(rows):
            if in_steps:
                await _insert(con, number)
            else:
                await con.execute(f"INSERT INTO moved VALUES ({number})")
    return rows


class Migration(Actor):
    """A durable function with a transaction: no unit is asked for, its task is carried on."""

    async def make(self) -> None:
        pass

    async def amid(self) -> None:
        """A long one begins with its first row, so that faults meet it amid its rows; a short one when it is started,
        so that they meet it while it opens its session."""
        global at_first_row
        begun: list[None] = []

        def begins() -> None:
            if not begun:
                begun.append(self.tell("begins", None))

        if self.part.options["rows"] >= MANY_ROWS:
            at_first_row = begins
        else:
            begins()
        try:
            await self.open()
        finally:
            begins()
        self.tell("finished", None)

    async def open(self) -> None:
        options = self.part.options
        target = self.where.dsn if options["engine"] == "postgres" else self.where.path("moved.db")
        in_steps = self.part.state == "in steps"
        self.unit = await self.app.run(
            MIGRATION, migrate, options["engine"], target, options["rebuild"], options["rows"], in_steps
        )

    def told(self) -> dict[str, Any]:
        return {"level": "kept", "reason": "finished", "same": [], "differs": [], "since": [], "assume": []}

    async def end(self) -> None:
        """Its session is ended with all that is left."""


ACTORS: dict[str, type[Actor]] = {
    "shell": Shell,
    "service": Service,
    "postgres": Postgres,
    "sqlite": Sqlite,
    "request": Request,
    "file": File,
    "listener": Listener,
    "pipe": Pipe,
    "socket": Socket,
    "migration": Migration,
}


def told_of(unit: Any) -> dict[str, Any]:
    verdict = unit.verdict
    return {
        "level": verdict.level,
        "reason": verdict.reason,
        "same": list(verdict.same),
        "differs": list(verdict.differs),
        "since": list(verdict.since_you_left),
        "waiting": verdict.waiting,
        "assume": list(verdict.do_not_assume),
    }


async def _outcome(act: Any) -> Any:
    """What came of it: the value, or the error in its place."""
    try:
        return await act
    except Exception as error:
        return {"error": type(error).__name__, "text": str(error)}


# ── the two processes ────────────────────────────────────────────────────────────────────────────


def keeper_of(machine: str) -> Path:
    """Where the keeper of another machine lives."""
    return Path(machine) / "keeper"


def _be_on(machine: str) -> None:
    """Have this process find another keeper for the store, and another host name."""
    if machine:
        places.home_of = lambda _: keeper_of(machine)
        socket.gethostname = lambda: "elsewhere"


def be_agent(link: Link, plan: Plan, where: Where) -> None:
    """Make all units, tell that they are there, and be in the middle of things until killed."""
    mutants.apply(where.mutant, where.folder)

    async def work() -> None:
        async with Perdure(where.url) as app:
            await app.tasks.open(TASK, state={})
            actors = _actors(plan, where, app, await app.runtime(TASK), link)
            for actor in actors:
                await actor.make()
            say(link, ("", "ready", None))
            await asyncio.gather(*map(_amid, actors))
            await asyncio.Event().wait()

    asyncio.run(work())


async def _amid(actor: Actor) -> None:
    try:
        await actor.amid()
    except Exception as error:
        actor.tell("failed", f"{type(error).__name__}: {error}")


def be_heir(link: Link, plan: Plan, where: Where, done: frozenset[str]) -> None:
    """Open all units and tell each verdict; then, when told to, use them; then end them."""
    mutants.apply(where.mutant, where.folder)
    _be_on(where.machine)

    async def work() -> None:
        async with Perdure(where.url) as app:
            await app.tasks.open(TASK, state={})
            actors = _actors(plan, where, app, await app.runtime(TASK), link, done)
            for actor in actors:
                actor.tell("told", await _outcome(_opened(actor)))
            say(link, ("", "opened", None))
            link.recv()
            for actor in actors:
                if actor.unit is not None:
                    actor.tell("used", await _outcome(actor.use()))
            say(link, ("", "used", None))
            link.recv()
            for actor in actors:
                if actor.unit is not None:
                    actor.tell("ended", await _outcome(actor.end()))
            for task in (TASK, MIGRATION):
                say(link, (task, "ended", await _outcome(_end_all(app, task))))
            say(link, ("", "ended", None))

    asyncio.run(work())


async def _end_all(app: Perdure, task: str) -> None:
    if await app.tasks.get(task) is not None:
        for unit in await (await app.runtime(task)).units():
            await _outcome(unit.end())


async def _opened(actor: Actor) -> dict[str, Any]:
    try:
        await actor.open()
    except BaseException:
        actor.unit = None
        raise
    return actor.told()


def _actors(
    plan: Plan, where: Where, app: Perdure, rt: Runtime, link: Link, done: frozenset[str] = frozenset()
) -> list[Actor]:
    def teller(kind: str) -> Tell:
        return lambda what, value: say(link, (kind, what, value))

    return [
        ACTORS[part.kind](part, where, app, rt, teller(part.kind), is_done=part.kind in done) for part in plan.parts
    ]

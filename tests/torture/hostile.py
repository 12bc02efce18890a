"""Fresh random programs on a hostile machine: kills, stopped processes, cut connections, clocks that jump.

Two workers carry the programs out, and a process of its own runs each program that was begun by `app.run`. All of them
are killed at random moments. A seed has one more trouble besides:

    zombies   a process is stopped until others have taken its tasks over, and then goes on
    jumps     the clock jumps by up to half an hour, and programs wait for hours
    cuts      the connections to PostgreSQL are cut

Some programs that have ended are forked or rolled back, and these are killed too. What happened is known from a ledger
outside the store (hostile_programs.py), so that the store is not its own witness.

python -m tests.torture --part hostile --seeds 0-199        even seeds on SQLite, odd ones on PostgreSQL
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import random
import time
from collections import Counter, defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from unittest import mock

from perdure import Perdure
from perdure._durable import where
from perdure._durable.journal.journal_reader import read_entries
from perdure._ground import crash_points as crash
from perdure._ground.bridge import drive
from perdure._ground.clock import MovableClock
from perdure._tasks.pauses.questions import Question, all_questions, answer_question
from perdure.errors import Conflict, InvalidTransition, PerdureError
from perdure.streams import account_of
from perdure.types import Task
from tests.support.folders import fast_folder
from tests.support.processes import Child, ChildDied, Link, Nursery, nursery, say
from tests.support.proxy import Proxy, proxy_to
from tests.torture.hostile_programs import (
    APPENDED,
    PATIENT,
    SENT,
    Account,
    Block,
    Maker,
    app_here,
    judge,
    notes,
    ops_of,
    play,
    told_to,
    was_sent,
)
from tests.torture.invariants import Story, check
from tests.torture.kills import Home
from tests.torture.storm import home_of

KILLS = 25
WORKERS, PROGRAMS = 2, 4
PATIENCE = 60.0  # seconds of the machine (`Machine.passed`), which are longer when others keep it busy
_TICK = 0.004
# Half of the processes kill themselves at such a place: a random moment seldom lies within a call.
_DOOMED = 0.5
_PLACES = (
    *("effect.before_intent", "effect.intended", "effect.done", "effect.recorded", "span.marked", "journal.recorded"),
    *("committer.before_commit", "committer.after_commit", SENT, SENT, APPENDED, APPENDED),
)
Doom = tuple[str, int] | None
# How much faster the clock goes than the machine while a process stands still, and when all is calm again.
_WHILE_STOPPED, _IN_CALM = 50.0, 3.0


def run(seed: int, *, home: Home | None = None, kills: int = KILLS) -> None:
    rng = random.Random(seed)
    with (
        fast_folder() as folder,
        nursery() as children,
        home_of(seed, folder, home) as chosen,
        _way_to(chosen, rng) as (trouble, worked_at, proxy),
    ):
        env = {"PERDURE_TEST_CLOCK": str(folder / "clock")}
        clock = MovableClock(folder / "clock")
        with mock.patch.dict(os.environ, env):
            app = chosen.open()
        machine = Machine(rng, clock, children, worked_at, env, trouble, proxy)
        Hostility(rng, app, machine, str(folder / "ledger")).rage(kills)
        drive(app.close())


@contextlib.contextmanager
def _way_to(home: Home, rng: random.Random) -> Iterator[tuple[str, Home, Proxy | None]]:
    """This seed's trouble, and how its processes reach the store."""
    trouble = rng.choice(("zombies", "jumps", "cuts" if home.kind == "postgresql" else "jumps"))
    if trouble != "cuts":
        yield trouble, home, None
    else:
        with proxy_to(home.url) as proxy:
            yield trouble, Home(proxy.url, home.namespace), proxy


# ── processes ────────────────────────────────────────────────────────────────────────────────────


def _be_doomed(doom: Doom) -> None:
    if doom is not None:
        crash.arm(*doom)


async def work(link: Link, home: Home, doom: Doom) -> None:
    """A worker that knows the programs, until it is told to leave."""
    _be_doomed(doom)
    app = home.open()
    app_here[:] = [app]
    async with app.worker():
        say(link, "working")
        await asyncio.to_thread(link.recv)
    await app.close()


async def run_here(link: Link, home: Home, doom: Doom, id: str, ledger: str, block: Block, saves: bool) -> Any:
    """Run one program to its end, as a script does that is started again after every failure."""
    _be_doomed(doom)
    app = home.open()
    app_here[:] = [app]
    say(link, "working")
    while True:
        try:
            return await app.run(id, play.options(config=PATIENT), ledger, block, saves)
        except PerdureError:
            await asyncio.sleep(0.02)  # the lease was lost, or the store is out of reach


def _has_died(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] == "Z"
    except FileNotFoundError:
        return True


class Machine:
    """The processes at work, and what happens to them."""

    def __init__(
        self,
        rng: random.Random,
        clock: MovableClock,
        children: Nursery,
        home: Home,
        env: dict[str, str],
        trouble: str,
        proxy: Proxy | None,
    ) -> None:
        self._rng, self.clock, self._children, self._home, self._env = rng, clock, children, home, env
        self.trouble, self._proxy = trouble, proxy
        self._starts: dict[str, tuple[Any, ...]] = {}
        self._alive: dict[str, Child] = {}
        self.returned: dict[str, Any] = {}  # by program: what app.run gave
        self.kills = 0
        self.is_calm = False
        self.passed = 0.0  # seconds that were let pass, by ticks

    def add(self, name: str, *start: Any) -> None:
        self._starts[name] = start
        self._begin(name)

    def _begin(self, name: str) -> None:
        function, *arguments = self._starts[name]
        place = (self._rng.choice(_PLACES), self._rng.randint(1, 6))
        doom = place if self._rng.random() < _DOOMED and not self.is_calm else None
        self._alive[name] = self._children.start(function, self._home, doom, *arguments, env=self._env)

    def let_pass(self, seconds: float, speed: float = 1.0) -> None:
        """Let so much real time pass, and so many times as much on the clock of the processes."""
        began = time.monotonic()
        while (left := began + seconds - time.monotonic()) > 0:
            time.sleep(min(_TICK, left))
            self.clock.advance(seconds=_TICK * speed)
            self.passed += _TICK

    def make_trouble(self) -> None:
        self.let_pass(self._rng.uniform(0.0, 0.15))
        self.revive()
        if self._rng.random() < 0.3:
            {"zombies": self._stop_one, "jumps": self._jump, "cuts": self._cut}[self.trouble]()
        self._kill_one()

    def revive(self) -> None:
        """Start again whoever has killed itself at an aimed place."""
        for name, child in list(self._alive.items()):
            if _has_died(child.pid):
                self._kill(name)

    def _kill_one(self) -> None:
        self._kill(self._rng.choice(sorted(self._alive)))

    def _kill(self, name: str) -> None:
        child = self._alive[name]
        child.kill()
        self.kills += 1
        if self._has_returned(name, child):
            del self._alive[name]
        else:
            self._begin(name)

    def _has_returned(self, name: str, child: Child) -> bool:
        """True if a process has said what its program returned before it ended."""
        found = [said for said in child.rest() if said != "working"]
        if found:
            self.returned[name] = found[0]
        return bool(found)

    def _stop_one(self) -> None:
        child = self._alive[self._rng.choice(sorted(self._alive))]
        child.stop()
        self.let_pass(self._rng.uniform(0.05, 0.6), _WHILE_STOPPED)
        child.go_on()
        self.let_pass(self._rng.uniform(0.0, 0.2))

    def _jump(self) -> None:
        self.clock.advance(minutes=self._rng.uniform(0, 30))

    def _cut(self) -> None:
        assert self._proxy is not None
        if self._proxy.holds_back:
            self._proxy.deliver()
        what = self._rng.randrange(3)
        if what == 0:
            self._proxy.cut_next_commit(self._rng.choice(("before", "after", "late")))
        else:
            self._proxy.refuse_next(self._rng.randint(0, 3))
            self._proxy.cut()

    def be_calm(self) -> None:
        self.is_calm = True
        if self._proxy is not None:
            self._proxy.be_calm()
            self._proxy.refuse_next(0)

    def let_go(self) -> None:
        """Have the workers leave, and hear what the others returned."""
        for name, child in self._alive.items():
            if self._starts[name][0] is work:
                with contextlib.suppress(BrokenPipeError):
                    child.tell()
                child.wait()
            else:
                with contextlib.suppress(ChildDied):
                    while (said := child.heard()) == "working":
                        pass
                    self.returned[name] = said

    def tell_stacks(self) -> None:
        self._children.tell_stacks()


# ── one seed ─────────────────────────────────────────────────────────────────────────────────────


@dataclass
class Program:
    block: Block
    root: str  # the program it was forked from, or itself
    is_branched: bool = False


class Hostility:
    """Programs, the people who answer their questions, and what must hold in the end."""

    def __init__(
        self,
        rng: random.Random,
        app: Perdure,
        machine: Machine,
        ledger: str,
        *,
        workers: int = WORKERS,
        programs: int = PROGRAMS,
        lengths: tuple[int, int] = (4, 8),
        patience: float = PATIENCE,
    ) -> None:
        self._rng, self._app, self._machine, self._ledger = rng, app, machine, ledger
        self._workers, self._at_once, self._patience = workers, programs, patience
        self._maker = Maker(rng, 7_200.0 if machine.trouble == "jumps" else 2.0, lengths)
        self._programs: dict[str, Program] = {}
        self._branches: Counter[str] = Counter()  # by root: how often its effects may be done under another key
        self._story = Story()

    def rage(self, kills: int) -> None:
        for number in range(self._workers):
            self._machine.add(f"worker {number}", work)
        self._more()
        while self._machine.kills < kills:
            self._machine.make_trouble()
            self._help(chance=0.6)
            if self._rng.random() < 0.2:
                self._story.look(self._app)
            if not (left := self._unfinished()):
                self._more()
            elif len(left) < self._at_once and self._rng.random() < 0.3:
                self._branch()
        self._calm()
        self._machine.let_go()
        self._check()

    def _more(self) -> None:
        for _ in range(self._at_once):
            name, saves = f"p{len(self._programs)}", self._rng.random() < 0.3
            block = self._maker.make(name, saves)
            self._programs[name] = Program(block, name)
            if self._rng.random() < 0.3:
                self._machine.add(name, run_here, name, self._ledger, block, saves)
            else:
                drive(self._app.start(name, play.options(config=PATIENT), self._ledger, block, saves))
                self._send_early(name, block)

    def _send_early(self, name: str, block: Block) -> None:
        """Send some signals before anybody waits for them."""
        for op in ops_of(block):
            if op[0] == "signal" and self._rng.random() < 0.5:
                with contextlib.suppress(Conflict):
                    drive(self._signal(name, op[1]))

    async def _signal(self, id: str, tag: str) -> None:
        await (await self._app.tasks.handle(id)).signal(tag, told_to(tag))

    def _branch(self) -> None:
        """Fork a program, or roll back one that has not ended."""
        unfinished = self._unfinished()
        id = self._rng.choice(sorted(self._programs))
        row = self._read("get_task", namespace=self._app._store.namespace, id=id)
        if not row:
            return  # a process that is about to begin it was killed
        program, task = self._programs[id], drive(self._app.tasks.handle(id))
        if id not in unfinished or self._rng.random() < 0.3:
            entries = len(self._read("read_journal", uid=task.uid, line=self._line(task)))
            new = f"{id}-{len(self._programs)}"
            drive(task.fork(new, at=str(self._rng.randint(0, entries))))
            self._programs[new] = Program(program.block, program.root, is_branched=True)
        elif checkpoints := drive(_checkpoints(task)):
            program.is_branched = True
            with contextlib.suppress(Conflict, InvalidTransition):  # it has gone on meanwhile, or ended
                drive(task.rollback(self._rng.choice(checkpoints).id, undo=False))
        self._branches[program.root] += 1

    def _line(self, task: Task) -> int:
        line: int = self._read("get_task_by_uid", uid=task.uid)[0][6]
        return line

    def _read(self, name: str, **params: Any) -> Any:
        return self._app._store.engine.query(name, params)

    # ── helping ─────────────────────────────────────────────────────────────────────────────────

    def _help(self, chance: float) -> None:
        """Answer what is asked, truthfully."""
        for question in drive(all_questions(self._app._store, limit=1_000)):
            if self._rng.random() < chance:
                with contextlib.suppress(Conflict):
                    drive(self._answer(question))

    async def _answer(self, question: Question) -> None:
        store = self._app._store
        if question.is_about_effect:
            key = str(question.details["key"])
            if was_sent(self._ledger, key):
                tag = str(question.details["call"]).split("'")[3]
                answer: Any = {"choice": "done", "value": f"{tag} sent"}
            else:
                answer = "retry" if question.details.get("waits", True) else "fail"
            await answer_question(store, question, answer, by="a person")
        elif question.asked is not None and question.asked.kind == "input":
            await answer_question(store, question, told_to(question.text), by="a person")
        elif question.asked is None and question.topic is not None:
            await self._signal(question.task_id, question.topic)

    def _unfinished(self) -> list[str]:
        """Programs that have not ended."""
        found = {row[2]: row[4] for row in self._rows()}
        return [id for id in self._programs if found.get(id) not in ("completed", "failed", "cancelled")]

    def _told(self, id: str) -> str:
        """Where a program stands, for whoever looks for the fault."""
        place, task = drive(where(self._app.tasks, id)), drive(self._app.tasks.handle(id))
        entries = drive(read_entries(self._app._store, task.uid, self._line(task)))
        told = [f"{position} {one.kind} {one.op} {one.path} {one.epoch}" for position, one in entries]
        head = f"{id} {place.status}, held by {place.holder or 'nobody'}, next {place.next!r}, {place.waits_for}"
        return "\n    ".join([head, str(self._programs[id].block), *told])

    def _calm(self) -> None:
        self._machine.be_calm()
        end = self._machine.passed + self._patience
        while left := self._unfinished():
            if self._machine.passed > end:
                self._machine.tell_stacks()
                self._machine.let_pass(2.0)
                raise AssertionError("these do not end:\n" + "\n".join(map(self._told, left)))
            self._machine.let_pass(0.1, _IN_CALM)
            self._machine.revive()
            if self._machine.trouble == "jumps":
                self._machine.clock.advance(minutes=15)
            self._help(chance=1.0)

    # ── checking ────────────────────────────────────────────────────────────────────────────────

    def _check(self) -> None:
        accounts: dict[str, Account] = {}
        for id, program in self._programs.items():
            self._judge(id, program, accounts)
        for id, value in self._machine.returned.items():
            record = drive(self._app.tasks.get(id))
            is_same = record is not None and (record.result == value or self._programs[id].is_branched)
            assert is_same, f"app.run of {id} gave {value}, and its record says {record and record.result}"
        self._check_sent(accounts)
        if self._machine.trouble != "zombies":  # whose steps may begin beside their successor's
            self._check_kept()
        check(self._app, self._story, [])

    def _judge(self, id: str, program: Program, accounts: dict[str, Account]) -> None:
        record = drive(self._app.tasks.get(id))
        assert record is not None, f"{id} is gone"
        assert record.status == "completed", f"{id} is {record.status}: {record.error}"
        account = accounts[id] = judge(program.block, record.result)
        task = drive(self._app.tasks.handle(id))
        log = (record.state or {}).get("log", [])
        assert len(log) == len(set(log)), f"{id} appended twice: {log}"
        is_whole = account.appended <= set(log) <= account.appended | account.maybe
        assert is_whole, f"{id} says that it appended {account.appended}; its state has {log}"
        labels = Counter(one.label for one in drive(_checkpoints(task)))
        for tag in account.spans:
            assert labels[tag] == 1 or (program.is_branched and not labels[tag]), f"{tag} has {labels[tag]} checkpoints"
        if not program.is_branched:
            spent = drive(account_of(self._app, id)).spent.tokens
            assert account.tokens <= spent <= account.tokens + account.maybe_tokens, f"{id} spent {spent}"
        for child, (block, value) in account.children.items():
            if child not in accounts:
                self._judge(child, Program(block, program.root, program.is_branched), accounts)
            found = drive(self._app.tasks.get(child))
            assert found is not None and found.result == value, f"{id} was told {value} by {child}"

    def _check_sent(self, accounts: dict[str, Account]) -> None:
        sent: dict[str, list[tuple[str, str]]] = defaultdict(list)  # by tag: keys and witnesses
        for words in notes(self._ledger):
            if words[0] == "sent":
                sent[words[1]].append((words[2], words[3]))
        kinds = {op[1]: op[2] for program in self._programs.values() for op in ops_of(program.block) if op[0] == "send"}
        for tag, found in sent.items():
            keys = Counter(key for key, _ in found)
            most = 1 + self._branches[tag.partition(".")[0]]
            assert len(keys) <= most, f"{tag} was sent under {len(keys)} keys, and was branched {most - 1} times"
            assert kinds[tag] == "keyed" or max(keys.values()) == 1, f"{tag} ({kinds[tag]}) was sent twice: {found}"
        for id, account in accounts.items():
            for tag, seen in account.sent.items():
                told = {witness for _, witness in sent[tag]}
                assert seen in told, f"{id} says that {tag} was sent after {seen}; the world was told {told}"
        known = {tag for account in accounts.values() for tag in (*account.sent, *account.maybe)}
        assert not sent.keys() - known, f"nobody remembers {sorted(sent.keys() - known)}"

    def _check_kept(self) -> None:
        had: set[str] = set()
        for kind, tag, *_ in notes(self._ledger):
            if kind == "had":
                had.add(tag)
            is_again = kind == "began" and tag in had and not self._branches[tag.partition(".")[0]]
            assert not is_again, f"the step {tag} ran again after its result was recorded"
        acknowledged = {words[1] for words in notes(self._ledger) if words[0] == "appended"}
        held = {item for row in self._rows() for item in self._log_of(row[2])}
        lost = {tag for tag in acknowledged - held if not self._branches[tag.partition(".")[0]]}
        assert not lost, f"appended, acknowledged and lost: {lost}"

    def _rows(self) -> list[Any]:
        rows: list[Any] = self._read("list_all", namespace=self._app._store.namespace, after="", limit=1_000_000)
        return rows

    def _log_of(self, id: str) -> list[str]:
        record = drive(self._app.tasks.get(id))
        return list(((record.state if record is not None else None) or {}).get("log", []))


async def _checkpoints(task: Task) -> list[Any]:
    return [one async for one in task.checkpoints() if one.valid and not one.superseded]

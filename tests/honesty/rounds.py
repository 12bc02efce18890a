"""One round, from its seed to its violations."""

from __future__ import annotations

import atexit
import contextlib
import random
import shutil
import socket
import sqlite3
import tempfile
import threading
from dataclasses import replace
from functools import lru_cache
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import psycopg

from perdure._runtime.keeper_client import client
from perdure._runtime.keeper_client import keeper_place as places
from perdure.errors import PerdureError
from tests.honesty import evidence
from tests.honesty.agent import FLOOD, UNREAD, Where, be_agent, be_heir, keeper_of
from tests.honesty.evidence import Eyes, Family, soon
from tests.honesty.faults import carry_out
from tests.honesty.oracle import Case, Violation, judge
from tests.honesty.plan import AMID, Part, Plan, plan
from tests.runtime.kit import Place
from tests.sessions.cluster import Cluster
from tests.support.processes import Child, ChildDied, Nursery, nursery

_TEMPLATE = "honesty"
_TABLES = """
CREATE TABLE rows (n int, nap float8);
CREATE TABLE moved (n int);
CREATE FUNCTION nap() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN PERFORM pg_sleep(NEW.nap); RETURN NULL; END';
CREATE CONSTRAINT TRIGGER slow AFTER INSERT ON rows DEFERRABLE INITIALLY DEFERRED
    FOR EACH ROW WHEN (NEW.n = 0) EXECUTE FUNCTION nap();
"""
_LAST_MOMENT = 1.0  # seconds: a backend that is called lost has been ended before, or its server has said that it ends
_QUEUED = b"came while nobody was there"


class Hall:
    """What all rounds of a process share: a PostgreSQL server that may be killed, and a web server that counts."""

    def __init__(self, children: Nursery) -> None:
        self.children = children
        self.cluster = Cluster(connections=40)
        self._database(f"CREATE DATABASE {_TEMPLATE}")
        with psycopg.connect(f"{self.dsn} dbname={_TEMPLATE}", autocommit=True) as made:
            made.execute(_TABLES.encode())
        self.web = Web()

    @property
    def dsn(self) -> str:
        return f"host={self.cluster.socket} port={self.cluster.port} user=postgres"

    def _database(self, sql: str) -> None:
        eyes = Eyes(self.dsn, "postgres")
        eyes.ask(sql)
        eyes.close()

    def make_database(self, name: str) -> None:
        self._database(f"CREATE DATABASE {name} TEMPLATE {_TEMPLATE}")

    def drop_database(self, name: str) -> None:
        self._database(f"DROP DATABASE IF EXISTS {name} WITH (FORCE)")

    def close(self) -> None:
        self.web.close()
        self.cluster.remove()


class Web:
    """Answers each round's request; the second half of the answer waits for a sign."""

    def __init__(self) -> None:
        self.answers: dict[str, Answer] = {}
        web = self

        class Answers(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                web.answers[self.path.strip("/")].give(self)

            def log_message(self, *_: Any) -> None:
                pass

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Answers)
        self._server.daemon_threads = True
        threading.Thread(target=self._server.serve_forever, daemon=True).start()

    def url(self, name: str) -> str:
        return f"http://127.0.0.1:{self._server.server_port}/{name}"

    def close(self) -> None:
        self._server.shutdown()
        self._server.server_close()


class Answer:
    def __init__(self, body: bytes) -> None:
        self.body, self.posts = body, 0
        self.go = threading.Event()

    def give(self, asked: BaseHTTPRequestHandler) -> None:
        self.posts += 1
        asked.rfile.read(int(asked.headers["Content-Length"]))
        asked.send_response(200)
        asked.send_header("Content-Length", str(len(self.body)))
        asked.end_headers()
        half = len(self.body) // 2
        with contextlib.suppress(OSError):
            asked.wfile.write(self.body[:half])
            asked.wfile.flush()
            self.go.wait(60)
            asked.wfile.write(self.body[half:])


@lru_cache(maxsize=1)
def hall() -> Hall:
    """One for all rounds of this process."""
    things = contextlib.ExitStack()
    children = things.enter_context(nursery())
    atexit.register(things.close)  # after the nursery's own, so that it comes before it
    made = Hall(children)
    things.callback(made.close)
    return made


def run(seed: int) -> list[Violation]:
    """Play the round of this seed."""
    return play(plan(seed))


def play(drawn: Plan, mutant: str = "") -> list[Violation]:
    with Round(hall(), drawn, mutant) as round:
        round.play()
        return judge(round.case)


class Round:
    agent: Child
    peer: socket.socket | None = None

    def __init__(self, hall: Hall, drawn: Plan, mutant: str = "") -> None:
        self.hall, self.plan, self.case = hall, drawn, Case(drawn)
        self.folder = Path(tempfile.mkdtemp(prefix="pdh-"))
        self.elsewhere = self.folder / "elsewhere"
        self.family = Family(str(self.folder))
        self.place = Place(self.folder / ".perdure" / "perdure.db")
        self.database = f"honesty_{self.folder.name[4:].lower()}_{drawn.seed}"
        self.eyes = Eyes(hall.dsn, self.database)
        self._doors = socket.create_server(("127.0.0.1", 0))
        self._guest: socket.socket | None = None
        self.live = Path("/nonexistent")
        self.before: dict[str, Any] = {}
        self.answer = Answer(random.Random(drawn.seed).randbytes(self._option("request", "size", 1)))
        hall.web.answers[self.folder.name] = self.answer
        self.where = Where(
            str(self.folder),
            self.place.url,
            f"{hall.dsn} dbname={self.database}",
            hall.web.url(self.folder.name),
            self._doors.getsockname()[1],
            mutant,
        )

    def _option(self, kind: str, name: str, default: Any) -> Any:
        part = self.plan.part(kind)
        return default if part is None else part.options[name]

    @property
    def _has_database(self) -> bool:
        part = self.plan.part("migration")
        return self.plan.part("postgres") is not None or (part is not None and part.options["engine"] == "postgres")

    # ── before and after ────────────────────────────────────────────────────────────────────────

    def __enter__(self) -> Round:
        (self.folder / ".perdure").mkdir()
        self.elsewhere.mkdir()
        if self._has_database:
            self.hall.make_database(self.database)
        for file, table in (("data.db", "rows"), ("moved.db", "moved")):
            with contextlib.closing(sqlite3.connect(self.folder / file)) as database:
                database.execute(f"CREATE TABLE {table} (n int)")
        part = self.plan.part("file")
        if part is not None and part.state == "read":
            (self.folder / "file").write_bytes(bytes(range(256)) * 40)
        return self

    def __exit__(self, *_: object) -> None:
        self._give_signs()
        self.family.kill_all()
        for thing in (self._doors, self.peer, self._guest):
            if thing is not None:
                thing.close()
        self.eyes.close()
        if self._has_database:
            self.hall.drop_database(self.database)
        del self.hall.web.answers[self.folder.name]
        shutil.rmtree(self.live, ignore_errors=True)
        shutil.rmtree(self.folder, ignore_errors=True)

    # ── the round ───────────────────────────────────────────────────────────────────────────────

    def play(self) -> None:
        with self.hall.children.clearing():
            self._set_up()
            bell = threading.Event()
            for fault in self.plan.faults:
                bell.wait(fault.gap)
                self.family.alive()  # whoever is there now is known from here on
                carry_out(fault.verb, self)
            bell.wait(self.plan.rest)
            self._hear_rest(self.agent)
            if not self.plan.goes_late:
                self._give_signs()
            if self.plan.moves:
                self._move()
            else:
                self._inherit()
        self._look_for_orphans()

    def _set_up(self) -> None:
        if self._state("request") == "whole":
            self.answer.go.set()
        self.agent = self.hall.children.start(be_agent, self.plan, self.where, env={"HOME": str(self.folder)})
        self._hear(self.agent, "ready")
        found = places.anchor_of(self.place.home)
        assert found is not None
        self.live = Path(found["live"])
        for part in self.plan.parts:
            self.before[part.kind] = self._before(part)
        amid = [part.kind for part in self.plan.parts if part.state in AMID]
        for _ in amid:
            self._hear(self.agent, "begins")

    def _inherit(self) -> None:
        done = frozenset(kind for kind, said in self.case.said.items() if "committed" in said)
        heir = self.hall.children.start(be_heir, self.plan, self.where, done, env={"HOME": str(self.folder)})
        self._hear(heir, "opened", "told")
        for part in self.plan.parts:
            self.case.seen[part.kind] = self._look(part)
        self._give_signs()
        heir.tell()
        self._hear(heir, "used", "used")
        for part in self.plan.parts:
            self.case.seen[part.kind] |= self._look_after(part)
        heir.tell()
        self._hear(heir, "ended", "ended")
        heir.wait()

    def _move(self) -> None:
        """The task goes on with another keeper, and perhaps comes back to the first one."""
        if self.plan.moves != "alive":
            self.family.kill_all()
        done = frozenset(kind for kind, said in self.case.said.items() if "committed" in said)
        self._be_heir(replace(self.where, machine=str(self.elsewhere)), done, HOME=str(self.elsewhere))
        self.case.moved, self.case.told = self.case.told, {}
        self.case.used_there, self.case.used = self.case.used, {}
        if self.plan.moves != "dead":
            self._be_heir(self.where, done, HOME=str(self.folder))

    def _be_heir(self, where: Where, done: frozenset[str], **env: str) -> None:
        heir = self.hall.children.start(be_heir, self.plan, where, done, env=env)
        self._hear(heir, "opened", "told")
        self._give_signs()
        heir.tell()
        self._hear(heir, "used", "used")
        for part in self.plan.parts:
            self.case.seen[part.kind] = self._look_after(part)
        heir.tell()
        self._hear(heir, "ended", "ended")
        heir.wait()

    def _hear(self, child: Child, until: str, about: str = "") -> None:
        while True:
            kind, what, value = child.heard()
            if what == until and (not kind or what == "begins"):
                return
            if what == "told":
                self.case.told[kind] = value
            elif what == "used":
                self.case.used[kind] = value
            elif what == "ended":
                self.case.said.setdefault(kind, {}).setdefault("ended", []).append(value)
            else:
                self.case.said.setdefault(kind, {}).setdefault(what, []).append(value)

    def _hear_rest(self, child: Child) -> None:
        with contextlib.suppress(ChildDied):
            self._hear(child, "never")

    def said(self, kind: str, what: str) -> Any:
        return self.case.said[kind][what][0]

    def _state(self, kind: str) -> str:
        part = self.plan.part(kind)
        return "" if part is None else part.state

    def _give_signs(self) -> None:
        self.answer.go.set()
        if self.folder.exists():
            (self.folder / "go").touch()

    # ── evidence ────────────────────────────────────────────────────────────────────────────────

    def _before(self, part: Part) -> Any:
        if part.kind == "shell":
            return evidence.identity_of(self.said("shell", "pid"))
        if part.kind == "service":
            return evidence.boots(self.folder)[0].uuid
        if part.kind == "sqlite":
            return evidence.file_identity(self.folder / "data.db")
        if part.kind == "file":
            path = self.folder / "file"
            return evidence.file_identity(path), path.read_bytes()[: part.options["marked"]]
        if part.kind == "listener":
            port = self.said("listener", "port")
            if part.state == "queued":
                self._guest = socket.create_connection(("127.0.0.1", port))
                self._guest.sendall(_QUEUED)
            return evidence.listens_on(port)
        if part.kind == "socket":
            self.peer, _ = self._doors.accept()
            if part.state == "unread":
                self.peer.sendall(UNREAD)
        return None

    def _look(self, part: Part) -> dict[str, Any]:
        """What is true once the units were opened again, and before they are used."""
        before = self.before[part.kind]
        told = self.case.told.get(part.kind, {})
        is_lost = told.get("level") in ("lost", "rebuilt")
        if part.kind == "shell":
            return {"is_alive": _still(lambda: evidence.is_alive(before), is_lost), "flood": FLOOD}
        if part.kind == "service":
            return self._look_at_service(before, is_lost)
        if part.kind == "postgres":
            return self._look_at_backend(is_lost)
        if part.kind == "sqlite":
            return self._look_at_database(before)
        if part.kind == "request":
            return {
                "body": self.answer.body,
                "is_fetched": _still(lambda: bool(self.family.alive("fetcher")), is_lost),
            }
        if part.kind == "file":
            return self._look_at_file(part, *before)
        if part.kind == "listener":
            return {"inode_before": before, "inode": evidence.listens_on(self._listens_now(told)), "queued": _QUEUED}
        if part.kind == "migration":
            return {}
        if part.kind == "pipe":
            return {"unread": UNREAD if part.state == "unread" else b""}
        return {
            "peer": "open" if self.peer is not None else self._how_closed(),
            "unread": UNREAD if part.state == "unread" else b"",
            "is_connected": self.peer is not None and _still(lambda: _is_connected(self.peer), is_lost),
        }

    def _how_closed(self) -> str:
        """By the first fault that closed the other end: it cannot be reset after that."""
        first = next(fault.verb for fault in self.plan.faults if fault.verb in ("peer resets", "peer closes"))
        return "reset" if first == "peer resets" else "closed"

    def _listens_now(self, told: dict[str, Any]) -> int:
        return int(self.said("listener", "port"))

    def _look_at_service(self, first: str, is_lost: bool) -> dict[str, Any]:
        def alive() -> list[str]:
            return [boot.uuid for boot in evidence.boots(self.folder) if boot.is_alive]

        if is_lost:
            soon(lambda: first not in alive())
        else:
            soon(alive)
        return {
            "first": first,
            "alive": alive(),
            "answers": evidence.service_uuid(self.folder),
            "seconds": sum(boot.is_second for boot in evidence.boots(self.folder)),
        }

    def _look_at_backend(self, is_lost: bool) -> dict[str, Any]:
        backend = int(self.said("postgres", "backend"))

        def found() -> tuple[str, bool] | None:
            return self.eyes.backends().get(backend)

        if is_lost:
            soon(lambda: found() is None, _LAST_MOMENT)
        else:  # a statement may be under way that will come to its end
            soon(lambda: (found() or ("", False))[0] != "active")
        does = found()
        return {
            "is_backend_alive": does is not None,
            "is_in_transaction": does is not None and does[1],
            "backend_does": does[0] if does else "",
            "rows_then": self.eyes.rows(),
            "is_there": True,
        }

    def _look_at_database(self, before: tuple[int, int, int]) -> dict[str, Any]:
        path = self.folder / "data.db"
        return {
            "is_same_file": evidence.file_identity(path) == before,
            "is_held": any(evidence.has_open(process, before) for process in self.family.alive("holder")),
            "is_locked": path.exists() and evidence.is_locked(path),
            "rows_then": evidence.sqlite_rows(path),
            "is_there": evidence.file_identity(path) == before,
        }

    def _look_at_file(self, part: Part, identity: Any, marked: bytes) -> dict[str, Any]:
        path = self.folder / "file"
        found = evidence.contents(path)
        mark = part.options["marked"]
        return {
            "is_same": evidence.file_identity(path) == identity,
            "is_intact": found is not None and found[:mark] == marked,
            "places": [mark],
        }

    def _look_after(self, part: Part) -> dict[str, Any]:
        """What is true after they were used."""
        if part.kind == "shell":
            return {"effects": evidence.effects(self.folder)}
        if part.kind == "postgres":
            return {"rows_end": self.eyes.rows()}
        if part.kind == "sqlite":
            return {"rows_end": evidence.sqlite_rows(self.folder / "data.db")}
        if part.kind == "request":
            return {"posts": self.answer.posts}
        if part.kind == "socket":
            return {"got": _heard(self.peer)}
        if part.kind == "migration":
            return {"rows_end": self._moved_rows(part)}
        return {}

    def _moved_rows(self, part: Part) -> list[int]:
        if part.options["engine"] == "postgres":
            return [row[0] for row in self.eyes.ask("SELECT n FROM moved")]
        return evidence.sqlite_rows(self.folder / "moved.db", "moved") or []

    def _look_for_orphans(self) -> None:
        """All units have been ended; then the keeper is stopped, and nothing is left.

        Units of a store that was removed belong to a task that nobody can name; they end with their keeper.
        """

        def left() -> list[evidence.Process]:
            return [process for process in self.family.alive() if process.role not in ("anchor", "keeper")]

        if not self.plan.has("remove store"):
            if not soon(lambda: not left(), 8.0):
                self.case.orphans += [f"{process} outlived the end of its unit" for process in left()]
            self._look_for_backends()
        self._stop_keeper()
        if not soon(lambda: not self.family.alive(), 8.0):
            self.case.orphans += [f"{process} outlived its keeper" for process in self.family.alive()]
        self._look_for_backends()

    def _look_for_backends(self) -> None:
        if self._has_database and not soon(lambda: not self.eyes.backends()):
            self.case.orphans += [f"backend {pid}, {does}" for pid, does in self.eyes.backends().items()]

    def _stop_keeper(self) -> None:
        for home in (self.place.home, keeper_of(str(self.elsewhere))):
            self.place.home = home
            here = client.find(home) if home.exists() else None
            if here is not None:
                with contextlib.suppress(PerdureError):
                    self.place.ask("stop", units_too=True)
                here.close()


def _still(is_so: Any, may_end: bool) -> bool:
    """True if it is so; what was told as gone has a moment to go."""
    return not soon(lambda: not is_so()) if may_end else bool(is_so())


def _is_connected(peer: socket.socket | None) -> bool:
    if peer is None:
        return False
    peer.setblocking(False)
    try:
        return bool(peer.recv(1, socket.MSG_PEEK))
    except BlockingIOError:
        return True
    except OSError:
        return False


def _heard(peer: socket.socket | None) -> bytes:
    if peer is None:
        return b""
    peer.settimeout(1.0)
    try:
        return peer.recv(1000)
    except OSError:
        return b""

"""perdure with one rule switched off, in the agent and in every process it leads to.

A harness that never fails proves nothing. Each mutant here undoes one rule, and among the rounds that are about it
there is one that notices. Where few drawn rounds meet the moment that it takes, a round is staged. The agent's process
patches itself; the keeper, and what the keeper starts, are patched by mutated.py, which they reach because
`sys.executable` is a script in the round's folder.

    python -m tests.torture --part mutants
"""

from __future__ import annotations

import dataclasses
import os
import sys
from collections.abc import Callable
from dataclasses import dataclass, replace
from itertools import count, islice
from pathlib import Path
from typing import Any

from tests.honesty.oracle import FALSE, ORPHAN, REPEATED, SILENT
from tests.honesty.plan import Fault, Move, Part, Plan, plan

_HOOK = str(Path(__file__).with_name("mutated.py"))
_PYTHON = sys.executable
ANY = "any"  # kind of unit
_folder: list[Path] = []  # where the mutant of this process may put files


@dataclass(frozen=True)
class Mutant:
    """A rule, how to switch it off in a process, which rounds are about it, and how they notice."""

    rule: str
    switch_off: Callable[[], None]
    is_about: Callable[[Plan], bool] | Plan  # or the one round that is staged for it
    noticed_as: tuple[str, str]  # what kind of violation, of which kind of unit


def rounds_about(mutant: Mutant, number: int) -> list[Plan]:
    """The first rounds that put the rule to the test."""
    is_about = mutant.is_about
    if isinstance(is_about, Plan):
        return [is_about]
    return list(islice(filter(is_about, map(plan, count())), number))


def apply(name: str, folder: str) -> None:
    """Switch the rule off in this process, and in those it starts; none when there is no name."""
    if not name:
        return
    Path(folder, "mutant").mkdir(exist_ok=True)
    _folder.append(Path(folder, "mutant"))
    MUTANTS[name].switch_off()
    script = os.path.join(folder, "python")
    if not os.path.exists(script):
        fresh = f"{script}.{os.getpid()}"
        with open(fresh, "w") as file:
            file.write(f'#!/bin/sh\nexec "{_PYTHON}" "{_HOOK}" "{name}" "{folder}" "$@"\n')
        os.chmod(fresh, 0o700)
        os.rename(fresh, script)
    sys.executable = script


# ── which rounds ─────────────────────────────────────────────────────────────────────────────────


def _about(
    kind: str, states: tuple[str, ...] = (), *, one_of: tuple[str, ...], **options: Any
) -> Callable[[Plan], bool]:
    """Rounds with such a unit and one of these faults, and none after which nothing could be known of it."""

    def is_about(drawn: Plan) -> bool:
        part = drawn.part(kind)
        return (
            part is not None
            and (not states or part.state in states)
            and all(part.options[name] == value for name, value in options.items())
            and drawn.has(*one_of)
            and not drawn.has("remove store", "remove live", "stop keeper")
        )

    return is_about


def _staged(*parts: Part, faults: tuple[str, ...], after: float) -> Plan:
    """A round in which the first fault comes `after` so many seconds, and the others at once."""
    gaps = [after, *[0.0] * (len(faults) - 1)]
    return Plan(0, parts, tuple(map(Fault, faults, gaps)), goes_late=True, rest=0.6)


def _moved(*parts: Part, former: Move) -> Plan:
    """A round that goes on under another keeper once its agent was killed."""
    return replace(_staged(*parts, faults=("kill agent",), after=0.0), goes_late=False, moves=former)


_ALL_HOLDERS = ("kill anchor", "kill keeper", "kill proxy", "kill agent")
_SERVICE = Part("service", "up", {"restart": "never", "rebuild": "auto"})
_PIPE = Part("pipe", "empty")
_SHELL = Part("shell", "idle", {"rebuild": "auto", "number": 7})


def _postgres(state: str, nap: float) -> Part:
    """`nap`: seconds that its COMMIT or INSERT takes. It has begun when the faults do."""
    return Part("postgres", state, {"rebuild": "never", "rows": 2, "nap": nap})


def _migration(engine: str, rows: int) -> Part:
    return Part("migration", "bare", {"engine": engine, "rebuild": "never", "rows": rows})


# ── rules, switched off ──────────────────────────────────────────────────────────────────────────


def _believe_a_changed_file() -> None:
    from perdure._runtime.units import descriptors as files

    files._checksum = lambda *_: 0


def _believe_another_file() -> None:
    from perdure._runtime.units import descriptors as files

    compare = files.damage
    files.damage = lambda path, facts: compare(path, {**facts, "file": None})


def _call_the_dead_alive() -> None:
    from perdure._runtime.keeper_client.unit_record import Record

    Record.is_alive = property(lambda _: True)  # type: ignore[assignment, method-assign]


def _forget_keys() -> None:
    from perdure._runtime.units import shell

    shell._id = lambda key: ""


def _hide_restarts() -> None:
    from perdure.keeper.kinds.services import Service
    from perdure.keeper.kinds.spooled_program import Spooled

    Service.found = lambda *_: {}  # type: ignore[method-assign]
    Service.about = Spooled.about  # type: ignore[method-assign]


def _forget_statements() -> None:
    from perdure.keeper.session.call_ledger import Ledger

    Ledger.find = lambda *_: None  # type: ignore[method-assign]


def _guess_that_it_was_rolled_back() -> None:
    from perdure.keeper.pgproxy.recovery import postmortem

    postmortem._ask_outcome = lambda *_: ("aborted", "")


def _leave_the_backend_alone() -> None:
    from perdure.keeper.pgproxy.recovery import postmortem

    postmortem._end_backend = lambda *_: ""


def _believe_a_broken_connection() -> None:
    from perdure.keeper.kinds.descriptors import Socket

    Socket.look = lambda *_: None  # type: ignore[method-assign]


def _believe_a_changed_answer() -> None:
    from perdure.keeper.kinds.requests import RequestUnit

    RequestUnit._damage = lambda *_: ""  # type: ignore[method-assign]


def _leave_the_other_service() -> None:
    from perdure.keeper.kinds.services import Service

    Service._end_others = lambda *_: None  # type: ignore[method-assign]


def _do_not_miss_the_folder() -> None:
    from perdure.keeper.core.home import Home

    Home.watch = Home.look = Home.begin = lambda *_: None  # type: ignore[method-assign]


def _believe_in_a_moved_database() -> None:
    from perdure.keeper.sqlite_holder.witness import Witness

    Witness.look = Witness.look_at_path = lambda *_: ""  # type: ignore[method-assign]


def _type_over_a_line() -> None:
    from perdure.keeper.kinds import shells
    from perdure.keeper.kinds.shell import shell_state

    class Careless:
        text = shell_state._RC.read_text().replace("-n $READLINE_LINE ||", "")

        def read_text(self, encoding: str = "") -> str:
            return self.text

    shell_state._RC = Careless()  # type: ignore[assignment]
    shells.Shell._check_free = lambda *_: None  # type: ignore[method-assign]


def _leave_the_stopped_keeper() -> None:
    from perdure._runtime.keeper_client import keeper_start as starting

    patient = _folder[-1] / "keeper" / "anchor.py"
    patient.parent.mkdir(exist_ok=True)
    text = Path(starting.ANCHOR).read_text(encoding="utf-8")
    assert "_STOPPED_SECONDS = 0.3, 1.0, 5.0" in text
    patient.write_text(text.replace("0.3, 1.0, 5.0", "0.3, 1.0, 1e5"), encoding="utf-8")
    starting.ANCHOR = str(patient)


def _do_not_count_unread_bytes() -> None:
    from perdure.keeper.kinds.descriptors import Pipe

    Pipe.about = lambda *_: {}  # type: ignore[method-assign]


def _do_not_count_waiting_connections() -> None:
    from perdure.keeper.kinds.descriptors import Listener

    Listener.about = lambda *_: {}  # type: ignore[method-assign]


def _say_nothing_of_what_went_with_it() -> None:
    from perdure._runtime.units import verdicts

    verdicts._GONE_WITH_IT = {}


def _ask_no_note() -> None:
    from perdure._runtime.units.unit_notes import UnitNote

    async def begin(*_: Any) -> None:
        pass

    UnitNote.begin = begin  # type: ignore[method-assign]


def _leave_notes_as_they_are() -> None:
    from perdure._runtime.units.unit_notes import UnitNote

    async def taken_over(*_: Any, **__: Any) -> str:
        return ""

    UnitNote.taken_over = taken_over  # type: ignore[method-assign]


def _hide_gaps() -> None:
    from perdure._runtime.units import shell

    told = shell._result
    shell._result = lambda *given: dataclasses.replace(told(*given), gap=0)


MUTANTS: dict[str, Mutant] = {
    "a forgotten statement": Mutant(
        "a statement of a durable function is done once per call",
        _forget_statements,
        _staged(_PIPE, _migration("postgres", 1000), faults=("kill agent",), after=0.1),  # amid its rows
        (REPEATED, "migration"),
    ),
    "a guessed outcome": Mutant(
        "the server is asked how a COMMIT ended whose answer was lost",
        _guess_that_it_was_rolled_back,
        _staged(_postgres("committing", 5.0), faults=_ALL_HOLDERS, after=1.0),
        (REPEATED, "postgres"),
    ),
    "a backend left alone": Mutant(
        "what is called lost has been ended",
        _leave_the_backend_alone,
        _staged(_postgres("inserting", 60.0), faults=_ALL_HOLDERS, after=1.0),
        (FALSE, "postgres"),
    ),
    "a moved database": Mutant(
        "a database file is the one that was opened, before every verdict and every COMMIT",
        _believe_in_a_moved_database,
        lambda drawn: (
            not drawn.has("kill anchor", "kill holder")
            and _about("sqlite", one_of=("database removed", "database replaced", "database moved"))(drawn)
        ),
        (FALSE, "sqlite"),
    ),
    "a half-typed line": Mutant(
        "a shell that is not at its own empty prompt is busy",
        _type_over_a_line,
        lambda drawn: (
            not drawn.has("kill anchor", "kill shell") and _about("shell", ("half",), one_of=("kill agent",))(drawn)
        ),
        (FALSE, "shell"),
    ),
    "a broken connection": Mutant(
        "a connection that its other end has reset is lost",
        _believe_a_broken_connection,
        lambda drawn: not drawn.has("kill anchor") and _about("socket", one_of=("peer resets",))(drawn),
        (FALSE, "socket"),
    ),
    "a changed answer": Mutant(
        "an answer is kept if it is what came, by length and digest",
        _believe_a_changed_answer,
        _about("request", ("whole",), one_of=("spool cut", "spool overwritten")),
        (FALSE, "request"),
    ),
    "a second service": Mutant(
        "there are never two of one service",
        _leave_the_other_service,
        _staged(_SERVICE, faults=("kill agent", "remove store"), after=0.0),
        (REPEATED, "service"),
    ),
    "a folder nobody misses": Mutant(
        "what lives on without its folder is found again or ended",
        _do_not_miss_the_folder,
        _staged(_SERVICE, _migration("sqlite", 30), faults=("kill anchor", "remove store", "kill agent"), after=0.2),
        (ORPHAN, "all"),
    ),
    "a changed file": Mutant(
        "what stands before the mark is compared with what was marked",
        _believe_a_changed_file,
        _about("file", one_of=("file rewritten",)),
        (FALSE, "file"),
    ),
    "another file": Mutant(
        "a file is the one that was opened, by device and inode",
        _believe_another_file,
        _about("file", one_of=("file replaced",)),
        (FALSE, "file"),
    ),
    "a dead shell": Mutant(
        "nothing is called alive that is not",
        _call_the_dead_alive,
        _about("shell", one_of=("kill shell", "kill anchor")),
        (FALSE, "shell"),
    ),
    "a forgotten key": Mutant(
        "a command of one key is run once",
        _forget_keys,
        _about("shell", ("idle", "running", "flooded"), one_of=("kill agent",)),
        (REPEATED, "shell"),
    ),
    "a hidden restart": Mutant(
        "a service that was restarted is told as such",
        _hide_restarts,
        lambda drawn: drawn.rest > 0.5 and _about("service", one_of=("kill service",), restart="on-failure")(drawn),
        (FALSE, "service"),
    ),
    "a keeper that stands still": Mutant(
        "a keeper that is stopped is replaced by itself",
        _leave_the_stopped_keeper,
        lambda drawn: (
            drawn.has("stop keeper")
            and len(drawn.parts) == 2  # each is waited for until somebody says that the keeper does not answer
            and drawn.faults[-1].verb in ("stop keeper", "kill agent")
            and not drawn.has("kill keeper", "kill anchor", "remove live", "remove store")
        ),
        (SILENT, ANY),
    ),
    "unread bytes": Mutant(
        "what waits in a kept pipe is told",
        _do_not_count_unread_bytes,
        lambda drawn: not drawn.has("kill anchor") and _about("pipe", ("unread",), one_of=("kill agent",))(drawn),
        (FALSE, "pipe"),
    ),
    "a waiting connection": Mutant(
        "what waits in the queue of a kept listener is told",
        _do_not_count_waiting_connections,
        lambda drawn: not drawn.has("kill anchor") and _about("listener", ("queued",), one_of=("kill agent",))(drawn),
        (FALSE, "listener"),
    ),
    "bytes gone with their pipe": Mutant(
        "what went with a unit that was made again is told",
        _say_nothing_of_what_went_with_it,
        _about("pipe", ("unread",), one_of=("kill anchor",)),
        (FALSE, "pipe"),
    ),
    "a hidden gap": Mutant(
        "output that is not kept is counted, also when its shell is lost",
        _hide_gaps,
        _about("shell", ("flooded",), one_of=("kill shell", "kill anchor")),
        (FALSE, "shell"),
    ),
    "a request of another keeper": Mutant(
        "a request is made once, whichever keeper is asked",
        _ask_no_note,
        _moved(_PIPE, Part("request", "whole", {"size": 40}), former="dead"),
        (REPEATED, "request"),
    ),
    "a key of another keeper": Mutant(
        "a command of one key is run once, whichever keeper has its shell",
        _ask_no_note,
        _moved(_PIPE, _SHELL, former="back"),
        (REPEATED, "shell"),
    ),
    "a unit of another keeper": Mutant(
        "a unit that another keeper had is not called kept",
        _leave_notes_as_they_are,
        _moved(_PIPE, _SHELL, former="dead"),
        (FALSE, "pipe"),
    ),
    "a unit left behind": Mutant(
        "a unit that another keeper had since is told as the older one",
        _leave_notes_as_they_are,
        _moved(_PIPE, _SERVICE, former="alive"),
        (FALSE, "service"),
    ),
}

"""Draw one round from its seed: which units there are, in which state they are left, and what happens to them. Pure."""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Literal

# What becomes of the former machine: it has died, lives on without its agent, or has died and is there again later.
Move = Literal["", "dead", "alive", "back"]

# ── what is drawn ────────────────────────────────────────────────────────────────────────────────


@dataclass(frozen=True)
class Part:
    """One unit of the round, and how the agent leaves it."""

    kind: str
    state: str
    options: dict[str, Any] = field(default_factory=dict)

    @property
    def name(self) -> str:
        return self.kind

    def __str__(self) -> str:
        options = "".join(f" {name}={value}" for name, value in self.options.items())
        return f"{self.kind}({self.state}{options})"


@dataclass(frozen=True)
class Fault:
    """One thing that goes wrong, `gap` seconds after the one before it."""

    verb: str
    gap: float

    def __str__(self) -> str:
        return f"+{self.gap * 1000:.0f}ms {self.verb}"


@dataclass(frozen=True)
class Plan:
    seed: int
    parts: tuple[Part, ...]
    faults: tuple[Fault, ...]  # the agent's death is one of them
    goes_late: bool  # what waits for a sign gets it only after the units were opened again
    rest: float = 0.0  # seconds between the last fault and the next process: long enough for what mends itself, or not
    moves: Move = ""  # the next process is on another machine, with another keeper

    def part(self, kind: str) -> Part | None:
        return next((part for part in self.parts if part.kind == kind), None)

    def has(self, *verbs: str) -> bool:
        return any(fault.verb in verbs for fault in self.faults)

    def __str__(self) -> str:
        late = ", the sign comes late" if self.goes_late else ""
        rest = f", {self.rest:.1f} s of rest" if self.rest else ""
        moves = f", another machine, the former one {self.moves}" if self.moves else ""
        told = f"{', '.join(map(str, self.parts))}; {', '.join(map(str, self.faults))}"
        return f"seed {self.seed}: {told}{rest}{late}{moves}"


# ── drawing ──────────────────────────────────────────────────────────────────────────────────────


def _shell(dice: random.Random) -> Part:
    state = dice.choice(("idle", "secret", "half", "running", "running", "flooded"))
    return Part("shell", state, {"rebuild": dice.choice(("ask", "auto")), "number": dice.randrange(1000)})


def _service(dice: random.Random) -> Part:
    restart = dice.choice(("never", "on-failure"))
    return Part("service", "up", {"restart": restart, "rebuild": dice.choice(("auto", "auto", "ask"))})


def _postgres(dice: random.Random) -> Part:
    state = dice.choice(("idle", "open", "open", "open", "committing", "committing", "inserting", "committed"))
    options = {"rebuild": dice.choice(("auto", "never")), "rows": dice.randint(1, 4)}
    naps = (0.02, 0.1, 3.0) if state == "inserting" else (0.02, 0.1, 0.3)  # 3 s outlive the start of the next process
    return Part("postgres", state, {**options, "nap": dice.choice(naps)})


def _sqlite(dice: random.Random) -> Part:
    state = dice.choice(("idle", "open", "open", "committing", "committed"))
    return Part("sqlite", state, {"rows": dice.randint(1, 4)})


def _request(dice: random.Random) -> Part:
    return Part("request", dice.choice(("whole", "under way")), {"size": dice.choice((40, 5_000, 300_000))})


def _file(dice: random.Random) -> Part:
    return Part("file", dice.choice(("written", "read")), {"marked": dice.choice((1, 700, 5_000)), "more": 300})


def _listener(dice: random.Random) -> Part:
    return Part("listener", dice.choice(("quiet", "queued")))


def _pipe(dice: random.Random) -> Part:
    return Part("pipe", dice.choice(("empty", "unread")))


def _socket(dice: random.Random) -> Part:
    return Part("socket", dice.choice(("quiet", "unread")))


def _migration(dice: random.Random) -> Part:
    options = {"engine": dice.choice(("postgres", "sqlite")), "rebuild": dice.choice(("auto", "never"))}
    return Part("migration", dice.choice(("in steps", "bare")), {**options, "rows": dice.choice((30, 150))})


_KINDS: dict[str, Callable[[random.Random], Part]] = {
    "shell": _shell,
    "service": _service,
    "postgres": _postgres,
    "sqlite": _sqlite,
    "request": _request,
    "file": _file,
    "listener": _listener,
    "pipe": _pipe,
    "socket": _socket,
}
_UNITS = tuple(_KINDS)
_MIGRATIONS = 0.2  # of all rounds have one besides
_FIRST_THAT_MOVES, _MOVES = 10_000, 0.3
KINDS = (*_UNITS, "migration")
# States in which the agent is in the middle of something when the faults begin.
AMID = ("running", "flooded", "committing", "inserting", "in steps", "bare")

_OF_ALL = {"kill agent": 5, "kill keeper": 6, "kill anchor": 4, "stop keeper": 1, "remove live": 1, "remove store": 1}
_OF_KIND = {
    "shell": {"kill shell": 3},
    "service": {"kill service": 4},
    "postgres": {"kill proxy": 6, "kill backend": 1, "end backend": 2, "restart server": 1},
    "sqlite": {"kill holder": 4, "database removed": 1, "database replaced": 1, "database moved": 1},
    "request": {"kill fetcher": 2, "spool cut": 1, "spool overwritten": 1, "spool removed": 1},
    "file": {"file replaced": 1, "file rewritten": 2, "file removed": 1, "file cut": 1},
    "listener": {},
    "pipe": {},
    "socket": {"peer resets": 2, "peer closes": 1},
}
FAULTS = tuple(dict.fromkeys([*_OF_ALL, *(verb for verbs in _OF_KIND.values() for verb in verbs)]))
# A keeper that stands still, or whose folders are gone, takes seconds to be replaced: once in a round is enough.
_ONCE = ("stop keeper", "remove live", "remove store", "restart server", "kill backend", "kill agent")


def plan(seed: int) -> Plan:
    dice = random.Random(seed)
    kinds = dice.sample(_UNITS, dice.choice((2, 3, 3, 4, 5)))
    parts = [_KINDS[kind](dice) for kind in kinds]
    faults = _faults(dice, kinds)
    goes_late, rest = dice.random() < 0.5, dice.choice((0.0, 0.0, 0.0, 0.1, 0.6))
    if dice.random() < _MIGRATIONS:
        parts.append(_migration(dice))
        holder = "kill proxy" if parts[-1].options["engine"] == "postgres" else "kill holder"
        if dice.random() < 0.5:
            faults.insert(dice.randint(0, len(faults)), Fault(holder, _gap(dice)))
    return Plan(seed, tuple(parts), tuple(faults), goes_late, rest, _move(seed, parts, faults))


def _move(seed: int, parts: list[Part], faults: list[Fault]) -> Move:
    """Drawn apart, and for later seeds only: the rounds of the earlier ones stay what they were."""
    dice = random.Random(f"{seed} moves")
    if seed < _FIRST_THAT_MOVES or dice.random() >= _MOVES:
        return ""
    if any(fault.verb == "remove store" or fault.verb.startswith("database") for fault in faults):
        return ""  # what both machines have is gone
    move: Move = dice.choice(("dead", "alive", "back"))
    is_on_one = any(part.kind == "sqlite" or part.options.get("engine") == "sqlite" for part in parts)
    return "dead" if move == "alive" and is_on_one else move  # a file that two machines lock is nowhere supported


def _faults(dice: random.Random, kinds: list[str]) -> list[Fault]:
    weights = dict(_OF_ALL)
    for kind in kinds:
        weights |= _OF_KIND[kind]
    verbs: list[str] = []
    for _ in range(dice.choice((1, 1, 2, 2, 3, 4, 5))):
        [verb] = dice.choices(list(weights), list(weights.values()))
        verbs.append(verb)
        if verb in _ONCE:
            del weights[verb]
    if "kill agent" not in verbs:
        verbs.insert(dice.randint(0, len(verbs)), "kill agent")
    return [Fault(verb, _gap(dice)) for verb in verbs]


def _gap(dice: random.Random) -> float:
    longest = dice.choice((0.0, 0.004, 0.04, 0.04, 0.2))
    return round(dice.random() * longest, 4)

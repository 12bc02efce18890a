"""The questions every client can ask the keeper itself, whatever kinds of units there are."""

from __future__ import annotations

import os
import signal
import subprocess
from collections.abc import Callable, Iterable, Mapping
from typing import Any, Protocol

from perdure._ground.ids import boot_id
from perdure.keeper.core.clients import Connection, problem_with, wire
from perdure.keeper.core.finished_tasks import Finished
from perdure.keeper.core.home import Home
from perdure.keeper.core.limits import NAMES
from perdure.keeper.core.unit_kinds import WITHOUT_SECRETS, Answer, Call, Held, KeeperCore, Refused, Soon, hidden_argv
from perdure.keeper.core.units import Owner, Unit
from perdure.keeper.json_text import to_json
from perdure.keeper.process import processes


class AskedKeeper(KeeperCore, Protocol):
    """The keeper, as its own questions need it."""

    @property
    def finished(self) -> Finished: ...

    @property
    def folder(self) -> Home: ...

    def admit(self, connection: Connection, token: int | None) -> None: ...

    def take_up(self, units: Iterable[Unit]) -> None: ...

    def replace(self) -> None: ...


Question = Callable[[AskedKeeper, Connection, Call], Answer | Soon]
# Most descriptors that the anchor holds for one unit.
_MOST_FDS_OF_UNIT, _LONGEST_FD_NAME, _LONGEST_ABOUT = 256, 400, 1 << 16


def hello(keeper: AskedKeeper, connection: Connection, call: Call) -> Answer:
    """The first question: who speaks, and in which version. Without a common one there is still IN_EVERY_VERSION."""
    keeper.admit(connection, call.fds[0] if call.fds else None)
    connection.is_admitted = True
    version = wire.common_version(wire.VERSIONS, call.get("versions", list, []))
    if version is None:
        raise Refused("version", speaks=list(wire.VERSIONS))
    connection.version = version
    if not connection.speaks_for and keeper.units.records.learn(call.get("keys", str, "")):
        keeper.take_up(keeper.units.keys_given())
    about = {"version": version, "pid": os.getpid(), "anchor": keeper.anchor_pid, "kinds": sorted(keeper.kinds)}
    about |= {"speaks_for": connection.speaks_for, "program": keeper.argv, "identity": keeper.folder.identity}
    return Answer(about)


def status(keeper: AskedKeeper, connection: Connection, call: Call) -> Answer:
    units = list(keeper.units)
    memory = {
        "keeper": processes.memory_of(iter([os.getpid()])),
        "anchor": processes.memory_of(iter([keeper.anchor_pid])),
    }
    return Answer(
        {
            "pid": os.getpid(),
            "anchor": keeper.anchor_pid,
            "boot": boot_id(),
            "home": str(keeper.home),
            "versions": list(wire.VERSIONS),
            "kinds": sorted(keeper.kinds),
            "alive": sum(unit.is_alive for unit in units),
            "ended": sum(not unit.is_alive for unit in units),
            "unreadable": keeper.units.unreadable,
            "connections": len(keeper.connections),
            "memory": memory,
            "program": keeper.argv,
        }
    )


def shown(keeper: AskedKeeper, unit: Unit, to: Connection | None = None, epoch: int = 0) -> dict[str, Any]:
    """A unit as clients see it: its record without its environment, and what its kind says of it now. That it was
    made again is told to the attempt it was made again for, and to others until that one has heard it."""
    held, writer = keeper.held.get(unit.uid), keeper.writers.get(unit.uid)
    about, label = _about(held) if held else {}, keeper.labels.holder(unit.uid)
    if (made_for := unit.facts.get("rebuilt_for")) and to is not None:
        is_same = made_for == [to.pid, to.start, epoch or made_for[2]]
        about["is_rebuilt"] = is_same or not unit.facts.get("rebuild_heard")
        if about["is_rebuilt"]:
            to.is_told.add(unit.uid)
    return {
        **vars(unit),
        "owner": vars(unit.owner),
        "recipe": {name: value for name, value in unit.recipe.items() if name != "env"},
        "about": about,
        "writer": writer.pid if writer else 0,
        "writer_label": label.name if label else "",
        "writer_left": keeper.labels.seconds_left(unit.uid),
    }


def _about(held: Held) -> dict[str, Any]:
    """The kind's description of it; a unit that cannot be described hides no other."""
    try:
        return held.about()
    except (OSError, ValueError, TypeError, KeyError, AttributeError) as error:
        return {"trouble": f"{type(error).__name__}: {error}"[:200]}


# ── units ────────────────────────────────────────────────────────────────────────────────────────


def open_unit(keeper: AskedKeeper, connection: Connection, call: Call) -> Answer | Soon:
    """The task's unit of this name, also if it has ended. If there is none, it is made, unless `find` is set; in place
    of one that another keeper had, it is answered once it is known how it came back."""
    kind, name, recipe = call.get("kind", str, ""), call.get("name", str, ""), call.get("recipe", dict, {})
    if kind not in keeper.kinds:
        raise Refused("unknown kind", kind=kind, kinds=sorted(keeper.kinds))
    owner = _owner(call)
    if not connection.speaks_for:  # a process started by a unit may not name the store
        keeper.finished.learn(call.get("store", str, ""))
    found = keeper.units.find(owner.namespace, owner.uid, name)
    if found is None and call.get("find", bool, False):
        return Answer({"unit": None, "made": False})
    if found is None:
        made = _make(keeper, kind, name, owner, recipe, call, _of_another_keeper(connection, call))
        if "instead_of" in made.facts:  # of one whose record was missing: see services.py
            made.facts["rebuilt_for"] = [connection.pid, connection.start, call.get("epoch", int, 0)]
            keeper.save(made)
        if made.facts.get("rebuilt_for"):
            return _once_settled(keeper, made, connection, call)
        return Answer({"unit": shown(keeper, made, connection, call.get("epoch", int, 0)), "made": True})
    if not found.is_alive and (held := keeper.held.get(found.uid)) is not None:
        held.expect()
    identity, runs_once = keeper.kinds[kind].identity, keeper.kinds[kind].runs_once
    if found.kind != kind or ((found.is_alive or runs_once) and identity(found.recipe) != identity(recipe)):
        how = " (isolated)" if found.recipe.get("isolate") else ""
        raise Refused("differs", kind=found.kind, argv=found.recipe.get("argv"), how=how)
    _look(keeper, found)
    told = shown(keeper, found, connection, call.get("epoch", int, 0))
    if found.is_alive and (held := keeper.held.get(found.uid)) is not None:
        told["about"] |= held.found([connection.pid, connection.start, call.get("epoch", int, 0)])
    return Answer({"unit": told, "made": False})


def _look(keeper: AskedKeeper, unit: Unit) -> None:
    if unit.is_alive and (held := keeper.held.get(unit.uid)) is not None:
        held.look()


def rebuild(keeper: AskedKeeper, connection: Connection, call: Call) -> Answer | Soon:
    """A new unit in place of one that has ended, from its recipe; values in `fresh` replace recorded ones. Answered
    once it is known how it came back."""
    old = _unit(keeper, call)
    newest = keeper.units.find(old.owner.namespace, old.owner.uid, old.name)
    if newest is not None and newest.uid != old.uid:  # another process was quicker
        return Answer({"unit": shown(keeper, newest, connection), "made": False})
    if old.is_alive:
        raise Refused("alive", unit=old.uid)
    if (held := keeper.held.get(old.uid)) is not None:
        held.superseded()
    if old.kind not in keeper.kinds:
        raise Refused("unknown kind", kind=old.kind, kinds=sorted(keeper.kinds))
    known = {} if old.facts.get("aside") else keeper.kinds[old.kind].held.rebuild(keeper, old)
    recipe = {**known, **call.get("fresh", dict, {})}
    if recipe.get("hides_argv") and (former := hidden_argv(keeper, old.uid)) is not None:
        call.values.setdefault("argv", former)
    made = _make(keeper, old.kind, old.name, old.owner, recipe, call)
    made.facts |= {
        "instead_of": old.uid,
        "rebuilt_from": old.facts.get("recipe", {}),
        "why_rebuilt": old.facts.get("why", ""),
        "missing": call.get("missing", list, []),
        "rebuilt_for": [connection.pid, connection.start, call.get("epoch", int, 0)],
    }
    if "elsewhere" in old.facts:  # what that one was asked to do is no better known here than before
        made.facts["elsewhere"] = old.facts["elsewhere"]
    keeper.save(made, through_power_loss=True)
    return _once_settled(keeper, made, connection, call)


def _once_settled(keeper: AskedKeeper, made: Unit, connection: Connection, call: Call) -> Soon:
    answer, settled = Soon(), keeper.held[made.uid].settled()

    def tell() -> None:
        shows = shown(keeper, made, connection, call.get("epoch", int, 0))
        answer.give(Answer({"unit": shows, "made": True}))

    tell() if settled is None else settled.then(tell)
    return answer


def _of_another_keeper(connection: Connection, call: Call) -> dict[str, Any]:
    """What is to be noted of a unit that is made in place of one that another keeper had: its host, and, if its
    contents came along, what was learnt there and which secrets are not here."""
    told = call.get("elsewhere", dict, {})
    if not told or connection.speaks_for:  # a process started by a unit knows of no other keeper
        return {}
    facts: dict[str, Any] = {"elsewhere": str(told.get("host", "")), "elsewhere_note": told.get("note")}
    if isinstance(told.get("learnt"), dict):
        facts |= {
            "rebuilt_from": told["learnt"],
            "why_rebuilt": f"it was on {facts['elsewhere']}",
            "missing": [str(name) for name in told.get("missing") or ()],
            "rebuilt_for": [connection.pid, connection.start, call.get("epoch", int, 0)],
        }
    return facts


def _make(
    keeper: AskedKeeper,
    kind: str,
    name: str,
    owner: Owner,
    recipe: dict[str, Any],
    call: Call,
    facts: Mapping[str, Any] = {},
) -> Unit:
    cls = keeper.kinds[kind].held
    cls.check(recipe)
    hidden = call.get("argv", list, None)
    if recipe.get("hides_argv") and not hidden:
        raise Refused("no recipe", what=WITHOUT_SECRETS)
    unit = keeper.units.new(kind, name, owner, recipe, boot_id())
    unit.limits = {key: float(value) for key, value in call.get("limits", dict, {}).items() if key in NAMES}
    unit.facts |= facts
    held = cls(keeper, unit)
    held.secrets, held.given, held.given_fds = call.get("secrets", dict, {}), call.body, call.fds
    try:
        if hidden and recipe.get("hides_argv"):
            held.hide([str(part) for part in hidden])
        held.start()
    except BaseException:
        unit.ended = -1
        keeper.forget(unit)
        raise
    held.secrets, held.given, held.given_fds = {}, b"", ()
    keeper.held[unit.uid] = held
    keeper.save(unit, through_power_loss=not unit.pid)  # else its launch has seen to that
    return unit


def list_units(keeper: AskedKeeper, connection: Connection, call: Call) -> Answer:
    task = call.get("task_uid", str, "")
    found = [unit for unit in keeper.units if not task or unit.owner.uid == task]
    for unit in found:
        _look(keeper, unit)
    return Answer({"units": [shown(keeper, unit, connection) for unit in found]})


def recipe_of(keeper: AskedKeeper, connection: Connection, call: Call) -> Answer:
    """How a unit was made, with its environment: a bundle has to be able to make it again elsewhere. With `elsewhere`,
    what is in it now comes too, as far as its kind has learnt of it."""
    unit = _unit(keeper, call)
    held = keeper.held.get(unit.uid) if call.get("elsewhere", bool, False) else None
    if held is None or connection.speaks_for:
        return Answer({"recipe": unit.recipe})
    return Answer({"recipe": held.elsewhere(), "learnt": unit.facts.get("recipe", {})})


def claim(keeper: AskedKeeper, connection: Connection, call: Call) -> Answer:
    """The unit's write lease. Refused while another connection or label holds it, unless by `take`, or by a later
    attempt."""
    unit, epoch = _unit(keeper, call), call.get("epoch", int, 0)
    if call.get("label", str, ""):
        return _claim_for_label(keeper, unit, call)
    task_epoch, writer = call.get("task_epoch", int, 0), keeper.writers.get(unit.uid)
    if writer is not None and writer is not connection and writer.has_died():
        writer.close()  # its end is about to be reported; the caller need not wait for it
        writer = None
    label = keeper.labels.holder(unit.uid)
    if label is not None or (writer is not None and writer is not connection):
        is_later = task_epoch > unit.task_epoch > 0
        if not (call.get("take", bool, False) or is_later):
            raise Refused("held", **who_writes(keeper, unit.uid))
        keeper.labels.drop(unit.uid)
        if writer is not None and writer is not connection:
            writer.tell("taken", {"unit": unit.uid, "by": connection.pid})
    elif task_epoch and task_epoch < unit.task_epoch:
        raise Refused("held", pid=0)
    if writer is not connection:
        keeper.writers[unit.uid] = connection
        if epoch != unit.epoch or not epoch:  # else its holder has only connected anew
            unit.epoch += 1
        unit.task_epoch = task_epoch or unit.task_epoch
        keeper.save(unit)
    return Answer({"epoch": unit.epoch})


def _claim_for_label(keeper: AskedKeeper, unit: Unit, call: Call) -> Answer:
    """The write lease for a label, through whatever connection it writes; a process that has it is told."""
    name, seconds = call.get("label", str, ""), float(call.values.get("seconds", 60))
    if problem := problem_with(name, seconds):
        raise Refused("invalid", what=problem)
    if not unit.is_alive:
        raise Refused("ended", what=str(unit.facts.get("why") or "it has ended"))
    writer, label = keeper.writers.get(unit.uid), keeper.labels.holder(unit.uid)
    if writer is not None and writer.has_died():
        writer.close()
        writer = None
    is_others = writer is not None or (label is not None and label.name != name)
    if is_others and not call.get("take", bool, False):
        raise Refused("held", **who_writes(keeper, unit.uid))
    if writer is not None:
        writer.tell("taken", {"unit": unit.uid, "by": 0})
        del keeper.writers[unit.uid]
        unit.epoch += 1  # so that what that process still sends is stale
        keeper.save(unit)
    keeper.labels.take(unit.uid, name, seconds)
    return Answer({"label": name, "epoch": unit.epoch})


def who_writes(keeper: KeeperCore, uid: str) -> dict[str, Any]:
    """The holder of the write lease, for a refusal."""
    writer, label = keeper.writers.get(uid), keeper.labels.holder(uid)
    return {"pid": writer.pid if writer else 0, "by": label.name if label else ""}


def release(keeper: AskedKeeper, connection: Connection, call: Call) -> Answer:
    unit = _unit(keeper, call)
    if label := call.get("label", str, ""):
        keeper.labels.drop(unit.uid, label)
    elif keeper.writers.get(unit.uid) is connection:
        del keeper.writers[unit.uid]
    return Answer()


def let_go(keeper: AskedKeeper, connection: Connection, call: Call) -> Answer | Soon:
    """End it for good: its marks are forgotten, and the next open under its name makes a new one."""
    unit = _unit(keeper, call)
    unit.facts["released"] = True
    unit.facts["why"] = "it was released"
    for name in ("mark", "file", "basis", "left"):
        unit.facts.pop(name, None)
    keeper.save(unit, through_power_loss=True)
    return end(keeper, connection, call)


def end(keeper: AskedKeeper, connection: Connection, call: Call) -> Answer | Soon:
    """Have it end; by `wait`, answered once it has."""
    unit = _unit(keeper, call)
    keeper.end(unit)
    if unit.is_alive and unit.uid in keeper.held and call.get("wait", bool, False):
        return keeper.end_of(unit)
    return Answer({"unit": shown(keeper, unit)})


def signal_unit(keeper: AskedKeeper, connection: Connection, call: Call) -> Answer:
    """Signal every process of a unit, wherever it is."""
    unit, number = _unit(keeper, call), call.get("number", int, 0)
    if number not in {int(one) for one in signal.valid_signals()}:
        raise Refused("invalid", what=f"signal {number}")
    reached = 0
    if unit.is_alive and unit.pid:
        reached = processes.kill(processes.of_unit(unit.pid, unit.uid, keeper.anchor_pid), number)
    return Answer({"reached": reached})


def forget(keeper: AskedKeeper, connection: Connection, call: Call) -> Answer:
    unit = _unit(keeper, call)
    if unit.is_alive:
        raise Refused("alive", unit=unit.uid)
    keeper.forget(unit)
    return Answer()


def _unit(keeper: AskedKeeper, call: Call) -> Unit:
    uid = call.get("unit", str, "")
    unit = keeper.units.get(uid)
    if unit is None:
        raise Refused("no unit", unit=uid)
    return unit


def _owner(call: Call) -> Owner:
    owner = call.get("owner", dict, {})
    try:
        return Owner(str(owner["namespace"]), str(owner["task"]), str(owner["uid"]))
    except KeyError as missing:
        raise Refused("invalid", what=f"the owner has no {missing}") from None


# ── descriptors ──────────────────────────────────────────────────────────────────────────────────


def put_fd(keeper: AskedKeeper, connection: Connection, call: Call) -> Answer:
    """Hold a descriptor under a name. The anchor has it too, so it outlives the keeper."""
    if len(call.fds) != 1:
        raise Refused("invalid", what=f"{len(call.fds)} descriptors came; one is put at a time")
    name, about = _fd_name(connection, call), call.values.get("about")
    if len(name) > _LONGEST_FD_NAME or len(to_json(about)) > _LONGEST_ABOUT:
        raise Refused("invalid", what="what is said about a descriptor is too long")
    others = sum(held.startswith(name.partition("/")[0] + "/") for held, _ in keeper.anchored.names() if held != name)
    if others >= _MOST_FDS_OF_UNIT:
        raise Refused("invalid", what=f"{others} descriptors are held for this unit already")
    keeper.anchored.put(name, call.fds[0], about)
    return Answer()


def get_fd(keeper: AskedKeeper, connection: Connection, call: Call) -> Answer:
    name = _fd_name(connection, call)
    try:
        fd, about = keeper.anchored.get(name)
    except KeyError:
        raise Refused("no descriptor", name=name) from None
    return Answer({"about": about}, fds=(fd,))


def drop_fd(keeper: AskedKeeper, connection: Connection, call: Call) -> Answer:
    keeper.anchored.drop(_fd_name(connection, call))
    return Answer()


def fd_names(keeper: AskedKeeper, connection: Connection, call: Call) -> Answer:
    prefix = _fd_name(connection, Call(connection, {**call.values, "name": ""}))
    found = [[name[len(prefix) :], about] for name, about in keeper.anchored.names() if name.startswith(prefix)]
    return Answer({"names": found})


def _fd_name(connection: Connection, call: Call) -> str:
    """The owner of a unit's token has that unit's descriptors, and no others."""
    unit, name = call.get("unit", str, ""), call.get("name", str, "")
    if connection.speaks_for and unit not in ("", connection.speaks_for):
        raise Refused("stranger", what="this token is another unit's")
    if "/" in unit:
        raise Refused("invalid", what=f"unit is {unit!r}")
    return f"fd:{connection.speaks_for or unit}/{name}"


# ── the keeper itself ────────────────────────────────────────────────────────────────────────────


def replace(keeper: AskedKeeper, connection: Connection, call: Call) -> Answer:
    """Execute another program, which is tested first. Units notice nothing; clients connect again."""
    argv = [str(part) for part in call.get("argv", list, [])] or keeper.argv
    try:
        subprocess.run([*argv, "--check"], check=True, timeout=20, capture_output=True)
    except (OSError, subprocess.SubprocessError) as error:
        raise Refused("cannot start", what=f"the new keeper does not start: {error}") from None
    keeper.argv = argv
    keeper.anchored.replace(argv)
    keeper.loop.call_soon(keeper.replace)
    return Answer({"pid": os.getpid()})


def stop(keeper: AskedKeeper, connection: Connection, call: Call) -> Answer:
    """End keeper and anchor. Refused while units live, unless they are to end too."""
    alive = [unit for unit in keeper.units if unit.is_alive]
    if alive and not call.get("units_too", bool, False):
        raise Refused("alive", count=len(alive))
    for unit in alive:
        unit.facts |= {"why": "the keeper was stopped", "is_over": True}
        unit.ended, unit.ended_at = -1, keeper.now()
        keeper.save(unit)
    processes.kill(processes.below(keeper.anchor_pid, os.getpid()))
    for unit in alive:  # an adopted process is not below the anchor
        if processes.is_same(unit.pid, unit.start):
            processes.kill(processes.of_unit(unit.pid, unit.uid, keeper.anchor_pid))
    keeper.loop.call_soon(keeper.stop)
    return Answer()


# The questions that a keeper of any version answers, so that every keeper can be replaced or stopped.
IN_EVERY_VERSION = frozenset({"hello", "status", "replace", "stop"})
QUESTIONS: dict[str, Question] = {
    "hello": hello,
    "status": status,
    "open": open_unit,
    "rebuild": rebuild,
    "units": list_units,
    "recipe": recipe_of,
    "claim": claim,
    "release": release,
    "let go": let_go,
    "end": end,
    "signal": signal_unit,
    "forget": forget,
    "fd.put": put_fd,
    "fd.get": get_fd,
    "fd.drop": drop_fd,
    "fd.names": fd_names,
    "replace": replace,
    "stop": stop,
}

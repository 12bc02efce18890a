"""Turn the keeper's refusals into errors for the caller."""

from __future__ import annotations

from perdure import keeper
from perdure.errors import (
    Conflict,
    EffectUncertain,
    InvalidInput,
    KeeperUnavailable,
    NotAllowed,
    NotFound,
    PerdureError,
    ShellBusy,
    TimedOut,
    UnitEnded,
    UnitHeld,
)


def error_of(refusal: keeper.Refusal, request: keeper.Request | None) -> PerdureError:
    values = refusal.args
    what, unit = str(values.get("what", "")), _unit(refusal, request)
    match refusal.error:
        case "version":
            return KeeperUnavailable(
                f"the keeper speaks versions {values.get('speaks')}, this perdure {list(keeper.VERSIONS)}",
                kept="its units; nothing was asked of them",
                do="run `perdure keep restart` with the newer of the two; units live on",
            )
        case "stranger":
            return NotAllowed(
                f"the keeper refuses to speak with this process: {what}",
                kept="nothing was done",
                do="speak to it from outside its units, or from a program that `perdure run` has started",
            )
        case "held":
            return UnitHeld(unit, int(values.get("pid", 0)), str(values.get("by", "")))
        case "stale":
            return UnitHeld(unit, 0)
        case "differs":
            made = f"{values.get('argv')}{values.get('how', '')}"
            return Conflict(
                f"a {values.get('kind')} of this name already exists, made as {made}",
                kept="the one that lives",
                do="choose another name, or end it first: `perdure units` lists what there is",
            )
        case "port taken":
            return Conflict(
                f"port {values.get('port')} is taken by another program",
                kept="that program, untouched; nothing was started",
                do="end it, or choose another port",
            )
        case "busy":
            return ShellBusy(unit, what)
        case "uncertain":
            return EffectUncertain("the input", "the keeper was replaced while it was being written")
        case "ended" | "no unit":
            return UnitEnded(unit, what or "it no longer exists")
        case "not asked":
            return TimedOut(
                f"the program did not ask for a secret within {values.get('seconds')} s",
                kept="the secret was not sent",
                do="waiting() says what the terminal waits for",
            )
        case "cannot start" | "system":
            return UnitEnded(unit, what)
        case "secret":
            return NotAllowed(
                "the program asks for a secret", kept="nothing was typed", do="a person answers it: `perdure attach`"
            )
        case "no command":
            return NotFound("command", "with this key", f"shell {unit!r}" if unit else "the shell")
        case "no descriptor":
            return NotFound("descriptor", str(values.get("name")), "the keeper")
        case "invalid" | "unknown kind" | "unknown verb" | "no recipe":
            return InvalidInput(what or f"{refusal.error}: {values}")
        case "alive":
            return Conflict(f"{values.get('count', 'a')} unit(s) live", kept="they live on", do="end them first")
        case _:
            return KeeperUnavailable(f"the keeper has failed: {refusal.error} {what}", do="its log says more")


def _unit(refusal: keeper.Refusal, request: keeper.Request | None) -> str:
    """The unit's name within its task."""
    asked = {} if request is None else request.args
    return str(refusal.args.get("unit_name") or asked.get("name") or asked.get("unit") or "")

"""A policy for each field of a state: stored, computed again, or left out.

class State(TypedDict):
    files: list[str]                                   # stored
    index: Annotated[dict, recompute(build_index)]     # computed again from the stored fields
    socket: Annotated[Any, EXCLUDE]                    # never stored, and missing after a restore

fields = Fields.of(State)
await task.checkpoint(fields.stored(state))
state = await fields.restored(task.state)
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Annotated, Any, get_args, get_origin, get_type_hints

from perdure.errors import InvalidInput, NotResumable


@dataclass(frozen=True, slots=True)
class Recompute:
    """Computed again by `make(state)`, from the stored fields and those computed before it; blocking or async."""

    make: Callable[[dict[str, Any]], Any]


@dataclass(frozen=True, slots=True)
class Word:
    name: str


PERSIST, EXCLUDE = Word("persist"), Word("exclude")
Policy = Word | Recompute


def recompute(make: Callable[[dict[str, Any]], Any]) -> Recompute:
    return Recompute(make)


class Fields:
    """A policy for each field by name; a field without one is stored."""

    def __init__(self, *, required: frozenset[str] = frozenset(), **policies: Policy) -> None:
        for name, policy in policies.items():
            if not isinstance(policy, Word | Recompute):
                raise InvalidInput(
                    f"the field {name!r} has the policy {policy!r}", do="PERSIST, EXCLUDE or recompute(fn)"
                )
        self._policies, self._required = policies, required

    @classmethod
    def of(cls, shape: type) -> Fields:
        """The policies in a class's annotations; fields without one are stored, and required."""
        policies: dict[str, Policy] = {}
        required = set(getattr(shape, "__required_keys__", ()))
        for name, hint in get_type_hints(shape, include_extras=True).items():
            said = [one for one in get_args(hint)[1:] if isinstance(one, Word | Recompute)]
            policies[name] = said[-1] if get_origin(hint) is Annotated and said else PERSIST
            if not hasattr(shape, "__required_keys__") and not hasattr(shape, name):
                required.add(name)
        kept = {name for name, policy in policies.items() if policy is PERSIST}
        return cls(required=frozenset(required & kept), **policies)

    def stored(self, state: Mapping[str, Any]) -> dict[str, Any]:
        """The part of a state that is stored.

        Raises:
            NotResumable: a required field is missing, so the work could not be resumed.
        """
        self._check(state)
        return {name: value for name, value in state.items() if self._policies.get(name, PERSIST) is PERSIST}

    async def restored(self, stored: Mapping[str, Any]) -> dict[str, Any]:
        """The state again: the stored fields, and those computed from them, in the order of declaration.

        Raises:
            NotResumable: a required field is missing.
        """
        self._check(stored)
        state = dict(stored)
        for name, policy in self._policies.items():
            if isinstance(policy, Recompute):
                made = policy.make(state)
                state[name] = await made if inspect.isawaitable(made) else made
        return state

    def _check(self, state: Mapping[str, Any]) -> None:
        missing = sorted(self._required - set(state))
        if missing:
            raise NotResumable(missing[0], "it is not in the state")

"""Whether a function accepts the calls that another one will pass on to it.

An undo or a probe with a wrong signature would fail only when something has gone wrong, which is too late. So each way
in which the effect can be called is tried on its signature where the effect is declared; nothing is run.

Arguments are handed on as they were given: by position up to the first that was left out, by name from there on.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator
from itertools import zip_longest
from typing import Any

from perdure.errors import InvalidInput

_POSITIONAL = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
_REST = (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD)


def refuse_misfit(what: str, function: Any, effect: Callable[..., Any], *, before: str = "") -> None:
    """Let it pass if the function takes whatever the effect takes, after `before`; one that cannot be read passes too.

    Raises:
        InvalidInput: some call of the effect could not be handed on to it, or would get its arguments mixed up.
    """
    if function is None:
        return
    if not callable(function):
        raise InvalidInput(f"{what} is {function!r}, which cannot be called", kept="nothing ran", do="give a function")
    takes, gives = _parameters(function), _parameters(effect)
    if takes is None or gives is None:
        return
    given = gives[1:] if before and _is_method(gives) else gives  # an undo gets no instance
    problem = _problem(takes, given, before)
    if problem:
        raise InvalidInput(
            f"{what}, {getattr(function, '__name__', repr(function))}({_shown(takes)}), does not fit it: {problem}",
            kept="nothing ran",
            do=f"have it take ({', '.join(filter(None, (before, _shown(given))))}), which is how it is called",
        )


def _parameters(function: Any) -> list[inspect.Parameter] | None:
    try:
        return list(inspect.signature(function).parameters.values())
    except (TypeError, ValueError):  # it is written in C, and says nothing
        return None


def _is_method(parameters: list[inspect.Parameter]) -> bool:
    return bool(parameters) and parameters[0].name in ("self", "cls")


def _problem(takes: list[inspect.Parameter], gives: list[inspect.Parameter], before: str) -> str:
    if before and _is_method(takes):
        return f"it is called without an instance, and {takes[0].name} would be the {before}"
    signature = inspect.Signature(takes)
    first = (None,) if before else ()
    for args, kwargs in _calls(gives):
        try:
            signature.bind(*first, *args, **kwargs)
        except TypeError as problem:
            return str(problem)
    kinds = {parameter.kind for parameter in takes}
    for rest in gives:
        if rest.kind in _REST and rest.kind not in kinds:
            return f"it takes no {_shown([rest])}"
    return _mixed_up(takes, [before, *_names(gives)] if before else _names(gives))


def _calls(gives: list[inspect.Parameter]) -> Iterator[tuple[tuple[Any, ...], dict[str, Any]]]:
    """The calls that matter: with all there is, with what is needed, and with each of the others alone."""
    signature = inspect.Signature(gives)
    single = [parameter for parameter in gives if parameter.kind not in _REST]
    needed = {parameter.name for parameter in single if parameter.default is parameter.empty}
    by_name = {parameter.name for parameter in single if parameter.kind is not inspect.Parameter.POSITIONAL_ONLY}
    alone = [needed | {name} for name in by_name - needed]
    for names in ({parameter.name for parameter in single}, needed, *alone):
        bound = signature.bind_partial()
        bound.arguments.update({parameter.name: None for parameter in single if parameter.name in names})
        yield bound.args, bound.kwargs


def _names(parameters: list[inspect.Parameter]) -> list[str]:
    return [parameter.name for parameter in parameters if parameter.kind in _POSITIONAL]


def _mixed_up(takes: list[inspect.Parameter], given: list[str]) -> str:
    """Whether a positional argument lands on a parameter of another name."""
    names, by_name = _names(takes), {parameter.name for parameter in takes if parameter.kind not in _REST}
    for name, place in zip_longest(given, names):
        if name is not None and name != place and (name in by_name or place in given):
            return f"{name} would be given to it as {place or 'one of the rest'}"
    return ""


def _shown(parameters: list[inspect.Parameter]) -> str:
    return ", ".join(str(parameter.replace(annotation=parameter.empty)) for parameter in parameters)

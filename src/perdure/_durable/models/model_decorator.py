"""Model calls: steps that cost money, recorded with the model, the prompt, and the cost.

`@model_call` is a `@step` that also records the model, a hash of the prompt, the tokens and the cost, and checks the
budget first. A recorded call is never paid for again.

Owns the decorator and the reading of usage. prompt_log.py stores the prompts, budget_accounts.py counts the cost.
"""

from __future__ import annotations

import functools
import inspect
import logging
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from math import isfinite
from typing import Any, ParamSpec, TypeVar

from perdure._durable.attempt import Retry, current
from perdure._durable.declare import step
from perdure._durable.models.budget_accounts import BudgetAccount, spent_note
from perdure._durable.models.prompt_log import Conversations
from perdure._durable.values import Signature
from perdure._ground import crash_points as crash
from perdure._ground.durations import Duration
from perdure._model import name_of
from perdure.errors import NotStorable

log = logging.getLogger("perdure.durable")
P = ParamSpec("P")
R = TypeVar("R")


@dataclass(frozen=True, slots=True, kw_only=True)
class Price:
    """The price of a million tokens."""

    input: float = 0.0
    output: float = 0.0

    def of(self, usage: Usage) -> float:
        return (usage.input_tokens * self.input + usage.output_tokens * self.output) / 1_000_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Usage:
    """The usage of one call. Without `money` from the provider, the cost is computed from the price."""

    input_tokens: int = 0
    output_tokens: int = 0
    money: float | None = None

    @property
    def tokens(self) -> int:
        return self.input_tokens + self.output_tokens


def model_call(
    *,
    model: str = "",
    price: Price | None = None,
    usage: Callable[[Any], Usage | None] | None = None,
    messages: str = "messages",
    name: str = "",
    retry: Retry | None = None,
    timeout: Duration | None = None,
    flush: bool | None = True,
    identity: Callable[..., Any] | None = None,
    raises: Sequence[type[BaseException]] = (),
) -> Callable[[Callable[P, R]], Callable[P, R]]:
    """A step that calls a model.

    `model` names the model; without it, the function's argument `model` does. `messages` is the name of the argument
    that holds the conversation (a list) or the prompt (anything else). `usage(reply)` returns what the call used; by
    default it is read from the reply's `usage`, under the names the common providers use. The reply is on disk before
    the code gets it, because it was paid for. The rest is as for `@step`.

    Raises, when called:
        BudgetExhausted: the task has spent its budget; the model was not called.
    """

    def decorate(function: Callable[P, R]) -> Callable[P, R]:
        asker = _Asker(function, model, price or Price(), usage or usage_of, messages, name)
        as_step = step(name=name, retry=retry, timeout=timeout, flush=flush, identity=identity, raises=raises)
        return asker.front(as_step(asker.body()))

    return decorate


class _Asker:
    """A function that calls a model, and how to read its calls."""

    def __init__(
        self,
        function: Callable[..., Any],
        model: str,
        price: Price,
        usage: Callable[[Any], Usage | None],
        messages: str,
        name: str,
    ) -> None:
        self._function, self._model, self._price, self._usage = function, model, price, usage
        self._messages = messages
        self._name = name or function.__qualname__.rpartition("<locals>.")[2]
        known = Signature(function)
        self._signature, self._returns, self._is_method = inspect.signature(function), known.returns, known.is_method
        self._is_async = inspect.iscoroutinefunction(function)

    def body(self) -> Callable[..., Any]:
        """The function itself, with a record of what it used."""
        function = self._function
        if self._is_async:

            @functools.wraps(function)
            async def asked(*args: Any, **kwargs: Any) -> Any:
                reply = await function(*args, **kwargs)
                self._note(args, kwargs, reply)
                return reply

            return asked

        @functools.wraps(function)
        def asked_inline(*args: Any, **kwargs: Any) -> Any:
            reply = function(*args, **kwargs)
            self._note(args, kwargs, reply)
            return reply

        return asked_inline

    def front(self, stepped: Callable[..., Any]) -> Callable[..., Any]:
        """The step, with a check of the budget before it."""
        if self._is_async:

            @functools.wraps(self._function)
            async def call(*args: Any, **kwargs: Any) -> Any:
                self._check_budget()
                return await stepped(*args, **kwargs)

            return call

        @functools.wraps(self._function)
        def call_inline(*args: Any, **kwargs: Any) -> Any:
            self._check_budget()
            return stepped(*args, **kwargs)

        return call_inline

    def _check_budget(self) -> None:
        # Not recorded: once the budget is raised, the call is made. A recorded call needs no budget.
        scope = current.get()
        if scope is not None and (scope.is_body or scope.attempt.cursor.track(scope.path).is_fresh(self._name)):
            scope.attempt.part(BudgetAccount).check()

    def _note(self, args: tuple[Any, ...], kwargs: dict[str, Any], reply: Any) -> None:
        scope = current.get()
        if scope is None:
            return
        given = dict(self._signature.bind(*args, **kwargs).arguments)
        if self._is_method:
            given.pop(next(iter(given)))
        used = self._used(reply)
        money = used.money if used.money is not None else self._price.of(used)
        kept = scope.attempt.part(Conversations)
        prompt, head = self._prompt(kept, given.get(self._messages, given))
        note = spent_note(
            used.tokens,
            money,
            model=str(given.get("model") or self._model),
            prompt=head.hex(),
            input_tokens=used.input_tokens,
            output_tokens=used.output_tokens,
        )
        scope.attempt.part(BudgetAccount).charge(note, "model", f"{scope.path}|model", prompt)
        crash.place("model.noted")
        if name_of(scope.path) == self._name:
            kept.learn_reply(reply, self._returns)

    # The reply is paid for. A problem in recording its details must not lose it, or it would be requested again.

    def _used(self, reply: Any) -> Usage:
        try:
            found = self._usage(reply) or Usage()
            if not isfinite(found.tokens) or not isfinite(found.money or 0.0):
                raise ValueError(f"{found!r}")
            return found
        except Exception as problem:
            log.warning("the usage of %s is unknown and not counted: %r", self._name, problem)
            return Usage()

    def _prompt(self, kept: Conversations, messages: Any) -> tuple[bytes, bytes]:
        try:
            return kept.add(messages)
        except NotStorable as problem:
            log.warning("the prompt of %s is not stored: %s", self._name, problem.what)
            return kept.add([])


def usage_of(reply: Any) -> Usage | None:
    """The usage in a reply, under the names that OpenAI, Anthropic and similar providers use."""
    found = _get(reply, "usage")
    if found is None:
        return None
    asked = _get(found, "input_tokens") or _get(found, "prompt_tokens") or 0
    made = _get(found, "output_tokens") or _get(found, "completion_tokens") or 0
    money = _get(found, "cost")
    return Usage(input_tokens=int(asked), output_tokens=int(made), money=None if money is None else float(money))


def _get(found: Any, name: str) -> Any:
    return found.get(name) if isinstance(found, Mapping) else getattr(found, name, None)

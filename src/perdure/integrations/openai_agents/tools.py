"""`durable_tool`: a function tool whose Python function is recorded, below the SDK's own handling of errors.

The SDK turns a tool's exception into a text for the model ("…please try again"). Recorded above that, a payment whose
connection broke would count as done, and the model would be invited to pay again. So the function itself is recorded.
"""

from __future__ import annotations

import asyncio
import dataclasses
import functools
import inspect
from collections.abc import Awaitable, Callable
from typing import Any

from agents import FunctionTool, RunContextWrapper, function_tool
from agents.tool_context import ToolContext
from pydantic_core import to_jsonable_python

import perdure
from perdure.integrations.tool_options import How, options_of

_MARK = "__perdure_tool__"


def durable_tool(function: Callable[..., Any] | None = None, /, *, how: How = "effect", **options: Any) -> Any:
    """Make a function tool, as `function_tool` does, whose calls are recorded inside a durable function.

        @durable_tool                                       # an effect: never repeated silently
        async def pay(cents: int) -> str: ...

        @durable_tool(how="step", name_override="search")   # options of function_tool stand beside
        async def look_up(query: str) -> str: ...

    `how` is "effect", "step", "plain", or a mapping with "kind" and options of `@effect` or `@step`. Outside of a
    durable function the tool just runs.
    """

    def decorate(function: Callable[..., Any]) -> FunctionTool:
        name = options.get("name_override") or function.__name__
        return function_tool(recorded(function, name, how), **options)

    return decorate if function is None else decorate(function)


def recorded(function: Callable[..., Any], name: str, how: How) -> Callable[..., Awaitable[Any]]:
    """The function with its calls recorded; its signature and docstring stay."""
    options = options_of(name, how)
    signature = inspect.signature(function)

    @functools.wraps(function)
    async def run(*args: Any, **kwargs: Any) -> Any:
        async def carry_out(**shown: Any) -> Any:
            if inspect.iscoroutinefunction(function):
                return _storable(await function(*args, **kwargs))
            return _storable(await asyncio.to_thread(function, *args, **kwargs))

        here = perdure.current()
        if options["kind"] == "plain" or here is None or here.is_body:
            return await carry_out()
        given = signature.bind(*args, **kwargs).arguments
        shown = {key: value for key, value in given.items() if not isinstance(value, RunContextWrapper)}
        return await perdure.call(carry_out, name=name, kwargs=to_jsonable_python(shown, fallback=str), **options)

    setattr(run, _MARK, True)
    return run


def recorded_tool(tool: FunctionTool, how: How | None) -> FunctionTool:
    """A tool of an agent, recorded; one made by `durable_tool` stays as it is."""
    wrapped = getattr(tool, "__wrapped__", None)
    if wrapped is not None and getattr(wrapped, _MARK, False):
        return tool
    if wrapped is None or not getattr(tool, "_use_default_failure_error_function", True):
        return _recorded_above(tool, how or "effect")
    return function_tool(
        recorded(wrapped, tool.name, how or "effect"),
        name_override=tool.name,
        description_override=tool.description,
        strict_mode=tool.strict_json_schema,
        is_enabled=tool.is_enabled,
        needs_approval=tool.needs_approval,
        tool_input_guardrails=tool.tool_input_guardrails,
        tool_output_guardrails=tool.tool_output_guardrails,
        timeout=tool.timeout_seconds,
        timeout_behavior=tool.timeout_behavior,
        timeout_error_function=tool.timeout_error_function,
    )


def _recorded_above(tool: FunctionTool, how: How) -> FunctionTool:
    """A tool without a Python function of its own (an agent as a tool), or with its own text for errors.

    What it returns is recorded as it is: an error that it tells the model counts as its result.
    """
    invoke = tool.on_invoke_tool

    async def run(context: ToolContext[Any], arguments: str) -> Any:
        async def body(arguments: str) -> Any:
            return await invoke(context, arguments)

        return await recorded(body, tool.name, how)(arguments)

    return dataclasses.replace(tool, on_invoke_tool=run)


def _storable(value: Any) -> Any:
    """The value that the SDK passes to the model: text and JSON-like values as they are, its own output types by their
    fields."""
    return to_jsonable_python(value, fallback=str)

"""The tools: names, what they take and give, what a key must allow for each, and which part does the work.

Descriptions are written here and nowhere else: nothing that is stored ever becomes part of one.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from functools import lru_cache
from typing import Annotated, Any, Generic, Literal, TypeVar

import msgspec
from msgspec import Meta, Struct

from perdure.errors import InvalidInput
from perdure.mcp.agent import Agent
from perdure.mcp.answers import (
    MOST_CHARS,
    CheckpointLines,
    Ran,
    Reply,
    Saved,
    Shells,
    TaskLines,
    Where,
)

A = TypeVar("A", bound=Struct)
LONGEST_WAIT = 50.0

Wait = Annotated[float, Meta(ge=0, le=LONGEST_WAIT)]
Offset = Annotated[int, Meta(ge=0, le=1 << 53)]
Count = Annotated[int, Meta(ge=1, le=100)]
Size = Annotated[int, Meta(ge=100, le=100_000)]
Name = Annotated[str, Meta(max_length=200)]
Text = Annotated[str, Meta(max_length=100_000)]
Id = Annotated[str, Meta(max_length=200, description="a name of your own: with it a command runs once")]


class OfTask(Struct, forbid_unknown_fields=True, kw_only=True):
    task: Name = ""


class WhereWasI(OfTask, kw_only=True):
    pass


class SaveState(OfTask, kw_only=True):
    state: dict[str, Any]
    label: Name = ""


class ListTasks(Struct, forbid_unknown_fields=True, kw_only=True):
    status: Literal["", "pending", "running", "paused", "completed", "failed", "cancelled"] = ""
    limit: Count = 20


class RunCommand(OfTask, kw_only=True):
    command: Text
    shell: Name = "main"
    wait_seconds: Wait = 10
    command_id: Id = ""
    max_chars: Size = MOST_CHARS


class ReadOutput(OfTask, kw_only=True):
    command_id: Name = ""
    shell: Name = ""
    from_offset: Offset = 0
    wait_seconds: Wait = 0
    max_chars: Size = MOST_CHARS


class SendKeys(OfTask, kw_only=True):
    shell: Name = "main"
    text: Text = ""
    keys: Annotated[list[Name], Meta(max_length=100)] = []
    wait_seconds: Wait = 1


class StopCommand(OfTask, kw_only=True):
    command_id: Name = ""
    shell: Name = "main"
    force: bool = False


class StartService(OfTask, kw_only=True):
    name: Name
    command: Text
    port: Annotated[int, Meta(ge=0, le=65535)] = 0
    wait_seconds: Wait = 20


class ListShells(OfTask, kw_only=True):
    pass


class RequestApproval(OfTask, kw_only=True):
    question: Annotated[str, Meta(min_length=1, max_length=4000)]
    state: dict[str, Any] | None = None
    wait_seconds: Wait = 0


class GetAnswer(OfTask, kw_only=True):
    wait_seconds: Wait = 0


class WaitUntil(OfTask, kw_only=True):
    until: Annotated[str, Meta(max_length=64, description="2026-11-18T16:05:00+00:00")] = ""
    seconds: Annotated[float, Meta(ge=0, le=31_536_000)] = 0
    why: Annotated[str, Meta(max_length=1000)] = ""


class ListCheckpoints(OfTask, kw_only=True):
    limit: Count = 20


class RestoreCheckpoint(OfTask, kw_only=True):
    checkpoint: Name


class Tool(Generic[A]):
    """One tool: `hints` are read, add or run, which say what it may change."""

    def __init__(
        self,
        name: str,
        takes: type[A],
        gives: type[Struct],
        act: Callable[[Agent, A], Awaitable[Struct]],
        says: str,
        hints: Literal["read", "add", "run"],
        *scopes: str,
    ) -> None:
        self.name, self.takes, self.gives, self.says, self.hints, self.scopes = name, takes, gives, says, hints, scopes
        self._act = act

    def read(self, arguments: Mapping[str, Any]) -> A:
        """The arguments as they are taken.

        Raises:
            InvalidInput: they do not fit; the message is fit for a model.
        """
        try:
            return msgspec.convert(dict(arguments), self.takes, strict=True)
        except msgspec.ValidationError as problem:
            raise InvalidInput(f"{self.name}: {problem}", do="look at the tool's input schema") from None

    async def do(self, agent: Agent, arguments: A) -> Struct:
        return await self._act(agent, arguments)


async def _run(agent: Agent, a: RunCommand) -> Ran:
    return await (await agent.terminals()).run(a.command, a.shell, a.command_id, a.wait_seconds, a.max_chars)


async def _read(agent: Agent, a: ReadOutput) -> Ran:
    terminals = await agent.terminals()
    return await terminals.read(a.command_id, a.shell, a.from_offset, a.wait_seconds, a.max_chars)


async def _send(agent: Agent, a: SendKeys) -> Ran:
    return await (await agent.terminals()).send(a.shell, a.text, a.keys, a.wait_seconds, MOST_CHARS)


async def _stop(agent: Agent, a: StopCommand) -> Ran:
    return await (await agent.terminals()).stop(a.shell, a.command_id, a.force, MOST_CHARS)


async def _service(agent: Agent, a: StartService) -> Ran:
    return await (await agent.terminals()).start_service(a.name, a.command, a.port, a.wait_seconds, MOST_CHARS)


async def _shells(agent: Agent, _: ListShells) -> Shells:
    return await (await agent.terminals()).list()


TOOLS: tuple[Tool[Any], ...] = (
    Tool(
        "where_was_i",
        WhereWasI,
        Where,
        lambda agent, a: agent.where(),
        "Call this first, after every start and after your context was cut: the notes you saved, open questions, "
        "shells and what runs in them.",
        "read",
        "tasks:read",
        "data:read",
    ),
    Tool(
        "save_state",
        SaveState,
        Saved,
        lambda agent, a: agent.save(a.state, a.label),
        "Keep what you must know after a restart: goal, plan, what is done, what is next. It replaces what was kept; "
        "earlier ones stay as checkpoints.",
        "add",
        "tasks:write",
    ),
    Tool(
        "list_tasks",
        ListTasks,
        TaskLines,
        lambda agent, a: agent.list(a.status, a.limit),
        "The tasks of this store, the newest first.",
        "read",
        "tasks:read",
    ),
    Tool(
        "run_command",
        RunCommand,
        Ran,
        _run,
        "Run a command in a shell that keeps its folder, variables and processes when you or this server are "
        "restarted. A command that takes longer than wait_seconds goes on: read_output with its command_id has the "
        "rest. Shells have names; another name is another shell.",
        "run",
        "tasks:write",
        "units:type",
        "data:read",
    ),
    Tool(
        "read_output",
        ReadOutput,
        Ran,
        _read,
        "The output of a command by its command_id, from an offset on, while it runs and long after. With only a "
        "shell: its screen, or a service's log.",
        "read",
        "data:read",
    ),
    Tool(
        "send_keys",
        SendKeys,
        Ran,
        _send,
        "Type into the program in front of a shell: text as it is, then keys by name (Enter, C-c, Up, Tab, Escape). "
        "Not for passwords: a person answers those.",
        "run",
        "tasks:write",
        "units:type",
        "data:read",
    ),
    Tool(
        "stop_command",
        StopCommand,
        Ran,
        _stop,
        "Interrupt a command (force: kill it), or end a service by its name as `shell`.",
        "run",
        "tasks:write",
        "units:type",
        "data:read",
    ),
    Tool(
        "start_service",
        StartService,
        Ran,
        _service,
        "Start a server in the background, once per name, and wait until its port answers. It outlives you; the same "
        "call later finds it.",
        "run",
        "tasks:write",
        "units:type",
        "data:read",
    ),
    Tool(
        "list_shells",
        ListShells,
        Shells,
        _shells,
        "The shells and services of your task, what runs in them, and what they wait for.",
        "read",
        "tasks:read",
        "data:read",
    ),
    Tool(
        "request_approval",
        RequestApproval,
        Reply,
        lambda agent, a: agent.ask(a.question, a.state, a.wait_seconds),
        "Ask a person before something that cannot be undone. Your task pauses until they decide; get_answer has the "
        "decision, also days later. `state` is saved with it.",
        "add",
        "tasks:write",
        "data:read",
    ),
    Tool(
        "get_answer",
        GetAnswer,
        Reply,
        lambda agent, a: agent.answer(a.wait_seconds),
        "What became of request_approval or wait_until.",
        "read",
        "tasks:read",
        "data:read",
    ),
    Tool(
        "wait_until",
        WaitUntil,
        Reply,
        lambda agent, a: agent.wait_until(a.until, a.seconds, a.why),
        "Pause your task until a moment, or for so many seconds (a rate limit, a nightly build). get_answer says when "
        "it is over.",
        "add",
        "tasks:write",
    ),
    Tool(
        "list_checkpoints",
        ListCheckpoints,
        CheckpointLines,
        lambda agent, a: agent.checkpoints(a.limit),
        "The states you saved, the newest first.",
        "read",
        "tasks:read",
        "data:read",
    ),
    Tool(
        "restore_checkpoint",
        RestoreCheckpoint,
        Where,
        lambda agent, a: agent.restore(a.checkpoint),
        "Make an earlier saved state the current one. Files and shells stay as they are.",
        "add",
        "tasks:control",
        "data:read",
    ),
)
_HINTS = {
    "read": {"readOnlyHint": True, "openWorldHint": False},
    "add": {"readOnlyHint": False, "destructiveHint": False, "openWorldHint": False},
    "run": {"readOnlyHint": False, "destructiveHint": True, "openWorldHint": True},
}


def tool_named(name: str) -> Tool[Any] | None:
    return next((tool for tool in TOOLS if tool.name == name), None)


@lru_cache(maxsize=1)
def tool_list() -> list[dict[str, Any]]:
    """The tools as clients are told of them."""
    return [
        {
            "name": tool.name,
            "description": tool.says,
            "inputSchema": _schema(tool.takes, ("maxLength", "maxItems", "minLength", "additionalProperties")),
            "outputSchema": _schema(tool.gives, ("default", "format")),
            "annotations": _HINTS[tool.hints],
        }
        for tool in TOOLS
    ]


def _schema(kind: type[Struct], left_out: tuple[str, ...]) -> dict[str, Any]:
    """The JSON schema of arguments or an answer, without what a model has no use for: it reads all of it each time."""
    _, parts = msgspec.json.schema_components([kind])
    plain = {name: _shortened(part, left_out) for name, part in parts.items()}
    found: dict[str, Any] = plain.pop(kind.__name__)
    return {**found, "$defs": plain} if plain else found


def _shortened(schema: Any, left_out: tuple[str, ...]) -> Any:
    if isinstance(schema, list):
        return [_shortened(one, left_out) for one in schema]
    if not isinstance(schema, dict):
        return schema
    kept = [one for one in schema.get("anyOf", ()) if one != {"type": "null"}]
    if len(kept) == 1:  # what is None is left out of an answer, and may be left out of a call
        return _shortened(kept[0], left_out)
    found = {name: _shortened(value, left_out) for name, value in schema.items() if name not in left_out}
    if isinstance(found.get("title"), str):
        del found["title"]
    if found.get("default") in ("", [], None):
        found.pop("default", None)
    if "$ref" in found:
        found["$ref"] = f"#/$defs/{found['$ref'].rpartition('/')[2]}"
    return found

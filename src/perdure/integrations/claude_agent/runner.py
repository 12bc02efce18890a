"""`DurableClaude`: run a session of the Claude Agent SDK inside a durable function.

The journal holds what the CLI asked for and what became of it. A process that dies is replaced by another one, which
resumes the session from the store and answers calls that were made before from the journal.
"""

from __future__ import annotations

import asyncio
import dataclasses
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from claude_agent_sdk import (
    ClaudeAgentOptions,
    CLIConnectionError,
    ResultMessage,
    SdkMcpTool,
    create_sdk_mcp_server,
    project_key_for_directory,
    query,
)
from claude_agent_sdk.types import Message

import perdure
from perdure import pause, recorded
from perdure.errors import InvalidInput, NoTask, PerdureError, StepFailed
from perdure.integrations.claude_agent.cli_life import CliLife, Session, Setting, own_servers, show
from perdure.integrations.tool_options import How, options_of

if TYPE_CHECKING:
    from perdure import Perdure

_PROVIDER = "anthropic"


class DurableClaude:
    """A Claude agent whose session, tools, approvals and usage limits survive the process.

        claude = DurableClaude(app, ClaudeAgentOptions(), tools={"shop": [look_up, pay]}, approve=["mcp__shop__pay"])

        @durable
        async def clerk(question: str) -> str:
            return (await claude.run(question)).result or ""

    tools       tools made by the SDK's `@tool`, by the name of their server. Each call is an effect of the task:
                cut off, it is asked about, and not repeated
    how         "step" for a tool that only reads, "plain" for one that is not recorded, or a mapping with "kind" and
                options of `@effect`; by the tool's name
    approve     full names of tools, Claude Code's own (`Bash`) among them, that a person has to allow in the inbox
    limits      a usage limit pauses the task until it resets; with False the run ends with the limit's result
    on_message  called with each message of the SDK while it comes; never in a replay
    """

    def __init__(
        self,
        app: Perdure,
        options: ClaudeAgentOptions | None = None,
        *,
        tools: Mapping[str, Sequence[SdkMcpTool[Any]]] | None = None,
        how: Mapping[str, How] | None = None,
        approve: Iterable[str] = (),
        limits: bool = True,
        on_message: Callable[[Message], Awaitable[None] | None] | None = None,
    ) -> None:
        self._app, self._options = app, options or ClaudeAgentOptions()
        for name in ("resume", "session_id", "continue_conversation", "session_store", "fork_session"):
            if getattr(self._options, name):
                raise InvalidInput(f"options.{name} is set", do="leave it out: DurableClaude resumes its own session")
        self._servers = {server: list(given) for server, given in (tools or {}).items()}
        known = {tool.name for given in self._servers.values() for tool in given}
        if strange := set(how or {}) - known:
            raise InvalidInput(f"how names unknown tools: {', '.join(sorted(strange))}", do="give the name of a tool")
        self._how = {name: options_of(name, (how or {}).get(name, "effect")) for name in known}
        self._tools = {
            f"mcp__{server}__{tool.name}": tool
            for server, given in self._servers.items()
            for tool in given
            if self._how[tool.name]["kind"] != "plain"
        }
        self._approve, self._limits, self._on_message = frozenset(approve), limits, on_message

    async def run(self, prompt: str) -> ResultMessage:
        """The session's result. Call it in a durable function's own code; each call of it is a session.

        Outside of durable functions it is a session as the SDK runs it: nothing is recorded.

        Raises:
            NoTask: it is called in the body of a step or an effect; or there is no durable function around it, and
                tools need an approval.
        """
        here = perdure.current()
        if here is None and not self._approve:
            return await self._run_plain(prompt)
        if here is None or here.is_body:
            raise NoTask("DurableClaude.run", where="a durable function's own code")
        session = Session(id=str(recorded.uuid4()), project=await self._project(), prompt=prompt)
        setting = Setting(
            self._app, here.task_id, self._options, self._tools, self._servers, self._approve, self._on_message
        )
        life = CliLife(setting, session)
        try:
            while True:
                event = await perdure.call(life.next, name="claude.event")
                if event["kind"] == "end":
                    return ResultMessage(**event["result"])
                if event["kind"] == "calls":
                    await asyncio.gather(*(self._make(life, session, call) for call in event["calls"]))
                    continue
                if event["kind"] == "deferred":
                    await self._decide(session, event["call"])
                elif not await self._wait_for_limit(event):
                    return ResultMessage(**event["result"])
                life = CliLife(setting, session)
        finally:
            life.abandon()

    async def _run_plain(self, prompt: str) -> ResultMessage:
        base, result = self._options, None
        ours = {name: create_sdk_mcp_server(name, tools=given) for name, given in self._servers.items()}
        allowed = [*base.allowed_tools, *self._tools]
        options = dataclasses.replace(base, mcp_servers={**own_servers(base), **ours}, allowed_tools=allowed)
        async for message in query(prompt=prompt, options=options):
            await show(message, self._on_message)
            result = message if isinstance(message, ResultMessage) else result
        if result is None:
            raise CLIConnectionError("the CLI ended without a result")
        return result

    async def _project(self) -> str:
        """The path of the session's transcript, on the machine where it began."""

        async def find() -> str:
            return project_key_for_directory(None if self._options.cwd is None else str(self._options.cwd))

        name: str = await perdure.call(find, name="claude.project")
        return name

    async def _make(self, life: CliLife, session: Session, call: dict[str, Any]) -> None:
        """Make a call, and answer it. Its intent is on disk before; its outcome is on the way there."""
        if not call["is_ours"]:
            await perdure.call(_allow, name=f"claude.allow:{call['tool']}", kind="effect", keyed=True)
            session.let_go.add(call["id"])
            life.tell(call["id"], {})
            return
        tool = self._tools[call["tool"]]

        async def carry_out(**args: Any) -> Any:
            return await tool.handler(args)

        try:
            told = _told(await perdure.call(carry_out, name=tool.name, kwargs=call["args"], **self._how[tool.name]))
        except StepFailed as failed:
            told = _error(f"{failed.type_name}: {failed.message}")
        except PerdureError:
            raise
        except Exception as failed:
            told = _error(f"{type(failed).__name__}: {failed}")
        session.outcomes[call["id"]] = {"call": call, "told": told}
        life.tell(call["id"], told)

    async def _decide(self, session: Session, call: dict[str, Any]) -> None:
        session.deferred = call["id"]
        args = ", ".join(f"{name}={value!r}" for name, value in call["args"].items())
        try:
            await pause.approval(f"Run {call['tool']}({args})?")
        except pause.Rejected as no:
            session.decisions[call["id"]] = no.comment or "A person rejected this call."
        else:
            session.decisions[call["id"]] = None

    async def _wait_for_limit(self, event: dict[str, Any]) -> bool:
        if not self._limits:
            return False
        moment = event["resets_at"]
        at = None if moment is None else datetime.fromtimestamp(moment, UTC)
        await pause.rate_limit(reset_at=at, provider=_PROVIDER)
        return True


async def _allow() -> None:
    """Nothing happens here: the record says that the CLI was allowed to begin."""


def _told(value: Any) -> dict[str, Any]:
    """The result of a tool. A person who settled the call can have given a plain value, or none."""
    if isinstance(value, dict) and "content" in value:
        return value
    text = "It happened. Its result is not known." if value is None else str(value)
    return {"content": [{"type": "text", "text": text}]}


def _error(text: str) -> dict[str, Any]:
    return {"content": [{"type": "text", "text": text}], "is_error": True}

"""One life of the CLI: it is started on a session, and says what it wants next.

    {"kind": "calls", "calls": [...]}                 it waits for these calls
    {"kind": "deferred", "call": {}}                  it ended: a person has to allow this call first
    {"kind": "limit", "resets_at": 0, "result": {}}   it ended: the usage limit is reached
    {"kind": "end", "result": {}}                     it ended, with the SDK's ResultMessage

A call is {"id", "tool", "args", "is_ours"}. The runner records each of these, and what became of a call.
"""

from __future__ import annotations

import asyncio
import dataclasses
import json
import platform
import shutil
from collections import defaultdict, deque
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

import claude_agent_sdk
from claude_agent_sdk import (
    ClaudeAgentOptions,
    ClaudeSDKError,
    HookMatcher,
    ResultMessage,
    SdkMcpTool,
    create_sdk_mcp_server,
    query,
)
from claude_agent_sdk.types import Message, RateLimitEvent, SessionKey, SessionListSubkeysKey

from perdure.errors import InvalidInput
from perdure.integrations.claude_agent.cli_guard import guarded
from perdure.integrations.claude_agent.session_store import PerdureSessionStore
from perdure.integrations.claude_agent.transcripts import Transcript, calls_in, read_local
from perdure.memory import owner_prefix

if TYPE_CHECKING:
    from perdure import Perdure

_MOST_CRASHES = 3  # of the CLI, in a row
_MIRROR = timedelta(seconds=1)  # the longest wait for the SDK to store the model's turn
CONTINUE = "You were interrupted. Continue from where you left off; if nothing is left to do, give your last answer."
_ALREADY = "Calls that were finished before the interruption, with their results. Do not make them again:"
_STARTED = (
    "This call was started before an interruption, and its outcome is not known. Verify that before you assume "
    "either. Do not repeat it without asking."
)

OnMessage: TypeAlias = Callable[[Message], Awaitable[None] | None] | None


@dataclasses.dataclass
class Session:
    """The journal's view of a session, rebuilt by each attempt."""

    id: str
    project: str
    prompt: str
    outcomes: dict[str, dict[str, Any]] = dataclasses.field(default_factory=dict)  # call id → {"call", "told"}
    decisions: dict[str, str | None] = dataclasses.field(default_factory=dict)  # call id → None, or why not
    let_go: set[str] = dataclasses.field(default_factory=set)  # allowed calls of others' tools that were begun
    deferred: str = ""  # the call that the last life ended with


@dataclasses.dataclass
class Setting:
    """The data that is the same in every life of the CLI."""

    app: Perdure
    task_id: str
    options: ClaudeAgentOptions
    tools: Mapping[str, SdkMcpTool[Any]]  # those that are recorded, by their full names
    servers: Mapping[str, list[SdkMcpTool[Any]]]
    approve: frozenset[str]
    on_message: OnMessage


class CliLife:
    def __init__(self, setting: Setting, session: Session) -> None:
        self._setting, self._session = setting, session
        self._events: asyncio.Queue[dict[str, Any] | BaseException] = asyncio.Queue()
        self._waiting: dict[str, asyncio.Future[dict[str, Any]]] = {}
        self._ids: dict[str, deque[str]] = defaultdict(deque)  # of calls that are allowed, until their handler asks
        self._unheard: dict[str, deque[dict[str, Any]]] = defaultdict(deque)  # outcomes that the model never saw
        self._noted = ""
        self._rejected: RateLimitEvent | None = None
        self._is_silent = asyncio.Event()
        self._store: _OneProject | None = None
        self._work: asyncio.Task[None] | None = None
        self._here = f"{owner_prefix('execution', setting.task_id)}claude/{session.id}"

    # ── for the runner ──────────────────────────────────────────────────────────────────────────

    async def next(self) -> dict[str, Any]:
        """The next message of the CLI; starts the CLI if it does not run."""
        if self._work is None:
            self._work = asyncio.create_task(self._live())
        first = await self._events.get()
        if isinstance(first, BaseException):
            raise first
        if first["kind"] != "calls":
            await asyncio.gather(self._work, return_exceptions=True)
            return first
        while not self._events.empty():  # calls that the model made side by side
            more = self._events.get_nowait()
            if isinstance(more, BaseException) or more["kind"] != "calls":
                self._events.put_nowait(more)
                break
            first["calls"] += more["calls"]
        return first

    def tell(self, call_id: str, told: dict[str, Any]) -> None:
        """Answer a call that the CLI waits for."""
        waiting = self._waiting.pop(call_id, None)
        if waiting is not None and not waiting.done():
            waiting.set_result(told)

    def abandon(self) -> None:
        """End the CLI. It is told by a cancelled task, so that nothing is awaited here."""
        if self._work is not None:
            self._work.cancel()

    # ── the CLI ─────────────────────────────────────────────────────────────────────────────────

    async def _live(self) -> None:
        crashes = 0
        while True:
            self._is_silent.clear()
            try:
                event = await self._run_cli()
            except ClaudeSDKError as problem:
                crashes += 1
                if self._waiting:  # what was begun ends, and is told to the next CLI
                    await asyncio.wait(self._waiting.values())
                if crashes < _MOST_CRASHES:
                    continue
                self._events.put_nowait(problem)
                return
            except BaseException as problem:
                self._events.put_nowait(problem)
                raise
            self._events.put_nowait(event)
            return

    async def _run_cli(self) -> dict[str, Any]:
        found: ResultMessage | None = None
        with guarded(_cli(self._setting.options)) as program:
            prompt, options = await self._begin(program)
            messages = query(prompt=prompt, options=options)
            try:
                async for message in messages:
                    await show(message, self._setting.on_message)
                    if isinstance(message, RateLimitEvent) and message.rate_limit_info.status == "rejected":
                        self._rejected = message
                    if isinstance(message, ResultMessage):
                        found = message
                        self._is_silent.set()
            except ClaudeSDKError:
                if found is None:
                    raise
            finally:
                await messages.aclose()  # type: ignore[attr-defined]
        if found is None:
            raise claude_agent_sdk.CLIConnectionError("the CLI ended without a result")
        return self._judge(found)

    def _judge(self, found: ResultMessage) -> dict[str, Any]:
        if found.deferred_tool_use is not None:
            one = found.deferred_tool_use
            return {"kind": "deferred", "call": {"id": one.id, "tool": one.name, "args": one.input}}
        result = json.loads(json.dumps(dataclasses.asdict(found), default=str))
        if found.is_error and (self._rejected is not None or found.api_error_status == 429):
            info = None if self._rejected is None else self._rejected.rate_limit_info
            return {"kind": "limit", "resets_at": None if info is None else info.resets_at, "result": result}
        return {"kind": "end", "result": result}

    async def _begin(self, program: str) -> tuple[Any, ClaudeAgentOptions]:
        """The prompt and the options of this life: the session's beginning, or its continuation."""
        setting, session = self._setting, self._session
        store = self._store = _OneProject(setting.app, session.project)
        key: SessionKey = {"project_key": session.project, "session_id": session.id}
        await self._import_local(store)
        of_session: SessionListSubkeysKey = {"project_key": session.project, "session_id": session.id}
        parts = [await store.load({**key, "subpath": part}) for part in await store.list_subkeys(of_session)]
        transcript = Transcript(await store.load(key) or (), [entry for part in parts for entry in part or ()])
        unheard = self._learn(transcript)
        base = setting.options
        ours = {name: create_sdk_mcp_server(name, tools=self._recorded(name)) for name in setting.servers}
        options = dataclasses.replace(
            base,
            cli_path=program,
            session_store=store,
            session_store_flush="eager",
            mcp_servers={**own_servers(base), **ours},
            hooks=self._hooks(base.hooks or {}),
            **({"resume": session.id, "session_id": None} if transcript.has_begun else {"session_id": session.id}),
        )
        if not transcript.has_begun:
            return session.prompt, options
        if session.deferred and transcript.asks_by_itself(session.deferred):
            return self._silence(), options
        told = [f"{one['call']['tool']}({_canonical(one['call']['args'])}) → {_text(one['told'])}" for one in unheard]
        return "\n".join([CONTINUE, *([_ALREADY, *told] if told else [])]), options

    async def _silence(self) -> AsyncIterator[dict[str, Any]]:
        """No prompt: the CLI makes the deferred call by itself, and a prompt would cost another model call."""
        await self._is_silent.wait()
        prompts: list[dict[str, Any]] = []
        for one in prompts:
            yield one

    def _learn(self, transcript: Transcript) -> list[dict[str, Any]]:
        self._unheard.clear()
        self._ids.clear()
        unheard = []
        for call_id, one in self._session.outcomes.items():
            if not transcript.has_told(call_id, one["told"].get("is_error") is True):
                self._unheard[_name(one["call"]["tool"], one["call"]["args"])].append(one)
                unheard.append(one)
        return unheard

    # ── the transcript on this machine ──────────────────────────────────────────────────────────

    async def _import_local(self, store: _OneProject) -> None:
        """The lines that the CLI wrote and the SDK has not mirrored; only on the machine where it ran."""
        noted = await self._setting.app.storage.get(self._here)
        if not isinstance(noted, dict) or noted.get("host") != platform.node():
            return
        path = Path(str(noted.get("path")))
        if path.name == f"{self._session.id}.jsonl" and (entries := await asyncio.to_thread(read_local, path)):
            key: SessionKey = {"project_key": self._session.project, "session_id": self._session.id}
            await store.keep(key, [entry for entry in entries if "uuid" in entry])

    async def _until_stored(self, call_id: str) -> None:
        """Return when another machine would find the model's turn that asked for a call, and need not buy it again.

        The SDK mirrors a turn a moment after it has asked for its calls. If that takes long, what the CLI has written
        on this machine is stored instead. The call is made in any case.
        """
        if self._store is None:
            return
        try:
            async with asyncio.timeout(_MIRROR.total_seconds()):
                await self._store.calls[call_id].wait()
        except TimeoutError:
            await self._import_local(self._store)

    async def _note(self, path: str) -> None:
        if path and path != self._noted:
            await self._setting.app.storage.put(self._here, {"host": platform.node(), "path": path})
            self._noted = path

    # ── calls ───────────────────────────────────────────────────────────────────────────────────

    def _hooks(self, theirs: Any) -> Any:
        prompt, tool = HookMatcher(hooks=[self._prompted]), HookMatcher(hooks=[self._before_tool])
        return {
            **theirs,
            "UserPromptSubmit": [*theirs.get("UserPromptSubmit", ()), prompt],
            "PreToolUse": [*theirs.get("PreToolUse", ()), tool],
        }

    async def _prompted(self, given: Any, _: str | None, __: Any) -> Any:
        await self._note(given.get("transcript_path", ""))
        return {}

    async def _before_tool(self, given: Any, call_id: str | None, _: Any) -> Any:
        await self._note(given.get("transcript_path", ""))
        tool, args, call_id = given["tool_name"], given["tool_input"], call_id or ""
        is_ours = tool in self._setting.tools
        if not is_ours and tool not in self._setting.approve:
            return {}  # the user's own rules decide
        if tool in self._setting.approve and not self._is_known(call_id, tool, args):
            if call_id not in self._session.decisions:
                return _decided("defer", "a person decides")
            if (why := self._session.decisions[call_id]) is not None:
                return _decided("deny", why)
        if not is_ours and call_id in self._session.let_go:
            return _decided("deny", _STARTED)
        await self._until_stored(call_id)
        if is_ours:
            self._ids[_name(tool, args)].append(call_id)
        else:
            await self._ask({"id": call_id, "tool": tool, "args": args, "is_ours": False})
        return _decided("allow", "")

    def _is_known(self, call_id: str, tool: str, args: Any) -> bool:
        return call_id in self._session.outcomes or bool(self._unheard.get(_name(tool, args)))

    def _recorded(self, server: str) -> list[SdkMcpTool[Any]]:
        def wrap(tool: SdkMcpTool[Any]) -> SdkMcpTool[Any]:
            name = f"mcp__{server}__{tool.name}"
            if name not in self._setting.tools:
                return tool

            async def asked(args: Any) -> dict[str, Any]:
                return await self._call(name, dict(args))

            return dataclasses.replace(tool, handler=asked)

        return [wrap(tool) for tool in self._setting.servers[server]]

    async def _call(self, tool: str, args: dict[str, Any]) -> dict[str, Any]:
        """The outcome of a call: from the journal, if it was made before; else the runner makes it."""
        ids, unheard = self._ids[_name(tool, args)], self._unheard[_name(tool, args)]
        call_id = ids.popleft() if ids else ""
        known = self._session.outcomes.get(call_id)
        if known is not None and known["call"]["tool"] == tool and known["call"]["args"] == args:
            return dict(known["told"])
        if unheard:
            return dict(unheard.popleft()["told"])
        if not call_id or known is not None:  # an id that a model has given to two calls
            call_id = f"{call_id}+{len(self._session.outcomes)}"
        return await self._ask({"id": call_id, "tool": tool, "args": args, "is_ours": True})

    async def _ask(self, call: dict[str, Any]) -> dict[str, Any]:
        if call["id"] in self._waiting:  # the same call, asked twice side by side
            return await asyncio.shield(self._waiting[call["id"]])
        waiting = self._waiting[call["id"]] = asyncio.get_running_loop().create_future()
        self._events.put_nowait({"kind": "calls", "calls": [call]})
        return await asyncio.shield(waiting)  # a CLI that dies takes back its question, not the call


class _OneProject(PerdureSessionStore):
    """The store of one session, wherever its folder lies on this machine: a resume elsewhere finds it."""

    def __init__(self, app: Perdure, project: str) -> None:
        super().__init__(app)
        self._project = project
        self.calls: defaultdict[str, asyncio.Event] = defaultdict(asyncio.Event)  # set: the store holds this call

    async def append(self, key: SessionKey, entries: Any) -> None:
        await self.keep(key, entries)

    async def keep(self, key: SessionKey, entries: Any) -> None:
        """Store entries, as `append` does for the SDK."""
        await super().append({**key, "project_key": self._project}, entries)
        self._see(entries)

    async def load(self, key: SessionKey) -> Any:
        found = await super().load({**key, "project_key": self._project})
        self._see(found or ())
        return found

    def _see(self, entries: Any) -> None:
        for call_id in calls_in(entries):
            self.calls[call_id].set()

    async def list_subkeys(self, key: SessionListSubkeysKey) -> list[str]:
        return await super().list_subkeys({"project_key": self._project, "session_id": key["session_id"]})


async def show(message: Message, on_message: OnMessage) -> None:
    if on_message is not None and (shown := on_message(message)) is not None:
        await shown


def own_servers(options: ClaudeAgentOptions) -> dict[str, Any]:
    """The MCP servers that the user gave.

    Raises:
        InvalidInput: they are in a file, to which none can be added.
    """
    if not isinstance(options.mcp_servers, dict):
        raise InvalidInput("options.mcp_servers is a path", do="give it as a dict, or leave it to the CLI's files")
    return dict(options.mcp_servers)


def _cli(options: ClaudeAgentOptions) -> str:
    bundled = Path(claude_agent_sdk.__file__).parent / "_bundled" / "claude"
    found = options.cli_path or (bundled if bundled.is_file() else shutil.which("claude"))
    if found is None:
        raise InvalidInput("there is no Claude Code on this machine", do="install it, or give options.cli_path")
    return str(found)


def _decided(decision: str, why: str) -> dict[str, Any]:
    told = {"hookEventName": "PreToolUse", "permissionDecision": decision, "permissionDecisionReason": why}
    return {"hookSpecificOutput": told}


def _canonical(args: Any) -> str:
    return json.dumps(args, sort_keys=True, ensure_ascii=False, default=str)


def _name(tool: str, args: Any) -> str:
    return f"{tool}({_canonical(args)})"


def _text(told: Mapping[str, Any]) -> str:
    content = told.get("content")
    texts = [str(block.get("text", block.get("type"))) for block in content] if isinstance(content, list) else []
    return _canonical("\n".join(texts)[:2000])

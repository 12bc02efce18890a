"""Change one line that carries a promise of an adapter or of the MCP server, and see a named test fail.

    python -m tests.torture --part adapter-promises

The same as `promises`, with lines of perdure.integrations and perdure.mcp.
"""

from __future__ import annotations

from tests.torture import promises
from tests.torture.promises import Promise


def run(seed: int) -> None:
    promises.run(seed, PROMISES)


_LANGGRAPH, _OPENAI, _MCP = "tests/integrations/langgraph/", "tests/integrations/openai_agents/", "tests/mcp/"
_TOOLS = (_LANGGRAPH + "test_tools.py",)
_ROWS = (_LANGGRAPH + "test_rows.py",)
_ITEMS = ("tests/integrations/test_item_list.py",)
_FEATURES = (_OPENAI + "test_features.py",)
_INSTALL = (_MCP + "test_install.py",)

PROMISES = {
    "items of two processes": Promise(
        "items that two processes add at once are all kept",
        "integrations/item_list.py",
        '{"item": item}, 0)',
        '{"item": item}, None)',
        _ITEMS,
    ),
    "items taken by two processes": Promise(
        "two processes never take one item",
        "integrations/item_list.py",
        "seen=newest[0].version",
        "seen=None",
        _ITEMS,
    ),
    "items of a repeated effect": Promise(
        "an effect that is repeated adds its items once",
        "integrations/item_list.py",
        "await self._storage.write([*rows, *once])",
        "await self._storage.write(rows)",
        _ITEMS,
    ),
    "LangGraph: fence": Promise(
        "a process that lost its thread writes nothing",
        "integrations/langgraph/thread_keys.py",
        """self.root = f"{owner_prefix('execution', self.task_id)}lg/\"""",
        """self.root = f"execution-{self.task_id}/lg/\"""",
        (_LANGGRAPH + "test_saver.py",),
    ),
    "LangGraph: lease": Promise(
        "a second process on a thread is refused",
        "integrations/langgraph/thread_lease.py",
        "task.attempt(take_over=self._take_over)",
        "task.attempt(take_over=True)",
        (_LANGGRAPH + "test_saver.py",),
    ),
    "LangGraph: stored writes": Promise(
        "a write that is stored stays as it is",
        "integrations/langgraph/saver.py",
        "Put(key, row, None if replace else 0)",
        "Put(key, row, None)",
        _ROWS,
    ),
    "LangGraph: failed checkpoints": Promise(
        "a checkpoint that was not stored is no ground for the next",
        "integrations/langgraph/saver.py",
        "        changes = [Put(one.key, one.row) for one in written]\n",
        "        values.remember(written)\n        changes = [Put(one.key, one.row) for one in written]\n",
        _ROWS,
    ),
    "LangGraph: deleted threads": Promise(
        "a deleted thread begins anew",
        "integrations/langgraph/saver.py",
        "        self._cache.forget(keys.task_id)\n",
        "",
        _ROWS,
    ),
    "LangGraph: pruned threads": Promise(
        "what a pruned thread is rebuilt from shows in no list",
        "integrations/langgraph/saver.py",
        '{**row, "hidden": True}',
        "row",
        _ROWS,
    ),
    "LangGraph: tools": Promise(
        "a tool that was cut off is asked about",
        "integrations/langgraph/tools.py",
        'default: How = "effect", prefix',
        'default: How = "step", prefix',
        (_LANGGRAPH + "test_crashes.py",),
    ),
    "LangGraph: ids in another message": Promise(
        "an id that a model gives again in its next message is another call",
        "integrations/langgraph/tools.py",
        "{_digest(f'{message.id}{said}')}",
        "{_digest(said)}",
        _TOOLS,
    ),
    "LangGraph: ids in one message": Promise(
        "two calls of one message are told apart by their arguments",
        "integrations/langgraph/tools.py",
        'said = repr((call["name"], call["args"])) if others else ""',
        'said = ""',
        _TOOLS,
    ),
    "LangGraph: nodes": Promise(
        "a node that a graph comes to again runs again",
        "integrations/langgraph/nodes.py",
        "info.checkpoint_ns, _name(function), prefix)",
        "_name(function), _name(function), prefix)",
        _TOOLS,
    ),
    "LangGraph: queue": Promise(
        "no worker takes a tool call or a node",
        "integrations/langgraph/graph_attempts.py",
        "queue=QUEUE, ",
        "",
        _TOOLS,
    ),
    "LangGraph: retries": Promise(
        "LangGraph's own retry calls what failed again",
        "integrations/langgraph/graph_attempts.py",
        'if known is not None and known.status == "failed":',
        "if False:",
        _TOOLS,
    ),
    "OpenAI: tools": Promise(
        "a tool of durable_tool is an effect",
        "integrations/openai_agents/tools.py",
        'how: How = "effect", **options',
        'how: How = "step", **options',
        _FEATURES,
    ),
    "OpenAI: guardrails": Promise(
        "a recorded tool keeps its guardrails",
        "integrations/openai_agents/tools.py",
        "        tool_input_guardrails=tool.tool_input_guardrails,\n",
        "",
        _FEATURES,
    ),
    "OpenAI: handoffs": Promise(
        "an agent that is handed over to is recorded",
        "integrations/openai_agents/runner.py",
        "_recorded(one, how, known) if isinstance(one, Agent) else",
        "one if isinstance(one, Agent) else",
        _FEATURES,
    ),
    "OpenAI: usage": Promise(
        "a replay counts what the model cost",
        "integrations/openai_agents/models.py",
        'usage=_usage.validate_python(data["usage"])',
        "usage=Usage()",
        _FEATURES,
    ),
    "OpenAI: other sessions": Promise(
        "a session that knows no keys is not called again",
        "integrations/openai_agents/session.py",
        'if kind == "effect" and isinstance(self._inner, PerdureSession) else',
        'if kind == "effect" else',
        _FEATURES,
    ),
    "OpenAI: reading servers": Promise(
        "an MCP tool that only reads is a step",
        "integrations/openai_agents/mcp_servers.py",
        '"step" if tool_name in reads_only else "effect"',
        '"effect"',
        _FEATURES,
    ),
    "Pydantic AI: workspace": Promise(
        "a command of an effect that is repeated is not run again",
        "integrations/pydantic_ai/workspace.py",
        "        return idempotency_key()",
        "        return secrets.token_hex(8)",
        ("tests/integrations/pydantic_ai/test_workspace.py::test_a_repeated_effect_finds_its_command",),
    ),
    "MCP: links": Promise(
        "a linked configuration stays a link",
        "mcp/client_config.py",
        "    path = path.resolve()  # of a link, the file that it points to\n",
        "",
        _INSTALL,
    ),
    "MCP: equal names": Promise(
        "a file that would lose something is left alone",
        "mcp/client_config.py",
        ", object_pairs_hook=_once",
        "",
        _INSTALL,
    ),
    "MCP: own settings": Promise(
        "what a person gave the entry stays",
        "mcp/client_config.py",
        '{**known, "command"',
        '{"command"',
        _INSTALL,
    ),
    "MCP: fences": Promise(
        "what a program wrote stands between fences",
        "mcp/answers.py",
        '_WRITTEN = ("output", "note", "cwd", "detail")',
        '_WRITTEN = ("output", "note", "detail")',
        (_MCP + "test_shells.py",),
    ),
    "LangGraph: prompt": Promise(
        "a shell that is just coming back to its prompt takes the next command",
        "integrations/langgraph/shell_backend.py",
        "if time.monotonic() >= end:",
        "if True:",
        (_LANGGRAPH + "test_saver.py",),
    ),
    "Claude: stored turns": Promise(
        "a turn of the model is in the store before its call begins",
        "integrations/claude_agent/cli_life.py",
        "        await self._until_stored(call_id)\n",
        "",
        ("tests/integrations/claude_agent/test_crashes.py",),
    ),
}

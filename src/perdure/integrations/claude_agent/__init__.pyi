"""Claude Agent SDK on perdure: sessions that another process, or another machine, carries on.

    from perdure.integrations.claude_agent import DurableClaude

    claude = DurableClaude(app, ClaudeAgentOptions(), tools={"shop": [pay]}, approve=["mcp__shop__pay"])

    @durable
    async def clerk(question: str) -> str:
        return (await claude.run(question)).result or ""

`PerdureSessionStore` alone keeps transcripts, for a program that runs the SDK by itself.

Written by tools/make_doors.py from the table in __init__.py.
"""

from perdure.integrations.claude_agent.runner import DurableClaude
from perdure.integrations.claude_agent.session_store import PerdureSessionStore
__all__ = [
    "DurableClaude",
    "PerdureSessionStore",
]

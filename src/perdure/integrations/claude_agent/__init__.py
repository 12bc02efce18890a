"""Claude Agent SDK on perdure: sessions that another process, or another machine, carries on.

    from perdure.integrations.claude_agent import DurableClaude

    claude = DurableClaude(app, ClaudeAgentOptions(), tools={"shop": [pay]}, approve=["mcp__shop__pay"])

    @durable
    async def clerk(question: str) -> str:
        return (await claude.run(question)).result or ""

`PerdureSessionStore` alone keeps transcripts, for a program that runs the SDK by itself.
"""

from perdure._ground.lazy_door import lazy_door

__getattr__ = lazy_door(__name__, {"runner": ("DurableClaude",), "session_store": ("PerdureSessionStore",)})

"""Pydantic AI on perdure: agents whose model requests and tools are recorded, and a workspace that stays.

    from perdure.integrations.pydantic_ai import PerdureDurability

    agent = Agent("anthropic:claude-opus-4", name="clerk", capabilities=[PerdureDurability()])

    @durable
    async def clerk(question: str) -> str:
        return (await agent.run(question)).output

Inside a durable function each model request is a step, and each tool an effect. Elsewhere the agent runs as always.

Written by tools/make_doors.py from the table in __init__.py.
"""

from perdure.integrations.pydantic_ai.durability import PerdureDurability
from perdure.integrations.pydantic_ai.workspace import PerdureWorkspace
__all__ = [
    "PerdureDurability",
    "PerdureWorkspace",
]

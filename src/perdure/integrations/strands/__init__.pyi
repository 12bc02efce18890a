"""Strands Agents on perdure: agents whose model calls and tools are recorded, and a conversation that stays.

    from perdure.integrations.strands import DurableAgent

    clerk_agent = DurableAgent(lambda: Agent(model=model, tools=[look_up, pay]), how={"look_up": "step"})

    @durable
    async def clerk(question: str) -> str:
        return str(await clerk_agent.run(question))

Inside a durable function each model call is a step, and each tool an effect. Elsewhere nothing is recorded.
`PerdureStorage` keeps the snapshots of a program that does without durable functions.

Written by tools/make_doors.py from the table in __init__.py.
"""

from perdure.integrations.strands.agent import DurableAgent
from perdure.integrations.strands.storage import PerdureStorage
__all__ = [
    "DurableAgent",
    "PerdureStorage",
]

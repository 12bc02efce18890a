"""Microsoft Agent Framework on perdure: agents whose model calls and tools are recorded, and a history that stays.

    from perdure.integrations.agent_framework import DurableAgent, PerdureHistory

    agent = DurableAgent(Agent(client=client, tools=[look_up, pay], context_providers=[PerdureHistory(app)]))

    @durable
    async def clerk(question: str) -> str:
        return (await agent.run(question)).text

Inside a durable function each model call is a step, and each function tool an effect. Elsewhere nothing is recorded.

Written by tools/make_doors.py from the table in __init__.py.
"""

from perdure.integrations.agent_framework.agent import DurableAgent
from perdure.integrations.agent_framework.history import PerdureHistory
__all__ = [
    "DurableAgent",
    "PerdureHistory",
]

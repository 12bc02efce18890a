"""Microsoft Agent Framework on perdure: agents whose model calls and tools are recorded, and a history that stays.

    from perdure.integrations.agent_framework import DurableAgent, PerdureHistory

    agent = DurableAgent(Agent(client=client, tools=[look_up, pay], context_providers=[PerdureHistory(app)]))

    @durable
    async def clerk(question: str) -> str:
        return (await agent.run(question)).text

Inside a durable function each model call is a step, and each function tool an effect. Elsewhere nothing is recorded.
"""

from perdure._ground.lazy_door import lazy_door

__getattr__ = lazy_door(__name__, {"agent": ("DurableAgent",), "history": ("PerdureHistory",)})

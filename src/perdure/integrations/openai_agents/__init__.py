"""OpenAI Agents on perdure: runs that continue after a crash, sessions in a perdure store.

    from perdure.integrations.openai_agents import DurableRunner, durable_tool

    @durable
    async def clerk(question: str) -> str:
        return (await DurableRunner.run(agent, question)).final_output

Inside a durable function each model call is a step, and each function tool an effect.
"""

from perdure._ground.lazy_door import lazy_door

__getattr__ = lazy_door(
    __name__,
    {
        "runner": ("DurableRunner",),
        "session": ("PerdureSession",),
        "tools": ("durable_tool",),
    },
)

"""OpenAI Agents on perdure: runs that continue after a crash, sessions in a perdure store.

    from perdure.integrations.openai_agents import DurableRunner, durable_tool

    @durable
    async def clerk(question: str) -> str:
        return (await DurableRunner.run(agent, question)).final_output

Inside a durable function each model call is a step, and each function tool an effect.

Written by tools/make_doors.py from the table in __init__.py.
"""

from perdure.integrations.openai_agents.runner import DurableRunner
from perdure.integrations.openai_agents.session import PerdureSession
from perdure.integrations.openai_agents.tools import durable_tool
__all__ = [
    "DurableRunner",
    "PerdureSession",
    "durable_tool",
]

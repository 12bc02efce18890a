"""LangGraph on perdure: threads that outlive their process, tools that are not repeated, shells that stay.

    from perdure import Perdure
    from perdure.integrations.langgraph import PerdureSaver

    async with Perdure() as app:
        graph = builder.compile(checkpointer=PerdureSaver(app))

`PerdureSaver`, `PerdureStore` and `PerdureCache` keep a graph's checkpoints, long-term memory and cached results.
`durable_node` and `DurableTools` record what a node or a tool does, so that a process that dies in the middle repeats
nothing that was finished. `KeptShellBackend` gives deep agents a shell that outlives them.

Written by tools/make_doors.py from the table in __init__.py.
"""

from perdure.integrations.langgraph.nodes import durable_node
from perdure.integrations.langgraph.saver import PerdureSaver
from perdure.integrations.langgraph.shell_backend import KeptShellBackend
from perdure.integrations.langgraph.store import PerdureCache, PerdureStore
from perdure.integrations.langgraph.tools import DurableTools
__all__ = [
    "durable_node",
    "PerdureSaver",
    "KeptShellBackend",
    "PerdureCache",
    "PerdureStore",
    "DurableTools",
]

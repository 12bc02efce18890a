"""LangGraph on perdure: threads that outlive their process, tools that are not repeated, shells that stay.

    from perdure import Perdure
    from perdure.integrations.langgraph import PerdureSaver

    async with Perdure() as app:
        graph = builder.compile(checkpointer=PerdureSaver(app))

`PerdureSaver`, `PerdureStore` and `PerdureCache` keep a graph's checkpoints, long-term memory and cached results.
`durable_node` and `DurableTools` record what a node or a tool does, so that a process that dies in the middle repeats
nothing that was finished. `KeptShellBackend` gives deep agents a shell that outlives them.
"""

from perdure._ground.lazy_door import lazy_door

__getattr__ = lazy_door(
    __name__,
    {
        "nodes": ("durable_node",),
        "saver": ("PerdureSaver",),
        "shell_backend": ("KeptShellBackend",),
        "store": ("PerdureCache", "PerdureStore"),
        "tools": ("DurableTools",),
    },
)

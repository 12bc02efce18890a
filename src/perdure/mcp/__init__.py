"""perdure for coding agents: an MCP server whose shells, services and notes outlive the client and the server.

It needs the extra `mcp`. Nothing of that package is imported before a name of this door is used.
"""

from perdure._ground.lazy_door import lazy_door

__getattr__ = lazy_door(
    __name__,
    {
        "client_config": ("CLIENTS", "ConfigChange", "plan_change"),
        "http": ("HttpReply", "answer_request"),
        "server": ("make_server", "require_mcp"),
        "stdio": ("serve_stdio",),
        "tools": ("TOOLS", "tool_list"),
    },
)

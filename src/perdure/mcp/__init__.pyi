"""perdure for coding agents: an MCP server whose shells, services and notes outlive the client and the server.

It needs the extra `mcp`. Nothing of that package is imported before a name of this door is used.

Written by tools/make_doors.py from the table in __init__.py.
"""

from perdure.mcp.client_config import CLIENTS, ConfigChange, plan_change
from perdure.mcp.http import HttpReply, answer_request
from perdure.mcp.server import make_server, require_mcp
from perdure.mcp.stdio import serve_stdio
from perdure.mcp.tools import TOOLS, tool_list
__all__ = [
    "CLIENTS",
    "ConfigChange",
    "plan_change",
    "HttpReply",
    "answer_request",
    "make_server",
    "require_mcp",
    "serve_stdio",
    "TOOLS",
    "tool_list",
]

"""The MCP server for coding agents."""

"""Claude Agent SDK on perdure: session transcripts in a perdure store, for a resume on another host.

from perdure.integrations.claude_agent import PerdureSessionStore

options = ClaudeAgentOptions(session_store=PerdureSessionStore(app), session_store_flush="eager")

Written by tools/make_doors.py from the table in __init__.py.
"""

from perdure.integrations.claude_agent.session_store import PerdureSessionStore
__all__ = [
    "PerdureSessionStore",
]

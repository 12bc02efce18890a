"""Claude Agent SDK on perdure: session transcripts in a perdure store, for a resume on another host.

from perdure.integrations.claude_agent import PerdureSessionStore

options = ClaudeAgentOptions(session_store=PerdureSessionStore(app), session_store_flush="eager")
"""

from perdure._ground.lazy_door import lazy_door

__getattr__ = lazy_door(__name__, {"session_store": ("PerdureSessionStore",)})

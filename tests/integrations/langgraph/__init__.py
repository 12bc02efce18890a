"""The adapter for LangGraph."""

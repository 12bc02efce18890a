"""The adapter for the Claude Agent SDK."""

"""The adapter for the Agent Framework."""

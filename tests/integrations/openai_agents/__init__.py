"""The adapter for OpenAI Agents."""

"""The adapter of Strands Agents, in an environment of its own."""

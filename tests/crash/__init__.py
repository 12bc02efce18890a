"""Real processes, really killed: what was acknowledged is there, and nothing is half there."""

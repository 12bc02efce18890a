"""The scenarios of REQUIREMENTS.md, with real processes and a world that counts what was done to it."""

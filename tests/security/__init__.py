"""Attacks: what others can write (bundles, units, folders, repositories) must not become theirs to run or read."""

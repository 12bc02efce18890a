"""Stores that a former perdure wrote, and what this one makes of them."""

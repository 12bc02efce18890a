"""The world the scenarios happen in."""

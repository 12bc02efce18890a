"""Tests of the documentation: its code, its commands, its generated pages, and the site built from it."""

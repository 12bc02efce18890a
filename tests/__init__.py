"""The tests of perdure: each one is a sentence about it."""

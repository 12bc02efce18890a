"""Random faults by seed: what `make test` samples and `make torture` goes on with.

Each part has `run(seed)`, which raises when a promise was broken. tests/crash uses the same functions.
"""

"""Tests of continuity: workspaces, secrets, fingerprints, save and restore, bundles."""

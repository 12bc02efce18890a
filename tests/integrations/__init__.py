"""The adapters for frameworks, killed and checked."""

"""Values as bytes and as JSON: the codec, deltas, compression. Each module is imported by its own name."""

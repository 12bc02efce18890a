"""Keys and sealing, and what must never be shown. Each module is imported by its own name."""

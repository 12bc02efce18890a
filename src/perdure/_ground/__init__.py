"""The ground floor: leaves that know nothing of tasks. Each module is imported by its own name."""

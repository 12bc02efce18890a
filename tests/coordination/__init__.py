"""Tasks that wait for, start and hear of each other: by dependencies, clocks, files and events."""

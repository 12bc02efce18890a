"""One task and lists of tasks: finding, reading, beginning, steering and working on them."""

"""One file for each command, imported when it is called."""

"""The story that `perdure demo` tells and a test checks: an agent dies at step nine, with everything it had open."""

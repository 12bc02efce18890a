"""The parts of a shell: its commands, marks in its output, its reported state, the recipe to make it again."""

from perdure._ground.lazy_door import lazy_door

__getattr__ = lazy_door(
    __name__,
    {
        "command_output": ("ended_output", "forgotten_output", "forgotten_result", "running_output", "told_command"),
        "marks": ("Mark", "Marks"),
        "shell_commands": ("Command", "Commands", "LARGEST_OUTPUT", "digest", "ledger"),
        "shell_line": ("ShellLine",),
        "shell_state": ("ShellState", "recipe_again"),
    },
    modules=("recipes",),
)

"""Live things on the agent's side: shells, services, files, requests, their output and verdicts."""

from perdure._ground.lazy_door import lazy_door

__getattr__ = lazy_door(
    __name__,
    {
        "descriptors": ("KeptFile", "KeptListener", "KeptPipe", "KeptSocket", "absolute", "mode_of", "problem_of"),
        "kept_command": ("CommandEnd", "KeptCommand", "command_name", "input_file"),
        "kept_units": ("Kept", "end_keeper", "kept_for"),
        "output": ("Output",),
        "output_marks": ("hide_mark_numbers",),
        "readiness": ("Ready", "command", "http", "log_line", "port"),
        "remote_units": ("UnitAccess", "UnitCommand", "UnitOutput", "UnitProcess", "UnitRecord", "Units"),
        "request": ("KeptRequest", "request_recipe"),
        "service": ("Service", "ServiceState", "service_recipe"),
        "shell": ("CommandOutput", "CommandResult", "Shell", "exit_code", "shell_command"),
        "shell_contents": ("Contents", "Instead", "contents_of", "made_here"),
        "unit": ("Owner", "Rest", "U", "Unit", "opened", "secrets_of"),
        "unit_notes": (
            "MadeElsewhere",
            "ONCE",
            "UnitNote",
            "command_of",
            "forget_notes",
            "is_note",
            "note_that_came",
            "with_contents",
        ),
        "verdicts": ("MADE_ANEW", "ending", "restarted", "verdict_of"),
    },
)

"""Completion in the shell: the commands, options and task ids that fit what was typed.

click brings the scripts for bash, zsh and fish. Owns what click leaves to us: bash inserts a completed word as it is,
so an id such as `a;reboot`, which another process may have chosen, is escaped before bash gets it. zsh and fish escape
by themselves.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

from click.shell_completion import BashComplete, CompletionItem, add_completion_class

from perdure.cli.base.command import root
from perdure.cli.base.invocation import Invocation

_SPECIAL = re.compile(r"([^\w@%+=:,./-])")


class _Bash(BashComplete):
    def format_completion(self, item: CompletionItem) -> str:
        return super().format_completion(CompletionItem(_escaped(str(item.value)), item.type))


def _escaped(word: str) -> str:
    """The word with two backslashes before each special character: click's script takes one off when it reads them."""
    return _SPECIAL.sub(r"\\\\\1", word)


def complete(args: Sequence[str], invocation: Invocation) -> Any:
    """Answer the shell, as the variable `_PERDURE_COMPLETE` asks, and end the process."""
    add_completion_class(_Bash)
    return root.main(list(args), prog_name="perdure", obj=invocation)

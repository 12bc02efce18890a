"""Run the code of one page as a reader would, in the current folder: python -m tests.docs.run_page PAGE

Each program runs in a fork of this process, which has imported perdure and done nothing else: so a page costs one
start of Python. Prints what went wrong and ends with 1, or prints nothing.
"""

from __future__ import annotations

import ast
import asyncio
import contextlib
import inspect
import os
import re
import select
import signal
import subprocess
import sys
import tempfile
import traceback
from pathlib import Path

import perdure.sync
from tests.docs.pages import Block, blocks_of
from tests.support.ports import free_port

PATIENCE = 120.0
ELLIPSIS = "…"
_ENDS = re.compile(r"run, (?P<how>killed|stopped|closed) after: (?P<line>.+)")
_SIGNALS = {"killed": signal.SIGKILL, "stopped": signal.SIGINT, "closed": signal.SIGHUP}
_KILLING = "timeout -s KILL "
_BY_SIGNAL = 128  # what bash adds to the number of the signal


def main(page: Path) -> int:
    troubles: list[str] = []
    program: list[str] = []
    begun = 0
    blocks = [block for block in blocks_of(page) if block.language in {"python", "console", "sh"}]
    terminal: Terminal | None = None
    for number, block in enumerate(blocks):
        if block.tester:
            continue
        if block.word == "file":
            Path(block.argument("file:")).write_text(block.text, encoding="utf-8")
            continue
        if block.language != "python":
            terminal = terminal or Terminal()
            troubles += run_console(block, terminal)
            continue
        if block.word == "continues":
            program.append(block.program)
        else:
            program, begun = [block.program], block.line
        following = next((later for later in blocks[number + 1 :] if later.language == "python"), None)
        if following is None or following.word != "continues":
            troubles += run_python("\n".join(program), begun)
    if terminal is not None:
        terminal.close()
    print("\n".join(f"{page.name}:{trouble}" for trouble in troubles))
    return 1 if troubles else 0


# ── programs ─────────────────────────────────────────────────────────────────────────────────────


def run_python(code: str, line: int) -> list[str]:
    """Run a program in a fork, with `await` allowed outside of functions; what went wrong."""
    with tempfile.TemporaryFile("w+", encoding="utf-8") as output:
        pid = os.fork()
        if pid == 0:
            os.dup2(output.fileno(), 1)
            os.dup2(output.fileno(), 2)
            sys.stdout = open(1, "w", encoding="utf-8", closefd=False)  # noqa: SIM115
            sys.stderr = open(2, "w", encoding="utf-8", closefd=False)  # noqa: SIM115
            os._exit(_run_here(code, f"block_{line}.py"))
        _, status = os.waitpid(pid, 0)
        output.seek(0)
        said = output.read()
    return [] if status == 0 else [f"{line}: the program ended with {status}\n{said}"]


def _run_here(code: str, name: str) -> int:
    Path(name).write_text(code, encoding="utf-8")  # tracebacks show its lines
    module = type(sys)("__main__")
    module.__dict__["__file__"] = name
    sys.modules["__main__"] = module
    try:
        compiled = compile(code, name, "exec", flags=ast.PyCF_ALLOW_TOP_LEVEL_AWAIT)
        if compiled.co_flags & inspect.CO_COROUTINE:
            asyncio.run(eval(compiled, module.__dict__))
        else:
            exec(compiled, module.__dict__)
    except SystemExit as ended:
        return 0 if ended.code in (None, 0) else 1
    except BaseException:
        traceback.print_exc()
        return 1
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
    return 0


# ── commands ─────────────────────────────────────────────────────────────────────────────────────


class Terminal:
    """One bash for the commands of a page, as a reader has one terminal: folder, variables and jobs carry over.

    The server listens on a free port instead of its own. Programs that are not ours, and would install something or
    need another machine, do nothing.
    """

    _KILLED = re.compile(r"bash: line \d+: +\d+ Killed .*")  # in a reader's own terminal it says `Killed`
    _SETUP = """
        set -m
        perdure() {
            case "$1 $2" in
                serve*|up*) command perdure "$@" --port "$PORT";;
                "mcp install") command perdure "$@" --yes;;
                *) command perdure "$@";;
            esac
        }
        sudo() { "$@"; }; pip() { :; }; claude() { :; }; systemctl() { :; }; journalctl() { :; }
    """

    def __init__(self) -> None:
        self.port = str(free_port())
        self._mark = f"--- {os.urandom(8).hex()}"
        self._bash = subprocess.Popen(
            ["bash", "--norc", "--noprofile"],
            env={**_environment(), "PORT": self.port, "no_proxy": "*"},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
        )
        self._unread = b""
        self.run(self._SETUP)

    def run(self, command: str) -> tuple[str, int]:
        """Run a command to its end: what it printed, and how it ended."""
        self._write(f"{{ {command}\n}} < /dev/null\nprintf '%s %s\\n' '{self._mark}' $?\n")
        return self._read_to_end()

    def run_and_end(self, command: str, line: str, number: signal.Signals) -> tuple[str, int]:
        """Run a command, and send this signal to it and its children once it has printed that line."""
        ended = f"wait $! 2> /dev/null; printf '%s %s\\n' '{self._mark}' $?"
        self._write(f"( {command}\n) < /dev/null &\nprintf '%s %s\\n' '{self._mark}' $!\n{ended}\n")
        said, group = self._read_to_end()
        while line not in said.splitlines():
            more = self._read_line()
            if more.startswith(self._mark):  # it has ended by itself
                return said, int(more.split()[-1])
            said += more
        with contextlib.suppress(ProcessLookupError):
            os.killpg(group, number)
        more, code = self._read_to_end()
        return said + more, code

    def close(self) -> None:
        # A job is a group of its own: the shell that runs a function is its leader, and the program its child.
        self._write("for job in $(jobs -p); do kill -- -$job; done 2> /dev/null; wait; exit\n")
        with self._bash:
            pass

    def _write(self, text: str) -> None:
        assert self._bash.stdin is not None
        self._bash.stdin.write(text.encode())
        self._bash.stdin.flush()

    def _read_to_end(self) -> tuple[str, int]:
        said = ""
        while not (line := self._read_line()).startswith(self._mark):
            said += "" if self._KILLED.match(line) else line
        return said, int(line.split()[-1])

    def _read_line(self) -> str:
        assert self._bash.stdout is not None
        while b"\n" not in self._unread:
            if not select.select([self._bash.stdout], [], [], PATIENCE)[0]:
                raise TimeoutError(f"the terminal is silent for {PATIENCE:.0f} s")
            if not (more := os.read(self._bash.stdout.fileno(), 1 << 16)):
                raise EOFError("the terminal has ended")
            self._unread += more
        before, mark, after = self._unread.partition(b"\n")
        if self._mark.encode() in before[1:]:  # the last line of the output has no end of its own
            place = before.index(self._mark.encode())
            before, after = before[:place], before[place:] + mark + after
        self._unread = after
        return before.decode("utf-8", "replace") + "\n"


def run_console(block: Block, terminal: Terminal) -> list[str]:
    """Run the commands of a block, in order, and compare what they print; what differs."""
    troubles = []
    if block.given_shell:
        said, code = terminal.run(block.given_shell)
        troubles += [f"{block.line}: what the block takes for granted ended with {code}:\n{said}"] if code else []
    ends = _ENDS.fullmatch(block.first_line)
    text = block.text.replace("7420", terminal.port)
    for command, expected in commands_of(text) if block.language == "console" else [(text, "")]:
        if ends is not None and (ends["how"] != "killed" or command.startswith(_KILLING)):
            how, line = _SIGNALS[ends["how"]], ends["line"].replace("7420", terminal.port)
            said, code = terminal.run_and_end(command.removeprefix(_KILLING).lstrip("0123456789 "), line, how)
            code = 0 if code > _BY_SIGNAL else code
        else:
            said, code = terminal.run(command)
        if expected.strip() and not matches(expected, said):
            troubles.append(f"{block.line}: `{command}` printed\n{said}\nand the page says\n{expected}")
        elif not expected.strip() and code not in (0, _BY_SIGNAL + signal.SIGKILL):  # the page kills some by themselves
            troubles.append(f"{block.line}: `{command}` ended with {code}:\n{said}")
    return troubles


def commands_of(text: str) -> list[tuple[str, str]]:
    """Each `$ command` with what the page shows below it. A comment behind a command is for the reader."""
    found: list[tuple[str, str]] = []
    for line in text.splitlines():
        if line.startswith("$ "):
            found.append((re.sub(r"\s{2,}# .*$", "", line[2:]), ""))
        elif found and found[-1][0].endswith("\\"):
            found[-1] = (found[-1][0] + "\n" + line, "")
        elif found:
            found[-1] = (found[-1][0], found[-1][1] + line + "\n")
    return found


def matches(expected: str, said: str) -> bool:
    """The same lines; `…` stands for any text, on a line of its own for any lines."""
    pattern = ""
    for line in expected.strip().splitlines():
        text = line.rstrip()
        if text.strip() == ELLIPSIS:
            pattern += r"(?:.*\n)*?"
        else:
            words = (re.sub(r"\\ (\\ )+", r"\\s+", re.escape(part)) for part in text.split(ELLIPSIS))
            pattern += ".*?".join(words) + r" *\n"
    return re.fullmatch(pattern, said.strip() + "\n") is not None


def _environment() -> dict[str, str]:
    kept = {name: value for name, value in os.environ.items() if not name.startswith("PERDURE_")}
    here = Path(sys.executable).parent
    return {**kept, "PATH": f"{here}:{os.environ['PATH']}", "COLUMNS": "100", "NO_COLOR": "1"}


if __name__ == "__main__":
    assert perdure.sync
    sys.exit(main(Path(sys.argv[1])))

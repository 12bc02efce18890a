"""The environment a task's processes have: captured without secrets, rebuilt with them.

A variable is stored as it is. If its name or its value looks secret, a reference is stored instead, and resolved when
a process is started. The stored environment may therefore be read by anyone who may read the store. A process either
gets every variable it had, or is not started, and the error names the missing variable.

Of an active virtual environment the prefix is stored, and PATH is rebuilt from it.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from fnmatch import fnmatchcase
from typing import NamedTuple

import msgspec

from perdure._runtime.secrets import redaction
from perdure._runtime.secrets.secret_references import Secret, resolve
from perdure.errors import SecretMissing

# Where a process runs, not how: each process that starts another sets these.
_OF_THE_PROCESS = frozenset({"_", "SHLVL", "PWD", "OLDPWD", "COLUMNS", "LINES", "PERDURE_CRASH_AT"})
# What means something on this machine and in this login only: not taken to another host.
OF_THE_HOST = frozenset(
    {"DISPLAY", "WAYLAND_DISPLAY", "XAUTHORITY", "SSH_AUTH_SOCK", "SSH_CONNECTION", "SSH_CLIENT", "SSH_TTY"}
    | {"DBUS_SESSION_BUS_ADDRESS", "XDG_RUNTIME_DIR", "XDG_SESSION_ID", "HOSTNAME", "TMUX", "TMUX_PANE", "STY"}
)
# What a unit gets of the agent's own environment, unless its value looks secret: paths, user, language, and the
# folders of common tools. All else is passed by name.
INHERITED = (
    *("PATH", "MANPATH", "HOME", "USER", "LOGNAME", "SHELL", "HOSTNAME", "TMPDIR", "TMP", "TEMP", "XDG_*"),
    *("LANG", "LANGUAGE", "LC_*", "TZ", "TERM", "TERMINFO*", "COLORTERM", "NO_COLOR", "FORCE_COLOR", "CLICOLOR*"),
    *("LS_COLORS", "PS1", "EDITOR", "VISUAL", "PAGER", "LESS", "CI", "DEBIAN_FRONTEND"),
    *("VIRTUAL_ENV", "CONDA_*", "PYENV_*", "PYTHON*", "NODE_ENV", "NODE_PATH", "NVM_*", "GOPATH", "GOROOT", "GOCACHE"),
    *("CARGO_HOME", "RUSTUP_HOME", "JAVA_HOME", "GEM_HOME", "RBENV_*", "LD_LIBRARY_PATH", "DYLD_*", "PKG_CONFIG_PATH"),
    *("CUDA_*", "OMP_*", "SSL_CERT_FILE", "SSL_CERT_DIR", "*_CA_BUNDLE", "NODE_EXTRA_CA_CERTS"),
    *("http_proxy", "https_proxy", "ftp_proxy", "all_proxy", "no_proxy"),
    *("HTTP_PROXY", "HTTPS_PROXY", "FTP_PROXY", "ALL_PROXY", "NO_PROXY"),
)


class Rules(NamedTuple):
    """Which variables are kept in clear: patterns over names, `allow` before `deny`, both before the scan; and which
    of the agent's own variables units `inherit`, beside the usual ones."""

    allow: Sequence[str] = ()
    deny: Sequence[str] = ()
    inherit: Sequence[str] = ()

    def is_secret(self, name: str, value: str) -> bool:
        if any(fnmatchcase(name, pattern) for pattern in self.allow):
            return False
        if any(fnmatchcase(name, pattern) for pattern in self.deny):
            return True
        return bool(value) and (redaction.is_telling(name) or redaction.looks_secret(value))

    def is_inherited(self, name: str, value: str) -> bool:
        """True if units get this variable of the agent's own environment without being passed it."""
        if any(fnmatchcase(name, pattern) for pattern in self.inherit):
            return True
        return any(fnmatchcase(name, pattern) for pattern in INHERITED) and not self.is_secret(name, value)


NO_RULES = Rules()


class Environment(msgspec.Struct, frozen=True):
    """A captured environment: clear values, references for the rest, and the virtual environment's prefix."""

    values: dict[str, str]
    secrets: dict[str, str] = {}
    virtualenv: str | None = None

    def shown(self) -> dict[str, str]:
        """All of it as it may be shown: secrets as references."""
        return {**self.values, **self.secrets}


def inherited(
    env: Mapping[str, str], rules: Rules = NO_RULES, environ: Mapping[str, str] | None = None
) -> dict[str, str]:
    """The variables a unit gets from its task: those the task has set itself, and of those it found in its process
    the ones that a rule names. Keys and tokens of the agent stay with the agent."""
    found = os.environ if environ is None else environ
    return {name: value for name, value in env.items() if found.get(name) != value or rules.is_inherited(name, value)}


def capture(env: Mapping[str, str], rules: Rules = NO_RULES) -> Environment:
    """The environment without its secrets; from now on their values are redacted everywhere in this process."""
    values: dict[str, str] = {}
    secrets: dict[str, str] = {}
    for name, value in sorted(env.items()):
        if name in _OF_THE_PROCESS:
            continue
        if value.startswith("secret://"):
            secrets[name] = value
        elif rules.is_secret(name, value) or _is_not_text(value):
            secrets[name] = Secret("env", name).reference
            redaction.know(value, secrets[name])
        else:
            values[name] = value
    return Environment(values, secrets, env.get("VIRTUAL_ENV") or None)


def _is_not_text(value: str) -> bool:
    """Bytes that cannot be stored as text; they are fetched from the environment again, like a secret."""
    try:
        value.encode()
    except UnicodeEncodeError:
        return True
    return False


def missing(captured: Environment, environ: Mapping[str, str] | None = None) -> dict[str, str]:
    """The variables that would be missing if it were rebuilt now, each with the reason. Starts no program."""
    found: dict[str, str] = {}
    for name, reference in captured.secrets.items():
        try:
            Secret.parse(reference).value(environ)
        except SecretMissing as error:
            found[name] = error.problem
    prefix = captured.virtualenv
    if prefix is not None and not os.path.isdir(os.path.join(prefix, "bin")):
        found["VIRTUAL_ENV"] = f"there is no virtual environment at {prefix}"
    return found


def rebuild(captured: Environment, environ: Mapping[str, str] | None = None) -> dict[str, str]:
    """The environment with its secrets, to start processes with. Nothing but secrets comes from the resuming process.

    Raises:
        SecretMissing: a secret cannot be fetched; the message names the variable's reference.
    """
    env = {**captured.values, **{name: resolve(reference, environ) for name, reference in captured.secrets.items()}}
    return with_virtualenv(env, captured.virtualenv)


def with_virtualenv(env: Mapping[str, str], prefix: str | None) -> dict[str, str]:
    """The environment with a virtual environment active, as its `activate` leaves it."""
    if prefix is None:
        return dict(env)
    bin_ = os.path.join(prefix, "bin")
    path = [part for part in env.get("PATH", os.defpath).split(os.pathsep) if part != bin_]
    kept = {name: value for name, value in env.items() if name != "PYTHONHOME"}
    return {**kept, "VIRTUAL_ENV": prefix, "PATH": os.pathsep.join([bin_, *path])}


def umask_now() -> int:
    """This process's umask, read without changing it for a moment."""
    try:
        with open("/proc/self/status", encoding="ascii") as status:
            for line in status:
                if line.startswith("Umask:"):
                    return int(line.split()[1], 8)
    except OSError:
        pass
    before = os.umask(0o077)
    os.umask(before)
    return before

"""Secrets by reference: where a secret is, never what it is.

    Secret("env", "GITHUB_TOKEN")                 secret://env/GITHUB_TOKEN
    Secret("file", "/run/secrets/db")             secret://file//run/secrets/db
    Secret("keyring", "service/user")             secret://keyring/service/user
    Secret("command", "pass show prod/db")        secret://command/pass%20show%20prod%2Fdb

Only the reference is stored. The process that uses the value fetches it at that moment. From then on redaction.py
knows the value and keeps it out of logs, prompts and bundles.

A command is run only if this program names it (by making that Secret, or in PERDURE_SECRET_COMMANDS). A reference
read from a record is data, and data must not run anything.
"""

from __future__ import annotations

import os
import shlex
import stat
import subprocess
from collections.abc import Mapping
from typing import Any, Literal, get_args
from urllib.parse import quote, unquote

from perdure._runtime.secrets import redaction
from perdure.errors import InvalidInput, SecretMissing

Source = Literal["env", "file", "keyring", "command"]
SCHEME = "secret://"
_COMMAND_SECONDS = 30
# The commands this program has named itself.
_commands: set[str] = set()


class Secret:
    """A reference to a secret. Its text and repr are the reference; only `value()` fetches the secret."""

    __slots__ = ("name", "source")
    name: str

    def __init__(self, source: Source, name: str) -> None:
        _check(source, name)
        self.source, self.name = source, name
        if source == "command":
            _commands.add(name)

    @classmethod
    def parse(cls, reference: str) -> Secret:
        """The secret a reference names; a command found this way is not thereby allowed to run."""
        rest = reference.removeprefix(SCHEME)
        source, slash, name = rest.partition("/")
        if not reference.startswith(SCHEME) or not slash:
            raise InvalidInput(
                f"{reference!r} is not a reference to a secret", do="write secret://env/NAME or the like"
            )
        name = unquote(name)
        _check(source, name)
        secret = cls.__new__(cls)
        secret.source, secret.name = source, name  # type: ignore[assignment]
        return secret

    @property
    def reference(self) -> str:
        return f"{SCHEME}{self.source}/{quote(self.name, safe='' if self.source == 'command' else '/')}"

    def value(self, environ: Mapping[str, str] | None = None) -> str:
        """The secret itself, fetched now.

        Raises:
            SecretMissing: it does not exist, or may not be read.
        """
        found: str = _FETCH[self.source](self, os.environ if environ is None else environ)
        redaction.know(found, self.reference)
        return found

    def __str__(self) -> str:
        return self.reference

    def __repr__(self) -> str:
        return f"Secret({self.source!r}, {self.name!r})"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Secret) and (self.source, self.name) == (other.source, other.name)

    def __hash__(self) -> int:
        return hash((self.source, self.name))


def is_reference(value: Any) -> bool:
    return isinstance(value, str) and value.startswith(SCHEME)


def resolve(value: Any, environ: Mapping[str, str] | None = None) -> Any:
    """The value with every reference in it replaced by its secret; for immediate use, never for storing.

    Raises:
        SecretMissing: one of them cannot be fetched.
    """
    if isinstance(value, Secret):
        return value.value(environ)
    if is_reference(value):
        return Secret.parse(value).value(environ)
    if isinstance(value, Mapping):
        return {key: resolve(item, environ) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [resolve(item, environ) for item in value]
    return value


def references_in(value: Any) -> list[str]:
    """Every reference that stands somewhere in a value."""
    if is_reference(value):
        return [value]
    if isinstance(value, Mapping):
        return [found for item in value.values() for found in references_in(item)]
    if isinstance(value, list | tuple):
        return [found for item in value for found in references_in(item)]
    return []


def _check(source: str, name: str) -> None:
    if source not in get_args(Source):
        raise InvalidInput(f"{source!r} is not a source of secrets", do=f"choose from {', '.join(get_args(Source))}")
    if not name or "\0" in name:
        raise InvalidInput("a secret needs a name")


# ── fetching ─────────────────────────────────────────────────────────────────────────────────────


def _from_environment(secret: Secret, environ: Mapping[str, str]) -> str:
    if not environ.get(secret.name):
        raise SecretMissing(secret.reference, f"the environment variable {secret.name} is not set here")
    return environ[secret.name]


def _from_file(secret: Secret, _: Mapping[str, str]) -> str:
    try:
        with open(os.path.expanduser(secret.name), encoding="utf-8") as file:
            mode = stat.S_IMODE(os.fstat(file.fileno()).st_mode)
            if mode & 0o022:
                raise SecretMissing(secret.reference, f"others may write to the file (mode {mode:03o})")
            found = file.read().rstrip("\n")
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "it is not text"
        raise SecretMissing(secret.reference, f"the file cannot be read: {reason}") from None
    if not found:
        raise SecretMissing(secret.reference, "the file is empty")
    return found


def _from_keyring(secret: Secret, _: Mapping[str, str]) -> str:
    service, _slash, user = secret.name.partition("/")
    try:
        import keyring
    except ImportError:
        raise SecretMissing(secret.reference, "the keyring library is not installed (perdure[keyring])") from None
    try:
        found = keyring.get_password(service, user)
    except Exception as error:  # each backend has its own: locked, absent, refused
        raise SecretMissing(secret.reference, f"the keyring could not be asked: {type(error).__name__}") from None
    if not found:
        raise SecretMissing(secret.reference, "the keyring has no entry of this name")
    return found


def _from_command(secret: Secret, environ: Mapping[str, str]) -> str:
    allowed = {line.strip() for line in environ.get("PERDURE_SECRET_COMMANDS", "").splitlines()}
    if secret.name not in _commands and secret.name not in allowed:
        raise SecretMissing(secret.reference, "this program has not named that command, so it is not run")
    try:
        argv = shlex.split(secret.name)
        done = subprocess.run(
            argv,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=_COMMAND_SECONDS,
            check=False,
            encoding="utf-8",
        )
    except (OSError, ValueError, subprocess.TimeoutExpired) as error:
        raise SecretMissing(secret.reference, f"the command failed: {type(error).__name__}") from None
    if done.returncode or not done.stdout.strip():
        raise SecretMissing(secret.reference, f"the command ended with {done.returncode} and gave nothing to use")
    return done.stdout.rstrip("\n")


_FETCH: Mapping[str, Any] = {
    "env": _from_environment,
    "file": _from_file,
    "keyring": _from_keyring,
    "command": _from_command,
}

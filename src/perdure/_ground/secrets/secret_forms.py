"""Recognise secrets by their name or their form. Every filter of perdure uses this list. Pure.

The environment filter, shell recipes, unit records, redaction and the linter share these rules, so what one of them
withholds, none of the others writes down. Values that a process knows to be secret, because it fetched them, are in
perdure/_runtime/secrets/redaction.py; they are replaced whatever their form.

A form is a guess and has holes: docs/guide/secrets.md says which.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Sequence
from urllib.parse import urlsplit, urlunsplit

HIDDEN = "[secret]"
_TELLING_NAME = re.compile(
    r"""(?ix) pass(word|wd|phrase)?($|_) | passw | passphrase | secret | token | credential
    | api_?key | access_?key | private_?key | _key$ | ^key$ | _dsn$
    | _auth$ | ^auth(?!or(?!iz)) | authorization | cookie
    """
)
# By form: the makers' own prefixes.
_FORMS = re.compile(
    r"""
      -----BEGIN\ [A-Z ]*PRIVATE\ KEY-----[\s\S]*?(?:-----END\ [A-Z ]*PRIVATE\ KEY-----|\Z)
    | \b(?:AKIA|ASIA)[0-9A-Z]{12,}\b
    | \bgh[pousr]_[A-Za-z0-9]{16,}\b | \bgithub_pat_[A-Za-z0-9_]{40,}\b
    | \bglpat-[A-Za-z0-9_-]{20,}
    | \b(?:sk|pk|rk)[-_](?=[A-Za-z_-]{0,60}\d)[A-Za-z0-9_-]{8,}
    | \bsk-[A-Za-z0-9_-]{20,} | \b[rs]k_(?:live|test)_[A-Za-z0-9]{16,}
    | \bxox[abeoprs]-[A-Za-z0-9-]{8,}
    | \bAIza[0-9A-Za-z_-]{35}
    | \bnpm_[A-Za-z0-9]{30,}\b | \bpypi-[A-Za-z0-9_-]{50,}
    | \bSG\.[A-Za-z0-9_-]{16,}\.[A-Za-z0-9_-]{16,}
    | \beyJ[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]*
    """,
    re.VERBOSE,
)
# The prefix of each of these forms.
_PREFIXES = (
    "-----BEGIN ", "AKIA", "ASIA", "ghp_", "gho_", "ghu_", "ghs_", "ghr_", "github_pat_", "glpat-", "sk-", "sk_", "pk-",
    "pk_", "rk-", "rk_", "xox", "AIza", "npm_", "pypi-", "SG.", "eyJ",
)  # fmt: skip
_WORDS = r"(?: passw(?:or)?d | passphrase | secret | token | credential | (?: api | access | private ) [_-]? key )"
# The value after a telling name. Every stretch is bounded, so that a megabyte of noise is searched in one pass.
_BEHIND = re.compile(
    rf"""(?ix)
    (?P<before>
        \b authorization ["']? \s{{0,9}} [:=] \s{{0,9}} ["']? (?: bearer | basic | token ) \s+
      | \b (?: set-)? cookie ["']? \s{{0,9}} : \s{{0,9}} [^=\s;]{{1,60}} =
      | :// [^\s/@:]{{0,200}} :                                             # user:password@ in an address
      | {_WORDS} [a-z0-9_.-]{{0,40}} ["']? \s{{0,9}} [:=]{{1,2}} \s{{0,9}} ["']?
    )
    (?P<value> [^\s"'@;,&]{{4,}} )
    (?P<after> @? )
    """
)
# One of these precedes a match.
_BEFORE = ("authorization", "cookie", "://", "passw", "passphrase", "secret", "token", "credential", "key")
# The same in one value, more strictly: a colon alone joins folders of a path.
_ASSIGNED = re.compile(
    rf"""(?ix)
    \b authorization ["']? \s{{0,9}} [:=] \s{{0,9}} ["']? (?: bearer | basic | token ) \s+ \S{{4}}
    | {_WORDS} [a-z0-9_.-]{{0,40}} (?: ["']? \s{{0,9}} = | ["'] \s{{0,9}} : ) \s{{0,9}} ["']?
      (?! secret: | \[secret\] | [$%<{{] ) [^\s"'@;,&]{{4}}
    """
)
IN_ADDRESS = re.compile(r"://[^\s/@:]*:([^\s/@]+)@")
_NAME = re.compile(r"[\w.-]+")
_PLACEHOLDERS = ("//", "secret:", HIDDEN, "$", "%", "<", "{")


def is_telling(name: str) -> bool:
    """True if a name says that its value is secret: of a variable, a header, an option, a field."""
    return _TELLING_NAME.search(name.replace("-", "_")) is not None


def looks_secret(value: str) -> bool:
    """True if a value has the form of a secret: a maker's token, a password behind its name, or long noise."""
    return bool(_FORMS.search(value) or IN_ADDRESS.search(value) or _ASSIGNED.search(value) or _is_noise(value))


def is_secret(name: str, value: str) -> bool:
    """True if a named value must not be written down."""
    return bool(value) and (is_telling(name) or looks_secret(value))


def holds_a_token(text: str) -> bool:
    """True if a part of a text has the form of a maker's token or of a private key."""
    return _FORMS.search(text) is not None


def hide_forms(text: str) -> str:
    """A text without what has the form of a secret."""
    # The patterns cost a hundred times as much as looking for the words that every match of them holds.
    if any(prefix in text for prefix in _PREFIXES):
        text = _FORMS.sub(HIDDEN, text)
    lower = text.lower()
    if not text.isascii() or any(word in lower for word in _BEFORE):
        text = _BEHIND.sub(_hide_behind, text)
    return text


def _hide_behind(found: re.Match[str]) -> str:
    value, after = found["value"], found["after"]
    if "://" in found["before"] and not after:
        return found[0]  # a port or a path, not a password
    if value.startswith(_PLACEHOLDERS):
        return found[0]  # a reference or a placeholder
    return f"{found['before']}{HIDDEN}{after}"


def _is_noise(value: str) -> bool:
    """Letters and digits without order, as a key has them; not a path, a list, a version or a sentence."""
    if not 20 <= len(value) <= 512 or not re.fullmatch(r"[A-Za-z0-9+/=_-]+", value):
        return False
    if value.count("/") > 2 and not re.search(r"\d", value):
        return False
    kinds = sum(bool(re.search(kind, value)) for kind in ("[a-z]", "[A-Z]", "[0-9]"))
    counts = Counter(value)
    entropy = -sum(n / len(value) * math.log2(n / len(value)) for n in counts.values())
    return kinds == 3 and entropy >= 4.0


# ── command lines and addresses ──────────────────────────────────────────────────────────────────


def hide_in_command(argv: Sequence[str]) -> list[str]:
    """A command line without its secrets: `--token=[secret]`, `--password [secret]`, tokens by their form."""
    shown: list[str] = []
    is_next = False  # the part before was an option whose value is secret
    for part in argv:
        name, equals, value = part.partition("=")
        is_option = part.startswith("-")
        if is_next and not is_option:
            shown.append(HIDDEN)
        elif equals and _NAME.fullmatch(name) and is_secret(name.strip("-"), value.strip("\"'")):
            shown.append(f"{name}={HIDDEN}")
        elif _is_noise(part.strip("\"'")):
            shown.append(HIDDEN)
        else:
            shown.append(hide_forms(part))
        is_next = is_option and not equals and is_telling(part.strip("-"))
    return shown


def hide_in_address(url: str) -> str:
    """An address without its password and without the secrets among its parameters."""
    try:
        parts = urlsplit(url)
    except ValueError:
        return hide_forms(url)
    place, query = parts.netloc, parts.query
    if "@" in place:
        place = f"{HIDDEN}@{place.rpartition('@')[2]}"
    if query:
        query = "&".join(_hide_parameter(one) for one in query.split("&"))
    if (place, query) == (parts.netloc, parts.query):
        return hide_forms(url)
    return hide_forms(urlunsplit((parts.scheme, place, parts.path, query, parts.fragment)))


def _hide_parameter(one: str) -> str:
    name, equals, value = one.partition("=")
    return f"{name}={HIDDEN}" if equals and is_secret(name, value) else one

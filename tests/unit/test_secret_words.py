"""The words that are looked for first are in everything that the patterns find: none is passed over."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from perdure._ground.secrets import secret_forms

BEFORE = """
password=|PassWd: |passphrase="|client_secret=|ſecret=|TOKEN=|credential:|api-key=|AccessKey: |private_key=|
Authorization: Bearer |Set-Cookie: a=|postgres://u:
""".replace("\n", "").split("|")
TOKENS = [
    "-----BEGIN RSA PRIVATE KEY-----x",
    "AKIAABCDEFGHIJKLMNOP",
    "ASIAABCDEFGHIJKLMNOP",
    *(f"gh{kind}_{'a1' * 12}" for kind in "pousr"),
    f"github_pat_{'a' * 44}",
    f"glpat-{'a' * 22}",
    *(f"{kind}{sign}abcd1234efgh" for kind in ("sk", "pk", "rk") for sign in "-_"),
    f"sk-{'a' * 24}",
    f"rk_live_{'a1' * 10}",
    "xoxb-12345678-abc",
    f"AIza{'a' * 35}",
    f"npm_{'a' * 32}",
    f"pypi-{'a' * 52}",
    f"SG.{'a' * 18}.{'b' * 18}",
    "eyJhbGciOiJI.eyJzdWIiOiIx.abc",
]
texts = st.sampled_from([*BEFORE, *TOKENS, "hunter2222", "@host", " ", "\n", "ü", '"', "max tokens", "key"])


def by_patterns(text: str) -> str:
    hidden = secret_forms._FORMS.sub(secret_forms.HIDDEN, text)
    return secret_forms._BEHIND.sub(secret_forms._hide_behind, hidden)


@pytest.mark.parametrize("text", [*(f"{word}hunter2222@" for word in BEFORE), *TOKENS])
def test_each_form_is_found_alone(text: str) -> None:
    assert secret_forms.hide_forms(text) == by_patterns(text) != text


@given(st.lists(texts, max_size=12).map("".join))
def test_what_the_patterns_find_is_hidden(text: str) -> None:
    assert secret_forms.hide_forms(text) == by_patterns(text)

"""Signatures are those of the reference library of Standard Webhooks, both ways."""

from __future__ import annotations

import time
from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st
from standardwebhooks.webhooks import Webhook, WebhookVerificationError

from perdure._ground.reach import is_signed, key_of, new_secret, sign
from perdure.errors import InvalidInput

pytestmark = pytest.mark.req("R143")


@pytest.mark.threat("T12")
@given(st.text("abcdefgh0123456789_", min_size=1), st.text())
def test_the_reference_library_makes_the_same_signature(id: str, text: str):
    secret, now = new_secret(), int(time.time())
    body = text.encode("utf-8", "replace")
    headers = sign([secret], id, now, body)
    reference = Webhook(secret).sign(id, datetime.fromtimestamp(now, UTC), body.decode())
    assert headers["webhook-signature"] == reference


def test_the_reference_library_takes_what_is_signed_with_either_secret():
    old, new, now = new_secret(), new_secret(), int(time.time())
    headers = sign([new, old], "m1", now, b'{"a": 1}')
    for secret in (old, new):
        assert Webhook(secret).verify(b'{"a": 1}', headers) == {"a": 1}


def test_the_reference_library_refuses_what_is_too_old():
    secret = new_secret()
    headers = sign([secret], "m1", int(time.time()) - 600, b"{}")
    with pytest.raises(WebhookVerificationError):
        Webhook(secret).verify(b"{}", headers)


def test_what_the_reference_library_signs_is_taken():
    secret, now = new_secret(), int(time.time())
    signature = Webhook(secret).sign("m1", datetime.fromtimestamp(now, UTC), '{"a":1}')
    headers = {"webhook-id": "m1", "webhook-timestamp": str(now), "webhook-signature": f"v1,AAAA v2,b {signature}"}
    assert is_signed([secret], headers, b'{"a":1}', now)
    assert is_signed([new_secret(), secret], headers, b'{"a":1}', now + 299)


@pytest.mark.parametrize(
    "change",
    [
        {"webhook-id": "m2"},
        {"webhook-id": ""},
        {"webhook-timestamp": "999"},
        {"webhook-timestamp": "1000 "},
        {"webhook-timestamp": "9" * 40},
        {"webhook-timestamp": "-1000"},
        {"webhook-signature": "v1,"},
        {"webhook-signature": "v1a,AAAA"},
        {"webhook-signature": "é"},
        {"webhook-signature": ""},
    ],
)
def test_a_changed_message_is_refused(change):
    secret = new_secret()
    headers = {**sign([secret], "m1", 1000, b"{}"), **change}
    assert not is_signed([secret], headers, b"{}", 1000)


def test_another_body_another_secret_and_another_time_are_refused():
    secret = new_secret()
    headers = sign([secret], "m1", 1000, b"{}")
    assert is_signed([secret], headers, b"{}", 1000)
    assert not is_signed([secret], headers, b"{ }", 1000)
    assert not is_signed([new_secret()], headers, b"{}", 1000)
    assert not is_signed([secret], headers, b"{}", 1301)
    assert not is_signed([], headers, b"{}", 1000)


@pytest.mark.parametrize("secret", ["", "whsec_", "whsec_!!", "whsec_AAAA", "whsec_" + "A" * 200])
def test_a_secret_that_is_none_is_not_repeated_in_the_error(secret):
    with pytest.raises(InvalidInput) as refused:
        key_of(secret)
    assert secret not in str(refused.value) or secret in ("", "whsec_")

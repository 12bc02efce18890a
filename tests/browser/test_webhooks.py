"""Webhooks in Operate: made with a secret that is shown once, delivered signed, replayed, removed."""

from __future__ import annotations

import re

from playwright.sync_api import expect
from standardwebhooks import Webhook

from perdure.sync import Perdure
from tests.server.hooks.test_processes import PRIVATE, receiver
from tests.support.browser import log_in, watching
from tests.support.server_processes import live_server


def test_a_webhook_is_made_told_signed_what_happens_and_replayed(store, chromium, tmp_path):
    with (
        receiver(tmp_path, "500", "ok") as got,
        live_server(store, **PRIVATE) as server,
        watching(chromium, server.told["url"]) as watched,
    ):
        page = watched.page()
        log_in(page, server.told["link"])
        page.goto(f"{server.told['url']}/operate/webhooks")
        page.get_by_role("button", name="New webhook…").click()
        dialog = page.get_by_role("dialog")
        dialog.get_by_label("Address").fill(got.address)
        dialog.get_by_label("Events").fill("task.completed")
        dialog.get_by_role("button", name="Make the webhook").click()
        secret = dialog.locator(".secret code").inner_text()
        assert secret.startswith("whsec_")
        dialog.get_by_role("button", name="I have it").click()
        row = page.locator(".op-row").filter(has_text=got.address)
        expect(row).to_be_visible()
        assert secret not in page.content()

        with Perdure(store) as app:
            app.tasks.open("order-1").complete("done")
        got.wait_for(1)
        row.get_by_text("Deliveries").click()
        delivery = row.locator(".deliveries li").filter(has_text="task.completed")
        expect(delivery).to_contain_text(re.compile("1 try.*500", re.S))  # and it is due again
        row.get_by_role("button", name="Send a ping").click()
        ping = row.locator(".deliveries li").filter(has_text="ping")
        expect(ping).to_contain_text("delivered")
        ping.get_by_role("button", name="Replay").click()
        while len(pings := [one for one in got.all() if '"webhook.ping"' in one["body"]]) < 2:
            page.evaluate("() => new Promise(requestAnimationFrame)")
        for one in pings:
            assert Webhook(secret).verify(one["body"].encode(), one["headers"])
        row.get_by_role("button", name="Remove…").click()
        dialog.get_by_role("button", name=re.compile("^Remove")).click()
        expect(row).to_have_count(0)

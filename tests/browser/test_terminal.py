"""The terminal of a unit: watched, taken over, answered with a password, and attacked by what is printed in it."""

from __future__ import annotations

import re
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Browser, FrameLocator, Locator, Page, expect

from perdure.sync import Perdure
from tests.browser.escapes import CORPUS, END
from tests.runtime.kit import Place
from tests.support.browser import log_in, watching
from tests.support.server_processes import LiveServer, live_server

# Tells the test what goes through the port between the page and the frame, in both directions.
LISTEN = """
window.__drawn = []; window.__heard = [];
const Channel = window.MessageChannel;
window.MessageChannel = class extends Channel {
  constructor() {
    super();
    const send = this.port1.postMessage.bind(this.port1);
    this.port1.postMessage = (told, ...more) => {
      if (told instanceof Uint8Array) for (const byte of told) window.__drawn.push(byte);
      return send(told, ...more);
    };
    this.port1.addEventListener("message", ({data}) => window.__heard.push(data));
  }
};
"""
SHELL = ["bash", "--norc", "-i"]
UNIT = "/v1/tasks/work/units/main"
RESTARTED = ["ERR_CONNECTION_REFUSED", "ERR_INCOMPLETE_CHUNKED_ENCODING", "ERR_EMPTY_RESPONSE", "ERR_CONNECTION_RESET"]


@pytest.fixture
def place(tmp_path: Path) -> Iterator[Place]:
    place = Place(tmp_path / "store" / "p.db")
    try:
        yield place
    finally:
        place.clear()


def begin(store: str, argv: list[str]) -> None:
    """A shell of a task, whose agent has gone."""
    with Perdure(store) as app:
        app.tasks.open("work", state={})
        app.runtime("work").shell("main", argv, env={"PS1": "$ "})


def open_terminal(page: Page, server: LiveServer) -> FrameLocator:
    page.context.add_init_script(LISTEN)
    page.goto(f"{server.told['url']}/tasks/work/units/main")
    expect(page.locator("iframe.term-frame")).to_be_visible()
    expect(screen(page)).to_be_attached()
    return page.frame_locator("iframe.term-frame")


def screen(page: Page) -> Locator:
    return page.frame_locator("iframe.term-frame").locator(".xterm-rows")


def take(page: Page, name: str = "Type here") -> None:
    page.get_by_role("button", name=name).click()
    expect(page.get_by_text("You type.")).to_be_visible()


def heard(page: Page, kind: str | None = None) -> list[Any]:
    return [told for told in page.evaluate("window.__heard") if kind in (None, told["kind"])]


def whole_output(page: Page) -> bytes:
    told = page.evaluate(
        f"fetch('{UNIT}/output?from=0').then((a) => a.arrayBuffer()).then((b) => [...new Uint8Array(b)])"
    )
    return bytes(told)


def drawn(page: Page) -> bytes:
    return bytes(page.evaluate("window.__drawn"))


# ── watching and typing ──────────────────────────────────────────────────────────────────────────


def test_who_types_is_told_when_another_takes_over_and_output_is_whole_across_a_restart(
    place, store, page, watched, server, another, new_link
):
    begin(store, SHELL)
    open_terminal(page, server)
    expect(page.get_by_text("Reading only.")).to_be_visible()
    page.locator("iframe.term-frame").click()
    page.keyboard.type("exit\n")  # nothing is sent before the right is taken
    expect(screen(page)).to_contain_text("$")
    assert heard(page, "keys") == []
    take(page)
    page.keyboard.type("echo from-$((1 + 1))-first\n")
    expect(screen(page)).to_contain_text("from-2-first")
    page.keyboard.press("Control+]")
    expect(page.locator("#term-head")).to_be_focused()

    others = another()
    second = others.page()
    log_in(second, new_link("operator"))
    open_terminal(second, server)
    expect(screen(second)).to_contain_text("from-2-first")
    second.get_by_role("button", name=re.compile("^Take over from ")).click()
    expect(second.get_by_text("You type.")).to_be_visible()
    expect(page.get_by_role("alert")).to_contain_text("took over")
    watched.foreseen.append("409 (Conflict)")  # so the first one was told
    expect(page.get_by_text("You type.")).to_have_count(0)

    second.keyboard.type("for i in $(seq 400); do echo line $i; sleep 0.01; done\n")
    expect(screen(second)).to_contain_text("line 20")
    watched.foreseen += RESTARTED
    others.foreseen += RESTARTED
    server.process.kill()
    server.process.wait()
    expect(second.get_by_text("The line is broken")).to_be_visible()
    with live_server(store, port=server.port):
        for each in (page, second):
            expect(screen(each)).to_contain_text("line 400")
            expect(each.get_by_text("The line is broken")).to_have_count(0)
            assert drawn(each) == whole_output(each)
        second.keyboard.type("echo and-$((2 * 2))\n")
        expect(screen(second)).to_contain_text("and-4")
        second.get_by_role("button", name="Stop typing").click()
        expect(second.get_by_text("Reading only.")).to_be_visible()
        for each in (page, second):
            each.goto("about:blank")


def test_a_paste_of_several_lines_is_asked_about_and_cannot_press_keys(place, store, page, server):
    begin(store, ["bash", "--norc", "-c", "stty -echo; echo ready; exec cat -v"])
    frame = open_terminal(page, server)
    take(page)
    expect(screen(page)).to_contain_text("ready")
    paste = """(node, text) => {
        const data = new DataTransfer(); data.setData("text/plain", text);
        node.dispatchEvent(new ClipboardEvent("paste", {clipboardData: data, bubbles: true, cancelable: true}));
    }"""
    frame.locator(".xterm-helper-textarea").evaluate(paste, "one\u001b[201~\ntwo\n")
    dialog = page.get_by_role("dialog")
    expect(dialog).to_contain_text("Paste 2 lines?")
    expect(screen(page)).not_to_contain_text("one")
    dialog.get_by_role("button", name="Paste 2 lines").click()
    expect(screen(page)).to_contain_text("two")
    assert "^[" not in screen(page).inner_text()


def test_a_read_only_session_watches_and_has_no_way_to_type(place, store, server, another, new_link):
    begin(store, ["bash", "--norc", "-c", "echo to be seen; exec cat"])
    page = another().page()
    log_in(page, new_link("viewer"))
    open_terminal(page, server)
    expect(screen(page)).to_contain_text("to be seen")
    expect(page.get_by_text("To type takes the scope units:type.")).to_be_visible()
    for name in ("Type here", "End…"):
        expect(page.get_by_role("button", name=name)).to_have_count(0)


# ── a password ───────────────────────────────────────────────────────────────────────────────────

SECRET = "correct-horse-battery"


def test_a_password_goes_to_the_terminal_and_stays_nowhere(place, store, chromium, tmp_path):
    with live_server(store, "--access-log") as server:
        asks = "read -s -p 'password: ' word; echo; echo got ${#word}; echo $word | md5sum; exec cat"
        begin(store, ["bash", "--norc", "-c", asks])
        with watching(chromium, server.told["url"]) as watched:
            page = watched.page()
            log_in(page, server.told["link"])
            sent: list[str] = []
            watched.context.on(
                "request",
                lambda request: SECRET in (request.post_data or "") + request.url and sent.append(request.url),
            )
            frame = open_terminal(page, server)
            field = page.get_by_label("It waits for a password")
            field.fill(SECRET)
            page.get_by_role("button", name="Send").click()
            expect(screen(page)).to_contain_text(f"got {len(SECRET)}")
            expect(field).to_have_count(0)
            assert [url.removeprefix(server.told["url"]) for url in sent] == [f"{UNIT}/answer"]
            assert SECRET not in page.content() + frame.locator("body").inner_html()
            assert SECRET.encode() not in whole_output(page) + drawn(page)
            assert SECRET not in page.evaluate("JSON.stringify([localStorage, sessionStorage, history.state])")
            page.goto("about:blank")
        server.process.terminate()
        _, told = server.process.communicate()
    assert "/answer" in told, "the access log has the request"
    assert SECRET not in told
    holding = subprocess.run(["grep", "-rlaF", SECRET, str(tmp_path)], capture_output=True, text=True)
    assert (holding.returncode, holding.stdout) == (1, "")


# ── hostile output ───────────────────────────────────────────────────────────────────────────────


@pytest.mark.threat("T9")
def test_nothing_that_a_program_prints_leaves_the_frame_or_is_typed_back(place, store, page, watched, server, tmp_path):
    corpus = tmp_path / "corpus"
    corpus.write_bytes("".join(CORPUS).encode("utf-8", "surrogatepass") + END.encode())
    argv = ["bash", "--norc", "-c", f"while read -r word; do cat {corpus}; echo got:$word | cat -v; done"]
    begin(store, argv)
    watched.context.grant_permissions(["clipboard-read", "clipboard-write"])
    frame = open_terminal(page, server)
    page.evaluate("navigator.clipboard.writeText('mine')")
    with Perdure(store) as app:  # printed while the person only reads
        app.runtime("work").shell("main", argv).send("first\n")
    expect(screen(page)).to_contain_text("got:first")
    assert {told["kind"] for told in heard(page)} <= {"ready", "size", "drawn"}

    before = page.evaluate("[document.title, location.href, history.length, document.body.innerHTML.length]")
    page.get_by_role("button", name=re.compile("^Take over from process ")).click()  # it holds what it has typed into
    expect(page.get_by_role("dialog")).to_contain_text("While you type it cannot")
    page.get_by_role("dialog").get_by_role("button", name="Take over").click()
    expect(page.get_by_text("You type.")).to_be_visible()
    for word in ("second", "third"):
        page.keyboard.type(f"{word}\n")
        expect(screen(page)).to_contain_text("all of it was printed")
        expect(screen(page)).to_contain_text(f"got:{word}")
    assert "".join(told["data"] for told in heard(page, "keys")) == "second\rthird\r"
    assert re.findall(rb"got:[^\r]*", whole_output(page)) == [b"got:first", b"got:second", b"got:third"]

    assert page.evaluate("navigator.clipboard.readText()") == "mine"
    assert page.evaluate("[document.title, location.href, history.length]") == before[:3]
    assert len(watched.context.pages) == 1
    assert frame.locator("a, img, canvas.sixel").count() == 0
    reach = """() => [() => document.cookie, () => localStorage.length, () => parent.document.title,
        () => top.location.href]
        .map((look) => { try { return String(look()); } catch (error) { return error.name; } })"""
    assert set(frame.locator("body").evaluate(reach)) == {"SecurityError"}
    asks = "() => fetch('/v1').then((answer) => answer.status, (error) => error.name)"
    assert frame.locator("body").evaluate(asks) == "TypeError"
    # The refused request, and its report: the policy's own answer is not for an origin that nothing else has.
    watched.foreseen += ["default-src", "connect-src", "Content Security Policy", "NotSameOrigin"]


@pytest.mark.threat("T6", "T7")
def test_no_page_of_another_origin_frames_the_dashboard_or_its_terminal(chromium: Browser, server):
    url = server.told["url"]
    context = chromium.new_context()
    try:
        page = context.new_page()
        frames = f'<iframe src="{url}/"></iframe><iframe src="{url}/terminal"></iframe>'
        page.route("http://evil.test/", lambda route: route.fulfill(body=frames, content_type="text/html"))
        page.goto("http://evil.test/")
        page.wait_for_load_state("networkidle")
        assert [frame.url for frame in page.frames[1:]] == ["chrome-error://chromewebdata/"] * 2
    finally:
        context.close()
    document, terminal = (server.ask("GET", path).headers["content-security-policy"] for path in ("/", "/terminal"))
    assert "frame-ancestors 'none'" in document and "trusted-types 'none'" in document
    assert terminal.startswith("sandbox allow-scripts; default-src 'none';") and "frame-ancestors 'self'" in terminal
    assert "connect-src" not in terminal and "'unsafe-eval'" not in terminal

// @ts-check
// The terminal, in a frame of an origin that nothing else has. The page around it sends bytes and settings through one
// port. Back come: how much is drawn, sizes, and, while the person may type, keys. The frame can reach nothing else.

"use strict";

/* global Terminal, FitAddon, SearchAddon, silence, hearPerson */

const screen_ = /** @type {HTMLElement} */ (document.getElementById("screen"));
const KEYS_THAT_LEAVE = (/** @type {KeyboardEvent} */ e) => (e.key === "Escape" && e.shiftKey) || (e.ctrlKey && !e.altKey && (e.key === "]" || e.code === "BracketRight"));

/** @param {MessagePort} port @param {any} begin */
function run(port, begin) {
  const terminal = new Terminal({
    rows: begin.rows, cols: begin.columns, fontFamily: begin.font, fontSize: begin.fontSize, lineHeight: 1.2, theme: begin.theme,
    disableStdin: true, scrollback: 10_000, minimumContrastRatio: 4.5, linkHandler: null, windowOptions: {}, cursorBlink: false,
    cursorInactiveStyle: "outline", screenReaderMode: begin.isRead, allowProposedApi: false, logLevel: "off",
  });
  const fit = new FitAddon.FitAddon(), search = new SearchAddon.SearchAddon();
  terminal.loadAddon(fit);
  terminal.loadAddon(search);
  silence(terminal);
  terminal.open(screen_);
  let mayType = false;

  hearPerson(terminal, (data) => { if (mayType) port.postMessage({ kind: "keys", data }); });
  terminal.attachCustomKeyEventHandler((/** @type {KeyboardEvent} */ event) => {
    if (!KEYS_THAT_LEAVE(event)) return mayType || event.key !== "Tab"; // while only reading, Tab goes on to the page
    if (event.type === "keydown") { event.preventDefault(); port.postMessage({ kind: "leave" }); }
    return false;
  });
  // What is pasted goes to the page first: it may ask, and it comes back as the person wants it.
  screen_.addEventListener("paste", (event) => {
    event.preventDefault();
    event.stopPropagation();
    const text = event.clipboardData?.getData("text/plain") ?? "";
    if (mayType && text) port.postMessage({ kind: "paste", text });
  }, true);

  const tellSize = () => {
    const box = terminal.element?.querySelector(".xterm-screen");
    port.postMessage({ kind: "size", rows: terminal.rows, columns: terminal.cols, width: box?.clientWidth ?? 0, height: box?.clientHeight ?? 0 });
  };
  const verbs = /** @type {Record<string, (told: any) => void>} */ ({
    settings(told) {
      document.body.style.backgroundColor = told.theme.background;
      Object.assign(terminal.options, { theme: told.theme, screenReaderMode: told.isRead, fontSize: told.fontSize });
    },
    size(told) { terminal.resize(Math.min(1000, Math.max(2, told.columns)), Math.min(500, Math.max(1, told.rows))); tellSize(); },
    fit() { fit.fit(); tellSize(); },
    typing(told) {
      mayType = told.may;
      Object.assign(terminal.options, { disableStdin: !mayType, cursorBlink: mayType });
      if (mayType) terminal.focus();
      port.postMessage({ kind: "typing", may: mayType });
    },
    focus() { terminal.focus(); },
    paste(told) { if (mayType) terminal.paste(told.text); },
    find(told) { port.postMessage({ kind: "found", is: told.text ? search[told.back ? "findPrevious" : "findNext"](told.text, { incremental: Boolean(told.more) }) : search.clearDecorations() ?? true }); },
    copy() { port.postMessage({ kind: "selection", text: terminal.getSelection() }); },
    clear() { terminal.reset(); },
  });
  port.onmessage = ({ data }) => {
    if (data instanceof Uint8Array) terminal.write(data, () => port.postMessage({ kind: "drawn", bytes: data.length }));
    else verbs[data.kind]?.(data);
  };
  verbs.settings(begin);
  port.postMessage({ kind: "ready" });
  tellSize();
}

addEventListener("message", async (event) => {
  const port = event.ports[0], begin = event.data;
  if (event.source !== parent || !port) return;
  // Cells are measured once: the face has to be there before.
  await Promise.race([document.fonts.load(`${begin.fontSize}px "JetBrains Mono"`), new Promise((done) => setTimeout(done, 2000))]).catch(() => {});
  run(port, begin);
}, { once: true });

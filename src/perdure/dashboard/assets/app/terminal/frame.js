// @ts-check
// The terminal's frame as this page has it: bytes and settings in, keys and sizes out, through one port. The frame is a
// stranger: what it says is looked at, and keys count only while the person may type and is in it.

import { html } from "../parts.js";
import { useEffect, useRef } from "preact/hooks";

/** Bytes that the frame may be behind before reading stops. */
const AHEAD = 1_000_000;
const LONGEST_PASTE = 1_000_000;
const FONT = 13;

/** @typedef {{rows: number, columns: number, width: number, height: number}} Size */
/** @typedef {{keys: (text: string) => void, paste: (text: string) => void, leave: () => void, size: (size: Size) => void, ready: (frame: Frame) => void, selection: (text: string) => void, found: (is: boolean) => void}} Heard */

export class Frame {
  /** @param {HTMLIFrameElement} node @param {Heard} heard @param {{rows: number, columns: number, isRead: boolean}} begin */
  constructor(node, heard, begin) {
    this.node = node;
    this.heard = heard;
    this.mayType = false;
    this.behind = 0;
    this.waiting = /** @type {(() => void)|null} */ (null);
    this.told = /** @type {((value: any) => void)|null} */ (null);
    const { port1, port2 } = new MessageChannel();
    this.port = port1;
    port1.onmessage = ({ data }) => this.hear(data);
    node.contentWindow?.postMessage({ ...begin, ...look() }, "*", [port2]); // its origin is opaque: it has no name
  }

  /** @param {any} told */
  hear(told) {
    if (typeof told !== "object" || told === null) return;
    const isHere = this.mayType && document.activeElement === this.node;
    if (told.kind === "drawn" && Number.isInteger(told.bytes)) this.drawn(told.bytes);
    else if (told.kind === "ready") this.heard.ready(this);
    else if (told.kind === "keys" && isHere && typeof told.data === "string") this.heard.keys(told.data);
    else if (told.kind === "paste" && isHere && typeof told.text === "string") this.heard.paste(told.text.slice(0, LONGEST_PASTE));
    else if (told.kind === "typing") this.told?.(null);
    else if (told.kind === "leave") this.heard.leave();
    else if (told.kind === "size") this.heard.size({ rows: whole(told.rows), columns: whole(told.columns), width: whole(told.width), height: whole(told.height) });
    else if (told.kind === "selection" && typeof told.text === "string") this.heard.selection(told.text);
    else if (told.kind === "found") this.heard.found(Boolean(told.is));
  }

  /** @param {number} bytes */
  drawn(bytes) {
    this.behind -= bytes;
    if (this.behind < AHEAD / 2 && this.waiting) { this.waiting(); this.waiting = null; }
  }

  /** Give it bytes to draw; when it is far behind, this takes until it has caught up. @param {Uint8Array} bytes @returns {Promise<void>} */
  async write(bytes) {
    if (!bytes.length) return;
    this.behind += bytes.length;
    this.port.postMessage(bytes);
    if (this.behind > AHEAD) await new Promise((done) => { this.waiting = () => done(undefined); });
  }

  /** @param {string} kind @param {object} [more] */
  tell(kind, more = {}) { this.port.postMessage({ kind, ...more }); }

  /** Let keys come, or no longer; this has its effect once the frame has said so. @param {boolean} may @returns {Promise<unknown>} */
  setTyping(may) {
    this.mayType = may;
    this.tell("typing", { may });
    if (may) this.node.focus();
    return new Promise((done) => { this.told = done; });
  }

  /** Put the focus into the terminal. */
  enter() { this.node.focus(); this.tell("focus"); }

  close() { this.port.close(); this.waiting?.(); }
}

/** @param {unknown} value */
const whole = (value) => (Number.isInteger(value) ? Math.max(0, Math.min(10_000, Number(value))) : 0);

const ANSI = ["black", "red", "green", "yellow", "blue", "magenta", "cyan", "white"];

/** How a terminal looks under the theme of the page: colours of css/tokens.css. */
export function look() {
  const style = getComputedStyle(document.documentElement);
  const token = (/** @type {string} */ name) => style.getPropertyValue(`--${name}`).trim();
  const theme = /** @type {Record<string, string>} */ ({ background: token("term"), foreground: token("ink"), cursor: token("ink"), cursorAccent: token("term"), selectionBackground: token("term-choice") });
  for (const name of ANSI) {
    theme[name] = token(`ansi-${name}`);
    theme[`bright${name[0].toUpperCase()}${name.slice(1)}`] = token(`ansi-${name}-2`);
  }
  return { theme, font: token("mono"), fontSize: FONT };
}

/** The frame itself. @param {{title: string, height: number, begin: {rows: number, columns: number, isRead: boolean}, heard: Heard}} props */
export function TerminalFrame({ title, height, begin, heard }) {
  const node = useRef(/** @type {HTMLIFrameElement|null} */ (null));
  const frame = useRef(/** @type {Frame|null} */ (null));
  useEffect(() => {
    const tellLook = () => frame.current?.tell("settings", { ...look(), isRead: begin.isRead });
    tellLook();
    const dark = matchMedia("(prefers-color-scheme: dark)");
    const watch = new MutationObserver(tellLook);
    dark.addEventListener("change", tellLook);
    watch.observe(document.documentElement, { attributeFilter: ["data-theme"] });
    return () => { dark.removeEventListener("change", tellLook); watch.disconnect(); };
  }, [begin.isRead]);
  useEffect(() => () => frame.current?.close(), []);
  const load = () => {
    frame.current?.close();
    if (node.current) frame.current = new Frame(node.current, heard, begin);
  };
  return html`<iframe ref=${node} class="term-frame" src="/terminal" sandbox="allow-scripts" title=${title} style=${{ height: `${height}px` }} onLoad=${load}></iframe>`;
}

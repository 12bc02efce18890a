// @ts-check
// Keys that work everywhere. Pages add their own with `onKeys`; none of them works while a field or a terminal has focus.

import { useLayoutEffect } from "preact/hooks";
import { go } from "./router.js";
import { absoluteTimes, session, singleKeys } from "./store.js";

/** @typedef {Record<string, (event: KeyboardEvent) => void|boolean>} Keys by `event.key`, with "Shift+" or "Control+" before it */

/** @type {Keys[]} the last one added is asked first */
const layers = [];

/** Keys of a page or a dialog while it is shown: from the moment it is drawn, so that two keys typed quickly both count.
 * @param {Keys} keys @param {any[]} [again] */
export function useKeys(keys, again = []) {
  useLayoutEffect(() => {
    layers.push(keys);
    return () => { layers.splice(layers.indexOf(keys), 1); };
  }, again);
}

const JUMPS = /** @type {Record<string, string>} */ ({ n: "/", t: "/tasks", i: "/inbox", o: "/operate" });
let isJumping = false;

/** @param {EventTarget|null} target */
export function isTyping(target) {
  if (!(target instanceof HTMLElement)) return false;
  return target.isContentEditable || target instanceof HTMLTextAreaElement || target instanceof HTMLSelectElement ||
    target instanceof HTMLIFrameElement || (target instanceof HTMLInputElement && !["checkbox", "radio", "button"].includes(target.type));
}

/** Move the focus to the first button or link of a place, unless Enter already means what has the focus.
 * @param {KeyboardEvent} event @param {string} selector */
export function enter(event, selector) {
  if (event.target instanceof HTMLButtonElement || event.target instanceof HTMLAnchorElement) return false;
  const found = /** @type {HTMLElement|null} */ (document.querySelector(selector));
  if (!found) return false;
  found.focus();
}

/** @param {KeyboardEvent} event */
function name(event) {
  const before = event.ctrlKey || event.metaKey ? "Control+" : event.altKey ? "Alt+" : "";
  return before + (event.shiftKey && event.key.length > 1 ? "Shift+" : "") + event.key;
}

/** @param {KeyboardEvent} event */
function press(event) {
  if (event.defaultPrevented || event.isComposing || !session.peek()) return;
  const key = name(event);
  if (typed !== null) {
    if (event.key.length === 1 && key === event.key) { event.preventDefault(); typed += event.key; }
    else if (key === "Enter") { event.preventDefault(); typed += "\n"; }
    return;
  }
  if (key === "Control+k") { event.preventDefault(); return void openSearch(); }
  const isChord = key.startsWith("Control+") || key === "Escape";
  if (!isChord && (isTyping(event.target) || !singleKeys.value || document.querySelector("dialog[open]"))) return;
  if (isJumping) {
    isJumping = false;
    if (JUMPS[key]) { event.preventDefault(); go(JUMPS[key]); return; }
  }
  for (const keys of [...layers].reverse()) {
    const found = keys[key];
    if (found && found(event) !== false) { event.preventDefault(); return; }
  }
  common(event, key);
}

/** @param {KeyboardEvent} event @param {string} key */
function common(event, key) {
  if (key === "g") { isJumping = true; setTimeout(() => { isJumping = false; }, 1500); }
  else if (key === "/") { event.preventDefault(); void openSearch(); }
  else if (key === "t") absoluteTimes.value = !absoluteTimes.value;
  else if (key === "?") { event.preventDefault(); void import("./help.js").then((help) => help.openHelp()); }
}

/** What is typed while the search is on its way; null: it is not. */
let typed = /** @type {string|null} */ (null);
const taken = () => { const text = typed ?? ""; typed = null; return text; };

/** The search is loaded when it is first used: what is typed meanwhile goes into its field. */
function openSearch() {
  typed = "";
  return import("./search.js").then((search) => search.openSearch(taken), () => { typed = null; });
}

export function startKeys() {
  document.addEventListener("keydown", press);
}

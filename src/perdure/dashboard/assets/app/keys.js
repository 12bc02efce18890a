// @ts-check
// Keys that work everywhere. Pages add their own with `onKeys`; none of them works while a field or a terminal has focus.

import { useEffect } from "preact/hooks";
import { go } from "./router.js";
import { absoluteTimes, session, singleKeys } from "./store.js";

/** @typedef {Record<string, (event: KeyboardEvent) => void|boolean>} Keys by `event.key`, with "Shift+" or "Control+" before it */

/** @type {Keys[]} the last one added is asked first */
const layers = [];

/** Keys of a page or a dialog while it is shown. @param {Keys} keys @param {any[]} [again] */
export function useKeys(keys, again = []) {
  useEffect(() => {
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

/** @param {KeyboardEvent} event */
function name(event) {
  const before = event.ctrlKey || event.metaKey ? "Control+" : event.altKey ? "Alt+" : "";
  return before + (event.shiftKey && event.key.length > 1 ? "Shift+" : "") + event.key;
}

/** @param {KeyboardEvent} event */
function press(event) {
  if (event.defaultPrevented || event.isComposing || !session.peek()) return;
  const key = name(event);
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

const openSearch = () => import("./search.js").then((search) => search.openSearch());

export function startKeys() {
  document.addEventListener("keydown", press);
}

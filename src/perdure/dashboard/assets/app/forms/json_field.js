// @ts-check
// Any JSON value as text. A text that is not JSON yet is kept too, also through a reload, and nothing is sent meanwhile.

import { useState } from "preact/hooks";
import { html } from "../parts.js";
import { formSay } from "../say/form.js";

const key = (/** @type {string} */ id) => `perdure.text.${id}`;

/** @param {string} id */
function readText(id) {
  try { return sessionStorage.getItem(key(id)); } catch { return null; }
}

/** @param {string} id @param {string|null} text */
function keepText(id, text) {
  try { if (text === null) sessionStorage.removeItem(key(id)); else sessionStorage.setItem(key(id), text); } catch { /* this browser keeps nothing */ }
}

/** What was typed into fields of this form and is not JSON yet is not needed any more. @param {string} part of their ids */
export function forgetTexts(part) {
  try { for (const name of Object.keys(sessionStorage)) if (name.startsWith("perdure.text.") && name.includes(part)) sessionStorage.removeItem(name); } catch { /* nothing was kept */ }
}

/** The first field whose text cannot be read, focused; null: all can. @param {Element|null} box */
export function firstUnread(box) {
  const found = /** @type {HTMLElement|null} */ (box?.querySelector("[data-unread]") ?? null);
  found?.focus();
  return found;
}

/** @param {{value: any, onChange: (value: any) => void, errors?: import("./form.js").Misfit[], id: string, label: string, hint?: string, rows?: number}} props */
export function JsonField({ value, onChange, errors = [], id, label, hint = "", rows = 6 }) {
  const [text, setText] = useState(() => readText(id) ?? (value === undefined ? "" : JSON.stringify(value, null, 2)));
  const [bad, setBad] = useState(() => whyNot(text));
  const type = (/** @type {any} */ event) => {
    const typed = event.currentTarget.value, why = whyNot(typed);
    setText(typed);
    setBad(why);
    keepText(id, why ? typed : null);
    if (!why) onChange(typed.trim() === "" ? undefined : JSON.parse(typed));
  };
  const told = [bad && formSay.notJson(bad), ...errors.map((each) => `${each.path.join(".")} ${each.message}`.trim())].filter(Boolean);
  return html`<div class="field"><label for=${id}>${label}${hint && html` <span class="hint">${hint}</span>`}</label><textarea id=${id} class="input mono" rows=${rows} spellcheck=${false} value=${text} onInput=${type} data-unread=${bad ? "" : undefined} aria-invalid=${told.length > 0} aria-describedby=${`${id}-misfit`}></textarea>
    <p class="misfit" id=${`${id}-misfit`}>${told.join("\n")}</p></div>`;
}

/** Why a text is not JSON; empty when it is. @param {string} text */
function whyNot(text) {
  if (text.trim() === "") return "";
  try { JSON.parse(text); return ""; } catch (error) { return error instanceof Error ? error.message : "?"; }
}

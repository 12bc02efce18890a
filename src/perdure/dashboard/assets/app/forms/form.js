// @ts-check
// A form made from a JSON Schema. `value` is what has been entered so far, as JSON; `errors` are the server's misfits,
// each shown at its field.

import { useState } from "preact/hooks";
import { html } from "../parts.js";
import { formSay } from "../say/form.js";

/** @typedef {{path: (string|number)[], message: string}} Misfit */

/** What a form begins with: defaults, and nothing where there is none. @param {any} schema @returns {any} */
export const firstValue = (schema) => schema?.default;

/** @param {{schema: any, value: any, onChange: (value: any) => void, errors?: Misfit[], id: string, label?: string}} props */
export function Form({ schema, value, onChange, errors = [], id, label = formSay.json }) {
  return html`<${JsonField} value=${value} onChange=${onChange} errors=${errors} id=${id} label=${label} />`;
}

/** Any JSON value as text. @param {{value: any, onChange: (value: any) => void, errors?: Misfit[], id: string, label: string}} props */
export function JsonField({ value, onChange, errors = [], id, label }) {
  const [text, setText] = useState(() => (value === undefined ? "" : JSON.stringify(value, null, 2)));
  const [bad, setBad] = useState("");
  const type = (/** @type {any} */ event) => {
    const typed = event.currentTarget.value;
    setText(typed);
    try { onChange(typed.trim() === "" ? undefined : JSON.parse(typed)); setBad(""); } catch (error) { setBad(error instanceof Error ? error.message : ""); }
  };
  const told = [bad, ...errors.map((each) => `${each.path.join(".")} ${each.message}`)].filter(Boolean);
  return html`<div class="field"><label for=${id}>${label}</label><textarea id=${id} class="input mono" rows="6" spellcheck=${false} value=${text} onInput=${type} aria-invalid=${told.length > 0} aria-describedby=${`${id}-misfit`}></textarea>
    <p class="misfit" id=${`${id}-misfit`}>${told.join("\n")}</p></div>`;
}

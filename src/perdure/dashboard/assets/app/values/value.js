// @ts-check
// Any JSON value, for reading. Parts that the server has cut (`$cut`) are shown as such.

import { visible } from "../format.js";
import { html } from "../parts.js";

const MOST = 20_000;

/** @param {{value: any, label?: string}} props */
export function Value({ value, label }) {
  return html`<pre class="block value" tabindex="0" aria-label=${label}>${visible((JSON.stringify(value, null, 2) ?? "").slice(0, MOST))}</pre>`;
}

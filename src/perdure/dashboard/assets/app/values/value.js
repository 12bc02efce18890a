// @ts-check
// Any JSON value, for reading: a tree when it is large enough to be folded, else a text.

import { visible } from "../format.js";
import { html } from "../parts.js";
import { valueSay } from "../say/values.js";
import { kindOf } from "./json_lines.js";
import { Tree } from "./tree.js";

const MOST = 20_000, SHORT = 80;

/** @param {{value: any, label?: string}} props */
export function Value({ value, label = valueSay.label }) {
  const kind = kindOf(value);
  const text = JSON.stringify(value, null, 2) ?? "";
  if (kind === "cut" || (text.length > SHORT && (kind === "object" || kind === "list"))) return html`<${Tree} value=${value} label=${label} isSmall />`;
  return html`<pre class="block value" tabindex="0" aria-label=${label}>${visible(text.slice(0, MOST))}</pre>`;
}

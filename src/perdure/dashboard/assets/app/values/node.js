// @ts-check
// The chosen node of a tree: its path, ways to copy it, and a long text whole.

import { useEffect, useState } from "preact/hooks";
import { get, Problem } from "../api.js";
import { visible } from "../format.js";
import { Icon } from "../icons.js";
import { Act, Copy, html } from "../parts.js";
import { valueSay } from "../say/values.js";
import { announcement } from "../store.js";
import { asPython, hasCut, spellPath } from "./json_lines.js";

const MOST_TEXT = 200_000;

/** @param {{path: import("./json_lines.js").Path, value: any, source?: string}} props */
export function NodeBar({ path, value, source }) {
  const whole = async () => (hasCut(value) && source ? (await get(source + encodeURIComponent(JSON.stringify(path)))).value : value);
  const isReadable = Boolean(source) || !hasCut(value);
  return html`<div class="node-bar"><span class="code"><code>${path.length ? visible(spellPath(path)) : valueSay.root}</code>${path.length > 0 && html`<${Copy} text=${spellPath(path)} label=${valueSay.copyPath} />`}</span>
    ${isReadable && html`<span class="acts"><${CopyValue} make=${async () => { const found = await whole(); return typeof found === "string" ? found : JSON.stringify(found, null, 2); }}>${valueSay.copyValue}<//>
      <${CopyValue} make=${async () => asPython(await whole())}>${valueSay.copyPython}<//></span>`}</div>`;
}

/** @param {{make: () => Promise<string>, children?: any}} props */
function CopyValue({ make, children }) {
  const [done, setDone] = useState(false);
  useEffect(() => { if (done) { const timer = setTimeout(() => setDone(false), 1500); return () => clearTimeout(timer); } }, [done]);
  const copy = async () => {
    try { await navigator.clipboard.writeText(await make()); setDone(true); announcement.value = valueSay.copied; }
    catch (error) { if (error instanceof Problem) throw error; /* else the browser refuses */ }
  };
  return html`<${Act} small do=${copy}>${done ? valueSay.copied : children}<//>`;
}

/** @param {{text: string, path: any, onClose: () => void}} props */
export function TextView({ text, path, onClose }) {
  const [isWrapped, setWrapped] = useState(true);
  const name = spellPath(path ?? []) || valueSay.root;
  return html`<section class="text-view" aria-label=${name}><header><code>${visible(name)}</code><span class="meta">${valueSay.characters(text.length)}</span>
      <span class="end acts"><label class="check"><input type="checkbox" checked=${isWrapped} onChange=${() => setWrapped(!isWrapped)} />${valueSay.wrap}</label>
      <button type="button" class="icon-btn" aria-label=${valueSay.closeText} onClick=${onClose}><${Icon} name="close" /></button></span></header>
    <pre class=${`block ${isWrapped ? "wrapped" : ""}`} tabindex="0">${visible(text.slice(0, MOST_TEXT))}</pre>
    ${text.length > MOST_TEXT && html`<p class="meta">${valueSay.textCut(MOST_TEXT, text.length)}</p>`}</section>`;
}

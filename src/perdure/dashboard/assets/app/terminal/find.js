// @ts-check
// Finding a text in what the terminal shows.

import { useEffect, useRef } from "preact/hooks";
import { Icon } from "../icons.js";
import { Button, html } from "../parts.js";
import { dialogSay } from "../say/common.js";
import { terminalSay as say } from "../say/units.js";

/** @param {{frame: {current: import("./frame.js").Frame|null}, none: boolean, onClose: () => void}} props */
export function Find({ frame, none, onClose }) {
  const field = useRef(/** @type {HTMLInputElement|null} */ (null));
  useEffect(() => { field.current?.focus(); return () => frame.current?.tell("find", { text: "" }); }, []);
  const find = (/** @type {object} */ how) => frame.current?.tell("find", { text: field.current?.value ?? "", ...how });
  const press = (/** @type {KeyboardEvent} */ event) => {
    if (event.key === "Enter") { event.preventDefault(); find({ back: event.shiftKey }); }
    if (event.key === "Escape") { event.preventDefault(); event.stopPropagation(); onClose(); }
  };
  return html`<span class="term-find" role="search"><input class="input" ref=${field} type="search" aria-label=${say.find} placeholder=${say.find} aria-invalid=${none} onInput=${() => find({ more: true })} onKeyDown=${press} />
    ${none && html`<span class="misfit" role="status">${say.findNone}</span>`}<${Button} small onClick=${() => find({})}>${say.findNext}<//><button type="button" class="icon-btn" aria-label=${dialogSay.close} onClick=${onClose}><${Icon} name="close" /></button></span>`;
}

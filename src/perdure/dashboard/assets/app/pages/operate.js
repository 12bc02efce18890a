// @ts-check
// What an operator looks after: a list of parts, and the chosen one beside it.

import { useEffect, useRef, useState } from "preact/hooks";
import { useKeys } from "../keys.js";
import { PARTS } from "../operate/parts.js";
import { Empty, html, Skeleton } from "../parts.js";
import { go } from "../router.js";
import { operateSay } from "../say/operate.js";
import { may, subject } from "../store.js";

/** @param {{place: import("../router.js").Place}} props */
export default function Operate({ place }) {
  const shown = PARTS.filter((part) => may(part.scope));
  const chosen = shown.find((part) => part.name === place.parts[0]) ?? (place.parts[0] ? undefined : shown[0]);
  const [loaded, setLoaded] = useState(/** @type {Record<string, any>} */ ({}));
  const name = chosen?.name ?? "";
  useEffect(() => {
    if (chosen && !loaded[name]) chosen.load().then((module) => setLoaded((all) => ({ ...all, [name]: module.default })));
    subject.value = chosen ? operateSay.subject(operateSay.parts[name]) : null;
  }, [name]);
  const parts = useRef(/** @type {HTMLElement|null} */ (null));
  useEffect(() => { parts.current?.querySelector("[aria-current]")?.scrollIntoView({ block: "nearest", inline: "center" }); }, [name]);
  const step = (/** @type {number} */ by) => {
    const at = shown.findIndex((part) => part.name === name);
    const next = shown[Math.max(0, Math.min(shown.length - 1, at + by))];
    if (next) go(`/operate/${next.name}`);
  };
  useKeys({ "[": () => step(-1), "]": () => step(1), j: () => step(1), k: () => step(-1) }, [name, shown.length]);
  const Part = loaded[name];
  return html`<div class="operate">
    <h1 class="visually-hidden">${operateSay.title}</h1>
    <nav ref=${parts} class="panel op-parts" aria-label=${operateSay.partsLabel}>${shown.map((part) => html`<a key=${part.name} href=${`/operate/${part.name}`} aria-current=${part === chosen ? "page" : undefined}>${operateSay.parts[part.name]}</a>`)}</nav>
    <div class="op-part">${!chosen ? html`<section class="panel"><${Empty} title=${operateSay.noPart}><p>${operateSay.noPartWhy}</p><//></section>`
      : Part ? html`<${Part} key=${name} thing=${place.parts[1]} />` : html`<section class="panel"><${Skeleton} rows=${5} /></section>`}</div>
  </div>`;
}

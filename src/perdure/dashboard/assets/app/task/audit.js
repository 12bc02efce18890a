// @ts-check
// Every event of a task with who did it, and whether the chain of events is as it was written.

import { useEffect, useState } from "preact/hooks";
import { get } from "../api.js";
import { Button, Code, Empty, html, Moment, Said, Skeleton, Trouble, useRead } from "../parts.js";
import { historySay } from "../say/history.js";
import { auditSay as say } from "../say/ledger.js";
import { eventsAfter, PAGE } from "./events.js";
import { Value } from "../values/value.js";

/** @param {{task: import("./tabs.js").TaskRef, turn: number, onCount: (n: number) => void}} props */
export default function Audit({ task, turn, onCount }) {
  const [back, setBack] = useState(PAGE);
  const { value: chain, problem: broken } = useRead((signal) => get(`${task.path}/audit`, signal), [task.uid, turn]);
  const after = Math.max(0, (chain?.events ?? 0) - back);
  const { value, problem } = useRead((signal) => (chain ? eventsAfter(task.path, after, signal) : Promise.resolve(null)), [task.uid, chain?.head, after]);
  useEffect(() => { if (chain) onCount(chain.events); }, [chain]);
  const trouble = (!chain && broken) || (!value && problem);
  if (trouble) return html`<div class="body"><${Trouble} problem=${trouble} /></div>`;
  if (!chain) return html`<p class="body meta" role="status">${say.checking}</p>`;
  return html`<div class=${`chain ${chain.is_whole ? "ok" : "bad"}`} role="status"><strong>${chain.is_whole ? say.whole(chain.events) : say.broken(chain.broken_at)}</strong>
      ${chain.problem && html`<span><${Said} lines>${chain.problem}<//></span>`}${chain.head && html`<span class="chain-head">${say.head} <${Code} copy=${chain.head}>${`${chain.head.slice(0, 16)}…`}<//></span>`}</div>
    ${!value ? html`<${Skeleton} rows=${5} />` : !value.length ? html`<${Empty} title=${say.none} />` : html`<ul class="cards" aria-label=${say.label}>${[...value].reverse().map((event) => html`<${Event} key=${event.number} event=${event} isBroken=${event.number === chain.broken_at} />`)}</ul>`}
    ${after > 0 && html`<p class="body"><${Button} small onClick=${() => setBack(back + PAGE)}>${say.older}<//></p>`}`;
}

/** @param {{event: any, isBroken: boolean}} props */
function Event({ event, isBroken }) {
  const [isOpen, setOpen] = useState(false);
  const hasData = event.data && typeof event.data === "object" && Object.keys(event.data).length > 0;
  return html`<li class=${isBroken ? "bad" : ""}><div class="row-top"><span class="num">${event.number}</span><strong><${Said}>${event.kind}<//></strong><span class="meta"><${Said}>${historySay.author(event.author)}<//></span>
      ${hasData && html`<button type="button" class="quiet event-data" aria-expanded=${isOpen} onClick=${() => setOpen(!isOpen)}><code><${Said} most=${90}>${JSON.stringify(event.data).slice(0, 400)}<//></code></button>`}<span class="end"><${Moment} at=${event.at} /></span></div>
    ${isOpen && html`<${Value} value=${event.data} label=${event.kind} />`}</li>`;
}

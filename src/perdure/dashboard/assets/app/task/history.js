// @ts-check
// What happened to a task, newest first, in words: every event with who did it.

import { useState } from "preact/hooks";
import { get } from "../api.js";
import { Button, Empty, html, Moment, Said, Skeleton, Trouble, useRead } from "../parts.js";
import { eventsAfter, PAGE } from "./events.js";
import { historySay } from "../say/history.js";

/** @param {{task: import("./tabs.js").TaskRef, turn: number}} props */
export default function History({ task, turn }) {
  const [back, setBack] = useState(PAGE);
  const { value: chain, problem: unread } = useRead((signal) => get(`${task.path}/audit`, signal), [task.uid]); // it says how many there are
  const after = Math.max(0, (chain?.events ?? 0) - back);
  const { value, problem: failed } = useRead((signal) => (chain ? eventsAfter(task.path, after, signal) : Promise.resolve(undefined)), [task.uid, turn, after, chain]);
  const problem = unread ?? failed;
  if (problem && !value) return html`<div class="body"><${Trouble} problem=${problem} /></div>`;
  if (!value) return html`<${Skeleton} rows=${5} />`;
  if (!value.length) return html`<${Empty} title=${historySay.none} />`;
  return html`<ol class="events" aria-label=${historySay.label}>${[...value].reverse().map((event) => html`<li key=${event.number}><span class="num">${event.number}</span><${Moment} at=${event.at} /><strong title=${event.kind}><${Said} most=${300}>${historySay.what(event)}<//></strong><span class="meta"><${Said}>${historySay.author(event.author)}<//></span></li>`)}</ol>
    ${after > 0 && html`<p class="body"><${Button} small onClick=${() => setBack(back + PAGE)}>${historySay.earlier}<//></p>`}`;
}

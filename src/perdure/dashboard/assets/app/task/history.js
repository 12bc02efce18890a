// @ts-check
// What happened to a task, newest first: every event with who did it.

import { get } from "../api.js";
import { Empty, html, Moment, Said, Skeleton, Trouble, useRead } from "../parts.js";
import { historySay } from "../say/history.js";

/** @param {{task: import("./tabs.js").TaskRef, turn: number}} props */
export default function History({ task, turn }) {
  const { value, problem } = useRead((signal) => get(`${task.path}/events?limit=200`, signal), [task.uid, turn]);
  if (problem && !value) return html`<div class="body"><${Trouble} problem=${problem} /></div>`;
  if (!value) return html`<${Skeleton} rows=${5} />`;
  if (!value.items.length) return html`<${Empty} title=${historySay.none} />`;
  return html`<ol class="events">${[...value.items].reverse().map((/** @type {any} */ event) => html`<li key=${event.number}><span class="num">${event.number}</span><${Moment} at=${event.at} /><strong><${Said}>${event.kind}<//></strong><span class="meta"><${Said}>${historySay.author(event.author)}<//></span></li>`)}</ol>`;
}

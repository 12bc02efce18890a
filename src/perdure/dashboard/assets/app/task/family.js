// @ts-check
// The relatives of a task: who started it, what it has started, what it depends on.

import { useEffect } from "preact/hooks";
import { get, refOf } from "../api.js";
import { Chip, Empty, html, Moment, Panel, Said, Skeleton, Trouble, useRead } from "../parts.js";
import { familySay as say } from "../say/ledger.js";

const KINDS = /** @type {Record<string, string>} */ ({ pending: "queued", running: "working", paused: "waiting", completed: "completed", failed: "failed", cancelled: "cancelled" });

/** @param {{task: import("./tabs.js").TaskRef, turn: number, onCount: (n: number) => void}} props */
export default function Family({ task, turn, onCount }) {
  const { value, problem } = useRead((signal) => get(`${task.path}/family?limit=200`, signal), [task.uid, turn]);
  const { value: source } = useRead(async (signal) => (await get(`${task.path}/events?limit=1`, signal)).items[0]?.data ?? null, [task.uid]);
  const from = source?.forked_from ? [{ id: source.forked_from, uid: source.uid, status: "", isThere: true }] : [];
  const total = value ? value.parents.length + value.children_total + value.dependencies.length : 0;
  useEffect(() => { if (value) onCount(total); }, [value]);
  if (problem && !value) return html`<div class="body"><${Trouble} problem=${problem} /></div>`;
  if (!value) return html`<${Skeleton} rows=${4} />`;
  if (!total && !from.length) return html`<${Empty} title=${say.none}><p>${say.noneText}</p><//>`;
  const rest = value.children_total - value.children.length;
  return html`<div class="family">${from.length > 0 && html`<${Group} title=${say.source} tasks=${from} />`}${value.parents.length > 0 && html`<${Group} title=${say.parents} tasks=${value.parents} />`}
    ${value.dependencies.length > 0 && html`<${Group} title=${say.dependencies} tasks=${value.dependencies} />`}
    ${value.children_total > 0 && html`<${Group} title=${say.children} more=${say.total(value.children_total, value.children_open)} tasks=${value.children} />`}
    ${rest > 0 && html`<p class="body meta">${say.more(rest)}</p>`}</div>`;
}

/** @param {{title: string, more?: string, tasks: any[]}} props */
function Group({ title, more, tasks }) {
  return html`<${Panel} title=${title} more=${more} class="bare"><ul class="cards">${tasks.map((each) => html`<li key=${each.uid ?? each.id}><div class="row-top">
    ${each.isThere ? html`<a class="id" href=${`/tasks/~${each.uid}`}><${Said} most=${200}>${each.id}<//></a>` : each.status ? html`<${Chip} kind=${KINDS[each.status]} word=${say.statuses[each.status]} /><a class="id" href=${`/tasks/${refOf(each)}`}><${Said} most=${200}>${each.id}<//></a>` : html`<span class="chip off">${say.absent}</span><span class="id"><${Said} most=${200}>${each.id}<//></span>`}
    ${each.name && each.name !== each.id && html`<span class="meta"><${Said}>${each.name}<//></span>`}
    ${!each.isThere && html`<span class="end">${each.finished_at ? html`<${Moment} at=${each.finished_at} before=${say.ended} />` : html`<${Moment} at=${each.created_at} before=${say.began} />`}</span>`}</div></li>`)}</ul><//>`;
}

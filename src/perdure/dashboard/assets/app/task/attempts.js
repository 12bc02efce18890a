// @ts-check
// The attempts at a task: where, by whom, how each ended, and the time between them.

import { length, time } from "../format.js";
import { Empty, html, Moment, Said } from "../parts.js";
import { attemptSay as say } from "../say/ledger.js";

const WORTH_TELLING = 1000; // milliseconds between two attempts

/** @param {{record: any}} props */
export default function Attempts({ record }) {
  const all = /** @type {any[]} */ (record.attempts ?? []);
  if (!all.length) return html`<${Empty} title=${say.none}><p>${say.noneText}</p><//>`;
  return html`<ul class="cards attempts" aria-label=${say.label}>${[...all].reverse().map((each, i) => {
    const before = all[all.length - 2 - i];
    const gap = before?.ended_at ? time(each.started_at) - time(before.ended_at) : 0;
    return html`<li key=${each.number}><div class="row-top"><span class="num">${each.number}</span><strong><${Said} most=${300}>${each.ended_at ? each.ended : say.working}<//></strong>
        <span class="end"><${Moment} at=${each.started_at} />${each.ended_at && html` · ${length(time(each.ended_at) - time(each.started_at))}`}</span></div>
      <p class="meta"><${Said}>${[each.agent, each.user, each.host, each.pid && say.pid(each.pid), say.epoch(each.epoch)].filter(Boolean).join(" · ")}<//></p>
      ${gap > WORTH_TELLING && html`<p class="gap meta">${say.gap(length(gap))}</p>`}</li>`;
  })}</ul>`;
}

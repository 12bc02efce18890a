// @ts-check
// The queues: what is worked on, what waits, and what limits them.

import { html, Moment, Said } from "../parts.js";
import { operateSay } from "../say/operate.js";
import { Facts, PartPanel, Row, useTold } from "./rows.js";

const say = operateSay.queues;

export default function Queues() {
  const told = useTold("/v1/queues");
  const all = /** @type {any[]} */ (told.value?.items ?? []);
  return html`<${PartPanel} name="queues" told=${told} isEmpty=${!all.length} empty=${html`<p>${say.none}</p>`}><ul class="op-rows">${all.map((one) => html`<${Queue} key=${one.name} one=${one} />`)}</ul><//>`;
}

/** @param {any} one @returns {[string, string]} */
function chipOf(one) {
  if (one.waiting > 0 && !one.workers) return ["stalled", say.noWorker];
  if (one.waiting > 0) return ["queued", say.waits];
  return one.in_use > 0 ? ["working", say.works] : ["idle", say.idle];
}

/** @param {{one: any}} props */
function Queue({ one }) {
  const facts = [say.workers(one.workers), say.inUse(one.in_use, one.concurrency), say.waiting(one.waiting, one.approximate), one.oldest && html`<${Moment} at=${one.oldest} before=${say.oldest} />`, one.per_key && say.perKey(one.per_key), one.rate && html`<${Said}>${say.rate(one.rate)}<//>`];
  return html`<${Row} chip=${chipOf(one)} name=${html`<a href=${`/tasks?queue=${encodeURIComponent(one.name)}`}><${Said}>${one.name}<//></a>`} sentence=${html`<${Facts} facts=${facts} />`} />`;
}

// @ts-check
// The handlers that workers call when something happens to a task.

import { html, Said } from "../parts.js";
import { operateSay } from "../say/operate.js";
import { PartPanel, Row, useTold } from "./rows.js";

const say = operateSay.handlers;

export default function Handlers() {
  const told = useTold("/v1/handlers");
  const all = /** @type {any[]} */ (told.value?.items ?? []);
  return html`<${PartPanel} name="handlers" told=${told} isEmpty=${!all.length} empty=${html`<p>${say.none}</p>`}>
    <ul class="op-rows">${all.map((one) => html`<${Row} key=${one.name} chip=${one.is_in_trouble ? ["stalled", say.failing] : ["completed", say.ok]} name=${html`<${Said}>${one.name}<//>`} sentence=${html`<${Said}>${say.told(one)}<//>`}>${one.trouble && html`<p class="detail"><${Said} lines>${one.trouble}<//></p>`}<//>`)}</ul><//>`;
}

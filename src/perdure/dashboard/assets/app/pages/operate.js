// @ts-check
// Workers, schedules, webhooks, keys, the store: what an operator looks after.

import { Empty, html } from "../parts.js";
import { partsSay } from "../say/common.js";

export default function Page() {
  return html`<${Empty}><p>${partsSay.absent}</p><//>`;
}

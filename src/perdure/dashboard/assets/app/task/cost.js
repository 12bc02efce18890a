// @ts-check
// What a task has cost, and what it did not have to pay again.

import { get } from "../api.js";
import { length, money, number } from "../format.js";
import { Empty, html, Said, Skeleton, Trouble, useRead } from "../parts.js";
import { costSay as say } from "../say/ledger.js";

/** @param {{task: import("./tabs.js").TaskRef, record: any, turn: number}} props */
export default function Cost({ task, record, turn }) {
  const { value, problem } = useRead((signal) => get(`${task.path}/account`, signal), [task.uid, turn]);
  if (problem && !value) return html`<div class="body"><${Trouble} problem=${problem} /></div>`;
  if (!value) return html`<${Skeleton} rows=${4} />`;
  const { spent, saved, by_function: rows } = value;
  const figures = [[say.tokens, number(spent.tokens)], [say.money, money(spent.money)], [say.time, length(spent.time * 1000)]];
  const parts = [saved.steps > 0 && say.steps(saved.steps), saved.effects > 0 && say.effects(saved.effects), saved.calls > 0 && say.calls(saved.calls), saved.tokens > 0 && say.tokensOf(saved.tokens), saved.money > 0 && money(saved.money), saved.time > 0 && say.timeOf(length(saved.time * 1000))].filter(Boolean);
  return html`<div class="body cost"><dl class="figures">${figures.map(([name, text]) => html`<div key=${name}><dt>${name}</dt><dd>${text}</dd></div>`)}</dl>
    <section class="saved"><h3>${record.is_finished ? say.saved : say.willSave}</h3><p>${parts.length ? parts.join(", ") : record.is_finished ? say.nothingSaved : say.nothingToSave}</p></section>
    ${rows.length ? html`<div class="scroll"><table class="ledger" aria-label=${say.by}><thead><tr>${Object.entries(say.columns).map(([name, text]) => html`<th key=${name} scope="col" class=${`cost-${name}`}>${text}</th>`)}</tr></thead>
      <tbody>${rows.map((/** @type {any} */ row) => html`<tr key=${`${row.function} ${row.model}`}><td><code><${Said}>${row.function}<//></code></td><td><${Said}>${row.model}<//></td><td class="cost-calls">${number(row.calls)}</td><td class="cost-input">${number(row.input_tokens)}</td><td class="cost-output">${number(row.output_tokens)}</td><td class="cost-money">${money(row.money)}</td></tr>`)}</tbody></table></div>`
      : html`<p class="meta">${say.none}. ${say.noneText}</p>`}</div>`;
}

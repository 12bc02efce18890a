// @ts-check
// The live things of a task: how each came back, what runs in it, whether it waits for a person, and who types. One of
// them by name is shown with its terminal (terminal/terminal.js).

import { useEffect, useMemo, useState } from "preact/hooks";
import { ask, get, segment } from "../api.js";
import { Empty, html, lazy, Skeleton, Trouble, useRead } from "../parts.js";
import { unitsSay as say } from "../say/units.js";
import { follow, reread } from "../stream.js";
import { Restore } from "./restore.js";
import { UnitCard } from "./unit_card.js";


const Terminal = lazy(() => import("../terminal/terminal.js").then((module) => module.Terminal));

/** @param {{task: import("./tabs.js").TaskRef, turn: number, thing?: string, onCount?: (n: number) => void}} props */
export default function Units({ task, turn, thing, onCount }) {
  const { units, problem, report, reload } = useUnits(task, turn);
  useEffect(() => { if (units) onCount?.(new Set(units.map((unit) => unit.name)).size); }, [units?.length]);
  if (problem && !units) return html`<div class="body"><${Trouble} problem=${problem} /></div>`;
  if (!units) return html`<${Skeleton} rows=${3} />`;
  const levels = levelsOf(report);
  const own = `/tasks/${task.ref.startsWith("~") ? task.ref : segment(task.ref)}/units`;
  if (thing !== undefined) {
    const named = units.filter((unit) => unit.name === thing);
    const unit = named.findLast((each) => each.alive) ?? named.at(-1);
    if (unit) return html`<div class="units"><${Terminal} key=${thing} unit=${unit} level=${levels(unit)} task=${task} own=${own} onDone=${reload} /></div>`;
  }
  const cards = (/** @type {any[]} */ all) => html`<ul class="unit-list">${all.map((unit) => html`<${UnitCard} key=${unit.uid} unit=${unit} level=${levels(unit)} task=${task} own=${own} onDone=${reload} />`)}</ul>`;
  const [newest, earlier] = inOrder(units);
  return html`<div class="units">
    ${units.length ? cards(newest) : html`<${Empty}><p>${say.none}</p><//>`}
    ${earlier.length > 0 && html`<details class="term-more"><summary>${say.earlier(earlier.length)}</summary>${cards(earlier)}</details>`}
    <${Restore} task=${task} report=${report} /></div>`;
}

/** The units of a task, kept true by the stream, and how its last restore went.
 * @param {import("./tabs.js").TaskRef} task @param {number} turn */
function useUnits(task, turn) {
  const { value, problem, reload } = useRead(async (signal) => {
    const [list, report] = await Promise.all([
      get(`${task.path}/units?limit=200`, signal),
      ask("GET", `${task.path}/report`, { signal }).then((answer) => (answer.status === 204 ? null : answer.json())),
    ]);
    return { items: /** @type {any[]} */ (list.items), report };
  }, [task.uid, turn, reread.value]);
  const [news, setNews] = useState(/** @type {Record<string, any>} */ ({}));
  useEffect(() => follow([`units:~${task.uid}`], (event, data) => {
    if (event === "unit" && data.task === task.uid) setNews((all) => ({ ...all, [data.unit.uid]: data.unit }));
  }), [task.uid]);
  useEffect(() => setNews({}), [value]);
  const units = useMemo(() => {
    if (!value) return undefined;
    const all = value.items.map((unit) => news[unit.uid] ?? unit);
    const known = new Set(all.map((unit) => unit.uid));
    return [...all, ...Object.values(news).filter((unit) => !known.has(unit.uid))];
  }, [value, news]);
  return { units, problem, report: value?.report ?? null, reload };
}

/** Those that live first, and apart the ended ones whose name a later one has. @param {any[]} units @returns {[any[], any[]]} */
function inOrder(units) {
  const last = new Map(units.map((unit) => [unit.name, unit]));
  const shown = units.filter((unit) => unit.alive || last.get(unit.name) === unit);
  return [[...shown.filter((unit) => unit.alive), ...shown.filter((unit) => !unit.alive).reverse()], units.filter((unit) => !shown.includes(unit)).reverse()];
}

/** How a unit came to be as it is: what the last restore told of it while it lives, else what its keeper tells. @param {any} report */
const levelsOf = (report) => (/** @type {any} */ unit) => {
  const line = report?.plan?.units?.find((/** @type {any} */ each) => each.kind === "kept" && each.name === `${unit.kind} ${unit.name}`);
  const isOf = unit.alive && line && line.verdict.level !== "kept" && Date.parse(unit.made_at) <= report.at_ms;
  return isOf ? line.verdict : unit.verdict ?? { level: unit.level };
};

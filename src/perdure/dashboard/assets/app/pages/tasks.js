// @ts-check
// All tasks: filters that live in the address, a list of any length that holds still, and acts on many.

import { useEffect, useState } from "preact/hooks";
import { get, query } from "../api.js";
import { number } from "../format.js";
import { Icon } from "../icons.js";
import { useKeys } from "../keys.js";
import { Act, Button, Empty, html, Skeleton, Trouble, useRead } from "../parts.js";
import { go, place, setQuery } from "../router.js";
import { tasksSay } from "../say/tasks.js";
import { counts, may } from "../store.js";
import { reread } from "../stream.js";
import { ColumnChoice, FilterFields } from "../tasks/filters.js";
import { TaskGrid } from "../tasks/grid.js";
import { usePager } from "../tasks/pager.js";

/** What each chip filters by, and what it counts. @type {{name: keyof typeof tasksSay.groups, situation: string[], count: (told: any) => number|undefined}[]} */
const GROUPS = [
  { name: "all", situation: [], count: () => undefined },
  { name: "you", situation: ["you"], count: (told) => told.situation?.you },
  { name: "stuck", situation: ["stuck"], count: (told) => told.situation?.stuck },
  { name: "working", situation: ["working", "starting", "stalled"], count: (told) => sum(told.situation, ["working", "starting", "stalled"]) },
  { name: "waits", situation: ["waiting", "blocked"], count: (told) => sum(told.situation, ["waiting", "blocked"]) },
  { name: "failed", situation: ["failed"], count: (told) => told.status?.failed },
  { name: "done", situation: ["completed", "cancelled"], count: () => undefined },
];
const FILTERS = ["situation", "status", "reason", "function", "version", "queue", "agent", "text", "parent", "schedule", "since", "until", "changed_since", "archived", "hidden"];

/** @param {Record<string, number>|undefined} all @param {string[]} kinds */
const sum = (all, kinds) => (all ? kinds.reduce((total, kind) => total + (all[kind] ?? 0), 0) : undefined);

/** The filter that an address holds. @param {URLSearchParams} params */
export function filterOf(params) {
  const found = /** @type {Record<string, string[]>} */ ({});
  for (const [name, value] of params) if (value && (FILTERS.includes(name) || name.startsWith("tag."))) (found[name] ??= []).push(value);
  return found;
}

/** How many tasks have one of these situations; null when other filters narrow them. @param {Record<string, string[]>} filter */
function countedBySituation(filter) {
  const told = counts.value;
  if (!told?.situation || Object.keys(filter).length > 1) return null;
  return filter.situation.reduce((total, kind) => total + (told.situation[kind] ?? told.status[kind] ?? 0), 0);
}

export default function Tasks() {
  const params = place.value.query;
  const filter = filterOf(params);
  const sort = params.get("sort") ?? "newest";
  const isFiltered = Object.keys(filter).length > 0;
  const [isHeld, setHeld] = useState(false);
  const [picked, setPicked] = useState(/** @type {Set<string>} */ (new Set()));
  const [isAll, setAll] = useState(false); // all that match, also those that are not loaded
  const key = query({ ...filter, sort });
  const rows = usePager({ ...filter, sort }, isHeld);
  const isCounted = !filter.situation;
  const matching = useRead((signal) => (isCounted ? get(`/v1/counts${query(filter)}`, signal) : Promise.resolve(null)), [query(filter), reread.value, rows.uids.length > 0]);
  const total = rows.isWhole ? rows.uids.length : isCounted ? matching.value?.total ?? null : countedBySituation(filter);
  useEffect(() => setPicked(new Set()), [key]);
  const group = GROUPS.find((each) => each.situation.join() === (filter.situation ?? []).join()) ?? null;
  const clear = () => go("/tasks");
  const choose = (/** @type {typeof GROUPS[0]} */ each) => setQuery({ situation: each.situation.length ? each.situation : null, status: null }, { push: true });
  useKeys({
    ".": () => rows.apply(), a: () => { setPicked(new Set(rows.uids)); setAll(isFiltered); }, Escape: () => { if (!picked.size) return false; setPicked(new Set()); },
    f: () => { document.getElementById("task-text")?.focus(); },
    ...Object.fromEntries(GROUPS.map((each, i) => [String(i + 1), () => choose(each)])),
  }, [rows.uids, picked, key]);
  const pick = (/** @type {string[]} */ uids, /** @type {boolean} */ on) => { setAll(false); return setPicked((before) => { const next = new Set(before); for (const uid of uids) { if (on) next.add(uid); else next.delete(uid); } return next; }); };

  return html`<section class="panel tasks" aria-labelledby="tasks-head">
    <header><h1 id="tasks-head">${tasksSay.title}</h1><div class="more"><span>${tasksSay.count(rows.uids.length, total, Boolean(matching.value?.approximate))}</span>
      <${Act} small title=${tasksSay.exported} do=${() => import("../tasks/export.js").then((file) => file.saveTasks({ ...filter, sort }))}><${Icon} name="save" size=${14} label=${tasksSay.exported} /><//><${ColumnChoice} /></div></header>
    <div class="toolbar">
      <div class="seg" role="group" aria-label=${tasksSay.groupsLabel}>${GROUPS.map((each) => html`<${Group} key=${each.name} group=${each} isOn=${group === each} onClick=${() => choose(each)} />`)}</div>
      <${FilterFields} params=${params} />
      ${isFiltered && html`<button type="button" class="quiet" onClick=${clear}>${tasksSay.clear}</button>`}
    </div>
    ${rows.problem && html`<${Trouble} problem=${rows.problem} />`}
    ${!rows.uids.length && rows.isLoading ? html`<${Skeleton} rows=${12} />`
      : !rows.uids.length ? !rows.problem && html`<${NothingHere} isFiltered=${isFiltered} filter=${filter} onClear=${clear} />`
      : html`<${TaskGrid} uids=${rows.uids} total=${total} picked=${picked} onPick=${pick} onEnd=${rows.more} onHold=${setHeld}
          footer=${html`<p class="grid-foot meta">${rows.isWhole ? tasksSay.end(rows.uids.length) : tasksSay.loadingMore}</p>`} />`}
    ${rows.waiting > 0 && isHeld && html`<button type="button" class="pill floating" onClick=${rows.apply}>${tasksSay.changes(rows.waiting)} <kbd>.</kbd></button>`}
    ${picked.size > 0 && may("tasks:control") && html`<${PickBar} picked=${picked} total=${total} filter=${filter} isAll=${isAll} onAll=${() => setAll(true)} onClear=${() => setPicked(new Set())} />`}
  </section>`;
}

/** @param {{group: typeof GROUPS[0], isOn: boolean, onClick: () => void}} props */
function Group({ group, isOn, onClick }) {
  const n = counts.value ? group.count(counts.value) : undefined;
  return html`<button type="button" aria-pressed=${isOn} onClick=${onClick}>${tasksSay.groups[group.name]}${n ? html` <b>${number(n)}</b>` : ""}</button>`;
}

/** @param {{isFiltered: boolean, filter: Record<string, string[]>, onClear: () => void}} props */
function NothingHere({ isFiltered, filter, onClear }) {
  if (!isFiltered) return html`<${Empty} title=${tasksSay.none} icon="tasks" />`;
  const words = tasksSay.inWords(Object.entries(filter).map(([name, values]) => [name, values.join(" or ")]));
  return html`<${Empty} title=${tasksSay.noneTitle} icon="filter"><p>${words}</p><${Button} onClick=${onClear}>${tasksSay.clearAll}<//><//>`;
}

/** @param {{picked: Set<string>, total: number|null, filter: Record<string, string[]>, isAll: boolean, onAll: () => void, onClear: () => void}} props */
function PickBar({ picked, total, filter, isAll, onAll, onClear }) {
  const open = (/** @type {string} */ verb) => import("../tasks/bulk.js").then((bulk) => bulk.openBulk(verb, isAll ? { filter } : { uids: [...picked] }, onClear));
  return html`<div class="pickbar" role="region" aria-label=${tasksSay.pick}><strong>${tasksSay.picked(isAll && total ? total : picked.size)}</strong>
    ${!isAll && total !== null && total > picked.size && html`<button type="button" class="quiet" onClick=${onAll}>${tasksSay.allMatching(number(total))}</button>`}
    <span class="acts">${Object.entries(tasksSay.verbs).map(([verb, label]) => html`<${Button} key=${verb} small danger=${verb === "cancel" || verb === "delete"} onClick=${() => open(verb)}>${label}<//>`)}</span>
    <button type="button" class="icon-btn" aria-label=${tasksSay.unpick} title=${tasksSay.unpick} onClick=${onClear}><${Icon} name="close" /></button></div>`;
}

// @ts-check
// One task: what it is doing, why it is not running, and, tab by tab, what it has done.

import { useEffect, useState } from "preact/hooks";
import { get, segment } from "../api.js";
import { number } from "../format.js";
import { Empty, html, Skeleton, Trouble, useRead } from "../parts.js";
import { go, place as address } from "../router.js";
import { taskSay } from "../say/task.js";
import { keep, may, subject } from "../store.js";
import { follow, reread } from "../stream.js";
import { useKeys } from "../keys.js";
import { situationSay } from "../say/common.js";
import { standingOf } from "../tasks_parts.js";
import { Head } from "../task/head.js";
import { SituationPanel } from "../task/situation.js";
import { countTabs, TABS } from "../task/tabs.js";

/** @param {{place: import("../router.js").Place}} props */
export default function TaskPage({ place }) {
  const [ref, tab, thing] = place.parts;
  const path = /** @type {const} */ (`/v1/tasks/${ref.startsWith("~") ? ref : segment(ref)}`);
  const [turn, setTurn] = useState(0);
  const { value, problem } = useRead((signal) => load(path, signal), [path, turn, reread.value]);
  const uid = value?.record.uid;
  useEffect(() => {
    if (!uid) return;
    let timer = 0;
    const stop = follow([`task:~${uid}`], (event, data) => {
      if (data?.uid !== uid && data?.task?.uid !== uid) return;
      if (event === "task") keep(data.task);
      if (event === "progress") return;
      timer ||= setTimeout(() => { timer = 0; setTurn((n) => n + 1); }, 250);
    });
    return () => { stop(); clearTimeout(timer); };
  }, [uid]);
  const kind = value ? value.situation.kind : "";
  useEffect(() => { if (value) subject.value = `${value.record.id} · ${situationSay[kind] ?? kind}`; }, [value?.record.id, kind]);
  useKeys({ u: () => go("/tasks") }, []);
  if (!value && problem?.status === 404) return html`<div class="panel"><${Empty} title=${taskSay.goneTitle}><p>${taskSay.gone}</p><p><a class="link" href="/tasks">${taskSay.toTasks}</a></p><//></div>`;
  if (!value) return problem ? html`<${Trouble} problem=${problem} />` : html`<div class="panel"><${Skeleton} rows=${8} /></div>`;
  const isGone = problem?.status === 404;
  const task = { id: value.record.id, uid: value.record.uid, ref, path };
  return html`<div class=${`task ${isGone ? "gone" : ""}`}>
    ${isGone && html`<p class="strip off">${taskSay.deleted}</p>`}
    <${Head} task=${task} record=${value.record} call=${value.call} situation=${value.situation} account=${value.account} isGone=${isGone} onDone=${() => setTurn((n) => n + 1)} />
    ${!isGone && html`<${SituationPanel} task=${task} situation=${value.situation} record=${value.record} onDone=${() => setTurn((n) => n + 1)} />`}
    <${Tabs} task=${task} value=${value} turn=${turn} tab=${tab} thing=${thing} />
  </div>`;
}

/** Everything above the tabs. What a server does not tell is left out. @param {import("../task/tabs.js").TaskRef["path"]} path @param {AbortSignal} signal */
async function load(path, signal) {
  const record = await get(`${path}?brief=true`, signal);
  const maybe = (/** @type {Promise<any>} */ asked) => asked.catch((error) => { if (error?.status && error.status !== 401) return null; throw error; });
  const [situation, account] = await Promise.all([
    maybe(get(`${path}/situation`, signal)),
    maybe(get(`${path}/account`, signal)),
  ]);
  return { record, call: situation?.call ?? null, situation: situation ?? standingOf(/** @type {any} */ (record)), account };
}

/** @param {{task: import("../task/tabs.js").TaskRef, value: any, turn: number, tab: string|undefined, thing: string|undefined}} props */
function Tabs({ task, value, turn, tab, thing }) {
  const isFunction = value.call !== null;
  const shown = TABS.filter((each) => (!each.scope || may(each.scope)) && (!each.for || (each.for === "function") === isFunction));
  const chosen = shown.find((each) => each.name === tab) ?? shown[0];
  const [loaded, setLoaded] = useState(/** @type {Record<string, any>} */ ({}));
  const [counts, setCounts] = useState(/** @type {Record<string, number>} */ ({}));
  useEffect(() => {
    if (!loaded[chosen.name]) chosen.load().then((module) => setLoaded((all) => ({ ...all, [chosen.name]: module.default })));
  }, [chosen.name]);
  useEffect(() => {
    const stop = new AbortController();
    void countTabs(task, stop.signal).then((found) => stop.signal.aborted || setCounts((all) => ({ ...found, ...all })));
    return () => stop.abort();
  }, [task.uid]);
  const step = (/** @type {number} */ by) => {
    const now = Math.max(0, shown.findIndex((each) => each.name === address.peek().parts[1])); // two quick keys are two steps
    const next = shown[(now + by + shown.length) % shown.length];
    go(`/tasks/${segmentOf(task.ref)}/${next.name}`);
  };
  useKeys({ "[": () => step(-1), "]": () => step(1) }, [chosen.name, task.ref, isFunction]);
  const Found = loaded[chosen.name];
  const count = (/** @type {number} */ n) => setCounts((all) => (all[chosen.name] === n ? all : { ...all, [chosen.name]: n }));
  return html`<section class="panel tabbed">
    <nav class="tabs" aria-label=${taskSay.tabsLabel}>${shown.map((each) => html`<a key=${each.name} href=${`/tasks/${segmentOf(task.ref)}/${each.name}`} aria-current=${each === chosen ? "page" : undefined}>${taskSay.tabs[/** @type {"journal"} */ (each.name)]}${(counts[each.name] ?? each.count?.(value)) !== undefined && html` <b>${number(counts[each.name] ?? each.count?.(value) ?? 0)}</b>`}</a>`)}</nav>
    <div class="tab">${Found ? html`<${Found} key=${`${task.uid} ${chosen.name}`} task=${task} record=${value.record} situation=${value.situation} turn=${turn} thing=${thing} onCount=${count} />` : html`<${Skeleton} rows=${6} />`}</div>
  </section>`;
}

/** @param {string} ref */
const segmentOf = (ref) => (ref.startsWith("~") ? ref : segment(ref));

// @ts-check
// Make a new task from a task's past: from which place, under which id, with which arguments and which state.

import { useEffect, useMemo, useRef, useState } from "preact/hooks";
import { get, newOnce, Problem, refOf, send } from "../api.js";
import { closeDialog, Dialog } from "../dialog.js";
import { line } from "../format.js";
import { firstUnread, forgetTexts, Form, JsonField } from "../forms/form.js";
import { Act, Button, html, Said, Trouble } from "../parts.js";
import { go } from "../router.js";
import { dialogSay } from "../say/common.js";
import { verbSay } from "../say/verbs.js";
import { announcement, may } from "../store.js";
import { AtStake, useRehearsal } from "./at_stake.js";

/** `at`: a call's path or a checkpoint's id; `place`: how people call it; `editsState`: the state is to be edited.
 * @param {{task: import("../task/tabs.js").TaskRef, at?: string|null, place?: string, editsState?: boolean, onDone: () => void}} props */
export default function Fork({ task, at = null, place = "", editsState = false, onDone }) {
  const [id, setId] = useState("");
  const [given, setGiven] = useState(/** @type {any} */ (undefined));
  const [state, setState] = useState(/** @type {any} */ (undefined));
  const [isEditing, setEditing] = useState(editsState);
  const [problem, setProblem] = useState(/** @type {Problem|null} */ (null));
  const box = useRef(/** @type {HTMLDivElement|null} */ (null));
  const path = `${task.path}/fork`;
  const { plan, problem: why } = useRehearsal(path, { at });
  useEffect(() => { if (plan) { setGiven(plan.arguments); setState(plan.state); } }, [plan]);
  useEffect(() => () => forgetTexts("fork-"), []);
  const isTaken = useTaken(id);
  const set = { ...changes(plan?.state, isEditing ? state : plan?.state), ...changes(plan?.arguments, given) };
  const stray = isEditing ? strays(plan?.state, state) : [];
  const once = useMemo(newOnce, [id, JSON.stringify(set), at]);
  const act = async () => {
    if (firstUnread(box.current)) return;
    const told = await send("POST", path, { at, set, ...(id.trim() ? { id: id.trim() } : {}) }, { once });
    announcement.value = verbSay.done.fork;
    closeDialog();
    onDone();
    go(`/tasks/${refOf(told)}`);
  };
  const isFunction = Object.keys(plan?.arguments ?? {}).length > 0 || Boolean(plan?.takes);
  const isDirty = () => id !== "" || Object.keys(set).length > 0;
  const errors = problem?.errors ?? [];
  const canFork = plan !== null && !isTaken && stray.length === 0;
  return html`<${Dialog} title=${verbSay.titles.fork(task.id)} isDirty=${isDirty} footer=${html`<${Button} onClick=${closeDialog}>${dialogSay.cancel}<//><${Act} main disabled=${!canFork} do=${act} onProblem=${setProblem}>${verbSay.buttons.fork}<//>${problem && html`<${Trouble} problem=${problem} />`}`}>
    <div class="stack" ref=${box}><p><${Said} most=${300}>${at ? verbSay.at(place || at) : plan && !isFunction ? verbSay.atState : verbSay.atNow}<//></p>
    ${why ? html`<${Trouble} problem=${why} />` : html`<div class="field"><label for="fork-id">${verbSay.id}</label><input class="input" id="fork-id" autocomplete="off" spellcheck=${false} placeholder=${plan?.id ?? ""} value=${id} onInput=${(/** @type {any} */ e) => setId(e.currentTarget.value)} aria-invalid=${isTaken === true} aria-describedby="fork-id-told" />
        <p id="fork-id-told" class=${isTaken ? "misfit" : "hint"} aria-live="polite">${id && isTaken !== null ? (isTaken ? verbSay.idTaken : verbSay.idFree) : ""}</p></div>
      ${!may("data:read") ? html`<p class="meta">${verbSay.noData}</p>` : plan && html`
        ${isFunction && html`<fieldset class="form-group"><legend>${verbSay.arguments} <span class="hint">${verbSay.argumentsHint}</span></legend><${Form} schema=${plan.takes ?? null} sample=${plan.arguments} value=${given} onChange=${setGiven} errors=${errors} id="fork-arguments" label="" /></fieldset>`}
        <${StateEditor} plan=${plan} isEditing=${isEditing} onEdit=${() => setEditing(true)} value=${state} onChange=${setState} stray=${stray} errors=${errors} />
        <${Changes} before=${{ ...plan.state, ...plan.arguments }} set=${set} />`}
      <${AtStake} plan=${plan} problem=${null} isFork />`}</div><//>`;
}

/** @param {{plan: import("./at_stake.js").Rehearsal, isEditing: boolean, onEdit: () => void, value: any, onChange: (value: any) => void, stray: string[], errors: import("../forms/form.js").Misfit[]}} props */
function StateEditor({ plan, isEditing, onEdit, value, onChange, stray, errors }) {
  if (plan.state === undefined) return html`<p class="meta">${verbSay.tooLarge(plan.state_bytes ?? 0)}</p>`;
  if (plan.state === null || typeof plan.state !== "object" || !Object.keys(plan.state).length) return null;
  if (!isEditing) return html`<p><${Button} small onClick=${onEdit}>${verbSay.editState}<//></p>`;
  const told = [...stray.map((text) => ({ path: [], message: text })), ...errors.filter((each) => String(each.path[0]) in plan.state)];
  return html`<${JsonField} value=${value ?? plan.state} onChange=${onChange} errors=${told} id="fork-state" label=${verbSay.state} hint=${verbSay.stateHint} rows=${10} />`;
}

/** What is set, beside what it was. @param {{before: any, set: Record<string, any>}} props */
function Changes({ before, set }) {
  const names = Object.keys(set);
  if (!names.length) return html`<p class="meta">${verbSay.unchanged}</p>`;
  return html`<section><h3>${verbSay.sets}</h3><dl class="pairs changes">${names.map((name) => html`<dt key=${name}><code>${line(name, 60)}</code></dt><dd><del><${Said} most=${160}>${shown(before?.[name])}<//></del> <ins><${Said} most=${160}>${shown(set[name])}<//></ins></dd>`)}</dl></section>`;
}

/** @param {any} value */
const shown = (value) => (value === undefined ? "—" : JSON.stringify(value));

/** The keys whose values differ. @param {any} before @param {any} after @returns {Record<string, any>} */
function changes(before, after) {
  if (!before || !after || typeof before !== "object" || typeof after !== "object" || Array.isArray(after)) return {};
  return Object.fromEntries(Object.entries(after).filter(([name, value]) => name in before ? JSON.stringify(value) !== JSON.stringify(before[name]) : false).map(([name, value]) => [name, value ?? null]));
}

/** What makes an edited state one that a fork cannot begin with. @param {any} before @param {any} after @returns {string[]} */
function strays(before, after) {
  if (after === undefined || before === undefined) return [];
  if (after === null || typeof after !== "object" || Array.isArray(after)) return [verbSay.notObject];
  const found = [];
  for (const name of Object.keys(after)) if (!(name in before)) found.push(`${name}: ${verbSay.strayKey}`);
  for (const name of Object.keys(before)) if (!(name in after)) found.push(`${name}: ${verbSay.lostKey}`);
  return found;
}

/** Whether a task has this id; null: not known yet. @param {string} id */
function useTaken(id) {
  const [found, setFound] = useState(/** @type {boolean|null} */ (null));
  useEffect(() => {
    setFound(null);
    if (!id.trim()) return;
    let isOver = false;
    const timer = setTimeout(async () => {
      // A list, as a lookup of a task that is not there is an error to the browser's console.
      try { const told = await get(`/v1/tasks?${new URLSearchParams({ text: id.trim(), limit: "20" })}`); if (!isOver) setFound(told.items.some((/** @type {any} */ each) => each.id === id.trim())); } catch { /* the server says it */ }
    }, 300);
    return () => { isOver = true; clearTimeout(timer); };
  }, [id]);
  return found;
}

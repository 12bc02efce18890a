// @ts-check
// One unit on a card: its level with the reasons, what runs in it, and what it is made from; and the dialog that ends it.

import { useState } from "preact/hooks";
import { ask, Problem, segment, send } from "../api.js";
import { closeDialog, Dialog, openDialog } from "../dialog.js";
import { visible } from "../format.js";
import { Icon } from "../icons.js";
import { Act, Button, Chip, Code, html, Moment, Said, Skeleton, Trouble, useRead } from "../parts.js";
import { Facts } from "../operate/rows.js";
import { dialogSay } from "../say/common.js";
import { endSay, unitsSay as say } from "../say/units.js";
import { may } from "../store.js";

const LEVELS = /** @type {Record<string, [string, string]>} */ ({ kept: ["ok", "completed"], imaged: ["ok", "save"], rebuilt: ["run", "undo"], lost: ["bad", "failed"] });
const WITH_TERMINAL = ["shell", "command"];
const TAIL = 2000;
// Escape sequences of terminals: CSI, OSC and other strings, and two-character ones.
const ESCAPES = /\x1b(?:\[[0-?]*[ -/]*[@-~]|[\]PX^_][^\x07\x1b]*(?:\x07|\x1b\\)?|[ -/]*[0-~])/g;

/** @param {any} unit */
export const hasTerminal = (unit) => WITH_TERMINAL.includes(unit.kind);

/** @param {any} unit @returns {[string, string]} */
export function unitChip(unit) {
  if (!unit.alive) return ["idle", say.ended(unit.status)];
  if (unit.waiting === "secret") return ["you", say.secret];
  return ["working", unit.waiting ? say.prompt : say.lives];
}

/** How a unit came back, or would. @param {{level: string}} props */
export function Level({ level }) {
  const [hue, icon] = LEVELS[level] ?? ["off", "idle"];
  return html`<span class=${`chip ${hue}`}><${Icon} name=${icon} size=${12} /><span>${say.levels[level] ?? level}</span></span>`;
}

/** The chips of a unit. @param {{unit: any, level: any}} props */
export function UnitChips({ unit, level }) {
  const [kind, word] = unitChip(unit);
  return html`<span class="chips">${level && html`<${Level} level=${level.level} />`}<${Chip} kind=${kind} word=${word} /></span>`;
}

/** What is true of a unit now, in one line. @param {any} unit */
export const factsOf = (unit) => [html`<${Said}>${unit.kind}<//>`, unit.pid > 0 && say.pid(unit.pid), unit.running && html`<code><${Said}>${unit.running}<//></code>`,
  html`<${Moment} at=${unit.made_at} before=${say.since} />`, unit.ended_at && html`<${Moment} at=${unit.ended_at} before=${say.endedAt} />`,
  unit.writer && html`<${Said}>${say.types(unit.writer)}<//>`, unit.why && html`<${Said}>${unit.why}<//>`];

const REASONS = /** @type {const} */ (["same", "differs", "since_you_left", "do_not_assume", "options"]);

/** Why a verdict is what it is. @param {{verdict: any}} props */
export function Reasons({ verdict }) {
  return html`${verdict.reason && html`<span><${Said} lines>${verdict.reason}<//></span>`}
    ${REASONS.filter((part) => verdict[part]?.length).map((part) => html`<span key=${part}><b>${say.facts[part]}:</b> <${Said} lines>${verdict[part].join("; ")}<//></span>`)}`;
}

/** @param {{unit: any, level: any, task: import("./tabs.js").TaskRef, own: string, onDone: () => void}} props */
export function UnitCard({ unit, level, task, own, onDone }) {
  const [isOpen, setOpen] = useState(false);
  const href = `${own}/${segment(unit.name)}`;
  const path = `${task.path}/units/${segment(unit.name)}`;
  return html`<li class="unit"><div class="unit-top"><h3><${Said}>${unit.name}<//></h3><${UnitChips} unit=${unit} level=${level} /></div>
    <p class="detail"><${Facts} facts=${factsOf(unit)} /></p>
    ${level?.reason && html`<p class="unit-why"><${Said} lines>${level.reason}<//></p>`}
    <div class="acts">${may("data:read") && html`<a class="btn small" href=${href}>${hasTerminal(unit) ? say.open : say.output}</a>`}
      ${unit.alive && may("units:type") && html`<${Button} small danger onClick=${() => openDialog(EndUnit, { unit, path, onDone })}>${say.end}<//>`}</div>
    <details onToggle=${(/** @type {any} */ e) => setOpen(e.currentTarget.open)}><summary>${say.details}</summary>${isOpen && html`${level && html`<div class="unit-why"><${Reasons} verdict=${level} /></div>`}<${UnitFacts} unit=${unit} />${may("data:read") && unit.end > 0 && html`<${Tail} unit=${unit} path=${path} />`}`}</details></li>`;
}

/** What a unit is made from. @param {{unit: any}} props */
export function UnitFacts({ unit }) {
  const recipe = Object.entries(unit.recipe ?? {}).filter(([, value]) => value !== null && value !== false && !(typeof value === "object" && !Object.keys(value).length));
  const limits = Object.entries(unit.limits ?? {});
  const rows = [
    [say.facts.owner, html`<${Said}>${unit.task}<//>`],
    unit.argv?.length && [say.facts.made, html`<code><${Said} most=${600}>${unit.argv.join(" ")}<//></code>`],
    unit.cwd && [say.facts.cwd, html`<code><${Said} most=${300}>${unit.cwd}<//></code>`],
    recipe.length && [say.facts.recipe, html`<code><${Said} most=${900}>${recipe.map(([name, value]) => `${name}: ${typeof value === "string" ? value : JSON.stringify(value)}`).join(", ")}<//></code>`],
    limits.length && [say.facts.limits, limits.map(([name, value]) => say.limit(name, Number(value))).join(", ")],
    unit.rows && [say.facts.size, say.grid(unit)],
    unit.end != null && [say.facts.output, say.bytes(unit)],
  ].filter(Boolean);
  return html`<dl class="pairs">${rows.map(([name, value]) => html`<dt key=${name}>${name}</dt><dd>${value}</dd>`)}</dl>
    ${hasTerminal(unit) && unit.alive && html`<p class="meta">${say.onCommandLine} <${Code} copy=${say.attach(unit.task, unit.name)}>${say.attach(unit.task, unit.name)}<//></p>`}`;
}

/** The end of its output, as text. @param {{unit: any, path: string}} props */
function Tail({ unit, path }) {
  const from = Math.max(unit.begin ?? 0, unit.end - TAIL);
  const { value, problem } = useRead(async (signal) => (await ask("GET", `${path}/output?from=${from}`, { signal })).text(), [unit.uid, unit.end]);
  if (problem) return html`<${Trouble} problem=${problem} />`;
  if (value === undefined) return html`<${Skeleton} rows=${2} />`;
  const text = visible(value.replace(ESCAPES, "").replace(/\r+\n/g, "\n").replace(/^[\s\S]*?\r(?=[^\n])/gm, "")).trim();
  return html`<p class="meta">${say.tail}</p><pre class="tail" tabindex="0"><bdi>${text || say.noTail}</bdi></pre>`;
}

/** What would end with a unit, and then its end. @param {{unit: any, path: string, onDone: () => void}} props */
export function EndUnit({ unit, path, onDone }) {
  const rehearsed = useRead(() => send("DELETE", `${path}?dry_run=true`), [path]);
  const [problem, setProblem] = useState(/** @type {Problem|null} */ (null));
  const found = /** @type {any} */ (rehearsed.value);
  const trouble = problem ?? rehearsed.problem;
  const end = async () => { await send("DELETE", path); closeDialog(); onDone(); };
  return html`<${Dialog} title=${endSay.title(unit.name)} footer=${html`<${Button} onClick=${closeDialog}>${dialogSay.cancel}<//><${Act} danger disabled=${!found} do=${end} onProblem=${setProblem}>${endSay.button(found?.processes.length ?? 0)}<//>`}>
    ${trouble && html`<${Trouble} problem=${trouble} />`}
    ${unit.writer && !unit.writer.you && html`<p class="you-text">${endSay.writer(unit.writer.name)}</p>`}
    ${found ? html`<p>${endSay.would(found.processes.length)}</p>${found.processes.length > 0 && html`<ul class="ends">${found.processes.map((/** @type {any} */ one) => html`<li key=${one.pid}><span class="meta">${one.pid}</span><code>${one.command !== undefined && visible(one.command)}</code></li>`)}</ul>`}
      <p>${found.comes_back ? endSay.comesBack : endSay.gone}</p>` : !rehearsed.problem && html`<${Skeleton} rows=${3} />`}<//>`;
}

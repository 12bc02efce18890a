// @ts-check
// The server's dry run of a verb: asked for, shown, and asked for again when a choice changes it.

import { useEffect, useState } from "preact/hooks";
import { newOnce, Problem, send } from "../api.js";
import { html, Said, Skeleton, Trouble } from "../parts.js";
import { verbSay } from "../say/verbs.js";
import { hrefOf } from "../tasks_parts.js";

/** @typedef {Api.EffectInSight} Effect */
/** @typedef {Api.Rehearsal} Rehearsal */

/** What the verb would do. `body` null: not yet. @param {string} path @param {any} body @param {string|null} [match] @param {any[]} [again]
 * @returns {{plan: Rehearsal|null, problem: Problem|null, look: () => void}} */
export function useRehearsal(path, body, match = null, again = []) {
  const [found, setFound] = useState(/** @type {{plan: Rehearsal|null, problem: Problem|null}} */ ({ plan: null, problem: null }));
  const [turn, setTurn] = useState(0);
  useEffect(() => {
    if (!body) return;
    let isOver = false;
    send("POST", path, { ...body, dry_run: true }, { once: newOnce(), match }).then(
      (plan) => isOver || setFound({ plan, problem: null }),
      (error) => { if (!(error instanceof Problem)) throw error; if (!isOver) setFound((before) => ({ plan: before.plan, problem: error })); },
    );
    return () => { isOver = true; };
  }, [path, JSON.stringify(body), match, turn, ...again]);
  return { ...found, look: () => setTurn((n) => n + 1) };
}

/** What is at stake, list by list. @param {{plan: Rehearsal|null, problem: Problem|null, isFork?: boolean}} props */
export function AtStake({ plan, problem, isFork = false }) {
  if (problem) return html`<${Trouble} problem=${problem} />`;
  if (!plan) return html`<p role="status">${verbSay.looking}</p><${Skeleton} rows=${2} />`;
  const isNothing = !plan.undone.length && !plan.kept.length && !plan.uncertain.length && !plan.children.length;
  return html`<div class="at-stake" role="status">${isNothing && !isFork && html`<p class="meta">${verbSay.nothing}</p>`}
    <${Effects} title=${verbSay.undoes} of=${plan.undone} hue="you" />
    <${Effects} title=${isFork ? verbSay.staysDone : verbSay.stays} of=${plan.kept} tellsUndo=${!isFork} hue="ok" />
    <${Effects} title=${isFork ? verbSay.uncertainFork : verbSay.uncertain} of=${plan.uncertain} hue="unsure" />
    ${plan.children.length > 0 && html`<section><h3>${verbSay.children(plan.children.length)}</h3><ul class="stake-list">${plan.children.map((child) => html`<li key=${child.id}><a class="id link" href=${hrefOf(child)} target="_blank" rel="noopener"><${Said} most=${120}>${child.id}<//></a><span class="meta">${child.status}</span></li>`)}</ul></section>`}</div>`;
}

/** @param {{title: (n: number) => string, of: Effect[], hue: string, tellsUndo?: boolean}} props */
function Effects({ title, of: effects, hue, tellsUndo }) {
  if (!effects.length) return null;
  return html`<section class=${`stake-${hue}`}><h3>${title(effects.length)}</h3><ol class="stake-list">${effects.slice(0, 100).map((each) => html`<li key=${each.key}><code><${Said} most=${240}>${each.call ?? each.name}<//></code>${tellsUndo && !each.has_undo && html`<span class="meta">${verbSay.noUndo}</span>`}</li>`)}</ol></section>`;
}

// @ts-check
// One question: what is asked, by what, until when, and what happens then.

import { Chip, html, Moment, Said } from "../parts.js";
import { inboxSay } from "../say/inbox.js";
import { hrefOf } from "../tasks_parts.js";
import { Decision } from "./decision.js";

/** @param {{kind: string}} props */
export const KindChip = ({ kind }) => html`<${Chip} kind=${kind === "effect" ? "uncertain" : "you"} word=${inboxSay.kinds[kind] ?? kind} />`;

/** What it says, or why that is missing. @param {{pause: import("./decision.js").Pause, most?: number}} props */
export function QuestionText({ pause, most }) {
  if (pause.unreadable) return html`<span class="meta">${inboxSay.unreadable} <${Said}>${pause.unreadable}<//></span>`;
  if (pause.text === undefined) return html`<span class="meta">${inboxSay.noText}</span>`;
  const text = pause.kind === "effect" && pause.effect?.call ? inboxSay.didIt(pause.effect.call) : pause.text;
  return html`<${Said} lines=${!most} most=${most}>${text}<//>`;
}

/** "it is rejected in 1 d 23 h" @param {{pause: import("./decision.js").Pause}} props */
export function Expiry({ pause }) {
  if (!pause.expires_at || pause.answer) return null;
  return html`<span class="expiry">${pause.otherwise ? html`<${Said}>${pause.otherwise.say}<//> ` : ""}<${Moment} at=${pause.expires_at} /></span>`;
}

/** A question as Now and the task show it. `isBare`: its text stands above it already.
 * @param {{pause: import("./decision.js").Pause, withTask?: boolean, isBare?: boolean, onDone: (pause: any) => void}} props */
export function ShortQuestion({ pause, withTask = true, isBare = false, onDone }) {
  if (isBare) return html`<div class="question"><${Decision} key=${pause.id} pause=${pause} isShort onDone=${onDone} /></div>`;
  return html`<div class=${`question ${pause.answer ? "is-decided" : ""}`}><div class="row-top"><${KindChip} kind=${pause.kind} />${withTask && html`<a class="id" href=${hrefOf({ id: pause.task, uid: pause.uid })}><${Said} most=${120}>${pause.task}<//></a>`}
      <span class="end"><${Moment} at=${pause.asked_at} before=${inboxSay.asked} />${pause.expires_at && !pause.answer ? html` · <${Expiry} pause=${pause} />` : ""}</span></div>
    <p class="question-text"><a href=${`/inbox/${pause.id}`}><${QuestionText} pause=${pause} /></a></p>
    <${Decision} key=${pause.id} pause=${pause} isShort onDone=${onDone} /></div>`;
}

// @ts-check
// Deciding one question: approve, answer, settle. Shown in the inbox, on Now and on the page of the task alike.
// The first decision counts; the second person sees who was first, and keeps what they wrote.

import { useEffect, useRef, useState } from "preact/hooks";
import { get, newOnce, Problem, send } from "../api.js";
import { visible } from "../format.js";
import { Act, Button, Code, html, lazy, Moment, Said, Trouble } from "../parts.js";
import { inboxSay } from "../say/inbox.js";
import { announcement, may } from "../store.js";
import { keepDraft, readDraft } from "./drafts.js";

/** @typedef {Api.InboxPause} Pause */

// Forms are loaded when one is shown: most questions need a button only.
const Form = lazy(() => import("../forms/form.js").then((forms) => forms.Form));
const JsonField = lazy(() => import("../forms/form.js").then((forms) => forms.JsonField));

/** @param {{pause: Pause, isShort?: boolean, onDone: (pause: Pause) => void}} props */
export function Decision({ pause, isShort = false, onDone }) {
  const [draft, setDraft] = useState(() => ({ value: firstOf(pause), comment: "", ...readDraft(pause.id) }));
  const [mode, setMode] = useState("");
  const [problem, setProblem] = useState(/** @type {Problem|null} */ (null));
  const [isMine, setMine] = useState(false);
  const once = useRef(newOnce());
  const box = useRef(/** @type {HTMLDivElement|null} */ (null));
  const change = (/** @type {import("./drafts.js").Draft} */ part) => setDraft((before) => { const next = { ...before, ...part }; keepDraft(pause, next); return next; });
  useEffect(() => { if (problem?.errors.length) /** @type {HTMLElement|null} */ (box.current?.querySelector('[aria-invalid="true"]'))?.focus(); }, [problem]);
  if (pause.answer) return html`<${Decided} pause=${{ ...pause, answer: pause.answer }} draft=${draft} isMine=${isMine} />`;
  if (!may("inbox:decide")) return html`<p class="meta">${inboxSay.needsScope}</p>`;

  const decide = (/** @type {string} */ verb, /** @type {any} */ body) => async () => {
    setProblem(null);
    const unread = /** @type {HTMLElement|null} */ (verb === "reject" || body.choice === "retry" || body.choice === "fail" ? null : box.current?.querySelector("[data-unread]") ?? null);
    if (unread) return unread.focus();
    try {
      const told = await send("POST", `/v1/inbox/${pause.id}/${verb}`, { ...body, comment: draft.comment ?? "" }, { once: once.current });
      keepDraft(pause, null);
      setMine(true);
      announcement.value = inboxSay.decided(told.answer?.how ?? "", inboxSay.you);
      onDone(told);
    } catch (error) {
      if (!(error instanceof Problem)) throw error;
      once.current = newOnce();
      if (error.status === 409 || error.status === 404) {
        try { onDone(await get(`/v1/inbox/${pause.id}`)); return; } catch { /* told below */ }
      }
      setProblem(error);
    }
  };
  const keys = (/** @type {KeyboardEvent} */ event) => {
    if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) { event.preventDefault(); /** @type {HTMLButtonElement|null} */ (box.current?.querySelector(".btn.main"))?.click(); }
  };
  const shared = { pause, draft, change, decide, mode, setMode, isShort, errors: problem?.errors ?? [] };
  const Kind = pause.kind === "approval" ? Approval : pause.kind === "effect" ? Effect : pause.kind === "credential" ? Credential : Question;
  return html`<div class="decision" ref=${box} onKeyDown=${keys}><${Kind} ...${shared} />${problem && html`<${Trouble} problem=${problem} />`}</div>`;
}

/** @param {Pause} pause */
const firstOf = (pause) => (pause.kind === "approval" ? pause.editable : undefined);

/** @typedef {{pause: Pause, draft: any, change: (part: any) => void, decide: (verb: string, body: any) => () => Promise<void>, mode: string, setMode: (mode: string) => void, isShort: boolean, errors: import("../forms/form.js").Misfit[]}} Kit */

/** @param {Kit} kit */
function Approval({ pause, draft, change, decide, mode, setMode, isShort, errors }) {
  const canEdit = pause.editable !== undefined && pause.editable !== null;
  if (mode === "edit" || mode === "edit json") {
    const asJson = mode === "edit json";
    return html`<${asJson ? JsonField : Form} schema=${pause.schema ?? null} sample=${pause.editable} value=${draft.value} onChange=${(/** @type {any} */ value) => change({ value })} errors=${errors} id=${`edit-${pause.id}`} label=${inboxSay.editable} />
      <${Comment} id=${pause.id} draft=${draft} change=${change} />
      <div class="acts"><${Act} main do=${decide("approve", { edited: draft.value })}>${inboxSay.editing} <kbd>${inboxSay.sendKey}</kbd><//><${Button} onClick=${() => setMode(asJson ? "edit" : "edit json")}>${asJson ? inboxSay.asForm : inboxSay.asJson}<//><${Button} onClick=${() => setMode("")}>${inboxSay.back2}<//></div>`;
  }
  return html`${(!isShort || mode === "comment" || draft.comment) && html`<${Comment} id=${pause.id} draft=${draft} change=${change} />`}
    <div class="acts"><${Act} main small=${isShort} do=${decide("approve", {})}>${inboxSay.approve}<//><${Act} small=${isShort} do=${decide("reject", {})}>${inboxSay.reject}<//>
    ${canEdit && html`<${Button} small=${isShort} onClick=${() => setMode("edit")}>${inboxSay.edit}<//>`}
    ${isShort && mode !== "comment" && !draft.comment && html`<button type="button" class="quiet" onClick=${() => setMode("comment")}>${inboxSay.addComment}</button>`}</div>`;
}

/** @param {Kit} kit */
function Question(kit) {
  if (kit.isShort) return html`<div class="acts"><a class="btn main small" href=${`/inbox/${kit.pause.id}`}>${inboxSay.answerOpen}</a></div>`;
  return html`<${LongQuestion} ...${kit} />`;
}

/** @param {Kit} kit */
function LongQuestion({ pause, draft, change, decide, mode, setMode, errors }) {
  const onChange = (/** @type {any} */ value) => change({ value });
  useEffect(() => { if (pause.schema && draft.value === undefined) void import("../forms/form.js").then((forms) => { const first = forms.firstValue(pause.schema); if (first !== undefined) onChange(first); }); }, [pause.id]);
  const asJson = mode === "json" || !pause.schema;
  return html`${asJson ? html`<${JsonField} value=${draft.value} onChange=${onChange} errors=${errors} id=${`json-${pause.id}`} label=${`${inboxSay.value} (${inboxSay.valueHint})`} />`
      : html`<${Form} schema=${pause.schema} value=${draft.value} onChange=${onChange} errors=${errors} id=${`form-${pause.id}`} label=${inboxSay.value} />`}
    <${Comment} id=${pause.id} draft=${draft} change=${change} />
    <div class="acts"><${Act} main do=${() => decide("answer", { value: draft.value === undefined ? null : draft.value })()}>${inboxSay.answer} <kbd>${inboxSay.sendKey}</kbd><//>
      ${pause.schema && html`<${Button} onClick=${() => setMode(asJson ? "" : "json")}>${asJson ? inboxSay.asForm : inboxSay.asJson}<//>`}</div>`;
}

/** @param {Kit} kit */
function Effect({ pause, draft, change, decide, mode, setMode, isShort, errors }) {
  const told = /** @type {Partial<Api.UncertainCall>} */ (pause.effect ?? {});
  const facts = /** @type {[string, any][]} */ ([["why", told.why], ["key", told.key]]).filter(([, value]) => value);
  return html`<dl class="pairs">${facts.map(([name, value]) => html`<dt>${inboxSay.facts[/** @type {"why"} */ (name)]}</dt><dd>${name === "key" ? html`<${Code} copy=${value}>${value}<//>` : html`<${Said} lines>${value}<//>`}</dd>`)}</dl>
    ${told.is_waited_for === false && html`<p class="meta">${inboxSay.notWaitedFor}</p>`}
    ${!isShort && told.traceback && html`<details><summary>${inboxSay.evidence}</summary><pre class="block value" tabindex="0">${visible(told.traceback).slice(0, 20_000)}</pre></details>`}
    ${mode === "done" && html`<${JsonField} value=${draft.value} onChange=${(/** @type {any} */ value) => change({ value })} errors=${errors} id=${`result-${pause.id}`} label=${`${inboxSay.result} (${inboxSay.resultHint})`} />`}
    ${(!isShort || mode === "done") && html`<${Comment} id=${pause.id} draft=${draft} change=${change} />`}
    <div class="acts">${mode === "done" ? html`<${Act} main small=${isShort} do=${decide("settle", { choice: "done", value: draft.value ?? null })}>${inboxSay.happenedSend}<//><${Button} small=${isShort} onClick=${() => setMode("")}>${inboxSay.back2}<//>`
      : html`<${Button} small=${isShort} onClick=${() => setMode("done")}>${inboxSay.happened}<//><${Act} small=${isShort} do=${decide("settle", { choice: "retry" })}>${inboxSay.retry}<//><${Act} small=${isShort} do=${decide("settle", { choice: "fail" })}>${inboxSay.fail}<//>`}</div>`;
}

/** @param {Kit} kit */
function Credential({ pause, draft, change, decide, isShort }) {
  return html`<p class="detail">${inboxSay.credentialTried}</p>${!isShort && html`<${Comment} id=${pause.id} draft=${draft} change=${change} />`}
    <div class="acts"><${Act} main small=${isShort} do=${decide("answer", { value: null })}>${inboxSay.tryAgain}<//></div>`;
}

/** @param {{id: string, draft: any, change: (part: any) => void}} props */
function Comment({ id, draft, change }) {
  return html`<div class="field"><label for=${`comment-${id}`}>${inboxSay.comment} <span class="hint">(${inboxSay.commentHint})</span></label>
    <textarea class="input" id=${`comment-${id}`} rows="2" maxlength="4000" value=${draft.comment ?? ""} onInput=${(/** @type {any} */ e) => change({ comment: e.currentTarget.value })}></textarea></div>`;
}

/** How it ended, and what this person had written for it. @param {{pause: Pause & {answer: Api.PauseAnswer}, draft: any, isMine: boolean}} props */
function Decided({ pause, draft, isMine }) {
  const { how, by, at, comment } = pause.answer;
  const hasDraft = !isMine && (draft.comment || (draft.value !== undefined && draft.value !== firstOf(pause)));
  return html`<div class="decided" role="status"><strong>${inboxSay.decided(how, isMine ? inboxSay.you : by ?? "")}</strong> <${Moment} at=${at} />
    ${comment && html`<p><${Said} lines>${`“${comment}”`}<//></p>`}<p class="meta">${inboxSay.noUndo}</p>
    ${hasDraft && html`<p class="label">${inboxSay.kept}</p><pre class="block">${[draft.comment, draft.value === undefined ? "" : JSON.stringify(draft.value, null, 2)].filter(Boolean).join("\n")}</pre>`}</div>`;
}

// @ts-check
// Verbs of a task that need a yes, and perhaps a word: pause, archive, signal, instruct, take, stop, delete.

import { useMemo, useRef, useState } from "preact/hooks";
import { getTagged, newOnce, segment, send } from "../api.js";
import { closeDialog, Dialog } from "../dialog.js";
import { firstUnread, forgetTexts, JsonField } from "../forms/json_field.js";
import { Act, Button, html } from "../parts.js";
import { go } from "../router.js";
import { dialogSay } from "../say/common.js";
import { verbSay } from "../say/verbs.js";
import { announcement } from "../store.js";

/** @typedef {{text: string, name: string, value: any, now: boolean}} Filled */
/** What each asks for and sends. @type {Record<string, {field?: "text"|"name", label?: string, hint?: string, needs?: boolean, danger?: boolean, send: (task: import("../task/tabs.js").TaskRef, filled: Filled, once: string) => Promise<any>}>} */
const VERBS = {
  pause: { field: "text", label: verbSay.message, hint: verbSay.messageHint, send: (task, { text, now }, once) => send("POST", `${task.path}/pause`, { message: text, now }, { once }) },
  archive: { send: (task, _, once) => send("POST", `${task.path}/archive`, {}, { once }) },
  signal: { field: "name", label: verbSay.name, needs: true, send: (task, { text, value }, once) => send("POST", `${task.path}/signal`, { name: text, value: value ?? null }, { once }) },
  instruct: { field: "text", label: verbSay.text, needs: true, send: (task, { text }, once) => send("POST", `${task.path}/instruct`, { text }, { once }) },
  take: { danger: true, send: (task, _, once) => send("POST", `${task.path}/take`, {}, { once }) },
  stop: { field: "text", label: verbSay.why, hint: verbSay.whyHint, danger: true, send: (task, { text }) => send("PUT", `/v1/switches/${task.ref.startsWith("~") ? task.ref : segment(task.ref)}`, { why: text }) },
  delete: {
    danger: true,
    send: async (task, _, once) => {
      const { etag } = await getTagged(`${task.path}?brief=true`);
      await send("DELETE", task.path, undefined, { once, match: etag });
      go("/tasks");
    },
  },
};

/** @param {{verb: string, task: import("../task/tabs.js").TaskRef, onDone: () => void}} props */
export default function PlainVerb({ verb, task, onDone }) {
  const how = VERBS[verb];
  const [filled, setFilled] = useState(/** @type {Filled} */ ({ text: "", name: "", value: undefined, now: false }));
  const once = useMemo(newOnce, [JSON.stringify(filled)]);
  const box = useRef(/** @type {HTMLDivElement|null} */ (null));
  const change = (/** @type {Partial<Filled>} */ part) => setFilled((before) => ({ ...before, ...part }));
  const act = async () => {
    if (firstUnread(box.current)) return;
    await how.send(task, filled, once);
    forgetTexts("verb-value");
    announcement.value = verbSay.done[verb];
    closeDialog();
    if (verb !== "delete") onDone();
  };
  const isReady = !how.needs || filled.text.trim() !== "";
  const type = (/** @type {any} */ event) => change({ text: event.currentTarget.value });
  return html`<${Dialog} title=${verbSay.titles[verb](task.id)} isDirty=${() => filled.text !== ""} footer=${html`<${Button} onClick=${closeDialog}>${dialogSay.cancel}<//><${Act} main=${!how.danger} danger=${how.danger} disabled=${!isReady} do=${act}>${verbSay.buttons[verb]}<//>`}>
    <div class="stack" ref=${box}><p>${verbSay.about[verb]}</p>
    ${how.field && html`<div class="field"><label for="verb-text">${how.label}${how.hint && html` <span class="hint">${how.hint}</span>`}</label>${how.field === "name" ? html`<input class="input" id="verb-text" maxlength="200" autocomplete="off" value=${filled.text} onInput=${type} />` : html`<textarea class="input" id="verb-text" rows="2" maxlength="1000" value=${filled.text} onInput=${type}></textarea>`}</div>`}
    ${verb === "signal" && html`<${JsonField} value=${filled.value} onChange=${(/** @type {any} */ value) => change({ value })} id="verb-value" label=${verbSay.value} hint=${verbSay.valueHint} rows=${3} />`}
    ${verb === "pause" && html`<label class="check"><input type="checkbox" checked=${filled.now} onChange=${(/** @type {any} */ e) => change({ now: e.currentTarget.checked })} />${verbSay.now}</label>`}</div><//>`;
}

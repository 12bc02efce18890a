// @ts-check
// The answer to a terminal that waits with echo off. The field is not part of the page's state: its text is read once,
// sent as bytes, and gone from the field before the answer comes.

import { useRef, useState } from "preact/hooks";
import { newOnce, Problem } from "../api.js";
import { Button, html, Trouble } from "../parts.js";
import { secretSay as say, terminalSay } from "../say/units.js";
import { sendBytes } from "./typist.js";

/** @param {{path: string, typing: any, unit: any}} props */
export function SecretForm({ path, typing, unit }) {
  const field = useRef(/** @type {HTMLInputElement|null} */ (null));
  const [busy, setBusy] = useState(false);
  const [problem, setProblem] = useState(/** @type {Problem|null} */ (null));
  const [note, setNote] = useState("");
  const isHeld = unit.writer && !unit.writer.you;
  const submit = async (/** @type {Event} */ event) => {
    event.preventDefault();
    const input = field.current;
    if (!input || busy) return;
    const bytes = new TextEncoder().encode(`${input.value}\n`);
    input.value = "";
    setBusy(true); setProblem(null); setNote("");
    const had = typing.has;
    try {
      if (!had) await typing.typist.take(Boolean(isHeld)); // only for this: the terminal keeps its size
      await sendBytes(`${path}/answer`, newOnce(), bytes);
      setNote(say.sent);
    } catch (error) {
      if (!(error instanceof Problem)) throw error;
      if (error.status === 0) setNote(say.unknown);
      else if (error.code === "not_asked") setNote(say.notAsked);
      else setProblem(error);
    } finally {
      bytes.fill(0);
      setBusy(false);
      if (!had) await typing.typist.giveBack().catch(() => {});
    }
  };
  return html`<form class="secret-form" onSubmit=${submit} autocomplete="off"><label for="unit-secret">${say.label}</label>
    <div class="line"><input id="unit-secret" class="input" type="password" ref=${field} autocomplete="off" autocapitalize="off" autocorrect="off" spellcheck=${false} data-1p-ignore data-lpignore="true" aria-describedby="unit-secret-hint" /><${Button} type="submit" main busy=${busy} disabled=${busy}>${isHeld && !typing.has ? say.sendTaking : say.send}<//></div>
    ${isHeld && !typing.has && !unit.writer.is_person && html`<p class="hint">${terminalSay.agentWarns(unit.writer.name)}</p>`}
    <p class="hint" id="unit-secret-hint">${say.hint}</p>${note && html`<p role="status">${note}</p>`}${problem && html`<${Trouble} problem=${problem} />`}</form>`;
}

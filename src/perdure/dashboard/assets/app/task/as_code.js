// @ts-check
// The journal as a listing that people and models read: each call as code, and what came of it as a comment.

import { useEffect, useState } from "preact/hooks";
import { get, Problem, query } from "../api.js";
import { length, line, visible } from "../format.js";
import { Copy, html, Skeleton, Trouble } from "../parts.js";
import { journalSay } from "../say/task.js";
import { isOpen, triesOf } from "./outline.js";

const PAGE = 200, MOST = 2000;

/** @param {{task: import("./tabs.js").TaskRef, outline: import("./outline.js").Outline}} props */
export default function AsCode({ task, outline: o }) {
  const [text, setText] = useState(/** @type {string|null} */ (null));
  const [problem, setProblem] = useState(/** @type {Problem|null} */ (null));
  useEffect(() => {
    const stop = new AbortController();
    listing(task, o, stop.signal).then((found) => stop.signal.aborted || setText(found), (error) => {
      if (stop.signal.aborted) return;
      if (!(error instanceof Problem)) throw error;
      setProblem(error);
    });
    return () => stop.abort();
  }, [task.path, o]);
  if (problem && text === null) return html`<div class="body"><${Trouble} problem=${problem} /></div>`;
  if (text === null) return html`<${Skeleton} rows=${8} />`;
  return html`<div class="as-code"><${Copy} text=${text} label=${journalSay.copyCode} /><pre tabindex="0" aria-label=${journalSay.asCode}>${visible(text)}</pre></div>`;
}

/** @param {import("./tabs.js").TaskRef} task @param {import("./outline.js").Outline} o @param {AbortSignal} signal */
async function listing(task, o, signal) {
  const calls = /** @type {Api.JournalCall[]} */ ([]);
  for (let after = 0; calls.length < MOST;) {
    const { items } = await get(`${task.path}/journal${query({ line: o.line, after: after || null, limit: PAGE })}`, signal);
    calls.push(...items);
    const ended = items.filter((call) => call.position > 0);
    if (items.length < PAGE || !ended.length) break;
    after = ended[ended.length - 1].position;
  }
  const byPosition = new Map(calls.map((call) => [call.position, call]));
  const open = calls.filter((call) => call.position === 0);
  const lines = [];
  for (let i = 0; i < o.n && lines.length < MOST; i++) {
    const call = o.position[i] ? byPosition.get(o.position[i]) : open.shift();
    const said = call?.call || o.names[o.name[i]];
    lines.push(`${"    ".repeat(Math.min(8, o.depth[i]))}${said.includes("(") ? said : `${said}()`}  # ${after(o, i, call)}`);
  }
  if (o.n > lines.length) lines.push(`# ${journalSay.calls(o.n - lines.length)}…`);
  return `${lines.join("\n")}\n`;
}

/** What came of a call. @param {import("./outline.js").Outline} o @param {number} i @param {Api.JournalCall|undefined} call */
function after(o, i, call) {
  const how = call?.error ? `raised ${line(`${call.error.type}: ${call.error.message}`, 300)}` : call?.returned ? `→ ${line(call.returned, 300)}` : journalSay.states[/** @type {"d"} */ (o.state[i])];
  const took = isOpen(o, i) ? "" : `, ${length(o.took[i])}`;
  return `${how}${took}${triesOf(o, i) > 1 ? `, ${journalSay.tries(triesOf(o, i))}` : ""}`;
}

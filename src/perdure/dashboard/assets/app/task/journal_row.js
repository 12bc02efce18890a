// @ts-check
// One row of the timeline: the call as code, and its bar with its tries.

import { length, line } from "../format.js";
import { Icon } from "../icons.js";
import { html } from "../parts.js";
import { journalSay } from "../say/task.js";
import { endOf, hueOf, HUE_OF, ICON_OF, isWait, triesOf } from "./outline.js";

/** @param {{outline: import("./outline.js").Outline, index: number, top: number, height: number, call: any, question: string, scale: import("./scale.js").Scale, now: number, codeWidth: number, barWidth: number, isNarrow: boolean, isChosen: boolean, isDim: boolean, row: number, onChoose: () => void}} props */
export function CallRow({ outline: o, index: i, top, height, call, question, scale, now, codeWidth, barWidth, isNarrow, isChosen, isDim, row, onChoose }) {
  const state = o.state[i];
  const took = isWait(o, i) || state === "o" ? endOf(o, i, now) - o.start[i] : o.took[i];
  const tries = triesOf(o, i);
  const label = `${length(took)}${tries > 1 ? ` · ${journalSay.tries(tries)}` : ""}`;
  const style = { transform: `translateY(${top}px)`, height: `${height}px`, ...(isNarrow ? {} : { gridTemplateColumns: `${codeWidth}px minmax(0, 1fr)` }) };
  return html`<div role="row" class=${`call ${isChosen ? "chosen" : ""} ${isDim ? "dim" : ""}`} aria-rowindex=${row} aria-selected=${isChosen} style=${style} onClick=${onChoose}>
    <span role="cell" class="call-code"><span class="num">${o.position[i] || ""}</span><span class="call-text" style=${{ paddingLeft: `${Math.min(8, o.depth[i]) * 14}px` }}>
      <span class=${`mark ${isWait(o, i) && state === "d" ? "wait" : HUE_OF[state]}-ink`}><${Icon} name=${isWait(o, i) && state === "d" ? "waiting" : ICON_OF[state] ?? "idle"} size=${14} label=${journalSay.states[/** @type {"d"} */ (state)]} /></span><${Code} o=${o} i=${i} call=${call} question=${question} /></span></span>
    <span role="cell" class="call-bar" aria-label=${journalSay.bar(length(took), tries, journalSay.states[/** @type {"d"} */ (state)])}>${isNarrow ? html`<span class="meta">${label}</span>` : html`<${Bars} o=${o} i=${i} scale=${scale} now=${now} width=${barWidth} label=${label} />`}</span></div>`;
}

/** load_order('ord_981') → Order(…) @param {{o: import("./outline.js").Outline, i: number, call: any, question: string}} props */
function Code({ o, i, call, question }) {
  const name = o.names[o.name[i]] || "?";
  const op = o.ops[o.op[i]];
  const rest = call?.call ? line(call.call.startsWith(name) ? call.call.slice(name.length) : `(${call.call})`, 120) : o.state[i] === "p" && question ? `('${line(question, 80)}')` : "";
  const end = call?.error ? html`<span class="bad-ink"> → ${line(`${call.error.type}: ${call.error.message}`, 120)}</span>`
    : call?.returned ? html`<span class="result"> → ${line(call.returned, 120)}</span>`
    : o.state[i] === "p" ? html`<span class="you-ink"> ${journalSay.waits}</span>` : "";
  return html`<code><b>${line(name, 80)}</b><span class="args">${rest}</span>${op === "effect" && html`<i class="op">${journalSay.effect}</i>`}${op === "child" && html`<i class="op">${journalSay.child}</i>`}${end}</code>`;
}

/** Segments of tries, red until the last. @param {{o: import("./outline.js").Outline, i: number, scale: import("./scale.js").Scale, now: number, width: number, label: string}} props */
function Bars({ o, i, scale, now, width, label }) {
  const begin = o.start[i], end = endOf(o, i, now);
  const cuts = [begin, ...(o.tries.get(i) ?? []).slice(-8), end];
  const x1 = Math.max(scale.x(end), scale.x(begin) + 2);
  const isAfter = x1 + 8 + label.length * 6.4 < width;
  return html`<svg width=${width} height="26" aria-hidden="true">${cuts.slice(0, -1).map((from, n) => {
    const isLast = n === cuts.length - 2;
    const x = scale.x(from), to = isLast ? x1 : scale.x(cuts[n + 1]);
    return html`<rect key=${n} class=${`fill-${isLast ? hueOf(o, i) : "bad"}`} x=${x} y="8" width=${Math.max(isLast ? 2 : 1, to - x - (isLast ? 0 : 1))} height="10" rx="2" />`;
  })}<text class="bar-label" x=${isAfter ? x1 + 6 : Math.max(0, scale.x(begin) - 6)} y="17" text-anchor=${isAfter ? "start" : "end"}>${label}</text></svg>`;
}

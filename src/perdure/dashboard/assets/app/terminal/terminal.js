// @ts-check
// One unit with its terminal: output from its offset on, and, after the right was taken, what a person types. Reading
// only is how it begins; nothing is sent before.

import { useCallback, useEffect, useMemo, useRef, useState } from "preact/hooks";
import { Problem, segment } from "../api.js";
import { closeDialog, Dialog, openDialog } from "../dialog.js";
import { Icon } from "../icons.js";
import { Act, Button, html, Said, Trouble } from "../parts.js";
import { Facts } from "../operate/rows.js";
import { dialogSay } from "../say/common.js";
import { terminalSay as say, unitsSay } from "../say/units.js";
import { announcement, kept, may } from "../store.js";
import { EndUnit, factsOf, hasTerminal, Reasons, UnitChips, UnitFacts } from "../task/unit_card.js";
import { Find } from "./find.js";
import { TerminalFrame } from "./frame.js";
import { followOutput, TAIL } from "./output.js";
import { SecretForm } from "./secret.js";
import { Typist } from "./typist.js";

const ROWS = 40, COLUMNS = 120, SHORTEST = 160, TALLEST = 0.58;
const readAloud = kept("terminal.aloud", false);
const encoder = new TextEncoder();

/** @typedef {{line: import("./output.js").Line, status?: number|null, problem?: Problem, gap?: number, another?: boolean}} OutputState */

/** @param {{unit: any, level: any, task: import("../task/tabs.js").TaskRef, own: string, onDone: () => void}} props */
export function Terminal({ unit, level, task, own, onDone }) {
  const path = `${task.path}/units/${segment(unit.name)}`;
  const box = useRef(/** @type {HTMLDivElement|null} */ (null));
  const back = useRef(/** @type {HTMLHeadingElement|null} */ (null));
  const frame = useRef(/** @type {import("./frame.js").Frame|null} */ (null));
  const [isReady, setReady] = useState(false);
  const [isWhole, setWhole] = useState(false);
  const [height, setHeight] = useState(420);
  const [finding, setFinding] = useState(/** @type {"off"|"open"|"none"} */ ("off"));
  const output = useOutput(path, unit, isReady, frame, isWhole);
  const typing = useTyping(path, unit, frame);
  const { typist } = typing;

  const heard = useMemo(() => ({
    ready: (/** @type {import("./frame.js").Frame} */ made) => { frame.current = made; setReady(true); },
    keys: (/** @type {string} */ text) => typist.type(encoder.encode(text)),
    leave: () => back.current?.focus(),
    size: (/** @type {import("./frame.js").Size} */ size) => {
      if (typist.has) typist.resize(size.rows, size.columns).catch(() => {});
      else if (size.height) setHeight(Math.max(SHORTEST, size.height + 14));
    },
    paste: (/** @type {string} */ text) => {
      const lines = text.replace(/[\r\n]+$/, "").split(/\r\n|\r|\n/).length;
      const give = () => { frame.current?.tell("paste", { text: withoutControls(text) }); frame.current?.enter(); };
      if (lines > 1) openDialog(Paste, { text, lines, give }); else give();
    },
    selection: (/** @type {string} */ text) => {
      if (!text) { announcement.value = say.nothingChosen; return; }
      navigator.clipboard.writeText(text).then(() => { announcement.value = say.copied; }, () => {});
    },
    found: (/** @type {boolean} */ is) => setFinding(is ? "open" : "none"),
  }), [typist]);

  // The frame has the size of the unit's terminal while only reading; who types gives it the frame's.
  useEffect(() => { if (isReady && !typing.has && unit.rows) frame.current?.tell("size", { rows: unit.rows, columns: unit.columns }); }, [isReady, typing.has, unit.rows, unit.columns]);
  useEffect(() => {
    if (!typing.has || !box.current) return;
    const watch = new ResizeObserver(() => frame.current?.tell("fit"));
    watch.observe(box.current);
    return () => watch.disconnect();
  }, [typing.has]);

  useEffect(() => { back.current?.closest(".term")?.scrollIntoView({ block: "start" }); }, []);

  const take = () => typing.take(Boolean(unit.writer && !unit.writer.you));
  const askFirst = () => openDialog(FromAgent, { name: unit.writer.name, take });
  const isAgents = unit.writer && !unit.writer.is_person;
  const takeWord = unit.writer && !unit.writer.you && unit.writer.is_person ? say.takeFrom(unit.writer.name) : isAgents ? say.takeFrom(unit.writer.name) : say.take;
  const isOver = output.line === "ended" || !unit.alive;
  const mayType = may("units:type") && hasTerminal(unit) && !isOver;
  return html`<section class=${`term ${typing.has ? "is-typing" : ""}`} aria-labelledby="term-head">
    <header class="term-head"><a class="back" href=${own}><${Icon} name="left" size=${14} />${unitsSay.back}</a><h2 id="term-head" tabindex="-1" ref=${back}><${Said}>${unit.name}<//></h2><${UnitChips} unit=${unit} level=${level} />
      <div class="acts">${finding !== "off" ? html`<${Find} frame=${frame} none=${finding === "none"} onClose=${() => setFinding("off")} />` : html`<button type="button" class="icon-btn" aria-label=${say.find} title=${say.find} onClick=${() => setFinding("open")}><${Icon} name="search" /></button>`}
        <button type="button" class="icon-btn" aria-label=${say.copy} title=${say.copy} onClick=${() => frame.current?.tell("copy")}><${Icon} name="copy" /></button>
        <${Button} small pressed=${readAloud.value} title=${say.readAloudHint} onClick=${() => { readAloud.value = !readAloud.value; }}>${say.readAloud}<//>
        ${unit.alive && may("units:type") && html`<${Button} small danger onClick=${() => openDialog(EndUnit, { unit, path, onDone })}>${unitsSay.end}<//>`}</div></header>
    <p class="detail"><${Facts} facts=${factsOf(unit)} /></p>
    <div class="term-line" role="status"><strong>${isOver ? say.over(output.status ?? unit.status) : typing.has ? say.typing : unit.writer && !unit.writer.you ? say.writes(unit.writer.name) : say.reading}</strong>
      ${typing.has && html`<${Act} small do=${async () => { await typing.giveBack(); back.current?.focus(); }}>${say.give}<//>`}
      ${mayType && !typing.has && (isAgents ? html`<${Button} small onClick=${askFirst}>${takeWord}<//>` : html`<${Act} small main do=${take}>${takeWord}<//>`)}
      ${!may("units:type") && hasTerminal(unit) && !isOver && html`<span class="hint">${say.noScope}</span>`}</div>
    ${mayType && unit.waiting === "secret" && html`<${SecretForm} path=${path} typing=${typing} unit=${unit} />`}
    <${Notes} output=${output} typing=${typing} onWhole=${isWhole ? null : () => setWhole(true)} />
    <div class="term-box" ref=${box}><${TerminalFrame} title=${hasTerminal(unit) ? say.title(unit.name) : say.outputTitle(unit.name)} height=${Math.min(height, Math.round(innerHeight * TALLEST))} begin=${{ rows: unit.rows ?? ROWS, columns: unit.columns ?? COLUMNS, isRead: readAloud.value }} heard=${heard} /></div>
    <p class="meta">${say.leave}</p>
    ${level && html`<div class="unit-why"><${Reasons} verdict=${level} /></div>`}
    <details class="term-more"><summary>${unitsSay.details}</summary><${UnitFacts} unit=${unit} /></details></section>`;
}

/** Pump the output into the frame. @param {string} path @param {any} unit @param {boolean} isReady @param {{current: import("./frame.js").Frame|null}} frame @param {boolean} isWhole */
function useOutput(path, unit, isReady, frame, isWhole) {
  const begin = unit.begin ?? 0;
  const [state, setState] = useState(/** @type {OutputState & {skipped: number}} */ ({ line: "reading", skipped: 0 }));
  useEffect(() => {
    const target = frame.current;
    if (!isReady || !target) return;
    const stop = new AbortController();
    const from = isWhole ? 0 : Math.max(begin, (unit.end ?? 0) - TAIL);
    const mark = (/** @type {string} */ text) => target.write(encoder.encode(`\r\n\x1b[0;7m${text}\x1b[0m\r\n`));
    target.tell("clear");
    setState({ line: "reading", skipped: from > begin ? from - begin : 0 });
    void followOutput(path, from, {
      data: (bytes) => target.write(bytes),
      gap: (gap) => { if (from || gap > begin) { void mark(say.gapMark(gap)); setState((all) => ({ ...all, gap: (all.gap ?? 0) + gap })); } },
      another: () => { void mark(say.anotherMark); setState((all) => ({ ...all, another: true })); },
      line: (line, more) => setState((all) => ({ ...all, line, ...(line === "ended" ? { status: more } : line === "gone" ? { problem: more } : {}) })),
    }, stop.signal);
    return () => stop.abort();
  }, [path, isReady, isWhole]);
  return state;
}

/** The right to type, and what happened to it. @param {string} path @param {any} unit @param {{current: import("./frame.js").Frame|null}} frame */
function useTyping(path, unit, frame) {
  const [has, setHas] = useState(false);
  const [note, setNote] = useState("");
  const [isStuck, setStuck] = useState(false);
  const typist = useMemo(() => new Typist(path, {
    lost: (problem) => { setHas(false); setNote(problem.values.by ? say.taken(problem.values.by) : say.takenBySome); announcement.value = say.takenBySome; },
    uncertain: () => setNote(say.uncertain),
    stuck: setStuck,
  }), [path]);
  useEffect(() => { if (!has) void frame.current?.setTyping(false); }, [has]);
  useEffect(() => () => { typist.giveBack().catch(() => {}); }, [typist]);
  // The stream told of another writer: ask, so that the person hears it before the next key.
  useEffect(() => { if (has && unit.writer && !unit.writer.you) void typist.renew(); }, [unit.writer?.name, unit.writer?.you, has]);
  const take = useCallback(async (/** @type {boolean} */ force) => {
    await typist.take(force);
    await frame.current?.setTyping(true); // before the page says so: no key is lost
    frame.current?.tell("fit");
    setNote("");
    setHas(true);
  }, [typist]);
  const giveBack = useCallback(async () => { setHas(false); await typist.giveBack(); }, [typist]);
  return { has, note, isStuck, typist, take, giveBack };
}

/** What the person has to know about the line and the right, over the terminal.
 * @param {{output: OutputState & {skipped: number}, typing: any, onWhole: (() => void)|null}} props */
function Notes({ output, typing, onWhole }) {
  return html`${output.line === "lost" && html`<p class="term-note bad" role="status">${say.lost}</p>`}
    ${output.line === "gone" && output.problem && html`<div class="term-note bad" role="alert"><span>${say.gone}</span><${Trouble} problem=${output.problem} /></div>`}
    ${output.gap && html`<p class="term-note you" role="status">${say.gap(output.gap)}</p>`}
    ${output.another && html`<p class="term-note you" role="status">${say.another}</p>`}
    ${output.skipped > 0 && onWhole && html`<p class="term-note off">${say.skipped(output.skipped)} <${Button} small onClick=${onWhole}>${say.showAll}<//></p>`}
    ${typing.note && html`<p class="term-note bad" role="alert">${typing.note}</p>`}
    ${typing.isStuck && typing.has && html`<p class="term-note bad" role="status">${say.stuck}</p>`}`;
}

/** @param {{name: string, take: () => Promise<void>}} props */
function FromAgent({ name, take }) {
  const act = async () => { closeDialog(); await take(); };
  return html`<${Dialog} title=${say.agentTitle} footer=${html`<${Button} onClick=${closeDialog}>${dialogSay.cancel}<//><${Act} main do=${act}>${say.agentButton}<//>`}><p>${say.agentWarns(name)}</p><//>`;
}

/** @param {{text: string, lines: number, give: () => void}} props */
function Paste({ text, lines, give }) {
  const act = () => { closeDialog(); setTimeout(give); };
  return html`<${Dialog} title=${say.pasteTitle(lines)} footer=${html`<${Button} onClick=${closeDialog}>${dialogSay.cancel}<//><${Button} main onClick=${act}>${say.pasteButton(lines)}<//>`}>
    <p>${say.pasteWhy}</p><pre class="block value" tabindex="0"><${Said} lines>${text.slice(0, 5000)}<//></pre><//>`;
}

/** A pasted text cannot end the paste by itself, or press keys. @param {string} text */
const withoutControls = (text) => text.replace(/[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f]/g, "");

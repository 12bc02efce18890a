// @ts-check
// The controls of a form that hold one value: text, number, yes or no, a choice, a moment. Each shows what is wrong with
// its own value below itself.

import { useState } from "preact/hooks";
import { html } from "../parts.js";
import { formSay } from "../say/form.js";

/** @typedef {import("./form.js").FieldProps & {isOptional: boolean, nullable: boolean}} Props */

/** A name, a control, and what is wrong with it. @param {Props & {children?: any, hint?: string}} props */
function Labelled({ id, label, isOptional, schema, errors, hint, children }) {
  const told = [isOptional && formSay.optional, hint ?? formSay.takes(schema)].filter(Boolean).join("; ");
  return html`<div class="field"><label for=${id}>${label}${told && html` <span class="hint">${told}</span>`}</label>
    ${schema.description && html`<p class="hint" id=${`${id}-about`}>${schema.description}</p>`}${children}<${Wrong} id=${id} errors=${errors} /></div>`;
}

/** @param {{id: string, errors: import("./form.js").Misfit[]}} props */
const Wrong = ({ id, errors }) => html`<p class="misfit" id=${`${id}-misfit`}>${errors.map((each) => each.message).join("\n")}</p>`;

/** @param {Props} props */
const marks = ({ id, errors, required }) => ({ id, "aria-invalid": errors.length > 0, "aria-describedby": `${id}-misfit`, "aria-required": required });

/** What stands for an emptied field. @param {Props} props */
const nothing = ({ nullable, required, isOptional }) => (nullable && (required || isOptional) ? (required ? null : undefined) : undefined);

/** A value that cannot be changed. @param {Props & {text: string}} props */
export const Kept = ({ label, text }) => html`<div class="field"><span class="label">${label}</span><code>${text}</code></div>`;

/** @param {Props} props */
export function Text(props) {
  const { schema, value, onChange } = props;
  const type = (/** @type {any} */ event) => { const typed = event.currentTarget.value; onChange(typed === "" && props.isOptional ? nothing(props) : typed); };
  const shown = value === undefined || value === null ? "" : typeof value === "string" ? value : JSON.stringify(value);
  const isSecret = schema.format === "password";
  const isLong = schema.maxLength > 120 || String(schema.default ?? "").includes("\n") || shown.includes("\n");
  const hint = isSecret ? formSay.secret : undefined;
  if (isLong && !isSecret) return html`<${Labelled} ...${props}><textarea class="input" rows="4" ...${marks(props)} value=${shown} onInput=${type}></textarea><//>`;
  const native = schema.format === "date" && (shown === "" || /^\d{4}-\d\d-\d\d$/.test(shown)) ? "date" : isSecret ? "password" : "text";
  return html`<${Labelled} ...${props} hint=${hint}><input class="input" type=${/** @type {any} */ (native)} autocomplete="off" placeholder=${schema.examples?.[0]} ...${marks(props)} value=${shown} onInput=${type} /><//>`;
}

/** A number as it was typed: what is not one stays a text, and the server says so. @param {Props} props */
export function Numeral(props) {
  const { schema, value, onChange } = props;
  const [text, setText] = useState(() => (value === undefined || value === null ? "" : String(value)));
  const shown = read(text) === value || (text === "" && (value === undefined || value === null)) ? text : value === undefined || value === null ? "" : String(value);
  const type = (/** @type {any} */ event) => { const typed = event.currentTarget.value; setText(typed); onChange(typed.trim() === "" ? nothing(props) : read(typed)); };
  return html`<${Labelled} ...${props}><input class="input short" inputmode=${schema.type === "integer" ? "numeric" : "decimal"} autocomplete="off" placeholder=${schema.default ?? undefined} ...${marks(props)} value=${shown} onInput=${type} /><//>`;
}

/** @param {string} text */
function read(text) {
  const trimmed = text.trim();
  return /^[+-]?(\d+\.?\d*|\.\d+)(e[+-]?\d+)?$/i.test(trimmed) && Number.isFinite(Number(trimmed)) ? Number(trimmed) : text;
}

/** @param {Props & {options: {text: string, value: any}[]}} props */
function Radios(props) {
  const { id, label, schema, isOptional, errors, value, onChange, options } = props;
  const told = isOptional ? formSay.optional : "";
  return html`<fieldset class="field" aria-describedby=${`${id}-misfit`}><legend>${label}${told && html` <span class="hint">${told}</span>`}</legend>${schema.description && html`<p class="hint">${schema.description}</p>`}
    <div class="choices">${options.map((option, i) => html`<label key=${i} class="check"><input type="radio" name=${id} id=${i === 0 ? id : undefined} aria-invalid=${errors.length > 0 ? "true" : undefined} checked=${same(option.value, value)} onChange=${() => onChange(option.value)} />${option.text}</label>`)}</div><${Wrong} id=${id} errors=${errors} /></fieldset>`;
}

/** @param {any} a @param {any} b */
const same = (a, b) => a === b || (a ?? null) === (b ?? null) || JSON.stringify(a) === JSON.stringify(b);

/** @param {Props} props */
export function Truth(props) {
  const options = [{ text: formSay.yes, value: /** @type {any} */ (true) }, { text: formSay.no, value: false }];
  if (props.isOptional) options.push({ text: formSay.none, value: nothing(props) });
  return html`<${Radios} ...${props} options=${options} />`;
}

/** @param {Props} props */
export function Choice(props) {
  const { schema, value, onChange } = props;
  const options = schema.enum.map((/** @type {any} */ one) => ({ text: String(one), value: one }));
  if (options.length <= 5) return html`<${Radios} ...${props} options=${props.isOptional && schema.default === undefined ? [...options, { text: formSay.none, value: nothing(props) }] : options} />`;
  const at = schema.enum.findIndex((/** @type {any} */ one) => same(one, value));
  const choose = (/** @type {any} */ event) => { const i = Number(event.currentTarget.value); onChange(i < 0 ? nothing(props) : schema.enum[i]); };
  return html`<${Labelled} ...${props} hint=""><select class="input" ...${marks(props)} value=${String(at)} onChange=${choose}><option value="-1">${props.isOptional ? formSay.none : formSay.choose}</option>${options.map((/** @type {any} */ option, /** @type {number} */ i) => html`<option key=${i} value=${String(i)}>${option.text}</option>`)}</select><//>`;
}

/** Any number of fixed choices. @param {Props} props */
export function Checks({ schema, value, onChange, id, label, errors }) {
  const chosen = Array.isArray(value) ? value : [];
  const turn = (/** @type {any} */ one) => (/** @type {any} */ event) => onChange(schema.items.enum.filter((/** @type {any} */ each) => (same(each, one) ? event.currentTarget.checked : chosen.some((has) => same(has, each)))));
  return html`<fieldset class="field" id=${id}><legend>${label}</legend><div class="choices">${schema.items.enum.map((/** @type {any} */ one) => html`<label key=${String(one)} class="check"><input type="checkbox" checked=${chosen.some((has) => same(has, one))} onChange=${turn(one)} />${String(one)}</label>`)}</div><${Wrong} id=${id} errors=${errors} /></fieldset>`;
}

/** A moment in this browser's time zone, kept as UTC. @param {Props} props */
export function Moment(props) {
  const { value, onChange } = props;
  const at = typeof value === "string" ? Date.parse(value) : NaN;
  if (typeof value === "string" && value !== "" && Number.isNaN(at)) return html`<${Text} ...${props} />`;
  const local = Number.isNaN(at) ? "" : new Date(at - new Date(at).getTimezoneOffset() * 60_000).toISOString().slice(0, 16);
  const type = (/** @type {any} */ event) => { const typed = event.currentTarget.value; onChange(typed === "" ? nothing(props) : new Date(typed).toISOString()); };
  return html`<${Labelled} ...${props} hint=${formSay.zone(Intl.DateTimeFormat().resolvedOptions().timeZone)}><input class="input short" type="datetime-local" ...${marks(props)} value=${local} onInput=${type} /><//>`;
}

// @ts-check
// A form made from a JSON Schema. `value` is what has been entered so far, as JSON; `errors` are the server's misfits,
// each shown at its field. A text that is not of the asked kind is kept as the text, and the server says what is wrong.

import { html } from "../parts.js";
import { formSay } from "../say/form.js";
import { Choice, Checks, Kept, Moment, Numeral, Text, Truth } from "./controls.js";
import { JsonField } from "./json_field.js";
import { firstValue, schemaOf, wantedBy } from "./schema.js";

export { firstValue, holdsPassword, schemaOf } from "./schema.js";
export { firstUnread, forgetTexts, JsonField } from "./json_field.js";

/** @typedef {(string|number)[]} Path */
/** @typedef {{path: Path, message: string}} Misfit */
/** @typedef {{schema: any, root: any, value: any, onChange: (value: any) => void, errors: Misfit[], path: Path, id: string, label: string, required: boolean, depth: number}} FieldProps */

/** `sample`: a value whose fields are asked for when there is no schema.
 * @param {{schema: any, sample?: any, value: any, onChange: (value: any) => void, errors?: Misfit[], id: string, label?: string}} props */
export function Form({ schema: given, sample, value, onChange, errors = [], id, label = formSay.json }) {
  const schema = given ?? (sample === undefined ? null : schemaOf(sample));
  if (!schema) return html`<${JsonField} value=${value} onChange=${onChange} errors=${errors} id=${id} label=${label} />`;
  return html`<div class="form"><${Field} schema=${schema} root=${schema} value=${value} onChange=${onChange} errors=${errors} path=${[]} id=${id} label=${label} required=${true} depth=${0} /></div>`;
}

/** One value of any kind. @param {FieldProps} props @returns {any} */
function Field(props) {
  const wanted = wantedBy(props.schema, props.root, props.depth);
  const schema = wanted.schema;
  const label = schema?.title && props.depth > 0 ? schema.title : props.label;
  const own = props.errors.filter((each) => each.path.length >= props.path.length && props.path.every((part, i) => each.path[i] === part));
  const isOptional = wanted.nullable || !props.required;
  const all = { ...props, schema, label, errors: own, isOptional, nullable: wanted.nullable };
  switch (wanted.kind) {
    case "null": return html`<${Kept} ...${all} text=${formSay.none} />`;
    case "const": return html`<${Kept} ...${all} text=${JSON.stringify(schema.const)} />`;
    case "choice": return html`<${Choice} ...${all} />`;
    case "boolean": return html`<${Truth} ...${all} />`;
    case "number": return html`<${Numeral} ...${all} />`;
    case "text": return html`<${Text} ...${all} />`;
    case "moment": return html`<${Moment} ...${all} />`;
    case "checks": return html`<${Checks} ...${all} />`;
    case "object": return html`<${Group} ...${all} />`;
    case "list": return html`<${List} ...${all} />`;
    case "tuple": return html`<${Tuple} ...${all} />`;
    case "map": return html`<${Keys} ...${all} />`;
    case "either": return html`<${Either} ...${all} />`;
    default: return html`<${JsonField} value=${props.value} onChange=${props.onChange} errors=${own.map((each) => ({ ...each, path: each.path.slice(props.path.length) }))} id=${props.id} label=${label} hint=${isOptional ? formSay.optional : ""} />`;
  }
}

/** @typedef {FieldProps & {isOptional: boolean, nullable: boolean}} All */

/** Fields with a name around them; one that may be left out has a box to be ticked first. @param {All & {children?: any, first: () => any}} props */
function Frame({ value, onChange, errors, path, id, label, isOptional, nullable, depth, schema, first, children }) {
  const isGiven = value !== undefined && value !== null;
  const own = errors.filter((each) => each.path.length === path.length);
  const give = (/** @type {any} */ event) => onChange(event.currentTarget.checked ? first() : nullable ? null : undefined);
  const body = html`${schema.description && html`<p class="hint">${schema.description}</p>`}
    ${isOptional && html`<label class="check"><input type="checkbox" id=${`${id}-given`} checked=${isGiven} onChange=${give} />${formSay.given}</label>`}
    ${(isGiven || !isOptional) && children}${own.length > 0 && html`<p class="misfit" role="alert">${own.map((each) => each.message).join("\n")}</p>`}`;
  if (depth === 0 && !label) return body;
  if (depth >= 3) return html`<details class="form-group" open=${errors.length > 0 || undefined}><summary>${label}</summary>${body}</details>`;
  return html`<fieldset class="form-group" aria-invalid=${own.length > 0 ? "true" : undefined} tabindex=${own.length ? -1 : undefined}><legend>${label}${isOptional && html` <span class="hint">${formSay.optional}</span>`}</legend>${body}</fieldset>`;
}

/** @param {All} props */
function Group(props) {
  const { schema, value, onChange, root, errors, path, id, depth } = props;
  const now = value && typeof value === "object" && !Array.isArray(value) ? value : {};
  const names = Object.keys(schema.properties);
  const set = (/** @type {string} */ name) => (/** @type {any} */ part) => { const next = { ...now }; if (part === undefined) delete next[name]; else next[name] = part; onChange(next); };
  const strays = errors.filter((each) => each.path.length > path.length && !names.includes(String(each.path[path.length])));
  return html`<${Frame} ...${props} first=${() => firstValue({ ...schema, default: undefined }, root) ?? {}}>
    ${strays.length > 0 && html`<p class="misfit" role="alert">${formSay.above} ${strays.map((each) => `${each.path.slice(path.length).join(".")}: ${each.message}`).join("\n")}</p>`}
    ${names.map((name) => html`<${Field} key=${name} schema=${schema.properties[name]} root=${root} value=${now[name]} onChange=${set(name)} errors=${errors} path=${[...path, name]} id=${`${id}.${name}`} label=${name} required=${(schema.required ?? []).includes(name)} depth=${depth + 1} />`)}<//>`;
}

/** @param {All} props */
function List(props) {
  const { schema, value, onChange, root, errors, path, id, depth } = props;
  const items = Array.isArray(value) ? value : [];
  const put = (/** @type {number} */ at) => (/** @type {any} */ item) => onChange(items.map((each, i) => (i === at ? item ?? null : each)));
  const swap = (/** @type {number} */ at) => () => { const next = [...items]; [next[at - 1], next[at]] = [next[at], next[at - 1]]; onChange(next); };
  const isFull = schema.maxItems !== undefined && items.length >= schema.maxItems;
  return html`<${Frame} ...${props} first=${() => []}>
    ${items.length > 0 && html`<ol class="form-items">${items.map((item, i) => html`<li key=${i}><${Field} schema=${schema.items} root=${root} value=${item} onChange=${put(i)} errors=${errors} path=${[...path, i]} id=${`${id}.${i}`} label=${formSay.item(i)} required=${true} depth=${depth + 1} />
      <span class="acts">${i > 0 && html`<button type="button" class="quiet" onClick=${swap(i)} aria-label=${`${formSay.up}: ${formSay.item(i)}`}>${formSay.up}</button>`}<button type="button" class="quiet" onClick=${() => onChange(items.filter((_, n) => n !== i))} aria-label=${`${formSay.remove}: ${formSay.item(i)}`}>${formSay.remove}</button></span></li>`)}</ol>`}
    ${!isFull && html`<p><button type="button" class="btn small" onClick=${() => onChange([...items, firstValue(schema.items, root) ?? (schema.items?.type === "string" ? "" : null)])}>${formSay.add}</button></p>`}<//>`;
}

/** @param {All} props */
function Tuple(props) {
  const { schema, value, onChange, root, errors, path, id, depth } = props;
  const items = schema.prefixItems.map((/** @type {any} */ part, /** @type {number} */ i) => (Array.isArray(value) ? value[i] : undefined) ?? null);
  return html`<${Frame} ...${props} first=${() => schema.prefixItems.map((/** @type {any} */ part) => firstValue(part, root) ?? null)}>
    ${schema.prefixItems.map((/** @type {any} */ part, /** @type {number} */ i) => html`<${Field} key=${i} schema=${part} root=${root} value=${items[i] ?? undefined} onChange=${(/** @type {any} */ item) => onChange(items.map((/** @type {any} */ each, /** @type {number} */ n) => (n === i ? item ?? null : each)))} errors=${errors} path=${[...path, i]} id=${`${id}.${i}`} label=${formSay.item(i)} required=${true} depth=${depth + 1} />`)}<//>`;
}

/** Keys of any name, each with a value of one schema. @param {All} props */
function Keys(props) {
  const { schema, value, onChange, root, errors, path, id, depth } = props;
  const pairs = Object.entries(value && typeof value === "object" ? value : {});
  const set = (/** @type {number} */ at, /** @type {[string, any]} */ pair) => onChange(Object.fromEntries(pairs.map((each, i) => (i === at ? pair : each))));
  const fresh = () => { let n = pairs.length + 1; while (pairs.some(([key]) => key === `key${n}`)) n++; return `key${n}`; };
  return html`<${Frame} ...${props} first=${() => ({})}>
    ${pairs.map(([key, item], i) => html`<div class="form-pair" key=${i}><div class="field"><label for=${`${id}.${i}.key`}>${formSay.key}</label><input class="input" id=${`${id}.${i}.key`} value=${key} onChange=${(/** @type {any} */ e) => set(i, [e.currentTarget.value, item])} /></div>
      <${Field} schema=${schema.additionalProperties} root=${root} value=${item} onChange=${(/** @type {any} */ next) => set(i, [key, next ?? null])} errors=${errors} path=${[...path, key]} id=${`${id}.${i}`} label=${formSay.value} required=${true} depth=${depth + 1} />
      <button type="button" class="quiet" aria-label=${`${formSay.remove}: ${key}`} onClick=${() => onChange(Object.fromEntries(pairs.filter((_, n) => n !== i)))}>${formSay.remove}</button></div>`)}
    <p><button type="button" class="btn small" onClick=${() => onChange(Object.fromEntries([...pairs, [fresh(), firstValue(schema.additionalProperties, root) ?? null]]))}>${formSay.addKey}</button></p><//>`;
}

/** One of several forms: which one first, then its fields. @param {All} props */
function Either(props) {
  const { schema, value, onChange, root, errors, path, id, label, depth, nullable, required } = props;
  const forms = /** @type {any[]} */ (schema.forms).map((form) => wantedBy(form, root, depth));
  const fits = forms.findIndex((form) => looksLike(form, value));
  const chosen = value === undefined || value === null ? -1 : Math.max(0, fits);
  const choose = (/** @type {any} */ event) => { const i = Number(event.currentTarget.value); onChange(i < 0 ? (nullable ? null : undefined) : firstValue(schema.forms[i], root) ?? blank(forms[i].kind)); };
  return html`<div class="form-either"><div class="field"><label for=${id}>${label} <span class="hint">${formSay.kind}</span></label>
      <select class="input" id=${id} value=${String(chosen)} onChange=${choose}><option value="-1">${nullable || !required ? formSay.none : formSay.choose}</option>${forms.map((form, i) => html`<option key=${i} value=${String(i)}>${form.schema?.title ?? form.schema?.type ?? form.kind}</option>`)}</select></div>
    ${chosen >= 0 && html`<${Field} key=${chosen} schema=${schema.forms[chosen]} root=${root} value=${value} onChange=${onChange} errors=${errors} path=${path} id=${`${id}.form`} label=${formSay.value} required=${true} depth=${depth + 1} />`}</div>`;
}

/** @param {string} kind */
const blank = (kind) => ({ object: {}, map: {}, list: [], tuple: [], number: 0, boolean: false, text: "", moment: "" })[/** @type {"text"} */ (kind)] ?? "";

/** @param {import("./schema.js").Wanted} form @param {any} value */
function looksLike(form, value) {
  if (form.kind === "object") return value && typeof value === "object" && !Array.isArray(value) && Object.entries(form.schema.properties).every(([name, part]) => !("const" in /** @type {any} */ (part)) || /** @type {any} */ (part).const === value[name]);
  if (form.kind === "list" || form.kind === "tuple") return Array.isArray(value);
  if (form.kind === "number") return typeof value === "number";
  if (form.kind === "boolean") return typeof value === "boolean";
  if (form.kind === "choice") return form.schema.enum.includes(value);
  return typeof value === "string";
}

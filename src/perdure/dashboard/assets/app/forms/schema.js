// @ts-check
// What a schema asks for, without drawing anything: references resolved, the kind of control, what a form begins with.
// Pure.

/** @typedef {{kind: "null"|"const"|"choice"|"boolean"|"number"|"text"|"moment"|"object"|"map"|"list"|"checks"|"tuple"|"either"|"json", schema: any, nullable: boolean}} Wanted */

const DEEPEST = 8;

/** The schema that a `$ref` names. @param {any} schema @param {any} root @returns {any} */
export function resolved(schema, root) {
  for (let hops = 0; schema && typeof schema === "object" && typeof schema.$ref === "string" && hops < DEEPEST; hops++) {
    let found = root;
    for (const part of schema.$ref.replace(/^#\/?/, "").split("/").filter(Boolean)) found = found?.[part.replaceAll("~1", "/").replaceAll("~0", "~")];
    const { $ref: _, ...beside } = schema;
    schema = found && typeof found === "object" ? { ...found, ...beside } : found;
  }
  return schema;
}

/** The control that fits. @param {any} given @param {any} root @param {number} depth @returns {Wanted} */
export function wantedBy(given, root, depth) {
  const schema = resolved(given, root);
  const as = (/** @type {Wanted["kind"]} */ kind, /** @type {any} */ of = schema, nullable = false) => ({ kind, schema: of, nullable });
  if (!schema || typeof schema !== "object" || depth > DEEPEST) return as("json", schema ?? {});
  const several = schema.anyOf ?? schema.oneOf ?? (Array.isArray(schema.type) ? schema.type.map((/** @type {string} */ type) => ({ ...schema, type })) : null);
  if (Array.isArray(several)) {
    const { anyOf: _a, oneOf: _o, ...beside } = schema;
    const others = several.filter((/** @type {any} */ one) => resolved(one, root)?.type !== "null");
    if (others.length === 1) return { ...wantedBy({ ...resolved(others[0], root), ...(Array.isArray(schema.type) ? {} : without(beside, "type")) }, root, depth), nullable: others.length < several.length };
    return { ...as("either", { ...beside, forms: others }), nullable: others.length < several.length };
  }
  if ("const" in schema) return as("const");
  if (Array.isArray(schema.enum)) return { ...as("choice", { ...schema, enum: schema.enum.filter((/** @type {any} */ one) => one !== null) }), nullable: schema.enum.includes(null) };
  if (schema.type === "null") return as("null");
  if (schema.type === "boolean") return as("boolean");
  if (schema.type === "integer" || schema.type === "number") return as("number");
  if (schema.type === "string") return as(schema.format === "date-time" ? "moment" : "text");
  if (schema.type === "array") {
    if (Array.isArray(schema.prefixItems)) return as("tuple");
    const item = resolved(schema.items, root);
    if (Array.isArray(item?.enum) && schema.uniqueItems) return as("checks", { ...schema, items: item });
    return schema.items && schema.items !== true ? as("list") : as("json");
  }
  if (schema.type === "object" || schema.properties) {
    if (schema.properties) return as("object");
    return typeof schema.additionalProperties === "object" && Object.keys(schema.additionalProperties).length ? as("map") : as("json");
  }
  return as("json");
}

/** @param {any} from @param {string} name */
function without(from, name) {
  const { [name]: _, ...rest } = from;
  return rest;
}

/** What a form begins with: defaults, and nothing where there is none. @param {any} given @param {any} [root] @param {number} [depth] @returns {any} */
export function firstValue(given, root = given, depth = 0) {
  const schema = resolved(given, root);
  if (!schema || typeof schema !== "object" || depth > DEEPEST) return undefined;
  if (schema.default !== undefined) return schema.default;
  const { kind, schema: of, nullable } = wantedBy(schema, root, depth);
  if (kind === "const") return of.const;
  if (kind === "list" || kind === "checks") return nullable ? undefined : [];
  if (kind !== "object" || nullable) return undefined;
  const found = /** @type {Record<string, any>} */ ({});
  for (const [name, part] of Object.entries(of.properties)) {
    const first = firstValue(part, root, depth + 1);
    if (first !== undefined && (resolved(part, root)?.default !== undefined || (of.required ?? []).includes(name))) found[name] = first;
  }
  return found;
}

/** A schema that fits a value, for editing what has none of its own. @param {any} value @param {number} [depth] @returns {any} */
export function schemaOf(value, depth = 0) {
  if (typeof value === "boolean") return { type: "boolean" };
  if (typeof value === "number") return { type: Number.isInteger(value) ? "integer" : "number" };
  if (typeof value === "string") return { type: "string", ...(value.length > 120 || value.includes("\n") ? { maxLength: 1_000_000 } : {}) };
  if (value && typeof value === "object" && !Array.isArray(value) && depth < 3) {
    const names = Object.keys(value);
    if (names.length && names.length <= 30) return { type: "object", properties: Object.fromEntries(names.map((name) => [name, schemaOf(value[name], depth + 1)])), required: names };
  }
  return {};
}

/** Whether anything in it is a password, which is never kept. @param {any} schema @returns {boolean} */
export function holdsPassword(schema) {
  return Boolean(schema) && JSON.stringify(schema).includes('"format":"password"');
}

// @ts-check
// Texts of forms that are made from a schema.

const WHOLE = /** @type {Record<string, string>} */ ({ integer: "integer", number: "number", string: "text" });
const FORMATS = /** @type {Record<string, string>} */ ({
  uuid: "a UUID", email: "an address: ada@example.org", uri: "a web address", duration: "a length of time: 1h30m or PT1H30M",
  decimal: "a decimal number: 12.50", time: "a time of day: 14:30:00",
});

export const formSay = {
  json: "Value as JSON",
  yes: "yes", no: "no", none: "no value", choose: "Choose…", optional: "optional",
  add: "Add", remove: "Remove", up: "Move up", addKey: "Add a key", key: "Key", value: "Value",
  item: (/** @type {number} */ n) => `item ${n + 1}`,
  given: "give a value", kind: "Which form",
  above: "Not at a field:",
  notJson: (/** @type {string} */ why) => `This is not JSON yet: ${why}`,
  zone: (/** @type {string} */ zone) => `in your time zone (${zone}); stored as UTC`,
  secret: "never kept in this browser",
  /** What a field takes, in a few words. @param {any} schema */
  takes: (schema) => {
    const kind = FORMATS[schema.format] ?? WHOLE[schema.type] ?? "";
    const low = schema.minimum ?? schema.exclusiveMinimum, high = schema.maximum ?? schema.exclusiveMaximum;
    const range = low !== undefined && high !== undefined ? `${low} to ${high}` : low !== undefined ? `from ${low}` : high !== undefined ? `up to ${high}` : "";
    const most = schema.maxLength !== undefined ? `at most ${schema.maxLength} characters` : "";
    const step = schema.multipleOf !== undefined ? `in steps of ${schema.multipleOf}` : "";
    return [kind === "text" && !most ? "" : kind, range, step, most].filter(Boolean).join(", ");
  },
};

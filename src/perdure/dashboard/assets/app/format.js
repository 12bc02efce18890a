// @ts-check
// Numbers, sizes, lengths of time, moments and hostile text, as people read them. Pure: the clock is an argument.

const MINUTE = 60_000, HOUR = 60 * MINUTE, DAY = 24 * HOUR;
const MONTHS = ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"];
const grouped = new Intl.NumberFormat("en-US", { maximumFractionDigits: 2 });

/** @param {number} value */
export const number = (value) => grouped.format(value);

const small = new Intl.NumberFormat("en-US", { maximumSignificantDigits: 2 });

/** Money: what is less than a hundredth is not nothing. @param {number} value */
export const money = (value) => (value !== 0 && Math.abs(value) < 0.01 ? small : grouped).format(value);

/** @param {number} bytes */
export function size(bytes) {
  if (bytes < 1000) return `${bytes} B`;
  for (const [unit, step] of /** @type {[string, number][]} */ ([["kB", 1e3], ["MB", 1e6], ["GB", 1e9]])) {
    if (bytes < step * 1000 || unit === "GB") {
      const scaled = bytes / step;
      return `${scaled < 10 ? scaled.toFixed(1) : Math.round(scaled)} ${unit}`;
    }
  }
  return "";
}

/** A length of time: 420 ms, 2.1 s, 3 min, 5 h 12 min, 2 d 4 h. @param {number} ms */
export function length(ms) {
  ms = Math.max(0, ms);
  if (ms < 1000) return `${Math.round(ms)} ms`;
  if (ms < 9_950) return `${(ms / 1000).toFixed(1)} s`;
  if (ms < MINUTE) return `${Math.floor(ms / 1000)} s`;
  if (ms < HOUR) return `${Math.floor(ms / MINUTE)} min`;
  if (ms < DAY) return pair(ms, HOUR, "h", MINUTE, "min");
  return pair(ms, DAY, "d", HOUR, "h");
}

/** A length of time that is about now: whole seconds, so that it does not flicker. @param {number} ms */
export const roughly = (ms) => (ms < MINUTE ? `${Math.floor(Math.max(0, ms) / 1000)} s` : length(ms));

/** @param {number} ms @param {number} big @param {string} bigs @param {number} small @param {string} smalls */
function pair(ms, big, bigs, small, smalls) {
  const rest = Math.floor((ms % big) / small);
  return rest ? `${Math.floor(ms / big)} ${bigs} ${rest} ${smalls}` : `${Math.floor(ms / big)} ${bigs}`;
}

/** A moment beside now: "12 min ago", "in 1 d 23 h", "17 Nov 11:00" beyond a week.
 * @param {number} at @param {number} now */
export function relative(at, now) {
  const apart = now - at;
  if (Math.abs(apart) > 7 * DAY) return calendar(at, now);
  if (Math.abs(apart) < 1000) return "now";
  return apart > 0 ? `${roughly(apart)} ago` : `in ${roughly(-apart)}`;
}

/** @param {number} at @param {number} now */
export function calendar(at, now) {
  const date = new Date(at);
  const year = date.getFullYear() === new Date(now).getFullYear() ? "" : ` ${date.getFullYear()}`;
  return `${date.getDate()} ${MONTHS[date.getMonth()]}${year} ${clock(at)}`;
}

/** @param {number} at */
export const clock = (at) => `${two(new Date(at).getHours())}:${two(new Date(at).getMinutes())}`;

/** @param {number} at */
export const clockSeconds = (at) => `${clock(at)}:${two(new Date(at).getSeconds())}`;

/** The whole moment, in UTC and here. @param {number} at */
export function exact(at) {
  const date = new Date(at);
  const offset = -date.getTimezoneOffset();
  const zone = `${offset < 0 ? "-" : "+"}${two(Math.floor(Math.abs(offset) / 60))}:${two(Math.abs(offset) % 60)}`;
  return `${date.toISOString()}\n${date.getFullYear()}-${two(date.getMonth() + 1)}-${two(date.getDate())} ${clockSeconds(at)} ${zone}`;
}

/** @param {number} value */
const two = (value) => String(value).padStart(2, "0");

/** @param {string|null|undefined} text */
export const time = (text) => (text ? Date.parse(text) : NaN);

const NAMES = /** @type {Record<number, string>} */ ({
  0x202a: "LRE", 0x202b: "RLE", 0x202c: "PDF", 0x202d: "LRO", 0x202e: "RLO", 0x2066: "LRI", 0x2067: "RLI",
  0x2068: "FSI", 0x2069: "PDI", 0x200e: "LRM", 0x200f: "RLM", 0x061c: "ALM", 0x200b: "ZWSP", 0x2060: "WJ",
  0xfeff: "BOM", 0x2028: "LS", 0x2029: "PS", 0x00ad: "SHY",
});
// Control characters other than tab and line feed, marks of direction, invisible and unpaired ones.
const HIDDEN = /[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u00ad\u061c\u200b\u200e\u200f\u2028-\u202e\u2060\u2066-\u2069\ufeff]|[\ud800-\udbff](?![\udc00-\udfff])|(?<![\ud800-\udbff])[\udc00-\udfff]/g;
const MARKS = /(\p{M}{4})\p{M}+/gu;

/** Text of others with what cannot be seen made visible, and towers of combining marks cut. @param {unknown} text */
export function visible(text) {
  return String(text).replace(HIDDEN, (c) => {
    const code = c.charCodeAt(0);
    if (code < 0x20) return String.fromCharCode(0x2400 + code);
    if (code === 0x7f) return "\u2421";
    return `⟨${NAMES[code] ?? `U+${code.toString(16).toUpperCase().padStart(4, "0")}`}⟩`;
  }).replace(MARKS, "$1…");
}

/** One line of a text, cut. @param {unknown} text @param {number} most */
export function line(text, most = 160) {
  const seen = visible(String(text).slice(0, most * 2)).replace(/\s+/g, " ").trim();
  return seen.length > most ? `${seen.slice(0, most - 1)}…` : seen;
}

/** A link that data may name: only web addresses and addresses of ours. @param {unknown} address */
export function safeHref(address) {
  const text = String(address ?? "");
  if (/^\/(?![/\\])/.test(text)) return text;
  return /^https?:\/\//i.test(text) ? text : undefined;
}

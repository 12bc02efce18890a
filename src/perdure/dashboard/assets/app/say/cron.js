// @ts-check
// A cron expression in words. What these words do not cover is told as the expression itself: a wrong sentence about
// when something runs would be worse than none.

import { length } from "../format.js";

const DAYS = ["Sundays", "Mondays", "Tuesdays", "Wednesdays", "Thursdays", "Fridays", "Saturdays"];
const MONTHS = ["January", "February", "March", "April", "May", "June", "July", "August", "September", "October", "November", "December"];
const SHORT_DAYS = ["sun", "mon", "tue", "wed", "thu", "fri", "sat"];
const SHORT_MONTHS = MONTHS.map((name) => name.slice(0, 3).toLowerCase());
const NAMED = /** @type {Record<string, string>} */ ({ "@hourly": "0 * * * *", "@daily": "0 0 * * *", "@midnight": "0 0 * * *", "@weekly": "0 0 * * 0", "@monthly": "0 0 1 * *", "@yearly": "0 0 1 1 *", "@annually": "0 0 1 1 *" });

/** When a schedule comes round. @param {{cron: string, tz: string, every: number|null}} schedule */
export function rhythm({ cron, tz, every }) {
  if (every != null) return `every ${length(every * 1000)}`;
  const words = cronWords(cron);
  return words === null ? `by its expression, ${tz}` : `${words} ${tz}`;
}

/** @param {string} cron @returns {string|null} */
export function cronWords(cron) {
  const fields = (NAMED[cron.trim().toLowerCase()] ?? cron).trim().toLowerCase().split(/\s+/);
  if (fields.length !== 5) return null;
  const [minute, hour, day, month, weekday] = fields;
  const when = timeWords(minute, hour), days = dayWords(day, month, weekday);
  if (when === null || days === null) return null;
  return when.isAt ? (days ? `${days} ${when.text}` : `daily ${when.text}`) : days ? `${when.text}, ${days}` : when.text;
}

/** @param {string} minute @param {string} hour @returns {{text: string, isAt: boolean}|null} */
function timeWords(minute, hour) {
  const step = /^\*\/(\d+)$/;
  if (minute === "*" && hour === "*") return { text: "every minute", isAt: false };
  const everyMinutes = step.exec(minute);
  // Steps restart with the hour: only a divisor of 60 means the same distance each time.
  if (everyMinutes && hour === "*" && 60 % Number(everyMinutes[1]) === 0) return { text: `every ${everyMinutes[1]} minutes`, isAt: false };
  const past = numbers(minute, 0, 59, []);
  if (!past || past.length > 4) return null;
  const at = past.map((n) => `:${String(n).padStart(2, "0")}`);
  if (hour === "*") return { text: `every hour at ${list(at)}`, isAt: false };
  const everyHours = step.exec(hour);
  if (everyHours && 24 % Number(everyHours[1]) === 0 && past.length === 1) return { text: `every ${everyHours[1]} hours at ${at[0]}`, isAt: false };
  const hours = numbers(hour, 0, 23, []);
  if (!hours || hours.length * past.length > 4) return null;
  return { text: list(hours.flatMap((h) => past.map((m) => `${String(h).padStart(2, "0")}:${String(m).padStart(2, "0")}`))), isAt: true };
}

/** The days, "" for every day. @param {string} day @param {string} month @param {string} weekday @returns {string|null} */
function dayWords(day, month, weekday) {
  if (day !== "*" && weekday !== "*") return null; // either of the two: no short sentence is true
  const months = month === "*" ? "" : named(month, 1, 12, SHORT_MONTHS, (n) => MONTHS[n - 1]);
  if (months === null) return null;
  let days = "";
  if (weekday !== "*") {
    const found = numbers(weekday, 0, 7, SHORT_DAYS)?.map((n) => n % 7);
    if (!found) return null;
    days = found.join() === "1,2,3,4,5" ? "Mondays to Fridays" : list([...new Set(found)].map((n) => DAYS[n]));
  } else if (day !== "*") {
    const found = numbers(day, 1, 31, []);
    if (!found || found.length > 5) return null;
    days = `on day ${list(found.map(String))} of ${months ? "" : "the month"}`.trimEnd();
    return months ? `${days} ${months}` : days;
  }
  return months ? `${days || "daily"} in ${months}` : days;
}

/** @param {string} field @param {number} low @param {number} high @param {string[]} names @param {(n: number) => string} word */
function named(field, low, high, names, word) {
  const found = numbers(field, low, high, names);
  return found && found.length <= 6 ? list(found.map(word)) : null;
}

/** The numbers a field of plain numbers, names and ranges stands for. @param {string} field @param {number} low @param {number} high @param {string[]} names @returns {number[]|null} */
function numbers(field, low, high, names) {
  const read = (/** @type {string} */ text) => (/^\d+$/.test(text) ? Number(text) : names.indexOf(text) >= 0 ? names.indexOf(text) + (names === SHORT_MONTHS ? 1 : 0) : NaN);
  const found = [];
  for (const part of field.split(",")) {
    const [from, to = from, more] = part.split("-").map(read);
    if (more !== undefined || !(from >= low && to <= high && from <= to)) return null;
    for (let n = from; n <= to; n++) found.push(n);
  }
  return found;
}

/** @param {string[]} words */
const list = (words) => (words.length < 2 ? words.join("") : `${words.slice(0, -1).join(", ")} and ${words[words.length - 1]}`);

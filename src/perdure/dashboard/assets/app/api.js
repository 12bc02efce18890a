// @ts-check
// Requests to the API of this server. Every failure is a Problem: what happened, what was kept, what to do.

/** @typedef {{path: (string|number)[], message: string}} Misfit */

export class Problem extends Error {
  /** @param {number} status 0 when the server did not answer @param {Record<string, any>} body */
  constructor(status, body) {
    super(body.detail || body.title || "");
    this.status = status;
    this.code = /** @type {string} */ (body.code || "");
    this.kept = /** @type {string} */ (body.kept || "");
    this.do = /** @type {string} */ (body.cli || body.do || "");
    this.values = /** @type {Record<string, any>} */ (body.values || {});
    this.errors = /** @type {Misfit[]} */ (body.errors || []);
    this.wait = /** @type {number} */ (body.wait || 0);
  }

  /** Whether the server has no such route (it is older than this page) or no such thing. */
  get isAbsent() {
    return this.status === 404 || this.status === 405 || this.status === 501;
  }
}

/** Told of every answer, for the connection light and for sessions that end.
 * @type {{answered: (status: number) => void, silent: () => void}} */
export const listener = { answered: () => {}, silent: () => {} };

let client = "dashboard/0";
/** @param {string} version */
export const introduce = (version) => { client = `dashboard/${version}`; };
/** What a writing request says it comes from. */
export const clientName = () => client;

/** @param {string} method @param {string} path @param {RequestInit} [init] */
export async function ask(method, path, init = {}) {
  let answer;
  try {
    answer = await fetch(path, { credentials: "same-origin", redirect: "error", ...init, method });
  } catch (error) {
    if (init.signal?.aborted) throw error;
    listener.silent();
    throw new Problem(0, { code: "no_answer" });
  }
  listener.answered(answer.status);
  if (!answer.ok && answer.status !== 304) throw await problemOf(answer);
  return answer;
}

/** @param {Response} answer */
async function problemOf(answer) {
  const wait = Number(answer.headers.get("Retry-After")) || 0;
  try {
    return new Problem(answer.status, { ...(await answer.json()), wait });
  } catch {
    return new Problem(answer.status, { code: "unreadable", wait });
  }
}

/** Read JSON. What each path answers is in openapi.json, of which the checker of types makes `Api.Get`. */
export const get = /** @type {Api.Get} */ (async (/** @type {string} */ path, /** @type {AbortSignal|undefined} */ signal) => (await ask("GET", path, { signal })).json());

/** Read JSON with its ETag, for a write that must name what was seen.
 * @param {string} path @returns {Promise<{value: any, etag: string|null}>} */
export async function getTagged(path) {
  const answer = await ask("GET", path);
  return { value: await answer.json(), etag: answer.headers.get("ETag") };
}

/** Write. A retry by the same `once` does it once.
 * @param {string} method @param {string} path @param {unknown} [body]
 * @param {{once?: string, match?: string|null}} [how] @returns {Promise<any>} */
export async function send(method, path, body, how = {}) {
  const headers = /** @type {Record<string, string>} */ ({ "Perdure-Client": client });
  if (how.once) headers["Idempotency-Key"] = how.once;
  if (how.match) headers["If-Match"] = how.match;
  const init = /** @type {RequestInit} */ ({ headers });
  if (body !== undefined) {
    headers["Content-Type"] = "application/json";
    init.body = JSON.stringify(body);
  }
  const answer = await ask(method, path, init);
  const text = await answer.text();
  return text ? JSON.parse(text) : null;
}

/** A key for one thing to be done, made when a person decides and not per try. */
export const newOnce = () => crypto.randomUUID();

/** One segment of an address. @param {string} text */
export const segment = (text) => encodeURIComponent(text);

/** How a task is named in addresses: by its id, or by its uid where the id would be misread.
 * @param {{id: string, uid?: string}} task */
export function refOf(task) {
  const odd = task.id === "." || task.id === ".." || task.id.startsWith("~");
  return odd && task.uid ? `~${task.uid}` : segment(task.id);
}

/** A query string; arrays repeat, empty values are left out. @param {Record<string, any>} values @returns {""|`?${string}`} */
export function query(values) {
  const found = new URLSearchParams();
  for (const [name, value] of Object.entries(values)) {
    for (const each of Array.isArray(value) ? value : [value]) {
      if (each !== undefined && each !== null && each !== "" && each !== false) found.append(name, String(each));
    }
  }
  const text = found.toString();
  return text ? `?${text}` : "";
}

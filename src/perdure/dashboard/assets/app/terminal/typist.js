// @ts-check
// Typing into a unit: the right to do so, and its inputs one after the other. What is typed meanwhile goes into the next
// one. An input that got no answer is sent again under its id, which types it once; one of unknown fate is never repeated.

import { ask, clientName, newOnce, Problem, send } from "../api.js";

const RENEW = 20_000, MOST = 60_000, RETRY = 500;

export class Typist {
  /** @param {string} path the unit's address in the API
   * @param {{lost: (problem: Problem) => void, uncertain: (problem: Problem) => void, stuck: (is: boolean) => void}} told */
  constructor(path, told) {
    this.path = path;
    this.told = told;
    this.has = false;
    this.waiting = /** @type {Uint8Array[]} */ ([]);
    this.isSending = false;
    this.timer = 0;
  }

  /** Take the right to type. @param {boolean} force also from another writer */
  async take(force) {
    await send("PUT", `${this.path}/writer`, force ? { take: true } : {});
    this.has = true;
    clearInterval(this.timer);
    this.timer = setInterval(() => { this.renew().catch(() => {}); }, RENEW);
  }

  async renew() {
    try {
      await send("PUT", `${this.path}/writer`, {});
    } catch (error) {
      if (error instanceof Problem && error.status !== 0 && error.status < 500) this.lose(error);
    }
  }

  async giveBack() {
    if (!this.has) return;
    this.lose(null);
    await send("DELETE", `${this.path}/writer`);
  }

  /** @param {Problem|null} problem */
  lose(problem) {
    clearInterval(this.timer);
    const had = this.has;
    this.has = false;
    this.waiting = [];
    if (had && problem) this.told.lost(problem);
  }

  /** @param {Uint8Array} data */
  type(data) {
    if (!this.has) return;
    for (let at = 0; at < data.length; at += MOST) this.waiting.push(data.subarray(at, at + MOST));
    if (!this.isSending) void this.pump();
  }

  async pump() {
    this.isSending = true;
    try {
      while (this.has && this.waiting.length) await this.put(newOnce(), this.next());
    } finally {
      this.isSending = false;
    }
  }

  /** What waits, as one input. */
  next() {
    let length = 0, count = 0;
    while (count < this.waiting.length && length + this.waiting[count].length <= MOST) length += this.waiting[count++].length;
    const all = new Uint8Array(length);
    let at = 0;
    for (const part of this.waiting.splice(0, count)) { all.set(part, at); at += part.length; }
    return all;
  }

  /** @param {string} id @param {Uint8Array} data */
  async put(id, data) {
    for (;;) {
      try {
        await sendBytes(`${this.path}/input`, id, data);
        this.told.stuck(false);
        return;
      } catch (error) {
        if (!(error instanceof Problem)) throw error;
        if (error.code === "uncertain") return this.told.uncertain(error);
        if (error.status !== 0 && error.status < 500 && error.status !== 429) return this.lose(error);
        if (!this.has) return;
        this.told.stuck(true);
        await new Promise((done) => setTimeout(done, error.wait * 1000 || RETRY));
      }
    }
  }

  /** @param {number} rows @param {number} columns */
  async resize(rows, columns) {
    if (this.has) await send("PUT", `${this.path}/size`, { rows, columns });
  }
}

/** Bytes as they are: an input, or the answer to a question for a secret. @param {string} path @param {string} id @param {Uint8Array} data */
export function sendBytes(path, id, data) {
  const headers = { "Perdure-Client": clientName(), "Perdure-Input-Id": id, "Content-Type": "application/octet-stream" };
  return ask("POST", path, { headers, body: /** @type {any} */ (data) });
}

// @ts-check
// Texts of Operate.

import { length, number, roughly, size, time } from "../format.js";
import { some } from "./common.js";

const ago = (/** @type {number|null} */ seconds) => (seconds == null ? "no beat yet" : `beat ${roughly(seconds * 1000)} ago`);

export const operateSay = {
  title: "Operate",
  subject: (/** @type {string} */ part) => `${part} · Operate`,
  partsLabel: "Parts",
  parts: /** @type {Record<string, string>} */ ({
    workers: "Workers", queues: "Queues", schedules: "Schedules", triggers: "Triggers and events", webhooks: "Webhooks", handlers: "Handlers",
    keys: "API keys", units: "Keeper and units", store: "Store", doctor: "Doctor", audit: "Audit",
  }),
  noPart: "This part is not shown here",
  noPartWhy: "It does not exist, or this session does not have the scope for it.",
  checked: "checked ",
  iHaveIt: "I have it",
  copyOf: (/** @type {string} */ what) => `Copy the ${what}`,
  job: { running: "Working…", ended: /** @type {Record<string, string>} */ ({ failed: "This failed.", stopped: "This was stopped before its end." }) },

  workers: {
    alive: "alive", silent: "silent", dead: "dead", worker: "worker", process: "process",
    count: (/** @type {number} */ n) => `${number(n)} alive`,
    none: "No process uses this store. Start a worker:", command: "perdure worker yourmodule:app",
    name: (/** @type {any} */ one) => (one.is_remote ? `${one.user || one.id} on ${one.host}` : `pid ${one.pid} on ${one.host}`),
    holds: (/** @type {number} */ n, /** @type {number|null} */ most) => (most == null ? `holds ${some(n, "task")}` : `${number(n)} of ${some(most, "task")}`),
    queues: (/** @type {string[]} */ names) => `${names.length === 1 ? "queue" : "queues"} ${names.join(", ")}`,
    beat: (/** @type {number} */ lease, /** @type {number|null} */ age) => `lease ${roughly(lease * 1000)}, ${ago(age)}`,
    version: (/** @type {string} */ text) => `perdure ${text}`,
    wish: (/** @type {string} */ text) => `asked to ${text}`,
    functions: (/** @type {number} */ n) => some(n, "function"),
    functionName: (/** @type {any} */ one) => String(one),
    drain: "Drain…", drainAll: "Drain all…", drainTitle: "Drain workers",
    drainWould: (/** @type {number} */ n, /** @type {number} */ held) => `This asks ${some(n, "worker")} to give back ${some(held, "task")} and to end. Other workers continue the tasks; without another worker they wait.`,
    drainButton: (/** @type {number} */ n) => `Drain ${some(n, "worker")}`,
    drained: (/** @type {number} */ n, /** @type {number} */ busy) => `${some(n, "worker")} drained.${busy ? ` ${some(busy, "worker")} still at work.` : ""}`,
  },

  queues: {
    none: "No queue is known yet. A queue appears with its first worker or task.", noWorker: "no worker", waits: "tasks wait", works: "working", idle: "idle",
    workers: (/** @type {number} */ n) => some(n, "worker"),
    inUse: (/** @type {number} */ n, /** @type {number|null} */ most) => (most == null ? `${number(n)} worked on` : `${number(n)} of at most ${number(most)} worked on`),
    waiting: (/** @type {number} */ n, /** @type {boolean} */ isAbout) => `${isAbout ? "about " : ""}${number(n)} waiting`,
    oldest: "oldest waits since ",
    perKey: (/** @type {number} */ n) => `at most ${number(n)} per key`,
    rate: (/** @type {any[]} */ [most, per]) => `at most ${most} per ${typeof per === "number" ? length(per * 1000) : per}`,
  },

  handlers: {
    none: "No handler is registered. app.on(…) registers one.", failing: "failing", ok: "ok",
    told: (/** @type {any} */ one) => `is told of ${one.event}${one.reason ? `, reason ${one.reason}` : ""}`,
  },

  schedules: {
    none: "No schedule exists. This makes one every morning:", example: 'perdure schedule add report yourmodule:report --cron "0 9 * * *"',
    paused: "paused", scheduled: "scheduled", runNow: "Run now", pause: "Pause", resume: "Resume", next: "next ",
    starts: (/** @type {string} */ name) => `starts ${name}`,
    runs: (/** @type {number} */ n) => `${some(n, "run")} by the clock`,
    skipped: (/** @type {number} */ n) => `${number(n)} skipped`,
    open: (/** @type {number} */ n) => `${number(n)} running`,
    changed: (/** @type {string} */ id, /** @type {boolean} */ isPaused) => `${id} is ${isPaused ? "paused" : "resumed"}.`,
    begun: "Started", more: "Next ticks and last runs", ticks: "Next ticks", lastRuns: "Last runs",
    noTicks: "None: it does not come round again.", noTicksPaused: "None while it is paused.", noRuns: "None yet.",
    inZone: (/** @type {string} */ at, /** @type {string} */ zone) => {
      const how = /** @type {Intl.DateTimeFormatOptions} */ ({ weekday: "short", day: "numeric", month: "short", hour: "2-digit", minute: "2-digit", hourCycle: "h23" });
      const here = new Intl.DateTimeFormat("en-GB", how).format(time(at));
      try { const there = new Intl.DateTimeFormat("en-GB", { ...how, timeZone: zone }).format(time(at)); return there === here ? there : `${there} ${zone}, ${here} here`; } catch { return here; }
    },
    took: (/** @type {any} */ run) => length(time(run.finished_at) - time(run.created_at)),
  },

  triggers: {
    none: "No trigger exists. A trigger starts a task, or signals one, when an event comes.", paused: "paused", ok: "ok", pause: "Pause", resume: "Resume",
    source: (/** @type {any} */ one) => (one.path ? `${one.source} ${one.path}${one.pattern ? `/${one.pattern}` : ""}${one.host ? ` on ${one.host}` : ""}` : `${one.source} ${one.event}`),
    target: (/** @type {any} */ one) => (one.function ? `→ starts ${one.function}` : `→ signals ${one.signal} to ${one.task}`),
    rate: (/** @type {{most: number, per: number}} */ rate) => `at most ${number(rate.most)} in ${length(rate.per * 1000)}`,
    queue: (/** @type {string} */ name) => `queue ${name}`,
    events: "Events", newest: "newest first", noEvents: "No event has come yet.", came: "came ", data: "What it carries",
    refused: "refused", ledTo: "acted on", nothing: "nothing to do", waits: "waits",
    started: (/** @type {string} */ trigger, /** @type {any} */ task) => `${trigger} → ${typeof task === "string" ? task : JSON.stringify(task)}`,
    refusedBy: (/** @type {string} */ trigger, /** @type {any} */ why) => `${trigger}: ${typeof why === "string" ? why : JSON.stringify(why)}`,
  },

  webhooks: {
    none: "No webhook exists. A webhook tells another service when something happens to a task.", ok: "ok", failing: "failing", disabled: "disabled",
    events: (/** @type {any} */ one) => [one.events.includes("*") ? "every event" : one.events.join(", "), one.reasons.length && `reasons ${one.reasons.join(", ")}`, one.functions.length && `of ${one.functions.join(", ")}`, one.data && "with data"].filter(Boolean).join(", "),
    failingSince: "failing since ", nextTry: "next try ", bothUntil: "two secrets until ",
    enable: "Enable", test: "Send a ping", rotate: "Rotate…", remove: "Remove…", deliveries: "Deliveries", whichDeliveries: "Which deliveries",
    delivered: "delivered", due: "waits", failed: "failed", all: "all", noDeliveries: "No delivery of this kind in the last 7 days.",
    tries: (/** @type {number} */ n) => some(n, "try", "tries"), status: (/** @type {number} */ n) => `answered ${n}`, took: (/** @type {number} */ ms) => `in ${length(ms)}`, queued: "queued ",
    content: "What was sent and answered", answer: "Answer", body: "Sent", replay: "Replay",
    make: "New webhook…", makeTitle: "New webhook", makeButton: "Make the webhook", madeTitle: "The webhook is made", secret: "secret",
    madeWhy: "The receiver checks signatures with this secret. It is shown only now; copy it to the receiver before you close this.",
    url: "Address", urlHint: "https, reachable from the server; addresses of private networks are refused", description: "What it is for", eventsField: "Events", eventsHint: "names with commas, such as task.paused, task.failed; * for all", withData: "Send what agents wrote along",
    rotateTitle: "Rotate the secret", rotateButton: "Make a new secret", rotateWould: "For 24 hours messages carry a signature of each secret. After that only the new one counts.", rotatedTitle: "The new secret",
    rotatedWhy: "It is shown only now. Give it to the receiver within 24 hours.",
    removeTitle: "Remove the webhook", removeButton: "Remove it", removeWould: "Messages that wait are not sent, and its deliveries are forgotten.",
  },

  keys: {
    none: "No API key exists. A key lets a program use this server with the scopes you give it.", count: (/** @type {number} */ n) => `${number(n)} good`,
    good: "good", revoked: "revoked", expired: "expired", used: "used ", neverUsed: "never used", made: "made ", revokedAt: "revoked ", until: "until ", overSince: "expired ",
    make: "New key…", makeTitle: "New API key", makeButton: "Make the key", key: "key", name: "Name", nameHint: "who uses it; the audit names it", scopes: "What it may do",
    presets: { viewer: "viewer: read tasks and what agents wrote", agent: "agent: viewer, and an agent's own work", operator: "operator: viewer, and steer, decide, type, schedule", admin: "admin: everything", own: "chosen scopes" },
    days: "Good for days", daysHint: "empty: until it is revoked",
    madeTitle: (/** @type {string} */ name) => `The key ${name}`, madeWhy: "It is shown only now. Copy it to where it is used before you close this.",
    rotate: "Rotate…", rotateTitle: (/** @type {string} */ name) => `Rotate ${name}`, rotateButton: "Make a new secret", overlap: "Hours that the old secret stays good", overlapHint: "at most 168; 0 ends it at once",
    rotatedTitle: (/** @type {string} */ name) => `The new secret of ${name}`, rotatedWhy: (/** @type {string} */ hours) => `It is shown only now. The old secret stays good for ${some(Number(hours) || 0, "hour")}.`,
    revoke: "Revoke…", revokeTitle: (/** @type {string} */ name) => `Revoke ${name}`, revokeButton: "Revoke it for good", revokeWould: "Requests with this key are refused from now on, and its streams end. This cannot be undone.",
  },

  units: {
    which: "Which units", alive: "alive", all: "all", none: "No unit exists.", noneAlive: "No unit is alive.", keeper: "keeper", noKeeper: "none", ok: "ok", note: "note",
    noKeeperWhy: "No keeper runs. It starts with the first shell, service or watched file of a task.",
    keeperName: (/** @type {any} */ it) => `pid ${it.pid} under anchor ${it.anchor}`,
    holds: (/** @type {number} */ n) => some(n, "unit"), endsWith: (/** @type {string} */ text) => `would end with: ${text}`, unreadable: (/** @type {number} */ n) => `${some(n, "record")} not readable`,
    restart: "Restart", stop: "Stop…", stopTitle: "Stop the keeper", stopButton: "Stop the keeper", stopUnits: "End its units too",
    stopWould: (/** @type {number} */ n) => (n ? `The keeper holds ${some(n, "unit")}. They end with it, and what runs in them is lost.` : "The keeper holds no unit. The next one starts it again."),
    of: (/** @type {string} */ task) => `of ${task}`,
  },

  store: {
    engine: "Engine", place: "Place", namespace: "Namespace", bytes: "Size", wal: "Log not yet folded in", free: "Free on its disk", schema: "Schema", sealing: "New records are", keysInUse: "Keys that open records", oldReaders: "Long readers", notSealed: "not sealed",
    migrations: (/** @type {number} */ n, /** @type {string} */ last) => `${some(n, "migration")}, last ${last}`, keyName: (/** @type {any} */ key) => String(key), reader: (/** @type {any} */ one) => String(one),
    gc: "What would gc remove?", gcTitle: "Remove what is old", look: "What would this remove?", all: "keep all",
    policy: { keep_last: "Checkpoints to keep per task", keep_for: "Days to keep checkpoints", finished_for: "Days to keep finished tasks" },
    policyHint: "An empty field keeps everything. Looking removes nothing.",
    isNothing: (/** @type {any} */ plan) => !plan.tasks && !plan.checkpoints && !plan.chunks && !plan.forgotten && !plan.workers && !plan.cuts,
    nothing: "Nothing is old enough to remove.",
    would: (/** @type {any} */ plan) => `This would remove ${removal(plan)}.`,
    remove: (/** @type {any} */ plan) => `Remove ${plan.tasks ? some(plan.tasks, "task") : some(plan.checkpoints, "checkpoint")}`,
    removed: (/** @type {any} */ plan) => `Removed ${removal(plan)}.`,
    deletedList: "Tasks", prunedList: "Checkpoints", heldList: "Left alone",
    deletedLine: (/** @type {any} */ one) => `${one.task_id} (${one.status})`, prunedLine: (/** @type {any} */ one) => `${one.task_id}: ${one.seqs.join(", ")}`, heldLine: (/** @type {any} */ one) => `${one.task_id}: ${one.why}`,
  },

  doctor: {
    problem: "problem", note: "note", ok: "ok", look: "Look", again: "Look again", looked: "looked ", todo: "Do:", never: "No look was taken yet. It reads the whole store and changes nothing.",
    count: (/** @type {number} */ problems, /** @type {number} */ notes) => `${some(problems, "problem")}, ${some(notes, "note")}`,
  },

  audit: {
    what: "Each event of a task carries a hash of the one before it. A check reads all of them and finds the first that was changed, left out or added.",
    verify: "Verify all", heads: "Save the heads", whole: "whole", broken: "broken",
    counted: (/** @type {any} */ it) => `${some(it.events, "event")} of ${some(it.tasks, "task")}${it.tombstones ? ` and ${some(it.tombstones, "deleted task")}` : ""}`,
    compared: (/** @type {number} */ n) => (n ? `compared with ${some(n, "head")} saved before` : "not compared with heads saved before"),
    brokenAt: (/** @type {any} */ one) => (one.event == null ? one.problem : `event ${one.event}: ${one.problem}`), unseen: (/** @type {string[]} */ all) => `Not in the heads: ${all.join(", ")}`,
    compare: "Compare with saved heads", compareHint: "a file that was saved here before; it finds what was cut off at the end", notHeads: "This file does not hold heads.",
  },
};

/** @param {any} plan */
function removal(plan) {
  const parts = [plan.tasks && some(plan.tasks, "task"), plan.checkpoints && some(plan.checkpoints, "checkpoint"), plan.chunks && some(plan.chunks, "chunk"), plan.workers && some(plan.workers, "record of a dead process", "records of dead processes"), plan.forgotten && some(plan.forgotten, "old record"), plan.cuts && some(plan.cuts, "copy of a workspace", "copies of workspaces")].filter(Boolean);
  return `${parts.join(", ") || "nothing"}${plan.bytes ? `, ${size(plan.bytes)} in all` : ""}`;
}

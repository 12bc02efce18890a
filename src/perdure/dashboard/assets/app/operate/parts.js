// @ts-check
// The parts of Operate. A part is a module with `export default function Part({thing})`. It is listed to those who
// have its scope.

/** @typedef {{name: string, scope: string, load: () => Promise<{default: any}>}} PartEntry */

/** @type {PartEntry[]} */
export const PARTS = [
  { name: "workers", scope: "tasks:read", load: () => import("./workers.js") },
  { name: "queues", scope: "tasks:read", load: () => import("./queues.js") },
  { name: "schedules", scope: "tasks:read", load: () => import("./schedules.js") },
  { name: "triggers", scope: "tasks:read", load: () => import("./triggers.js") },
  { name: "webhooks", scope: "webhooks:admin", load: () => import("./webhooks.js") },
  { name: "handlers", scope: "tasks:read", load: () => import("./handlers.js") },
  { name: "keys", scope: "keys:admin", load: () => import("./keys.js") },
  { name: "units", scope: "tasks:read", load: () => import("./units.js") },
  { name: "store", scope: "tasks:read", load: () => import("./store.js") },
  { name: "doctor", scope: "store:admin", load: () => import("./doctor.js") },
  { name: "audit", scope: "store:admin", load: () => import("./audit.js") },
];

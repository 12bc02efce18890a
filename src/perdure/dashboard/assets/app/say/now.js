// @ts-check
// Texts of the page Now.

import { some } from "./common.js";
import { number } from "../format.js";

export const nowSay = {
  title: "Now",
  need: (/** @type {number} */ n) => (n === 1 ? "needs you" : "need you"),
  stuck: "stuck",
  working: "working",
  starting: "starting",
  stopped: "stopped",
  idle: "idle",
  wait: (/** @type {number} */ n) => (n === 1 ? "waits by itself" : "wait by themselves"),
  quiet: "Nothing is going on",
  needsYou: "Needs you",
  stuckTitle: "Stuck",
  workingTitle: "Working",
  next: "Goes on by itself next",
  recent: "Since you were here",
  lastDay: "In the last day",
  health: "Health",
  inbox: "Inbox",
  all: (/** @type {number} */ n) => `all ${number(n)}`,
  nothing: (/** @type {number} */ working) => (working ? `Nothing needs you. ${some(working, "task is", "tasks are")} working.` : "Nothing needs you."),
  nobodyWorks: "Nothing is being worked on.",
  nothingNew: "Nothing has ended or changed hands.",
  /** @param {Record<string, number>} levels */
  takenOver: (levels) => `taken over; of its units ${["lost", "rebuilt", "imaged", "kept"].filter((level) => levels[level]).map((level) => `${levels[level]} ${level}`).join(", ") || "none was saved"}`,
  cameBack: (/** @type {string} */ level) => `${level} ·`,
  markSeen: "mark all seen",
  andMore: (/** @type {number} */ n) => `and ${number(n)} more`,
  operate: "Operate",
  firstTitle: "No task yet",
  first: "A task is work that must reach an end. perdure writes down each finished step, so that another process can take over where the last one died.",
  firstSave: "Save this as hello.py, then run it; this page fills by itself.",
  firstFile: "hello.py",
  firstRun: "python hello.py",
  firstDemo: "Or watch a program being killed and carried on:",
  demo: "perdure demo",
};

export const firstProgram = `import asyncio
from perdure import Perdure, durable, step

app = Perdure()

@step
async def greet(name: str) -> str:
    return f"Hello, {name}!"

@durable
async def hello(name: str) -> str:
    return await greet(name)

if __name__ == "__main__":
    print(asyncio.run(app.run("hello-1", hello, "world")))
`;

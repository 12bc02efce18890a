// @ts-check
// Texts of the search and of the list of keys.

export const searchSay = {
  title: "Search or jump to", field: "A task, a function, a page…", none: "Nothing is found by that.", hint: "↑ ↓ choose · Enter opens · pause, resume, fork, roll back or cancel, then a task: its dialog",
  verbs: /** @type {Record<string, string>} */ ({ pause: "Pause", resume: "Resume", fork: "Fork", rollback: "Roll back", cancel: "Cancel" }),
  /** @param {string} verb @param {string} id */
  command: (verb, id) => `${verb} ${id}…`,
  groups: { tasks: "Tasks", functions: "Functions", questions: "Questions", pages: "Pages" },
  allTasks: (/** @type {string} */ text) => `All tasks with “${text}”`,
};

export const helpSay = {
  title: "Keyboard",
  off: "Single keys work",
  offHint: "Keys with Ctrl work either way.",
  /** @type {[string, [string, string][]][]} */
  groups: [
    ["Everywhere", [["/  or  Ctrl K", "search; “cancel ID” opens that dialog"], ["g n   g t   g i   g o", "Now, Tasks, Inbox, Operate"], ["t", "absolute times"], ["?", "this list"], ["Ctrl ↵", "send the form"]]],
    ["Lists", [["j k  or  ↓ ↑", "next, previous"], ["Enter", "open"], ["x   Shift X   a", "tick, tick a range, tick all"], [".", "show waiting changes"], ["f   1 – 7", "filter, choose a situation"]]],
    ["A task", [["u", "all tasks"], ["[   ]", "previous, next tab"], ["j k   c", "choose a checkpoint, compare it"], ["Enter", "to what can be done with the chosen call or checkpoint"]]],
    ["Timeline", [["i", "fold idle time"], ["w", "axis: the run, or the rows in view"], ["o", "order by start"], ["+   -   0", "zoom in, out, all"], ["e   Shift E", "next, previous call that failed or was retried"]]],
    ["Inbox", [["y   n", "to the button that approves, rejects; nothing is sent by one key"]]],
  ],
};

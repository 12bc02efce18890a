// @ts-check
// What a program in the terminal may not make it do: answer by itself, change its colours, open links, or work for ever.
// A terminal's answers would be typed into whatever reads next. So no request is answered, whoever asks.

"use strict";

/** Requests that a terminal would answer, and settings that reach beyond the text. */
const ASKS = [
  { final: "c" }, { prefix: ">", final: "c" }, { prefix: "=", final: "c" }, // what are you
  { final: "n" }, { prefix: "?", final: "n" }, // how are you, where is the cursor
  { intermediates: "$", final: "p" }, { prefix: "?", intermediates: "$", final: "p" }, // which mode is set
  { final: "t" }, // sizes, titles, the window
  { prefix: ">", final: "q" }, { prefix: "?", final: "u" }, // which version, which keyboard
];
// Titles, colours, folders, links, messages, the clipboard, pictures and files, marks.
const SETTINGS = [0, 1, 2, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 21, 22, 50, 52, 99, 104, 105, 106, 110, 111, 112, 113, 117, 119, 133, 633, 777, 1337];
/** Sequences that are repeated as often as they say. */
const REPEATED = "@ILMPSTXZb";
const MOST_REPEATS = 10_000;

/** Make a terminal answer nothing. @param {any} terminal */
function silence(terminal) {
  const refuse = () => true;
  for (const id of ASKS) terminal.parser.registerCsiHandler(id, refuse);
  for (const number of SETTINGS) terminal.parser.registerOscHandler(number, refuse);
  for (const id of [{ intermediates: "$", final: "q" }, { intermediates: "+", final: "q" }, { final: "q" }]) terminal.parser.registerDcsHandler(id, refuse);
  for (const final of REPEATED) terminal.parser.registerCsiHandler({ final }, (/** @type {any[]} */ values) => values.some((value) => Number(value) > MOST_REPEATS));
}

/** Hear of what a person types or points at, and of nothing that the terminal says by itself.
 * @param {any} terminal @param {(data: string) => void} hear */
function hearPerson(terminal, hear) {
  let isPerson = false;
  const service = terminal._core?.coreService;
  service?.onUserInput(() => { isPerson = true; }); // told right before the data; without it nothing is ever sent
  terminal.onData((/** @type {string} */ data) => {
    const isTyped = isPerson;
    isPerson = false;
    if (isTyped) hear(data);
  });
}

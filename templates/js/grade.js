// @ts-check
"use strict";
var Shardbook = Shardbook || {};

/**
 * @typedef {{ low: number, high: number, shown: string, say: string }} Misconception
 * @typedef {{ kind: "number", unit: string, value: number, low: number, high: number, shown: string,
 *   explain: string, computed: string, misconceptions: Misconception[] }} NumberKey
 * @typedef {{ kind: "choice", many: boolean, correct: boolean[], why: string[], explain: string,
 *   computed: string }} ChoiceKey
 * @typedef {{ kind: "pick", what: "event" | "gap" | "rank", figure: string, mode: string, answer: number[][], shown: string,
 *   explain: string, computed: string, misconceptions: { at: number[][], say: string }[] }} PickKey marks: rank and rows of
 *   its file; of a gap rank, begin and end in ns
 * @typedef {{ rank: number, rows?: number[], from?: number, to?: number, mode?: string }} Picked rows of an event, the rest of a gap
 * @typedef {{ state: "right" | "wrong" | "unread", title: string, html: string[] }} Verdict
 *   title: plain text; html: paragraphs made by the generator, already escaped
 */

/** Decides what an answer is worth and what to say to it. Free of the DOM. */
Shardbook.grade = (function () {
  /** What to say to a reader who has picked nothing that counts. */
  const NOTHING = {
    event: "Choose a block in the figure first.",
    gap: "Choose an empty stretch in a row of computation first.",
    rank: "Choose a rank first, by anything in its rows.",
  };

  /** @param {number} value @param {{low: number, high: number}} range */
  const within = (value, range) => value >= range.low && value <= range.high;

  /**
   * @param {NumberKey} key @param {string} text what was typed @returns {Verdict}
   */
  function number(key, text) {
    const read = Shardbook.numbers.parse(text, key.unit);
    if (!read.values.length) return { state: "unread", title: read.problem, html: [] };
    if (read.values.some((v) => within(v, key))) {
      return { state: "right", title: `Right: ${key.shown}.`, html: [key.explain] };
    }
    for (const value of read.values) {
      const known = key.misconceptions.find((m) => within(value, m));
      if (known) return { state: "wrong", title: `Not ${text.trim()}.`, html: [known.say] };
    }
    return { state: "wrong", title: "Not yet.", html: [general(key, read.values[0], read.bare)] };
  }

  /**
   * What can be said about a wrong number that no misconception explains, without giving it away.
   * @param {NumberKey} key @param {number} value @param {boolean} bare no unit was typed
   * @returns {string}
   */
  function general(key, value, bare) {
    if (bare && key.unit === "%" && within(value * 100, key)) {
      return "That is the right fraction, but the question asks for per cent.";
    }
    if (bare && [1e3, 1e-3, 1e6, 1e-6, 1024, 1 / 1024].some((f) => within(value * f, key))) {
      return `The digits are right, the unit is not: the answer is in ${key.unit || "plain numbers"}.`;
    }
    if (within(-value, key)) return "The size is right. Look at the sign.";
    const side = value > key.value ? "too high" : "too low";
    const ratio = Math.abs(value / key.value);
    const far = ratio > 2 || ratio < 0.5 ? "far " : "";
    const ask = side === "too high" ? "what you counted that does not belong" : "what is missing from your count";
    return `It is ${far}${side}. Ask ${ask}: which ranks, which part of the step, which kind of block.`;
  }

  /**
   * @param {ChoiceKey} key @param {boolean[]} picked by option @returns {Verdict}
   */
  function choice(key, picked) {
    if (!picked.some(Boolean)) return { state: "unread", title: "Choose an answer first.", html: [] };
    const wrong = key.why.filter((_, i) => picked[i] && !key.correct[i]);
    const missing = key.correct.filter((c, i) => c && !picked[i]).length;
    if (!wrong.length && !missing) return { state: "right", title: "Right.", html: [key.explain] };
    if (!wrong.length) {
      const more = missing === 1 ? "One more belongs" : `${missing} more belong`;
      return { state: "wrong", title: "Not all of it yet.", html: [`What you chose is right. ${more} to the answer.`] };
    }
    return { state: "wrong", title: "Not yet.", html: wrong };
  }

  /** Whether all that was picked, or `some` of it, is marked. @param {Picked} picked @param {number[][]} marks @param {boolean} [some] */
  function marked({ rank, rows, from = 0, to = 0, mode }, marks, some) {
    const mine = marks.filter((m) => m[0] === rank).map((m) => m.slice(1));
    if (rows) return rows.length > 0 && rows[some ? "some" : "every"]((row) => mine.some((m) => m.includes(row)));
    const middle = (from + to) / 2;
    return mine.some(([a, b]) => !mode || (a <= middle && middle < b));
  }

  /** As generator/lessons/picking.py has it. @param {PickKey} key @param {Picked | null} picked @returns {Verdict} */
  function pick(key, picked) {
    if (!picked) return { state: "unread", title: NOTHING[key.what], html: [] };
    if (picked.mode && picked.mode !== key.mode) return { state: "unread", title: "Choose it in the mode that the figure was in at first: times differ.", html: [] };
    if (marked(picked, key.answer)) return { state: "right", title: "Right.", html: [key.explain] };
    const known = key.misconceptions.find((m) => marked(picked, m.at));
    return { state: "wrong", title: "Not yet.", html: [known ? known.say : elsewhere(key, picked)] };
  }

  /** Where to go from a wrong pick. @param {PickKey} key @param {Picked} picked */
  function elsewhere({ what, answer }, picked) {
    const { rank, rows = [], from = 0, to = 0 } = picked;
    if (what === "rank") return `It is another rank than ${rank}. Compare their rows with each other.`;
    const here = answer.filter((m) => m[0] === rank).flatMap((m) => m.slice(1));
    if (!here.length) return "It is on another rank.";
    if (rows.length && marked(picked, answer, true)) return "What is asked for lies inside of what you chose. Choose more closely, in the row below.";
    const mine = what === "gap" ? [from, to] : rows;
    const side = Math.min(...here) >= Math.max(...mine) ? "later" : Math.max(...here) <= Math.min(...mine) ? "earlier" : "elsewhere";
    return `It is ${side} on this rank.`;
  }

  return { number, choice, pick };
})();

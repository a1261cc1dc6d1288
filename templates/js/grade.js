// @ts-check
"use strict";
var Shardbook = Shardbook || {};

/**
 * @typedef {{ low: number, high: number, shown: string, say: string }} Misconception
 * @typedef {{ kind: "number", unit: string, value: number, low: number, high: number, shown: string,
 *   explain: string, computed: string, misconceptions: Misconception[] }} NumberKey
 * @typedef {{ kind: "choice", many: boolean, correct: boolean[], why: string[], explain: string,
 *   computed: string }} ChoiceKey
 * @typedef {{ state: "right" | "wrong" | "unread", title: string, html: string[] }} Verdict
 *   title: plain text; html: paragraphs made by the generator, already escaped
 */

/** Decides what an answer is worth and what to say to it. Free of the DOM. */
Shardbook.grade = (function () {
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

  return { number, choice };
})();

// @ts-check
"use strict";
var Shardbook = Shardbook || {};

/**
 * @typedef {"tried" | "right" | "shown"} State  tried: answered, not right yet; shown: given up
 * @typedef {{ hash: string, state: State, answer: string }} Entry
 */

/**
 * Which questions were answered, kept by question key. An entry counts only while the question's hash
 * (of its wording and its answer expression) is the one it was given for: a new recording keeps
 * progress, a changed question asks again. Free of the DOM.
 */
Shardbook.progress = (function () {
  const store = Shardbook.store;
  const PREFIX = "progress:";
  const FORMAT = 1;

  /** @param {unknown} value @returns {value is Entry} */
  function isEntry(value) {
    if (typeof value !== "object" || value === null) return false;
    const entry = /** @type {Record<string, unknown>} */ (value);
    return typeof entry.hash === "string" && typeof entry.answer === "string" &&
      typeof entry.state === "string" && ["tried", "right", "shown"].includes(entry.state);
  }

  /** @param {string | null} text @returns {Entry | null} */
  function read(text) {
    try {
      const value = JSON.parse(text ?? "null");
      return isEntry(value) ? value : null;
    } catch (_error) {
      return null;
    }
  }

  /** @param {string} key @param {string} hash @returns {Entry | null} */
  function get(key, hash) {
    const entry = read(store.get(PREFIX + key));
    return entry && entry.hash === hash ? entry : null;
  }

  /** @param {string} key @param {Entry} entry */
  function set(key, entry) {
    store.set(PREFIX + key, JSON.stringify(entry));
  }

  /** Keys of all questions with an entry. */
  const keys = () => store.names().filter((n) => n.startsWith(PREFIX)).map((n) => n.slice(PREFIX.length));

  /** Drops entries that cannot be read. @returns {number} how many */
  function dropDamaged() {
    const damaged = keys().filter((k) => !read(store.get(PREFIX + k)));
    damaged.forEach((k) => store.remove(PREFIX + k));
    return damaged.length;
  }

  /** @returns {string} all progress as the text of a JSON file */
  function exported() {
    const questions = Object.fromEntries(keys().map((k) => [k, read(store.get(PREFIX + k))]).filter(([, e]) => e));
    return JSON.stringify({ shardbook: FORMAT, questions }, null, 1) + "\n";
  }

  /**
   * Takes over an exported file; entries of this browser for other questions stay.
   * @param {string} text @returns {{ count: number, problem: string }} problem: one line, or empty
   */
  function imported(text) {
    /** @type {any} */
    let file;
    try {
      file = JSON.parse(text);
    } catch (_error) {
      return { count: 0, problem: "This file is not JSON. Choose a file that Export made." };
    }
    if (typeof file !== "object" || file === null || file.shardbook !== FORMAT || typeof file.questions !== "object" ||
        file.questions === null || Array.isArray(file.questions)) {
      return { count: 0, problem: "This file holds no Shardbook progress. Choose a file that Export made." };
    }
    const entries = Object.entries(file.questions);
    const bad = entries.find(([, entry]) => !isEntry(entry));
    if (bad) return { count: 0, problem: `The entry for ${bad[0].slice(0, 80)} cannot be read. Nothing was imported.` };
    for (const [key, entry] of entries) {
      const { hash, state, answer } = /** @type {Entry} */ (entry);
      set(key, { hash, state, answer });
    }
    return { count: entries.length, problem: "" };
  }

  function reset() {
    keys().forEach((k) => store.remove(PREFIX + k));
  }

  /**
   * How far a group of questions is.
   * @param {{ key: string, hash: string }[]} questions
   * @returns {{ done: number, begun: number, total: number }} begun: tried, not done
   */
  function count(questions) {
    const states = questions.map((q) => get(q.key, q.hash)?.state);
    const begun = states.filter((s) => s === "tried").length;
    return { done: states.filter((s) => s === "right" || s === "shown").length, begun, total: questions.length };
  }

  return { get, set, keys, dropDamaged, exported, imported, reset, count };
})();

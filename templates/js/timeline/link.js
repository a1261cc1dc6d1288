// @ts-check
"use strict";
var Shardbook = Shardbook || {};

/**
 * A view as a link: the state of a timeline to the text after the # and back. Only what differs from the view
 * that the page opens with is written; unknown keys and bad values are left out, and said. Free of the DOM.
 *
 * @typedef {{ rank: number, lane: string, index: number } | { call: number } | { gap: { rank: number, from: number, to: number } }} Chosen
 *   rank: index in Model.ranks
 * @typedef {{ from: number, to: number, mode: string, whatIf: string, selected: Chosen | null, hovered: Chosen | null,
 *   marks: number[], area: { from: number, to: number, ranks: number[] } | null, query: string, filters: Record<string, string>,
 *   groupBy: string, collapsed: number[], tracks: string[], overlays: string[], compare: string[], follow: number | null, outlines: Outline[] }} ViewState
 */
Shardbook.link = (function () {
  /** Names in links of fields that are lists of words, of whole numbers, and single words. @type {Record<string, keyof ViewState>} */
  const WORDS = { tracks: "tracks", over: "overlays", with: "compare" };
  /** @type {Record<string, keyof ViewState>} */
  const NUMBERS = { marks: "marks", fold: "collapsed" };
  /** @type {Record<string, keyof ViewState>} */
  const WORD = { mode: "mode", what: "whatIf", find: "query", by: "groupBy" };
  const LANES = ["phase", "layer", "operation", "comm"];

  /** What no link says. @returns {ViewState} */
  function start() {
    return { from: 0, to: 0, mode: "isolated", whatIf: "", selected: null, hovered: null, marks: [], area: null, query: "",
    filters: {}, groupBy: "", collapsed: [], tracks: ["memory"], overlays: [], compare: [], follow: null, outlines: [] };
  }

  /** @param {Chosen} s */
  function printSelection(s) {
    if ("call" in s) return `call.${s.call}`;
    if ("gap" in s) return `gap.${s.gap.rank}.${s.gap.from}.${s.gap.to}`;
    return `${s.lane}.${s.rank}.${s.index}`;
  }

  /** @param {string} text @returns {Chosen | undefined} */
  function parseSelection(text) {
    const [kind, ...rest] = text.split("."), numbers = rest.map(Number);
    if (!rest.length || !numbers.every((n) => Number.isSafeInteger(n) && n >= 0)) return undefined;
    if (kind === "call" && rest.length === 1) return { call: numbers[0] };
    if (kind === "gap" && rest.length === 3) return { gap: { rank: numbers[0], from: numbers[1], to: numbers[2] } };
    return LANES.includes(kind) && rest.length === 2 ? { rank: numbers[0], lane: kind, index: numbers[1] } : undefined;
  }

  /** @param {string} id of the figure @param {ViewState} state @param {ViewState} from the view that the page opens with */
  function print(id, state, from) {
    /** @type {[string, string][]} */
    const parts = [["t", id]];
    const add = (/** @type {string} */ key, /** @type {string} */ value) => parts.push([key, value]);
    const differs = (/** @type {keyof ViewState} */ field) => JSON.stringify(state[field]) !== JSON.stringify(from[field]);
    if (differs("from") || differs("to")) {
      add("from", String(Math.round(state.from)));
      add("to", String(Math.round(state.to)));
    }
    if (state.selected) add("sel", printSelection(state.selected));
    for (const [key, field] of Object.entries(WORD)) if (differs(field)) add(key, String(state[field]));
    for (const [key, field] of Object.entries({ ...WORDS, ...NUMBERS })) {
      if (differs(field)) add(key, /** @type {any[]} */ (state[field]).map((v) => (typeof v === "number" ? Math.round(v) : v)).join("."));
    }
    for (const [key, value] of Object.entries(state.filters)) add("only-" + key, value);
    if (state.area) add("area", [state.area.from, state.area.to, ...state.area.ranks].map(Math.round).join("."));
    if (state.follow !== null) add("follow", String(state.follow));
    return parts.map(([key, value]) => `${key}=${encodeURIComponent(value)}`).join(";");
  }

  /**
   * @param {string} text after the # @returns {{ id: string, state: Partial<ViewState>, problems: string[] } | null} null: no timeline's
   */
  function parse(text) {
    const parts = text.split(";").map((part) => part.split("="));
    if (parts[0]?.[0] !== "t") return null;
    /** @type {any} */
    const state = {};
    const problems = [], whole = (/** @type {string} */ v) => (/^\d{1,15}$/.test(v) ? Number(v) : NaN);
    let id = "";
    for (const [key, raw = ""] of parts) {
      let value = "", good = true;
      try {
        value = decodeURIComponent(raw);
      } catch {
        good = false;
      }
      const list = value ? value.split(".") : [], numbers = list.map(whole), all = numbers.every(Number.isFinite);
      if (key === "t") id = value;
      else if (key === "from" || key === "to") good &&= Number.isFinite((state[key] = whole(value)));
      else if (key === "follow") good &&= Number.isFinite((state.follow = whole(value)));
      else if (key === "sel") good &&= Boolean((state.selected = parseSelection(value)));
      else if (Object.hasOwn(WORD, key)) state[WORD[key]] = value;
      else if (Object.hasOwn(WORDS, key)) good &&= (state[WORDS[key]] = list).every((w) => /^[\w-]+$/.test(w));
      else if (Object.hasOwn(NUMBERS, key)) good &&= ((state[NUMBERS[key]] = numbers), all);
      else if (key.startsWith("only-")) (state.filters ??= {})[key.slice(5)] = value;
      else if (key === "area") good &&= ((state.area = { from: numbers[0], to: numbers[1], ranks: numbers.slice(2) }), all && numbers.length > 1 && numbers[0] < numbers[1]);
      else good = false;
      if (!good) {
        problems.push(key);
        const field = key === "sel" ? "selected" : WORD[key] ?? WORDS[key] ?? NUMBERS[key] ?? key;
        delete state[field];
      }
    }
    if (!(state.from < state.to)) {
      if (state.from !== undefined && state.to !== undefined) problems.push("from", "to");
      delete state.from;
      delete state.to;
    }
    return { id, state, problems };
  }

  return { start, print, parse };
})();

// @ts-check
"use strict";
var Shardbook = Shardbook || {};

/**
 * What a step comes to on each rank: exposed communication, idle time, the bubble, the most bytes held; the same
 * as the metrics of generator/timeline/metrics. Also intervals, as sorted pairs that do not overlap. Free of the DOM.
 *
 * @typedef {[number, number][]} Intervals
 * @typedef {{ exposed: number, idle: number, gaps: Intervals, bubble: number, peak: number, comm: number }} RankFacts ns, and bytes;
 *   gaps: without work and in no collective, within the pipeline's common span
 * @typedef {{ ranks: RankFacts[], span: number, exposed: number, bubble: number, peak: number, word: string, shares: number[] }} Facts
 *   span: ns that the bubble is a share of, 0 without a pipeline; exposed: mean ns; bubble: a share; word and shares: the
 *   one number of each rank that says most
 */
Shardbook.facts = (function () {
  const { KIND } = Shardbook.model;
  /** @type {WeakMap<Model, Facts>} */
  const known = new WeakMap();

  /** @param {Intervals} pairs in any order @returns {Intervals} */
  function union(pairs) {
    const out = /** @type {Intervals} */ ([]);
    for (const [a, b] of pairs.filter((p) => p[1] > p[0]).sort((p, q) => p[0] - q[0])) {
      const last = out[out.length - 1];
      if (last && a <= last[1]) last[1] = Math.max(last[1], b);
      else out.push([a, b]);
    }
    return out;
  }

  /** What of `a` is not in `b`; both unions @param {Intervals} a @param {Intervals} b @returns {Intervals} */
  function subtract(a, b) {
    const out = /** @type {Intervals} */ ([]);
    let k = 0;
    for (const [from, to] of a) {
      let at = from;
      while (k < b.length && b[k][1] <= from) k++;
      for (let j = k; j < b.length && b[j][0] < to; j++) {
        if (b[j][0] > at) out.push([at, b[j][0]]);
        at = Math.max(at, b[j][1]);
      }
      if (at < to) out.push([at, to]);
    }
    return out;
  }

  /** @param {Intervals} a @param {number} [from] @param {number} [to] */
  const length = (a, from = 0, to = Infinity) => a.reduce((sum, [p, q]) => sum + Math.max(0, Math.min(q, to) - Math.max(p, from)), 0);

  /** When a rank's thread does what `chosen` says @param {Spans} spans @param {(kind: number) => boolean} chosen @returns {Intervals} */
  function when(spans, chosen) {
    const out = /** @type {Intervals} */ ([]);
    for (let i = 0; i < spans.n; i++) if (chosen(spans.kind[i])) out.push([spans.start[i], spans.end[i]]);
    return union(out);
  }

  /** @param {Model} model @returns {Facts} */
  function of(model) {
    let found = known.get(model);
    if (!found) known.set(model, (found = measure(model)));
    return found;
  }

  /** @param {Model} model @returns {Facts} */
  function measure(model) {
    /** @type {Map<number, { all: Intervals, collectives: Intervals }>} */
    const under = new Map(model.ranks.map((r) => [r.rank, { all: [], collectives: [] }]));
    for (const call of model.calls) {
      for (const m of call.members) {
        under.get(m.rank)?.all.push([call.p2p ? m.begin : m.arrive, m.end]);
        if (!call.p2p) under.get(m.rank)?.collectives.push([m.arrive, m.end]);
      }
    }
    const works = (/** @type {number} */ kind) => kind < KIND.OPTIMIZER, step = /** @type {Intervals} */ ([[0, model.stepNs]]);
    const pipeline = model.stages > 1 ? model.ranks.flatMap((r) => when(r.phase, works)) : [];
    const first = Math.min(...pipeline.map((p) => p[0])), end = Math.max(...pipeline.map((p) => p[1]));
    const ranks = model.ranks.map((rank) => {
      const calls = /** @type {{ all: Intervals, collectives: Intervals }} */ (under.get(rank.rank));
      const outside = /** @type {Intervals} */ ([[-Infinity, first], [end, Infinity]]);
      const all = union(calls.all), still = subtract(step, when(rank.phase, (k) => k <= KIND.HOST));
      const gaps = pipeline.length ? subtract(still, union([...calls.collectives, ...outside])) : [];
      return {
        gaps, bubble: length(gaps), exposed: length(subtract(all, when(rank.phase, (k) => k <= KIND.OPTIMIZER))), comm: length(all), idle: length(still),
        peak: Math.max(0, ...totals(rank)),
      };
    });
    const span = pipeline.length ? end - first : 0, mean = (/** @type {(r: RankFacts) => number} */ of) => ranks.reduce((s, r) => s + of(r), 0) / ranks.length;
    const [word, share] = /** @type {[string, (r: RankFacts) => number]} */ (span ? ["bubble", (r) => r.bubble / span]
      : model.calls.length ? ["exposed", (r) => r.exposed / model.stepNs] : ["idle", (r) => r.idle / model.stepNs]);
    return { ranks, span, exposed: mean((r) => r.exposed), bubble: span ? mean((r) => r.bubble) / span : 0, peak: Math.max(...ranks.map((r) => r.peak)), word, shares: ranks.map(share) };
  }

  /** The last of rising times up to `t`, or the first @param {ArrayLike<number>} time @param {number} t */
  function last(time, t) {
    let i = 0;
    while (time[i + 1] <= t) i++;
    return i;
  }

  /** Bytes in all at each sample of a rank's memory @param {RankModel} rank @returns {number[]} */
  function totals(rank) {
    return Array.from(rank.memory.time, (_, i) => rank.memory.bytes.reduce((sum, of) => sum + of[i], 0));
  }

  return { of, union, subtract, length, when, totals, last };
})();

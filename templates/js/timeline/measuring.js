// @ts-check
"use strict";
var Shardbook = Shardbook || {};

/**
 * Measuring an area: the stretch between two marks, one dragged with Shift, or one that Shift and arrows extend from the
 * selection; how it is drawn, and sums of what is in it: unions on each rank, as the metrics of the same names, summed over
 * ranks. What is in it one by one is listed by finding.js.
 *
 * @typedef {{ from: number, to: number, ranks: number[] }} Area ranks: indices
 */
Shardbook.measure = (function () {
  const { timeline, scale, select, facts } = Shardbook;

  /** Times by kind, ns, and the calls, of what filters leave @param {Model} model @param {Area} area @param {any} filters */
  function sums(model, { from, to, ranks }, filters) {
    const times = /** @type {Record<string, number>} */ ({}), calls = /** @type {Set<CallModel>} */ (new Set());
    model.ranks.forEach(({ phase: { start, end, kind }, rank }, r) => {
      if (!ranks.includes(r)) return;
      const waits = /** @type {Intervals} */ ([]), moves = /** @type {Intervals} */ ([]);
      const passes = (/** @type {string} */ lane, /** @type {number} */ i) => timeline.filter?.(model, r, lane, i, filters);
      /** @param {string} name @param {Intervals} when */
      const add = (name, when) => (times[name] = (times[name] ?? 0) + facts.length(facts.union(when), from, to));
      kind.forEach((of, i) => passes("phase", i) && add(Shardbook.model.KINDS[of], [[start[i], end[i]]]));
      model.calls.forEach((call, c) => call.members.forEach((m) => {
        const begin = call.p2p ? m.begin : m.arrive;
        if (m.rank !== rank || m.end <= from || begin >= to || !passes("call", c)) return;
        calls.add(call);
        waits.push([begin, m.begin]);
        moves.push([m.begin, m.end]);
      }));
      add("wait", waits);
      add("transfer", moves);
    });
    return { times, calls };
  }

  /** Half of what is between ranks, px @param {RankBox} rank */
  const around = ({ collapsed }) => (collapsed ? 3.5 : 10);

  select.over((context, { area }, g) => {
    if (!area) return;
    const { from, to, ranks } = area, x = Math.max(g.left, g.x(from));
    context.fillStyle = g.colours.link;
    context.font = `11px ${g.colours.font}`;
    context.fillText(scale.time(to - from), x + 3, g.layout.axis + 11);
    context.globalAlpha = 0.13;
    for (const r of g.layout.ranks) if (ranks.includes(r.index)) context.fillRect(x, r.y - around(r), g.x(to) - x, r.h + 2 * around(r));
  });

  timeline.parts.push({
    name: "measuring",
    attach(el) {
      const all = [...el.model.ranks.keys()];
      /** @param {number} a @param {number} b @param {number[]} [ranks] */
      const choose = (a, b, ranks = all) => el.update({ area: { from: Math.max(0, Math.min(a, b)), to: Math.min(el.model.stepNs, Math.max(a, b)), ranks } });
      /** @type {number[]} */
      let corner;
      el.drags.push({
        test: (/** @type {PointerEvent} */ event) => event.shiftKey,
        start: (/** @type {number[]} */ ...at) => (corner = at),
        move: (/** @type {number} */ x, /** @type {number} */ y) => {
          const g = el.geometry(), [left, top] = corner;
          choose(g.ns(left), g.ns(x), g.layout.ranks.filter((/** @type {RankBox} */ r) => r.y - around(r) < Math.max(y, top) && r.y + r.h + around(r) > Math.min(y, top)).map((/** @type {RankBox} */ r) => r.index));
        },
      });
      el.stage.addEventListener("keydown", (/** @type {KeyboardEvent} */ event) => {
        const { area, from, to, selected } = el.state, way = { ArrowLeft: -1, ArrowRight: 1, ArrowUp: 0, ArrowDown: 0 }[event.key], by = (way ?? 0) * (to - from) / 50;
        if (!event.shiftKey || way === undefined) return;
        event.preventDefault();
        const now = area ?? { from, to, ...el.span(selected), ranks: selected ? [el.place(selected).rank] : all };
        choose(now.from + Math.min(0, by), now.to + Math.max(0, by), way ? now.ranks : all);
      });
      el.addEventListener("trace-change", (/** @type {CustomEvent} */ { detail }) => {
        const [a, b] = el.state.marks;
        if (detail.includes("marks") && !detail.includes("area")) b >= 0 ? choose(a, b) : el.update({ area: null });
      });
    },
  });

  return { sums };
})();

// @ts-check
"use strict";
var Shardbook = Shardbook || {};

/**
 * What can be laid over the lanes: the critical path, as generator/timeline/critical.py finds it, and the bubble, the
 * idle time inside a pipeline's common span. When nodes begin and end is replay.js's.
 */
Shardbook.critical = (function () {
  const { timeline, facts, across, graph, commands, select } = Shardbook;

  /**
   * The chain that is as long as the step, from its end: of what a node depended on, that which ended last; of several
   * one on the same rank, then the first.
   * @param {RunData} data @param {Schedule} schedule @returns {{ node: number, rank: number, comm: boolean, from: number, to: number }[]}
   */
  function path(data, { end, stepNs, edges: { first, before } }) {
    const { rank, done } = graph.of(data), found = [];
    for (let node = end.indexOf(stepNs), to = stepNs; node >= 0; ) {
      const own = (/** @type {number} */ p) => +(rank[p] === rank[node]);
      const [cause] = [...before.subarray(first[node], first[node + 1])].sort((p, q) => end[q] - end[p] || own(q) - own(p)), from = Math.min(to, end[cause] ?? 0);
      found.push({ node, rank: rank[node], comm: node >= done, from, to });
      [node, to] = [cause ?? -1, from];
    }
    return found;
  }

  select.over((context, { overlays }, g) => {
    const { data, schedule } = g.model;
    if (overlays.includes("bubble")) {
      context.strokeStyle = g.colours.ink3;
      facts.of(g.model).ranks.forEach(({ gaps }, r) => gaps.forEach(([from, to]) => {
        const { y, h } = /** @type {LaneBox} */ (g.box(r, "phase")), x = Math.round(g.x(from)), wide = Math.round(g.x(to)) - x;
        if (wide > 2) context.strokeRect(x + 0.5, y + 0.5, wide - 2, h - 1);
      }));
    }
    if (overlays.includes("critical") && data) {
      across.line(context, g, path(data, /** @type {Schedule} */ (schedule)).flatMap(({ rank, comm, from, to }) => {
        const { y, h } = across.on(g, rank, comm ? "comm" : "phase"), at = comm ? y + h / 2 : y - 2;
        return [[g.x(to), at], [g.x(from), at]];
      }));
    }
  });

  timeline.parts.push({ name: "overlays", attach(el) {
    commands.toggle(el, "critical path", "p", "overlays", "critical");
    if (el.model.stages > 1) commands.toggle(el, "bubble", "u", "overlays", "bubble");
  } });

  return { path };
})();

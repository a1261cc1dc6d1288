// @ts-check
"use strict";
var Shardbook = Shardbook || {};

/**
 * Where the lanes of a timeline stand: rows and heights from a model and what is shown of it, and what lies
 * at a height. In CSS px from the top of the drawing; it knows no time.
 *
 * @typedef {"phase" | "layer" | "operation" | "comm"} LaneName
 * @typedef {{ name: string, y: number, h: number, track: boolean }} LaneBox
 * @typedef {{ index: number, y: number, h: number, collapsed: boolean, lanes: LaneBox[] }} RankBox index: in Model.ranks
 * @typedef {{ above: boolean, left: number, right: number, axis: number, ranks: RankBox[], headings: { words: string, y: number }[], height: number }} Layout
 * @typedef {{ width: number, bracket: boolean, collapsed: number[], groupBy: string, tracks: { name: string, height: number }[],
 *   unfold: { layer: number, operation: number } }} LayoutOptions unfold: 0 folded to 1 unfolded
 */
Shardbook.layout = (function () {
  /** Below this width of the figure there are no gutters, and names stand above the lanes. */
  const NARROW = 640;
  const LANES = /** @type {LaneName[]} */ (["phase", "layer", "operation", "comm"]);

  /** Ranks in the order of a grouping, with the heading of each group @param {Model} model @param {string} by @returns {{ words: string, ranks: number[] }[]} */
  function groups(model, by) {
    const all = model.ranks.map((_, i) => i);
    if (!by) return [{ words: "", ranks: all }];
    /** @type {Map<number, number[]>} */
    const found = new Map();
    for (const i of all) {
      const rank = model.ranks[i], key = by === "stage" ? rank.stage : by === "node" ? rank.node : rank.coordinates[by] ?? 0;
      found.set(key, [...(found.get(key) ?? []), i]);
    }
    return [...found].sort((a, b) => a[0] - b[0]).map(([key, ranks]) => ({ words: `${by} ${key}`, ranks }));
  }

  /** @param {Model} model @param {LayoutOptions} options @returns {Layout} */
  function layout(model, options) {
    const above = options.width < NARROW, axis = 20;
    const has = Object.fromEntries(LANES.map((name) => [name, model.ranks.some((r) => r[name].n > 0)]));
    const grow = (/** @type {number} */ from, /** @type {number} */ to, /** @type {number} */ by) => Math.round(from + (to - from) * by);
    const boxes = [], headings = [], gap = above ? 36 : 20;
    let y = axis + (options.bracket ? 26 : 12) + (above ? 20 : 0);
    for (const group of groups(model, options.groupBy)) {
      if (group.words) {
        if (boxes.length) y += 8;
        headings.push({ words: group.words, y: y + (above ? -8 : 8) });
        y += above ? 20 : 16;
      }
      for (const index of group.ranks) {
        const collapsed = options.collapsed.includes(model.ranks[index].rank);
        /** @type {LaneBox[]} */
        const lanes = [];
        if (!collapsed && boxes[boxes.length - 1]?.collapsed) y += 14;
        let at = y;
        const add = (/** @type {string} */ name, /** @type {number} */ space, /** @type {number} */ h, track = false) => {
          if (h <= 0) return;
          if (lanes.length) at += space;
          lanes.push({ name, y: at, h, track });
          at += h;
        };
        add("phase", 0, collapsed ? 9 : above ? 22 : 26);
        if (!collapsed && has.layer) add("layer", 1, grow(7, 15, options.unfold.layer));
        if (!collapsed && has.operation) add("operation", 1, grow(0, 14, options.unfold.operation));
        if (has.comm) add("comm", collapsed ? 1 : 3, collapsed ? 4 : 11);
        if (!collapsed) for (const track of options.tracks) add(track.name, 5, track.height, true);
        boxes.push({ index, y, h: at - y, collapsed, lanes });
        y = at + (collapsed ? (above ? 22 : 7) : gap);
      }
    }
    const last = boxes[boxes.length - 1];
    return { above, left: above ? 0 : 88, right: above ? 0 : 74, axis, ranks: boxes, headings, height: (last ? last.y + last.h : y) + 12 };
  }

  /**
   * The rank and lane at a height; the nearest lane of a rank where `y` lies between two.
   * @param {Layout} at @param {number} y @returns {{ rank: number, lane: string } | null} rank: index
   */
  function hit(at, y) {
    for (const rank of at.ranks) {
      if (y < rank.y - 4 || y >= rank.y + rank.h + 4) continue;
      let best = rank.lanes[0], least = Infinity;
      for (const lane of rank.lanes) {
        const far = Math.max(lane.y - y, y - lane.y - lane.h, 0);
        if (far < least) [least, best] = [far, lane];
      }
      return { rank: rank.index, lane: best.name };
    }
    return null;
  }

  return { LANES, groups, layout, hit };
})();

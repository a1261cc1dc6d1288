// @ts-check
"use strict";
var Shardbook = Shardbook || {};

/**
 * The track of memory: bytes by category, stacked, told apart by lightness and texture as in the figures that are
 * made at build time (generator/publish/figures/memory.py). A column shows the moment in it at which most was held.
 */
(function () {
  /** From the ground up: what stays for the whole step, then what comes and goes; how strong, and with what texture. @type {[string, number, string][]} */
  const STACK = [["parameters", 0.8, ""], ["optimizer", 0.14, "dots"], ["gradients", 0.14, "lines"], ["activations", 0.24, ""],
    ["communication", 0.14, "bars"], ["other", 0.5, ""]];
  /** Width and height of a texture, and of its mark. @type {Record<string, [number, number, number, number]>} */
  const TEXTURES = { dots: [3, 3, 1, 1], lines: [4, 2, 4, 1], bars: [3, 4, 1, 4] };
  /** @type {WeakMap<RankModel, number[]>} */
  const sums = new WeakMap();
  /** @type {Map<string, CanvasPattern | null>} */
  const patterns = new Map();

  /** @param {CanvasRenderingContext2D} context @param {string} name @param {string} colour @param {number} dpr */
  function texture(context, name, colour, dpr) {
    const key = name + colour + dpr;
    if (!patterns.has(key)) {
      const [w, h, mw, mh] = TEXTURES[name], tile = document.createElement("canvas");
      tile.width = w * 4;
      tile.height = h * 4;
      const into = /** @type {CanvasRenderingContext2D} */ (tile.getContext("2d"));
      into.fillStyle = colour;
      into.globalAlpha = 0.14;
      into.fillRect(0, 0, tile.width, tile.height);
      into.globalAlpha = 0.95;
      for (let x = 0; x < 4; x++) for (let y = 0; y < 4; y++) into.fillRect(x * w, y * h, mw, mh);
      const pattern = context.createPattern(tile, "repeat");
      patterns.set(key, pattern);
    }
    return patterns.get(key) ?? colour;
  }

  Shardbook.timeline.tracks.memory = {
    label: "memory",
    height: 24,
    has: (model) => Shardbook.facts.of(model).peak > 0,
    key: "y",
    most: (model, r) => Shardbook.scale.bytes(Shardbook.facts.of(model).ranks[r].peak),
    say({ ranks, memoryCategories }, r, t) {
      const { time, bytes } = ranks[r].memory, i = Shardbook.facts.last(time, t);
      return memoryCategories.map((name, c) => [name, Shardbook.scale.bytes(bytes[c][i])]).filter((_, c) => bytes[c][i]);
    },
    draw(context, r, box, _state, g) {
      const rank = g.model.ranks[r], { time, bytes } = rank.memory, full = Shardbook.facts.of(g.model).peak, columns = Math.round(g.plot);
      let total = sums.get(rank);
      if (!total) sums.set(rank, (total = Shardbook.facts.totals(rank)));
      if (!total.length || !full) return;
      const at = new Int32Array(columns);
      for (let x = 0, i = 0; x < columns; x++) {
        const from = g.ns(g.left + x), to = g.ns(g.left + x + 1);
        while (i + 1 < time.length && time[i + 1] <= from) i++;
        let best = i;
        for (; i + 1 < time.length && time[i + 1] < to; i++) if (total[i + 1] > total[best]) best = i + 1;
        at[x] = best;
      }
      const low = new Int32Array(columns), floor = box.y + box.h, held = new Float64Array(columns);
      for (const [name, strong, pattern] of STACK) {
        const of = bytes[g.model.memoryCategories.indexOf(name)];
        if (!of) continue;
        context.fillStyle = pattern ? texture(context, pattern, g.colours.marks[4], g.dpr) : g.colours.marks[4];
        context.globalAlpha = pattern ? 1 : strong;
        for (let x = 0; x < columns; ) {
          held[x] += of[at[x]];
          const high = Math.round((held[x] / full) * box.h), under = low[x], first = x;
          low[x++] = high;
          for (; x < columns && low[x] === under; x++) {
            const next = held[x] + of[at[x]];
            if (Math.round((next / full) * box.h) !== high) break;
            held[x] = next;
            low[x] = high;
          }
          if (high > under) context.fillRect(g.left + first, floor - high, x - first, high - under);
        }
      }
      context.globalAlpha = 1;
      context.strokeStyle = g.colours.marks[4];
      context.beginPath();
      for (let x = 0; x < columns; x++) {
        context.lineTo(g.left + x, floor - low[x] + 0.5);
        context.lineTo(g.left + x + 1, floor - low[x] + 0.5);
      }
      context.stroke();
      Shardbook.draw.line(context, g.colours.line2, g.left, floor + 0.5, g.right, floor + 0.5);
    },
  };
})();

// @ts-check
"use strict";
var Shardbook = Shardbook || {};

/**
 * What belongs together on several ranks: the members of a call, and a micro-batch on its way down the stages and back
 * up. Lines lie over the lanes on an edge of ground, so that they show on every mark. It finds what to join from the
 * state; what a call says is select.js's.
 *
 * What is joined: a stretch of a rank's lane, ns, and where in it the line goes on if not at its ends.
 * @typedef {{ rank: number, kind: number, from: number, to: number, begin?: number }} Station rank: its number
 */
Shardbook.across = (function () {
  const { timeline, scale, commands, select } = Shardbook;

  /**
   * Forward and backward (kinds 0 to 3) of a lane, those with the same key as one stretch.
   * @param {Spans} phase @param {(i: number) => any} keyOf nothing: not asked for
   */
  function stretches(phase, keyOf) {
    const found = /** @type {Record<string, { kind: number, from: number, to: number }>} */ ({});
    phase.kind.forEach((kind, i) => {
      const key = kind < 4 && keyOf(i);
      if (key) (found[key] ??= { kind, from: phase.start[i], to: 0 }).to = phase.end[i];
    });
    return Object.values(found);
  }

  /**
   * The blocks of a micro-batch in their order, a list for each copy of the pipeline.
   * @param {Model} model @param {number | null} microbatch @returns {Station[][]}
   */
  function journey({ ranks }, microbatch) {
    const found = /** @type {Record<string, Station[]>} */ ({});
    for (const { rank, phase, coordinates } of ranks) {
      const blocks = stretches(phase, (i) => phase.microbatch[i] === microbatch && [phase.kind[i], phase.chunk[i]].join());
      (found[JSON.stringify({ ...coordinates, pp: 0 })] ??= []).push(...blocks.map((b) => ({ ...b, rank })));
    }
    return Object.values(found).map((blocks) => blocks.sort((a, b) => a.from - b.from));
  }

  /** The lane of a rank @param {Geometry} g @param {number} rank its number @param {string} lane @returns {any} */
  const on = (g, rank, lane) => g.box(g.model.ranks.findIndex((r) => r.rank === rank), lane);

  /** A line over the lanes @param {CanvasRenderingContext2D} context @param {Geometry} g @param {number[][]} points */
  function line(context, { colours }, points) {
    context.beginPath();
    for (const [x, y] of points) context.lineTo(x, y);
    for (const wide of [4, 1.5]) {
      context.strokeStyle = wide > 2 ? colours.ground : colours.sel;
      context.lineWidth = wide;
      context.stroke();
    }
  }

  /**
   * Outline what belongs together and join it: the members of a call, else blocks, of which those of weights (3) take up
   * no message.
   * @param {CanvasRenderingContext2D} context @param {Geometry} g @param {Station[]} all @param {CallModel} [call] @param {boolean} [light] pointed at only
   */
  function join(context, g, all, call, light) {
    const boxOf = (/** @type {Station} */ s) => on(g, s.rank, call ? "comm" : "phase");
    context.setLineDash(call ? [] : [2, 3]);
    all.filter((s) => s.kind !== 3).reduce((before, s) => {
      const a = boxOf(before), b = boxOf(s), x = g.x(call?.p2p ? s.to : s.begin ?? s.from), way = Math.sign(b.y - a.y), y = way > 0 ? b.y : b.y + b.h;
      if (way) line(context, g, [[g.x(before.begin ?? before.to), way > 0 ? a.y + a.h : a.y], [x, y], ...(call?.p2p ? [[x - 4, y - 6 * way], [x, y], [x + 4, y - 6 * way]] : [])]);
      return s;
    }, all[0]);
    context.setLineDash([]);
    for (const s of all) select.outline(context, g.colours, g.x(s.from), boxOf(s).y, g.x(s.to), boxOf(s).h, light);
  }

  /** @param {CanvasRenderingContext2D} context @param {Geometry} g @param {any} chosen @param {boolean} [light] */
  function members(context, g, chosen, light) {
    const { calls, ranks } = g.model, call = calls[chosen?.call ?? ranks[chosen?.rank]?.[/** @type {LaneName} */ (chosen.lane)].call[chosen.index]];
    if (!call) return;
    join(context, g, call.members.map((m) => ({ ...m, kind: 0, from: m.arrive, to: m.end })), call, light);
    const order = [...call.members].sort((a, b) => a.arrive - b.arrive), { rank, arrive } = /** @type {Member} */ (order.pop()), late = arrive - order[0]?.arrive;
    if (late && !light) select.flag(context, g, arrive, `last, by ${scale.time(late)}`, on(g, rank, "comm").y + 14);
  }

  select.over((context, { follow, hovered, selected }, g) => {
    for (const blocks of follow === null ? [] : journey(g.model, follow)) join(context, g, blocks);
    members(context, g, hovered, true);
    members(context, g, selected);
  });

  timeline.parts.push({ name: "across", attach(el) {
    if (el.model.microbatches > 1) commands.offer(el, "follow micro-batch", "l", () => el.state.follow !== null, () => {
      const at = el.place(el.state.selected), wanted = Math.max(0, at && el.model.ranks[at.rank][at.lane].microbatch[at.index]);
      el.update({ follow: wanted === el.state.follow ? null : wanted });
    });
  } });

  return { stretches, journey, on, line };
})();

// @ts-check
"use strict";
var Shardbook = Shardbook || {};

/**
 * The communication lane of a rank: when its calls wait and when they are in transfer, one thing at a time, as in
 * generator/publish/figures/lanes.py. Where calls overlap the one that has the link lies on top, then what else is
 * in transfer, then waits; of two alike the one that began last. Knows calls and idle times, and no page.
 */
Shardbook.comm = (function () {
  const { KIND } = Shardbook.model;
  /** `level`: what lies on top of what. @typedef {{ start: number, end: number, kind: number, level: number, call: number, row: number }} Part */

  /**
   * @param {RunData} data @param {CallModel[]} calls @param {number[][]} own rows of what its thread does
   * @param {number} rank @returns {Spans}
   */
  function lane(data, calls, own, rank) {
    const parts = [...waits(calls, own, rank), ...transfers(calls, rank)].filter((part) => part.end > part.start);
    return Shardbook.model.spans(topmost(parts).map(({ start, end, kind, call, row }) => {
      const { layer, microbatch } = calls[call];
      return [start, end, kind, layer, microbatch, -1, -1, call, row, data.columns.matchOp[call]];
    }));
  }

  /**
   * When each call is in transfer, and when it has the link. Those of one group run one after the other: one that has
   * all its members while the one before still runs gets its turn then. @param {CallModel[]} calls
   * @param {number} rank @returns {Part[]}
   */
  function transfers(calls, rank) {
    /** @type {Map<string, number>} */
    const free = new Map();
    return parts(calls, rank, (m) => [m.begin, m.end])
      .sort((a, b) => a.end - b.end || a.start - b.start || a.call - b.call)
      .flatMap((part) => {
        const { group, p2p } = calls[part.call], turn = p2p ? part.start : Math.max(part.start, free.get(group) ?? 0);
        free.set(group, part.end);
        const early = { ...part, end: turn, kind: KIND.TRANSFER, level: 1 };
        return [early, { ...early, start: turn, end: part.end, level: 2 }];
      });
  }

  /**
   * A collective waits from its arrival to its begin. A send or receive has no wait of its own, but a rank that stands
   * still until its neighbour has sent waits for it. @param {CallModel[]} calls @param {number[][]} own
   * @param {number} rank @returns {Part[]}
   */
  function waits(calls, own, rank) {
    const still = own.filter(([, , kind]) => kind === KIND.BLOCKED || kind === KIND.IDLE);
    return parts(calls, rank, (m) => [m.arrive, m.begin]).flatMap((part) =>
      calls[part.call].p2p
        ? still
            .filter(([start, end]) => start < part.end && end > part.start)
            .map(([start, end]) => ({ ...part, start: Math.max(part.start, start), end: Math.min(part.end, end) }))
        : [part],
    );
  }

  /** A part for each call of a rank. @param {CallModel[]} calls @param {number} rank @param {(member: Member) => [number, number]} when @returns {Part[]} */
  function parts(calls, rank, when) {
    return calls.flatMap((call, index) =>
      call.members.filter((m) => m.rank === rank).map((m) => {
        const [start, end] = when(m);
        return { start, end, kind: KIND.WAIT, level: 0, call: index, row: m.row };
      }),
    );
  }

  /** What is seen of parts that lie on each other. @param {Part[]} parts @returns {Part[]} */
  function topmost(parts) {
    const order = parts.slice().sort((a, b) => a.start - b.start), out = /** @type {Part[]} */ ([]);
    const times = Float64Array.from(parts.flatMap((part) => [part.start, part.end])).sort();
    let open = /** @type {Part[]} */ ([]), next = 0;
    for (let i = 0; i + 1 < times.length; i++) {
      const start = times[i], end = times[i + 1];
      if (end === start) continue;
      while (next < order.length && order[next].start <= start) open.push(order[next++]);
      open = open.filter((part) => part.end > start);
      if (!open.length) continue;
      const top = open.reduce((a, b) => (above(b, a) ? b : a)), last = out[out.length - 1];
      if (last && last.end === start && last.call === top.call && last.kind === top.kind) last.end = end;
      else out.push({ ...top, start, end });
    }
    return out;
  }

  /** @param {Part} a @param {Part} b */
  function above(a, b) {
    return (a.level - b.level || a.start - b.start || b.end - a.end || a.call - b.call) > 0;
  }

  return { lane };
})();

// @ts-check
"use strict";
var Shardbook = Shardbook || {};

/**
 * Lays a step out in time: as it was recorded, or by the longest path through its graph under other costs. It follows
 * the docstring of generator/timeline/whatif.py and gives the same nanoseconds: whole numbers below 2**53 throughout.
 * It knows when nodes begin and end, and not what a timeline shows of them: lanes.js.
 * @typedef {{ begin: Float64Array, end: Float64Array, stepNs: number, edges: Edges }} Schedule with the edges it came from
 * Parts of durations, ns, and the edges they belong to.
 * @typedef {{ own: Float64Array, latency: Float64Array, transfer: Float64Array, edges: Edges }} Costs
 */
Shardbook.replay = (function () {
  const { PHASES } = Shardbook.whatif;
  const { BACKWARD, BACKWARD_WEIGHT } = Shardbook.model.KIND;
  /** No node may be longer, ns: 100,000 times it is below 2**53. */
  const LONGEST = 90e9;
  /** @type {WeakMap<RunData, Schedule>} */
  const seen = new WeakMap();

  /** Rounded down, exact for whole numbers below 2**53. @param {number} a @param {number} b */
  const divide = (a, b) => (a - (a % b)) / b;

  /**
   * When every node begins and ends: "recorded", "isolated", or a what-if on the isolated durations (or, with `base`,
   * on the recorded ones). Throws an Error of one line for what the run has not.
   * @param {RunData} data @param {"recorded" | "isolated" | WhatIf} what @param {"recorded" | "isolated"} [base]
   * @returns {Schedule}
   */
  function schedule(data, what, base = "isolated") {
    const graph = Shardbook.graph.of(data);
    if (what === "recorded") {
      let found = seen.get(data);
      if (!found) seen.set(data, (found = recorded(data, graph)));
      return found;
    }
    const costs = base === "isolated" ? { ...graph, edges: graph.eager } : recordedCosts(data, graph);
    if (what === "isolated") return longestPath(costs.edges, costs.own.map((own, i) => own + costs.latency[i] + costs.transfer[i]));
    check(data, graph, costs, what);
    return longestPath(changedEdges(data, graph, costs.edges, what), durations(data, graph, costs, what));
  }

  /** @param {Edges} edges @param {Float64Array} duration @returns {Schedule} */
  function longestPath(edges, duration) {
    const { first, before, order } = edges;
    const begin = new Float64Array(duration.length), end = new Float64Array(duration.length);
    let stepNs = 0;
    for (const node of order) {
      let at = 0;
      for (let i = first[node]; i < first[node + 1]; i++) if (end[before[i]] > at) at = end[before[i]];
      begin[node] = at;
      end[node] = at += duration[node];
      if (at > stepNs) stepNs = at;
    }
    return { begin, end, stepNs, edges };
  }

  // ---- what was recorded

  /** @param {RunData} data @param {Graph} graph @returns {Schedule} */
  function recorded(data, graph) {
    const c = data.columns, begin = new Float64Array(graph.n), end = new Float64Array(graph.n);
    data.ranks.forEach((rank, r) => {
      let now = (end[graph.lane[r]] = rank.begin);
      for (let node = graph.lane[r] + 1; node < graph.lane[r + 1]; node++) {
        begin[node] = now;
        if (graph.segment[node] >= 0) now += c.segmentWall[graph.segment[node]];
        end[node] = now;
      }
    });
    /** When the thread went on that waited for a call, by the node of the completion. @type {Map<number, number>} */
    const woken = new Map();
    graph.completion.forEach((done, node) => done >= 0 && !woken.has(done) && woken.set(done, end[node]));
    const members = Shardbook.graph.firsts(c.matchMembers);
    for (let match = 0, i = 0; match + 1 < members.length; match++) {
      const last = graph.arrive.subarray(members[match], members[match + 1]).reduce((t, node) => Math.max(t, end[node]), 0);
      for (; i < members[match + 1]; i++) end[graph.done + i] = c.memberEnd[i] + (woken.get(graph.done + i) ?? last);
    }
    const { first, before } = graph.edges;
    for (let node = graph.done; node < graph.n; node++) {
      let last = -Infinity;
      for (let k = first[node]; k < first[node + 1]; k++) last = Math.max(last, end[before[k]]);
      begin[node] = last + c.memberBegin[node - graph.done];
    }
    graph.completion.forEach((done, node) => {
      if (done >= 0) begin[node] = Math.min(Math.max(begin[node], end[done]), end[node]);
    });
    return { begin, end, stepNs: end.reduce((a, b) => Math.max(a, b), 0), edges: graph.edges };
  }

  /** What was recorded as costs: nobody measured a call's latency apart. @param {RunData} data @param {Graph} graph @returns {Costs} */
  function recordedCosts(data, graph) {
    const { begin, end } = schedule(data, "recorded");
    const own = end.map((at, node) => at - begin[node]), transfer = own.slice();
    own.fill(0, graph.done);
    transfer.fill(0, 0, graph.done);
    return { own, latency: new Float64Array(graph.n), transfer, edges: graph.edges };
  }

  // ---- other costs

  /** @param {RunData} data @param {Graph} graph @param {Costs} costs @param {WhatIf} what */
  function durations(data, graph, costs, what) {
    const out = what.balance ? balanced(graph, costs.own) : costs.own.slice();
    const asynchronous = ofOps(data, what.asynchronous), free = ofOps(data, what.free ? data.strings : what.freeOps);
    const factors = PHASES.map((name, phase) =>
      phase >= BACKWARD && phase <= BACKWARD_WEIGHT ? [what.phases.backward, phase > BACKWARD ? what.phases[name] : undefined] : [what.phases[name]]);
    for (let node = 0; node < graph.done; node++) {
      const phase = graph.phase[node];
      if (phase >= 0) {
        for (const factor of [what.ranks[graph.rank[node]], ...(factors[phase] ?? []), what.layers[graph.layer[node]]]) {
          if (factor !== undefined) out[node] = Math.min(LONGEST, divide(out[node] * factor + 500, 1000));
        }
      } else if (graph.completion[node] >= 0 && asynchronous[graph.match[node]]) {
        out[node] = 0;
      }
    }
    for (let node = graph.done; node < graph.n; node++) {
      const transfer = divide(costs.transfer[node] * 1000 + divide(what.bandwidth, 2), what.bandwidth);
      const cost = Math.min(LONGEST, divide(costs.latency[node] * what.latency + 500, 1000) + transfer);
      out[node] = free[graph.match[node]] ? 0 : cost;
    }
    return out;
  }

  /** Whether each call's operation is one of some. @param {RunData} data @param {string[]} ops @returns {boolean[]} */
  function ofOps({ columns, strings }, ops) {
    return Array.from(columns.matchOp, (op) => ops.includes(strings[op]));
  }

  /** Own times with every piece of work as long as in the mean over the ranks that have it. @param {Graph} graph @param {Float64Array} own */
  function balanced(graph, own) {
    /** Nodes by piece and rank. @type {Map<number, Map<number, number[]>>} */
    const pieces = new Map();
    for (let node = 0; node < graph.done; node++) {
      if (graph.share[node] < 0 || !own[node]) continue;
      const ofRank = pieces.get(graph.share[node]) ?? new Map(), nodes = ofRank.get(graph.rank[node]) ?? [];
      nodes.push(node);
      pieces.set(graph.share[node], ofRank.set(graph.rank[node], nodes));
    }
    const out = own.slice();
    for (const ofRank of pieces.values()) {
      const sums = [...ofRank.values()].map((nodes) => nodes.reduce((sum, node) => sum + own[node], 0));
      const mean = divide(2 * sums.reduce((a, b) => a + b, 0) + sums.length, 2 * sums.length);
      [...ofRank.values()].forEach((nodes, i) => {
        let gone = 0, before = 0;
        for (const node of nodes) {
          // More than 53 bits.
          const now = Number((BigInt((gone += own[node])) * BigInt(mean)) / BigInt(sums[i]));
          out[node] = now - before;
          before = now;
        }
      });
    }
    return out;
  }

  /** Without what an asynchronous call need not wait for, with what a blocking one must. @param {RunData} data @param {Graph} graph @param {Edges} edges @param {WhatIf} what @returns {Edges} */
  function changedEdges(data, graph, edges, what) {
    if (!what.asynchronous.length && !what.blocking.length) return edges;
    const asynchronous = ofOps(data, what.asynchronous), blocking = ofOps(data, what.blocking);
    /** @type {number[][]} */
    const lists = [];
    for (let node = 0; node < graph.n; node++) {
      const list = [...edges.before.subarray(edges.first[node], edges.first[node + 1])];
      const free = graph.completion[node] >= 0 && asynchronous[graph.match[node]];
      lists.push(free ? list.filter((before) => before < graph.done) : list);
    }
    for (let node = graph.done; node < graph.n; node++) {
      if (graph.stands[node] >= 0 && blocking[graph.match[node]]) lists[graph.stands[node]].push(node);
    }
    try {
      return Shardbook.graph.edges(lists, graph.rank);
    } catch (error) {
      throw new Error(`With ${what.blocking.join(" and ")} blocking: ${error instanceof Error ? error.message : error}`);
    }
  }

  /** What of a run can be changed. @param {RunData} data @returns {{ ranks: number[], phases: string[], layers: number[], ops: string[] }} */
  function known(data) {
    const graph = Shardbook.graph.of(data);
    /** @param {Iterable<number>} values */
    const distinct = (values) => [...new Set(values)].filter((v) => v >= 0).sort((a, b) => a - b);
    const phases = distinct(graph.phase).filter((p) => p < PHASES.length);
    if (phases.some((p) => p > BACKWARD && p <= BACKWARD_WEIGHT)) phases.push(BACKWARD);
    return {
      ranks: data.ranks.map((r) => r.rank), phases: distinct(phases).map((p) => PHASES[p]), layers: distinct(graph.layer),
      ops: [...new Set(Array.from(data.columns.matchOp, (op) => data.strings[op]))].sort(),
    };
  }

  /** @param {RunData} data @param {Graph} graph @param {Costs} costs @param {WhatIf} what */
  function check(data, graph, costs, what) {
    for (let node = 0; node < graph.n; node++) {
      if (costs.own[node] + costs.latency[node] + costs.transfer[node] > LONGEST) throw new Error("A piece of this step is too long for a what-if.");
    }
    const has = known(data);
    for (const [kind, asked, there] of /** @type {[string, string[], (string | number)[]][]} */ ([
      ["rank", Object.keys(what.ranks), has.ranks], ["phase", Object.keys(what.phases), has.phases],
      ["layer", Object.keys(what.layers), has.layers],
      ["operation", [...what.freeOps, ...what.asynchronous, ...what.blocking], has.ops],
    ])) {
      const unknown = asked.find((name) => !there.some((other) => String(other) === name));
      if (unknown !== undefined) throw new Error(`The run “${data.run}” has no ${kind} ${unknown}.`);
    }
  }

  return { schedule, known };
})();

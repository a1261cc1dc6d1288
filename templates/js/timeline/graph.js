// @ts-check
"use strict";
var Shardbook = Shardbook || {};

/**
 * The dependency graph of a step and what each node costs, made anew from a run's data: generator/timeline/graph.py
 * and the columns of generator/timeline/whatif.py, with the same nodes in the same order. When they begin and end is
 * replay.js's.
 *
 * Nodes as columns: first those of each rank's program (those of the rank at index i from lane[i] on), then the
 * completions, one a member in the order of the data. `own`, `latency` and `transfer` are the parts of isolated
 * durations, ns.
 * @typedef {{
 *   n: number, kind: Uint8Array, rank: Int32Array, segment: Int32Array, match: Int32Array, lane: number[],
 *   event: Int32Array,        // of each segment: the event it lies in
 *   arrive: Int32Array,       // of each member of a call: the node of its arrival
 *   done: number,             // the node of the first member's completion
 *   completion: Int32Array,   // of a wait: the node of the completion it waits for
 *   stands: Int32Array,       // of a completion: the node that a blocking issuer begins no earlier
 *   phase: Int8Array, layer: Int32Array, share: Int32Array,
 *   own: Float64Array, latency: Float64Array, transfer: Float64Array,
 *   edges: Edges, eager: Edges,   // as recorded; with sends that may leave before their receive is there
 * }} Graph
 * Predecessors of node i: before[first[i]] … before[first[i + 1] - 1]; `order`: each node after its predecessors.
 * @typedef {{ first: Int32Array, before: Int32Array, order: Int32Array }} Edges
 */
Shardbook.graph = (function () {
  const NODE = { BEGIN: 0, WORK: 1, ARRIVE: 2, WAIT: 3, DONE: 4 };
  /** What an event is to the graph: generator/timeline/program.py. */
  const ISSUE = 1, WAIT = 2;
  const { OPTIMIZER, HOST } = Shardbook.model.KIND;
  /** @type {WeakMap<RunData, Graph>} */
  const made = new WeakMap();

  /** The graph of a run's step, built once. @param {RunData} data @returns {Graph} */
  function of(data) {
    let found = made.get(data);
    if (!found) made.set(data, (found = new Builder(data).build()));
    return found;
  }

  /** Where the rows of each begin whose numbers are `counts`, and the end. @param {ArrayLike<number>} counts */
  function firsts(counts) {
    const out = new Int32Array(counts.length + 1);
    for (let i = 0; i < counts.length; i++) out[i + 1] = out[i] + counts[i];
    return out;
  }

  /** The event that each segment lies in. @param {RunData} data */
  function events(data) {
    const back = data.columns.segmentBack, out = new Int32Array(back.length);
    let s = 0, from = 0;
    for (const rank of data.ranks) {
      let next = from;
      for (const end = s + rank.segments; s < end; s++) {
        out[s] = next - back[s];
        if (!back[s]) next++;
      }
      from += rank.events;
    }
    return out;
  }

  /** Lists of predecessors as columns. @param {number[][]} lists @param {Int32Array} ranks @returns {Edges} */
  function edges(lists, ranks) {
    const first = firsts(lists.map((list) => list.length)), before = Int32Array.from(lists.flat());
    return { first, before, order: order(first, before, ranks) };
  }

  /**
   * Nodes in an order in which predecessors come first. Throws where some wait for each other in a circle.
   * @param {Int32Array} first @param {Int32Array} before @param {Int32Array} ranks
   */
  function order(first, before, ranks) {
    const n = ranks.length, out = new Int32Array(n), waiting = new Int32Array(n), count = new Int32Array(n);
    for (const node of before) count[node]++;
    const at = firsts(count), after = new Int32Array(before.length), free = at.slice();
    let ready = 0;
    for (let node = 0; node < n; node++) {
      waiting[node] = first[node + 1] - first[node];
      for (let i = first[node]; i < first[node + 1]; i++) after[free[before[i]]++] = node;
      if (!waiting[node]) out[ready++] = node;
    }
    for (let i = 0; i < ready; i++) {
      for (let k = at[out[i]]; k < at[out[i] + 1]; k++) if (!--waiting[after[k]]) out[ready++] = after[k];
    }
    if (ready < n) {
      const stuck = [...new Set(ranks.filter((_, node) => waiting[node]))].sort((a, b) => a - b);
      throw new Error(`Calls of the ranks ${stuck.join(", ")} wait for each other in a circle.`);
    }
    return out;
  }

  class Builder {
    /** @param {RunData} data */
    constructor(data) {
      this.data = data;
      this.members = firsts(data.columns.matchMembers);
      this.event = events(data);
      /** @type {{ kind: number, rank: number, segment: number, match: number }[]} */
      this.nodes = [];
      /** @type {number[][]} */
      this.before = [];
      const count = data.columns.memberRank.length;
      this.arrive = new Int32Array(count).fill(-1);
      /** The last node of each member's issue. */
      this.issued = new Int32Array(count).fill(-1);
      /** Waits and the member whose completion they wait for. @type {[number, number][]} */
      this.waits = [];
    }

    /** @param {number} kind @param {number} rank @param {number} segment @param {number} match @param {number[]} before */
    add(kind, rank, segment, match, before) {
      this.nodes.push({ kind, rank, segment, match });
      return this.before.push(before) - 1;
    }

    /** @param {number} match @param {number} rank @returns {number} the member of a rank, -1 without one */
    member(match, rank) {
      const ranks = this.data.columns.memberRank;
      for (let i = match < 0 ? Infinity : this.members[match]; i < this.members[match + 1]; i++) {
        if (ranks[i] === rank) return i;
      }
      return -1;
    }

    /** @returns {Graph} */
    build() {
      const { data, event, arrive } = this;
      let segment = 0;
      const lane = data.ranks.map((rank) => this.program(rank, segment, (segment += rank.segments)));
      const done = this.nodes.length;
      lane.push(done);
      const n = done + arrive.length, stands = new Int32Array(n).fill(-1), completion = new Int32Array(n).fill(-1);
      this.issued.forEach((node, i) => {
        if (node >= 0 && !lane.includes(node + 1)) stands[done + i] = node + 1;
      });
      const early = this.completions();
      for (const [node, member] of this.waits) this.before[node].push((completion[node] = done + member));
      /** @param {"kind" | "rank" | "segment" | "match"} name */
      const column = (name) => Int32Array.from(this.nodes, (node) => node[name]);
      const rank = column("rank"), recorded = edges(this.before, rank);
      return {
        n, kind: Uint8Array.from(column("kind")), rank, segment: column("segment"), match: column("match"), lane, event,
        arrive, done, completion, stands, ...this.costs(),
        edges: recorded,
        eager: early.size ? edges(this.before.map((list, node) => early.get(node) ?? list), rank) : recorded,
      };
    }

    /** The nodes of a rank's program. @param {PackedRank} of @param {number} from @param {number} to @returns {number} the first of them */
    program(of, from, to) {
      const { eventRole, eventMatch } = this.data.columns, { rank } = of;
      const begin = this.add(NODE.BEGIN, rank, -1, -1, []);
      for (let s = from, before = begin; s < to; s++) {
        const role = eventRole[this.event[s]], match = eventMatch[this.event[s]], member = this.member(match, rank);
        const issues = role === ISSUE && member >= 0, waits = role === WAIT && member >= 0;
        if (issues && this.arrive[member] < 0) {
          before = this.arrive[member] = this.add(NODE.ARRIVE, rank, -1, match, [before]);
        }
        before = this.add(waits ? NODE.WAIT : NODE.WORK, rank, s, waits ? match : -1, [before]);
        if (issues) this.issued[member] = before;
        if (waits) this.waits.push([before, member]);
      }
      return begin;
    }

    /**
     * The completion of every member, queue after queue. What they wait for where sends are eager is given back,
     * by node, if it is not the same.
     */
    completions() {
      const { columns: c, strings } = this.data, expected = firsts(c.matchExpected);
      /** @type {Map<string, number>} */
      const queues = new Map();
      /** @type {Map<number, number[]>} */
      const early = new Map();
      for (let match = 0; match < c.matchOp.length; match++) {
        const ranks = c.expected.slice(expected[match], expected[match + 1]);
        const from = this.members[match], to = this.members[match + 1], all = [...this.arrive.subarray(from, to)];
        for (let i = from; i < to; i++) {
          const queue = [c.matchGroup[match], c.memberRank[i], ...ranks].join(), turn = queues.get(queue);
          const behind = turn === undefined ? [] : [turn];
          const node = this.add(NODE.DONE, c.memberRank[i], -1, match, [...all, ...behind]);
          queues.set(queue, node);
          if (strings[c.matchOp[match]] === "send") {
            const source = this.member(match, ranks[0]);
            early.set(node, [this.arrive[source < 0 ? i : source], ...behind]);
          }
        }
      }
      return early;
    }

    costs() {
      const c = this.data.columns, n = this.nodes.length;
      const own = new Float64Array(n), latency = new Float64Array(n), transfer = new Float64Array(n);
      const phase = new Int8Array(n).fill(-1), layer = new Int32Array(n).fill(-1), microbatch = layer.slice();
      this.nodes.forEach(({ kind, segment, match }, node) => {
        if (kind === NODE.DONE) {
          latency[node] = c.matchLatency[match];
          transfer[node] = c.matchTransfer[match];
        } else if (kind === NODE.WORK) {
          const e = this.event[segment];
          own[node] = c.segmentWall[segment] - c.segmentIdle[segment];
          phase[node] = c.eventActivity[e];
          layer[node] = phase[node] <= OPTIMIZER ? c.eventLayer[e] : -1;
          microbatch[node] = c.eventMicrobatch[e];
        }
      });
      return { own, latency, transfer, phase, layer, share: this.shares(phase, layer, microbatch) };
    }

    /**
     * A number for each piece of work that ranks can share evenly: a phase, layer and micro-batch, or all of a phase
     * where the ranks that have it have not the same ones.
     * @param {Int8Array} phase @param {Int32Array} layer @param {Int32Array} microbatch
     */
    shares(phase, layer, microbatch) {
      const share = new Int32Array(phase.length).fill(-1);
      let count = 0;
      for (let kind = 0; kind <= HOST; kind++) {
        /** @type {Map<string, number>} */
        const pieces = new Map();
        /** @type {Map<number, Set<number>>} */
        const ofRank = new Map();
        phase.forEach((its, node) => {
          if (its !== kind) return;
          const label = `${layer[node]} ${microbatch[node]}`, piece = pieces.get(label) ?? pieces.size, { rank } = this.nodes[node];
          pieces.set(label, piece);
          share[node] = count + piece;
          ofRank.set(rank, (ofRank.get(rank) ?? new Set()).add(piece));
        });
        const alike = [...ofRank.values()].every((set) => set.size === pieces.size);
        if (!alike) phase.forEach((its, node) => its === kind && (share[node] = count));
        count += alike ? pieces.size : 1;
      }
      return share;
    }
  }

  return { NODE, of, firsts, edges };
})();

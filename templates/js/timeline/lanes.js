// @ts-check
"use strict";
var Shardbook = Shardbook || {};

/**
 * From a schedule to the lanes that are drawn: labels the nodes' times as generator/timeline/reconstruct.py does,
 * moves memory and operators of the detail step as generator/timeline/memory.py does, and joins what belongs
 * together. Knows no page; comm.js lays out calls that overlap.
 */
Shardbook.lanes = (function () {
  const { NODE } = Shardbook.graph, { KIND, KINDS, MODULES } = Shardbook.model, { firsts } = Shardbook.graph;
  /** Labels of a piece of a rank's thread. @typedef {[kind: number, layer: number, microbatch: number, module: number, chunk: number, call: number]} Labels */

  /** Collects the spans of a lane. Labels that are alike and touch are joined. */
  class Lane {
    constructor() {
      /** @type {number[]} */ this.start = [];
      /** @type {number[]} */ this.end = [];
      /** @type {Labels[]} */ this.labels = [];
      /** @type {number[]} */ this.row = [];
    }

    /** @param {number} start @param {number} end @param {Labels} labels @param {number} row */
    add(start, end, labels, row) {
      const last = this.start.length - 1;
      if (end <= start) return;
      if (last >= 0 && this.end[last] === start && alike(this.labels[last], labels)) {
        this.end[last] = end;
      } else {
        this.start.push(start);
        this.end.push(end);
        this.labels.push(labels);
        this.row.push(row);
      }
    }

    /** @param {(labels: Labels) => number} name @returns {Spans} */
    spans(name) {
      /** @param {number} i */
      const column = (i) => this.labels.map((labels) => labels[i]);
      return {
        n: this.start.length, start: Float64Array.from(this.start), end: Float64Array.from(this.end),
        kind: Uint8Array.from(column(0)), name: Int32Array.from(this.labels, name), layer: Int16Array.from(column(1)),
        microbatch: Int16Array.from(column(2)), module: Int8Array.from(column(3)), chunk: Int16Array.from(column(4)),
        call: Int32Array.from(column(5)), row: Int32Array.from(this.row),
      };
    }
  }

  /** @param {Labels} a @param {Labels} b */
  function alike(a, b) {
    return a[0] === b[0] && a[1] === b[1] && a[2] === b[2] && a[3] === b[3] && a[4] === b[4] && a[5] === b[5];
  }

  /**
   * The step as it was recorded, with a device for each rank, or under other costs.
   * @param {RunData} data @param {"recorded" | "isolated" | WhatIf} what @returns {Model}
   */
  function model(data, what) {
    const schedule = Shardbook.replay.schedule(data, what);
    const found = calls(data, schedule), fixed = unchanging(data);
    const mode = typeof what === "string" ? what : "what-if";
    return {
      run: data.run, title: data.title, mode, label: mode === "isolated" ? "reconstructed" : mode,
      linkModel: mode === "recorded" ? "" : data.linkModel, step: data.step, detail: data.detail,
      stepNs: schedule.stepNs, stages: data.stages, microbatches: data.microbatches, ranksPerNode: data.ranksPerNode,
      strings: fixed.strings, memoryCategories: data.memoryCategories, calls: found,
      ranks: data.ranks.map((of, r) => {
        const own = computation(data, schedule, r), times = boundaries(data, schedule, r);
        return {
          rank: of.rank, note: of.note, stage: of.stage, node: of.node, coordinates: of.coordinates,
          ...lanes(own, fixed.names),
          operation: operations(fixed.ranks[r], times),
          comm: Shardbook.comm.lane(data, found, own, of.rank),
          memory: { time: moved(fixed.ranks[r].times, times, fixed.ranks[r].sampled), bytes: fixed.ranks[r].bytes },
        };
      }),
    };
  }

  /**
   * What a rank's thread does at each instant: generator/timeline/reconstruct.py, _computation.
   * @param {RunData} data @param {Schedule} schedule @param {number} r the rank's index
   */
  function computation(data, schedule, r) {
    const c = data.columns, graph = Shardbook.graph.of(data), { begin, end } = schedule, out = new Lane();
    /** @type {Labels} */
    const idle = [KIND.IDLE, -1, -1, -1, -1, -1];
    /** @param {number} kind @param {number} e @returns {Labels} */
    const labels = (kind, e) =>
      e < 0 ? [kind, -1, -1, -1, -1, -1] : [kind, c.eventLayer[e], c.eventMicrobatch[e], c.eventModule[e], c.eventChunk[e], c.eventMatch[e]];
    let now = end[graph.lane[r]], issued = -1;
    out.add(0, now, idle, -1);
    for (let node = graph.lane[r] + 1; node < graph.lane[r + 1]; node++) {
      if (graph.segment[node] < 0) continue;
      const e = graph.event[graph.segment[node]], row = c.eventRow[e];
      if (graph.kind[node] === NODE.WAIT) {
        out.add(now, begin[node], labels(KIND.BLOCKED, e), row);
        out.add(begin[node], end[node], labels(KIND.HOST, e), row);
      } else {
        out.add(now, begin[node], labels(KIND.BLOCKED, issued), issued < 0 ? -1 : c.eventRow[issued]);
        out.add(Math.max(now, begin[node]), end[node], labels(c.eventActivity[e], e), row);
      }
      now = Math.max(now, end[node]);
      issued = e;
    }
    out.add(now, schedule.stepNs, idle, -1);
    return out;
  }

  /** @typedef {{ kinds: number, modules: number, layers: number }} Names where in the strings these begin */

  /** The phase and the layer lane of a rank. @param {Lane} own @param {Names} names */
  function lanes(own, names) {
    const phase = new Lane(), layer = new Lane();
    own.labels.forEach((labels, i) => {
      const [kind, of, microbatch, module, chunk, call] = labels, start = own.start[i], end = own.end[i];
      const computes = kind <= KIND.OPTIMIZER;
      if (kind !== KIND.IDLE) phase.add(start, end, computes ? [kind, -1, microbatch, -1, chunk, call] : labels, own.row[i]);
      if (computes && (of >= 0 || module >= 0)) layer.add(start, end, labels, own.row[i]);
    });
    return {
      phase: phase.spans((labels) => names.kinds + labels[0]),
      layer: layer.spans((labels) => (labels[1] >= 0 ? names.layers + labels[1] : names.modules + labels[3])),
    };
  }

  /** generator/timeline/reconstruct.py, _call. @param {RunData} data @param {Schedule} schedule @returns {CallModel[]} */
  function calls(data, schedule) {
    const c = data.columns, graph = Shardbook.graph.of(data), { strings } = data;
    const members = firsts(c.matchMembers), expected = firsts(c.matchExpected);
    return Array.from(c.matchOp, (op, i) => {
      const ranks = [...c.expected.subarray(expected[i], expected[i + 1])], p2p = strings[op] === "send";
      /** @type {Member[]} */
      const found = [];
      for (let m = members[i]; m < members[i + 1]; m++) {
        found.push({
          rank: c.memberRank[m], arrive: schedule.end[graph.arrive[m]], begin: schedule.begin[graph.done + m],
          end: schedule.end[graph.done + m], row: c.memberRow[m], sent: c.memberSent[m], received: c.memberReceived[m],
        });
      }
      const last = Math.max(...found.map((m) => m.arrive));
      for (const m of found) {
        m.begin = Math.max(m.arrive, Math.min(p2p ? m.begin : last, m.end));
        m.end = Math.max(m.begin, m.end);
      }
      /** @param {Member} m */
      const place = (m) => (ranks.includes(m.rank) ? ranks.indexOf(m.rank) : m.rank);
      return {
        op: strings[op], group: strings[c.matchGroup[i]], ranks, seq: c.matchSeq[i], bytes: c.matchBytes[i],
        dtype: strings[c.matchDtype[i]], phase: strings[c.matchPhase[i]], layer: c.matchLayer[i],
        microbatch: c.matchMicrobatch[i], p2p, members: found.sort((a, b) => place(a) - place(b)),
      };
    });
  }

  // ---- what the detail step shows

  /** Times of a rank's phase and layer boundaries, of its begin and its end. @param {RunData} data @param {Schedule} schedule @param {number} r */
  function boundaries(data, schedule, r) {
    const graph = Shardbook.graph.of(data), ends = [schedule.end[graph.lane[r]]];
    for (let node = graph.lane[r] + 1; node < graph.lane[r + 1]; node++) if (graph.segment[node] >= 0) ends.push(schedule.end[node]);
    const from = data.ranks.slice(0, r).reduce((sum, rank) => sum + rank.boundaries, 0);
    const inner = data.columns.boundary.subarray(from, from + data.ranks[r].boundaries);
    const times = Float64Array.of(ends[0], ...Array.from(inner, (count) => ends[count]), ends[ends.length - 1]);
    for (let i = 1; i < times.length; i++) times[i] = Math.max(times[i], times[i - 1]);
    return times;
  }

  /** Rising times of the detail step in the step that is shown, stretched evenly between boundaries. @param {Float64Array} from @param {Float64Array} to @param {Float64Array} times */
  function moved(from, to, times) {
    const out = new Float64Array(times.length), last = from.length - 1;
    for (let i = 0, k = 0; i < times.length; i++) {
      while (k < last && from[k + 1] <= times[i]) k++;
      out[i] = k === last ? to[k] : Math.round(((to[k + 1] - to[k]) / (from[k + 1] - from[k])) * (times[i] - from[k]) + to[k]);
    }
    return out;
  }

  /** What is the same in every model of a run. @typedef {{ times: Float64Array, sampled: Float64Array, bytes: Float64Array[], operation: Spans }} Fixed */
  /** @type {WeakMap<RunData, { strings: string[], names: Names, ranks: Fixed[] }>} */
  const kept = new WeakMap();

  /** @param {RunData} data */
  function unchanging(data) {
    let found = kept.get(data);
    if (!found) {
      const layers = Math.max(-1, ...data.columns.eventLayer) + 1;
      const names = { kinds: data.strings.length, modules: data.strings.length + KINDS.length, layers: data.strings.length + KINDS.length + MODULES.length };
      const strings = [...data.strings, ...KINDS, ...MODULES, ...Array.from({ length: layers }, (_, i) => `layer ${i}`)];
      const rows = { details: 0, samples: 0, operations: 0 };
      found = { strings, names, ranks: data.ranks.map((rank) => fixed(data, rank, rows)) };
      kept.set(data, found);
    }
    return found;
  }

  /** @param {RunData} data @param {PackedRank} rank @param {{ details: number, samples: number, operations: number }} rows where its rows begin; moved to their end @returns {Fixed} */
  function fixed(data, rank, rows) {
    const c = data.columns;
    /** @param {string} name @param {"details" | "samples" | "operations"} of */
    const own = (name, of) => c[name].subarray(rows[of], rows[of] + rank[of]);
    const gap = own("operationGap", "operations"), ticks = own("operationTicks", "operations"), n = gap.length;
    const start = new Float64Array(n), end = new Float64Array(n);
    for (let i = 0, now = 0; i < n; i++) {
      start[i] = (now += gap[i]) * data.tick;
      end[i] = (now += ticks[i]) * data.tick;
    }
    const labels = own("operationLabel", "operations");
    /** @param {number} k */
    const label = (k) => Array.from(labels, (l) => data.labels[l][k]);
    const found = {
      times: Float64Array.from(own("detailBoundary", "details")), sampled: Float64Array.from(own("detailTime", "samples")),
      bytes: data.memoryCategories.map((name) => Float64Array.from(own(`detail${name[0].toUpperCase()}${name.slice(1)}`, "samples"))),
      operation: {
        n, start, end, kind: Uint8Array.from(label(0)), name: Int32Array.from(own("operationName", "operations")),
        layer: Int16Array.from(label(1)), microbatch: Int16Array.from(label(2)), chunk: Int16Array.from(label(3)),
        module: Int8Array.from(label(4)), call: new Int32Array(n).fill(-1), row: Int32Array.from(own("operationRow", "operations")),
      },
    };
    rows.details += rank.details;
    rows.samples += rank.samples;
    rows.operations += rank.operations;
    return found;
  }

  /** The operators of the detail step, moved. @param {Fixed} rank @param {Float64Array} times @returns {Spans} */
  function operations({ times: from, operation }, times) {
    if (!operation.n) return operation;
    return { ...operation, start: moved(from, times, operation.start), end: moved(from, times, operation.end) };
  }

  return { model, computation, calls };
})();

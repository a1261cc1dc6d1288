// @ts-check
"use strict";
var Shardbook = Shardbook || {};

/**
 * From a schedule to the lanes that are drawn: labels the nodes' times as generator/timeline/reconstruct.py does,
 * moves memory and operators of the detail step as generator/timeline/memory.py does, and joins what belongs
 * together. Knows no page; comm.js lays out calls that overlap.
 */
Shardbook.lanes = (function () {
  const { NODE, firsts } = Shardbook.graph, { KIND, KINDS, MODULES, spans } = Shardbook.model;
  /** What a rank's thread does in a piece of time. @typedef {[kind: number, layer: number, microbatch: number, module: number, chunk: number, call: number]} Labels */

  /** Adds a piece to rows of a lane (start, end, labels, row); it is joined to one before it that is alike. @param {number[][]} rows @param {number} start @param {number} end @param {Labels} labels @param {number} row */
  function add(rows, start, end, labels, row) {
    const last = rows[rows.length - 1];
    if (end <= start) return;
    if (last && last[1] === start && labels.every((label, i) => last[2 + i] === label)) last[1] = end;
    else rows.push([start, end, ...labels, row]);
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
      strings: fixed.strings, memoryCategories: data.memoryCategories, calls: found, data, schedule,
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
   * What a rank's thread does at each instant, as rows: generator/timeline/reconstruct.py, _computation.
   * @param {RunData} data @param {Schedule} schedule @param {number} r the rank's index @returns {number[][]}
   */
  function computation(data, schedule, r) {
    const c = data.columns, graph = Shardbook.graph.of(data), { begin, end } = schedule;
    /** @type {number[][]} */
    const out = [];
    /** @param {number} start @param {number} until @param {number} kind @param {number} e the event that the labels are of */
    const piece = (start, until, kind, e) =>
      e < 0
        ? add(out, start, until, [kind, -1, -1, -1, -1, -1], -1)
        : add(out, start, until, [kind, c.eventLayer[e], c.eventMicrobatch[e], c.eventModule[e], c.eventChunk[e], c.eventMatch[e]], c.eventRow[e]);
    let now = end[graph.lane[r]], issued = -1;
    piece(0, now, KIND.IDLE, -1);
    for (let node = graph.lane[r] + 1; node < graph.lane[r + 1]; node++) {
      if (graph.segment[node] < 0) continue;
      const e = graph.event[graph.segment[node]], waits = graph.kind[node] === NODE.WAIT;
      piece(now, begin[node], KIND.BLOCKED, waits ? e : issued);
      piece(waits ? begin[node] : Math.max(now, begin[node]), end[node], waits ? KIND.HOST : c.eventActivity[e], e);
      now = Math.max(now, end[node]);
      issued = e;
    }
    piece(now, schedule.stepNs, KIND.IDLE, -1);
    return out;
  }

  /** @typedef {{ kinds: number, modules: number, layers: number }} Names where in the strings these begin */

  /** The phase and the layer lane of a rank. @param {number[][]} own @param {Names} names */
  function lanes(own, names) {
    /** @type {number[][]} */
    const phase = [], /** @type {number[][]} */ layer = [];
    for (const [start, end, kind, of, microbatch, module, chunk, call, row] of own) {
      const computes = kind <= KIND.OPTIMIZER;
      if (computes) add(phase, start, end, [kind, -1, microbatch, -1, chunk, call], row);
      else if (kind !== KIND.IDLE) add(phase, start, end, [kind, of, microbatch, module, chunk, call], row);
      if (computes && (of >= 0 || module >= 0)) add(layer, start, end, [kind, of, microbatch, module, chunk, call], row);
    }
    return {
      phase: spans(phase.map((row) => [...row, names.kinds + row[2]])),
      layer: spans(layer.map((row) => [...row, row[3] >= 0 ? names.layers + row[3] : names.modules + row[5]])),
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
    const [gap, ticks, name, row, label] = ["Gap", "Ticks", "Name", "Row", "Label"].map((column) => own(`operation${column}`, "operations"));
    let now = 0;
    const found = {
      times: Float64Array.from(own("detailBoundary", "details")), sampled: Float64Array.from(own("detailTime", "samples")),
      bytes: data.memoryCategories.map((category) => Float64Array.from(own(`detail${category[0].toUpperCase()}${category.slice(1)}`, "samples"))),
      operation: spans(Array.from(gap, (free, i) => {
        const start = now + free, [kind, layer, microbatch, chunk, module] = data.labels[label[i]];
        now = start + ticks[i];
        return [start * data.tick, now * data.tick, kind, layer, microbatch, module, chunk, -1, row[i], name[i]];
      })),
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

// @ts-check
"use strict";
var Shardbook = Shardbook || {};

/**
 * What a timeline is made of: the words all files of the timeline share, and the numbers of its kinds. Times
 * are whole nanoseconds in doubles, from the step's begin; -1 means "does not apply". lanes.js makes a Model from a
 * RunData, and whatever draws, searches or sums works on a Model.
 *
 * Columns of one lane: sorted by start, not overlapping.
 * @typedef {{
 *   n: number,
 *   start: Float64Array, end: Float64Array,
 *   kind: Uint8Array,         // one of KIND
 *   name: Int32Array,         // index into Model.strings
 *   layer: Int16Array, microbatch: Int16Array,
 *   chunk: Int16Array,        // the pipeline stage that the span works on
 *   module: Int8Array,        // 0 embedding, 1 block, 2 head
 *   call: Int32Array,         // index into Model.calls
 *   row: Int32Array,          // in the rank file: the index in traceEvents
 * }} Spans
 *
 * The lanes of a rank: what its thread did (phase: computation, host, blocked; what is free is idle), the
 * layers of it, the operators (of the detail step, moved here), wait and transfer of its calls; and the bytes it
 * holds: `bytes[c][i]` of category c from `time[i]` on.
 * @typedef {{
 *   rank: number, note: string, stage: number, node: number, coordinates: Record<string, number>,
 *   phase: Spans, layer: Spans, operation: Spans, comm: Spans,
 *   memory: { time: Float64Array, bytes: Float64Array[] },
 * }} RankModel
 *
 * A rank's part in a call. A collective waits from `arrive` to `begin` and is in transfer until `end`. `sent` and
 * `received`: bytes of an all-to-all with uneven parts.
 * @typedef {{ rank: number, arrive: number, begin: number, end: number, row: number, sent: number, received: number }} Member
 * @typedef {{
 *   op: string, group: string, ranks: number[], seq: number, bytes: number, dtype: string, phase: string,
 *   layer: number, microbatch: number, p2p: boolean,
 *   members: Member[],        // of a send: source, then destination
 * }} CallModel
 *
 * `label` says where its numbers come from: recorded, reconstructed or what-if. `detail` is the step whose
 * operators and memory are shown, -1 without.
 * @typedef {{
 *   run: string, title: string, mode: string, label: string, linkModel: string, step: number, detail: number,
 *   stepNs: number, stages: number, microbatches: number, ranksPerNode: number,
 *   strings: string[], memoryCategories: string[], ranks: RankModel[], calls: CallModel[],
 *   data?: RunData, schedule?: Schedule,      // what it was made from
 * }} Model
 *
 * What a run ships (generator/publish/pack.py): of each rank its place and how many rows are its own, and columns.
 * @typedef {{
 *   rank: number, note: string, stage: number, node: number, coordinates: Record<string, number>, begin: number,
 *   events: number, segments: number, boundaries: number, details: number, samples: number, operations: number,
 * }} PackedRank
 * @typedef {{
 *   run: string, title: string, step: number, detail: number, linkModel: string, stages: number,
 *   microbatches: number, ranksPerNode: number, tick: number, strings: string[], labels: number[][],
 *   memoryCategories: string[], ranks: PackedRank[], columns: Record<string, Int32Array | Float64Array>,
 * }} RunData
 */
Shardbook.model = (function () {
  /** Numbers of kinds; those up to IDLE are the activities of generator/timeline/spans.py. */
  const KIND = {
    FORWARD: 0, BACKWARD: 1, BACKWARD_INPUT: 2, BACKWARD_WEIGHT: 3, OPTIMIZER: 4, HOST: 5, BLOCKED: 6, IDLE: 7,
    WAIT: 8, TRANSFER: 9,
  };
  /** What a kind is called, by its number. */
  const KINDS = [
    "forward", "backward", "backward_input", "backward_weight", "optimizer", "host", "blocked", "idle", "wait",
    "transfer",
  ];
  const MODULES = ["embedding", "block", "head"];
  /** The columns of a lane, in the order of a row. */
  const COLUMNS = {
    start: Float64Array, end: Float64Array, kind: Uint8Array, layer: Int16Array, microbatch: Int16Array,
    module: Int8Array, chunk: Int16Array, call: Int32Array, row: Int32Array, name: Int32Array,
  };

  /** A lane of rows, whose values are in the order of COLUMNS. @param {number[][]} rows @returns {Spans} */
  function spans(rows) {
    const columns = Object.entries(COLUMNS).map(([name, type], i) => [name, type.from(rows.map((row) => row[i]))]);
    return { n: rows.length, ...Object.fromEntries(columns) };
  }

  return { KIND, KINDS, MODULES, spans };
})();

// @ts-check
"use strict";

/**
 * A made-up run for tests and the bench: a pipeline of micro-batches on every rank, phases of layers of bursts of
 * operators with gaps between them, and calls. The same numbers give the same model.
 * @param {{ ranks: number, microbatches: number, layers: number, operations: number, calls: number, seed?: number }} size
 *   operations: of each layer of each phase; calls: of each phase
 * @returns {Model}
 */
function syntheticModel(size) {
  let state = (size.seed ?? 1) >>> 0;
  const random = () => {
    state = (state + 0x6d2b79f5) >>> 0;
    let t = Math.imul(state ^ (state >>> 15), state | 1);
    t ^= t + Math.imul(t ^ (t >>> 7), t | 61);
    return ((t ^ (t >>> 14)) >>> 0) / 4294967296;
  };
  /** @param {number} n @returns {Spans} */
  const columns = (n) => ({
    n, start: new Float64Array(n), end: new Float64Array(n), kind: new Uint8Array(n), name: new Int32Array(n).fill(-1),
    layer: new Int16Array(n).fill(-1), microbatch: new Int16Array(n).fill(-1), chunk: new Int16Array(n).fill(-1),
    module: new Int8Array(n).fill(-1), call: new Int32Array(n).fill(-1), row: new Int32Array(n),
  });
  const strings = ["aten::mm", "aten::add_", "aten::layer_norm", "aten::gelu", "aten::softmax", "all_reduce"];
  const phases = 2 * size.microbatches + 1, kernel = 5000;
  let stepNs = 0, row = 0;
  const ranks = Array.from({ length: size.ranks }, (_, rank) => {
    const phase = columns(phases), layer = columns((phases - 1) * size.layers);
    const operation = columns((phases - 1) * size.layers * size.operations), comm = columns((phases - 1) * size.calls * 2);
    let now = Math.round(rank * 40000 + random() * 20000), l = 0, o = 0, c = 0;
    for (let p = 0; p < phases; p++) {
      const kind = p === phases - 1 ? 4 : p % 2, microbatch = p === phases - 1 ? -1 : p >> 1, begin = now;
      for (let k = 0; k < size.layers && p < phases - 1; k++) {
        const first = now;
        for (let q = 0; q < size.operations; q++) {
          const long = Math.round(kernel * (0.4 + random()) * (1 + kind));
          operation.start[o] = now;
          operation.end[o] = now += long;
          operation.kind[o] = kind;
          operation.name[o] = (q * 7 + k) % 5;
          operation.layer[o] = kind ? size.layers - 1 - k : k;
          operation.microbatch[o] = microbatch;
          operation.row[o++] = row++;
          now += random() < 0.05 ? Math.round(kernel * 4 * random()) : Math.round(kernel * 0.4 * random());
        }
        layer.start[l] = first;
        layer.end[l] = now;
        layer.kind[l] = kind;
        layer.layer[l] = kind ? size.layers - 1 - k : k;
        layer.module[l] = 1;
        layer.microbatch[l] = microbatch;
        layer.row[l++] = row++;
      }
      if (p === phases - 1) now += 400000;
      phase.start[p] = begin;
      phase.end[p] = now;
      phase.kind[p] = kind;
      phase.microbatch[p] = microbatch;
      phase.row[p] = row++;
      for (let k = 0; k < size.calls && p < phases - 1; k++) {
        const slot = (now - begin) / size.calls, at = Math.round(begin + k * slot), wait = Math.round(slot * 0.4 * random()), move = Math.round(slot * (0.1 + 0.3 * random()));
        for (const [from, to, of] of [[at, at + wait, 8], [at + wait, at + wait + move, 9]]) {
          comm.start[c] = from;
          comm.end[c] = to;
          comm.kind[c] = of;
          comm.name[c] = 5;
          comm.call[c] = p * size.calls + k;
          comm.microbatch[c] = microbatch;
          comm.row[c++] = row;
        }
        row++;
      }
      now += Math.round(random() * 0.4 * (now - begin));
    }
    stepNs = Math.max(stepNs, now);
    return { rank, note: `stage ${rank}`, stage: rank, node: rank >> 2, coordinates: { pp: rank }, phase, layer, operation, comm, memory: { time: new Float64Array(0), bytes: [] } };
  });
  const calls = Array.from({ length: (phases - 1) * size.calls }, (_, i) => ({
    op: "all_reduce", group: "all", ranks: ranks.map((r) => r.rank), seq: i, bytes: 1 << 20, dtype: "float32", phase: "backward", layer: -1, microbatch: -1, p2p: false,
    members: ranks.map((r) => ({ rank: r.rank, arrive: r.comm.start[2 * i], begin: r.comm.start[2 * i + 1], end: r.comm.end[2 * i + 1], row: r.comm.row[2 * i], sent: -1, received: -1 })),
  }));
  return { run: "synthetic", title: "Synthetic", mode: "isolated", label: "reconstructed", linkModel: "ring", step: 0, detail: -1, stepNs, stages: size.ranks,
    microbatches: size.microbatches, ranksPerNode: 1, strings, memoryCategories: [], ranks, calls };
}

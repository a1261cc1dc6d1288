// @ts-check
"use strict";
var Shardbook = Shardbook || {};

/**
 * A what-if as a value and as text, as generator/timeline/whatif_text.py has it: items with commas between them
 * (rank2=1200, backward=500, layer3=2000, latency=0, bandwidth=2000, free, free=send, async=send, block=send,
 * balance), factors per mille. What a run has, and what a what-if does to it, is replay.js's.
 * @typedef {{
 *   ranks: Record<number, number>, phases: Record<string, number>, layers: Record<number, number>,
 *   latency: number, bandwidth: number, free: boolean, freeOps: string[], asynchronous: string[],
 *   blocking: string[], balance: boolean,
 * }} WhatIf
 */
Shardbook.whatif = (function () {
  /** Phases by the number of their activity. */
  const PHASES = ["forward", "backward", "backward_input", "backward_weight", "optimizer", "host"];
  const UNCHANGED = 1000, MOST = 100000;
  /** Fields of the items that name operations. @type {Record<string, "freeOps" | "asynchronous" | "blocking">} */
  const OPS = { free: "freeOps", async: "asynchronous", block: "blocking" };

  /** What changes nothing, to be changed. @returns {WhatIf} */
  function nothing() {
    return {
      ranks: {}, phases: {}, layers: {}, latency: UNCHANGED, bandwidth: UNCHANGED, free: false, freeOps: [],
      asynchronous: [], blocking: [], balance: false,
    };
  }

  /** @param {string} text @returns {WhatIf} Throws an Error of one line. */
  function parse(text) {
    const read = nothing(), given = new Set();
    for (const item of text.split(",").map((part) => part.trim()).filter(Boolean)) {
      const [, name, value] = /^([^=]*)(?:=(.*))?$/s.exec(item) ?? [];
      const numbered = /^(rank|layer)(0|[1-9]\d{0,8})$/.exec(name);
      if (numbered || PHASES.includes(name) || name === "latency" || name === "bandwidth") {
        if (given.has(name)) throw new Error(`“${name}” is given twice.`);
        given.add(name);
        const factor = perMille(name, value);
        if (numbered) (numbered[1] === "rank" ? read.ranks : read.layers)[Number(numbered[2])] = factor;
        else if (name === "latency" || name === "bandwidth") read[name] = factor;
        else read.phases[name] = factor;
      } else if (name === "free" && value === undefined) {
        read.free = true;
      } else if (name === "balance" && value === undefined) {
        read.balance = true;
      } else if (Object.hasOwn(OPS, name)) {
        if (!/^[a-z0-9_]+$/.test(value ?? "")) throw new Error(`“${name}” needs an operation, as in ${name}=all_reduce.`);
        read[OPS[name]].push(value);
      } else {
        throw new Error(`A what-if has no “${name}”.`);
      }
    }
    const both = read.asynchronous.find((op) => read.blocking.includes(op));
    if (both) throw new Error(`${both} cannot be asynchronous and blocking.`);
    return tidy(read);
  }

  /** @param {string} name @param {string | undefined} text */
  function perMille(name, text) {
    const least = name === "bandwidth" ? 1 : 0;
    const value = /^(0|[1-9]\d{0,8})$/.test(text ?? "") ? Number(text) : NaN;
    if (!(value >= least && value <= MOST)) throw new Error(`“${name}” needs a whole number, ${least} to ${MOST}.`);
    return value;
  }

  /** The same without what changes nothing and in one order. @param {WhatIf} w @returns {WhatIf} */
  function tidy(w) {
    /** @param {Record<string, number>} factors */
    const changed = (factors) => Object.fromEntries(Object.entries(factors).filter(([, f]) => f !== UNCHANGED));
    /** @param {string[]} ops */
    const sorted = (ops) => [...new Set(ops)].sort();
    return {
      ...w, ranks: changed(w.ranks), phases: changed(w.phases), layers: changed(w.layers),
      freeOps: w.free ? [] : sorted(w.freeOps), asynchronous: sorted(w.asynchronous), blocking: sorted(w.blocking),
    };
  }

  /** The one text of a what-if; equal what-ifs have equal texts. @param {WhatIf} whatIf */
  function print(whatIf) {
    const w = tidy(whatIf);
    /** @param {string} name @param {string[]} ops */
    const named = (name, ops) => ops.map((op) => `${name}=${op}`);
    return [
      ...Object.entries(w.ranks).map(([rank, factor]) => `rank${rank}=${factor}`),
      ...PHASES.filter((phase) => phase in w.phases).map((phase) => `${phase}=${w.phases[phase]}`),
      ...Object.entries(w.layers).map(([layer, factor]) => `layer${layer}=${factor}`),
      ...(w.latency === UNCHANGED ? [] : [`latency=${w.latency}`]),
      ...(w.bandwidth === UNCHANGED ? [] : [`bandwidth=${w.bandwidth}`]),
      ...(w.free ? ["free"] : named("free", w.freeOps)),
      ...named("async", w.asynchronous),
      ...named("block", w.blocking),
      ...(w.balance ? ["balance"] : []),
    ].join(",");
  }

  return { PHASES, nothing, parse, print };
})();

// @ts-check
"use strict";
var Shardbook = Shardbook || {};

/**
 * What an event, a call or a gap is, in words and numbers: for the panel, the tip and whoever listens. Free of the DOM.
 *
 * @typedef {{ title: string, note: string, facts: [string, string][], members: { rank: number, role: string, arrive: number, wait: number, transfer: number }[],
 *   why: string, line: string }} Description members of a call with the time that each arrived, ns; line: all in one sentence
 */
Shardbook.describe = (function () {
  const { scale } = Shardbook, { KIND } = Shardbook.model;
  const NAMES = ["forward", "backward", "backward, input", "backward, weights", "optimizer", "host", "blocked", "idle"];
  /** A word of the data as it is written in text @param {string} op */
  const written = (op) => op.replace(/_/g, "-");

  /** What is drawn of a span: its phase, micro-batch and stage @param {Model} model @param {Spans} spans @param {number} i */
  function doing(model, spans, i) {
    const number = spans.kind[i] < KIND.HOST && spans.microbatch[i] >= 0 && (model.stages > 1 || model.microbatches > 1) ? ` of micro-batch ${spans.microbatch[i]}` : "";
    return (NAMES[spans.kind[i]] ?? "") + number;
  }

  /** When something begins and ends, and how long it is @param {number} from @param {number} to @returns {[string, string][]} */
  const times = (from, to) => [["from", at(from)], ["to", at(to)], ["duration", scale.time(to - from)]];
  /** An instant, to the µs, in ms @param {number} ns */
  const at = (ns) => `${scale.number(ns / 1e6, 3)}\u2009ms`;

  /**
   * @param {Model} model @param {Chosen} chosen @param {{ from: number, to: number }} span of all that is chosen @returns {Description}
   */
  function describe(model, chosen, span) {
    if ("gap" in chosen) return gap(model, chosen.gap);
    if ("call" in chosen) return call(model, chosen.call, model.calls[chosen.call].members[0]?.rank ?? -1);
    const rank = model.ranks[chosen.rank], { index: i } = chosen, spans = rank[/** @type {LaneName} */ (chosen.lane)];
    if (chosen.lane === "comm") return call(model, spans.call[i], rank.rank);
    const where = list(`rank ${rank.rank}`, rank.note), name = model.strings[spans.name[i]] ?? "";
    const title = chosen.lane === "phase" ? doing(model, spans, i) : name, of = chosen.lane === "phase" ? "" : doing(model, spans, i);
    const facts = times(span.from, span.to), add = (/** @type {string} */ key, /** @type {string | number} */ value) => facts.push([key, String(value)]);
    if (chosen.lane === "operation" && spans.layer[i] >= 0) add("layer", spans.layer[i]);
    if (spans.chunk[i] >= 0 && model.stages > 1) add("stage", spans.chunk[i]);
    if (chosen.lane === "operation" && model.detail >= 0) add("of step", `${model.detail}, moved to step ${model.step}`);
    add("origin", chosen.lane === "operation" ? "inferred" : model.label);
    if (spans.row[i] >= 0) add("row", `${spans.row[i]} of rank ${rank.rank}'s file`);
    const inside = chosen.lane === "phase" ? breaks(rank, span) : "";
    return { title, note: list(of, where), facts, members: [], why: inside,
      line: list(title, of, where, `${at(span.from)} to ${at(span.to)}`, scale.time(span.to - span.from)) };
  }

  /** @param {(string | number | false | undefined)[]} parts @returns {string} those that there are, with commas */
  const list = (...parts) => parts.filter(Boolean).join(", ");

  /** What a block holds beside its computation @param {RankModel} rank @param {{ from: number, to: number }} span */
  function breaks(rank, { from, to }) {
    let host = 0, blocked = 0;
    const { start, end, kind, n } = rank.phase;
    for (let i = 0; i < n && start[i] < to; i++) {
      if (start[i] < from) continue;
      if (kind[i] === KIND.HOST) host += end[i] - start[i];
      if (kind[i] === KIND.BLOCKED) blocked += end[i] - start[i];
    }
    if (to - from <= host + blocked) return "";
    const parts = [host && `${scale.time(host)} of it issuing calls`, blocked && `${scale.time(blocked)} blocked in waits`].filter(Boolean);
    return parts.length ? `Of this, ${parts.join(" and ").replace("of it ", "")}.` : "";
  }

  /** @param {Model} model @param {number} index @param {number} mine the rank it was chosen on @returns {Description} */
  function call(model, index, mine) {
    const c = model.calls[index], facts = /** @type {[string, string][]} */ ([]);
    const [source, target] = [c.members[0]?.rank, c.members[c.members.length - 1]?.rank];
    const title = c.p2p ? `send, rank ${source} → ${target}` : written(c.op), own = c.members.find((m) => m.rank === mine);
    const begin = Math.max(...c.members.map((m) => m.begin)), end = Math.max(...c.members.map((m) => m.end));
    const numbered = c.microbatch >= 0 && (model.stages > 1 || model.microbatches > 1);
    const of = list(c.phase.replace(/_/g, " "), c.layer >= 0 && `layer ${c.layer}`, numbered && `micro-batch ${c.microbatch}`);
    facts.push(...times(own?.arrive ?? Math.min(...c.members.map((m) => m.arrive)), own?.end ?? end));
    facts.push(["bytes", list(scale.number(c.bytes, 0), c.dtype)]);
    const moving = turn(model, index, mine) || end - begin;
    if (c.bytes > 0 && moving > 0) facts.push(["bandwidth", scale.rate(c.bytes, moving)]);
    facts.push(c.p2p ? ["message", `${c.seq} from ${source} to ${target}`] : ["group", `${c.group}, call ${c.seq}`]);
    if (!c.p2p) facts.push(["ranks", c.ranks.join(", ")]);
    facts.push(["origin", model.label]);
    const row = own ?? c.members[0];
    if (row?.row >= 0) facts.push(["row", `${row.row} of rank ${row.rank}'s file`]);
    const members = c.members.map((m) => ({ rank: m.rank, role: c.p2p ? (m.rank === source ? "sends" : "receives") : "", arrive: m.arrive, wait: m.begin - m.arrive, transfer: m.end - m.begin }));
    const waited = own ? own.begin - own.arrive : 0;
    return { title, note: of, facts, members, why: late(model, c),
      line: list(title, of, own && `on rank ${own.rank} ${scale.time(waited)} wait`, own && `${scale.time(own.end - own.begin)} transfer`, scale.bytes(c.bytes)) };
  }

  /** How long a call has the link of a rank to itself @param {Model} model @param {number} index @param {number} mine */
  function turn(model, index, mine) {
    const comm = model.ranks.find((r) => r.rank === mine)?.comm;
    let sum = 0;
    for (let i = 0; comm && i < comm.n; i++) if (comm.call[i] === index && comm.kind[i] === KIND.TRANSFER) sum += comm.end[i] - comm.start[i];
    return sum;
  }

  /** Who was last, and what it was doing @param {Model} model @param {CallModel} c */
  function late(model, c) {
    if (c.members.length < 2) return "";
    const order = [...c.members].sort((a, b) => a.arrive - b.arrive), last = c.p2p ? c.members[0] : order[order.length - 1];
    const spared = c.p2p ? Math.max(0, last.arrive - c.members[1].arrive) : last.arrive - order[0].arrive, moving = Math.max(...c.members.map((m) => m.end)) - Math.max(...c.members.map((m) => m.begin));
    const rank = model.ranks.find((r) => r.rank === last.rank);
    if (!rank || spared <= 0) return moving > 0 ? `The transfer takes ${scale.time(moving)}.` : "";
    let busy = "";
    const { phase } = rank;
    for (let i = 0; i < phase.n && phase.start[i] < last.arrive; i++) if (phase.kind[i] < KIND.HOST) busy = doing(model, phase, i);
    const who = c.p2p ? `Rank ${last.rank} sends ${scale.time(spared)} after rank ${c.members[1].rank} is ready` : `Rank ${last.rank} is the last to arrive, ${scale.time(spared)} after the first`;
    return `${who}${busy && ": until then it was in "}${busy}. The transfer takes ${scale.time(moving)}.`;
  }

  /** @param {Model} model @param {{ rank: number, from: number, to: number }} gap @returns {Description} */
  function gap(model, { rank: r, from, to }) {
    const rank = model.ranks[r], { phase, comm } = rank;
    let blocked = 0, ends = -1;
    for (let i = 0; i < phase.n; i++) if (phase.kind[i] === KIND.BLOCKED && phase.start[i] < to && phase.end[i] > from) blocked += Math.min(to, phase.end[i]) - Math.max(from, phase.start[i]);
    for (let i = 0; i < comm.n; i++) if (comm.start[i] < to && comm.end[i] > from && comm.end[i] <= to + 1e6) ends = comm.call[i];
    const c = model.calls[ends], title = model.stages < 2 && 2 * blocked > to - from ? "blocked" : "idle";
    const why = !c ? "" : c.p2p ? `It ends with the message from rank ${c.members[0].rank} to ${c.members[c.members.length - 1].rank}. ${late(model, c)}` : `It ends with an ${written(c.op)}. ${late(model, c)}`;
    return { title, note: `rank ${rank.rank}`, facts: [...times(from, to), ["origin", model.label]], members: [], why: c && !c.p2p && !/^[aeiou]/.test(c.op) ? why.replace("an ", "a ") : why,
      line: `${title}, rank ${rank.rank}, ${at(from)} to ${at(to)}, ${scale.time(to - from)}` };
  }

  return { describe, doing, at, written };
})();

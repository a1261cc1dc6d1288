// @ts-check
"use strict";
var Shardbook = Shardbook || {};

/**
 * Tracks below a rank's lanes: bytes of its calls under way, and micro-batches that it holds; and what all tracks say at
 * an instant, for the tip and the details. Memory is drawn by memory.js.
 */
(function () {
  const { timeline, scale, facts, across, commands, draw } = Shardbook, { tracks } = timeline;
  /** By how much a value changes, and when. @typedef {[number, number][]} Changes */
  /** value[i] from time[i] on. @typedef {{ time: number[], value: number[], most: number }} Steps */

  /** @param {Changes} changes @returns {Steps} */
  function steps(changes) {
    const time = [0], value = [0];
    let now = 0, most = 0;
    for (const [at, by] of changes.sort((a, b) => a[0] - b[0] || a[1] - b[1])) {
      if (at > /** @type {number} */ (time.at(-1))) time.push(at);
      value[time.length - 1] = now += by;
      most = Math.max(most, now);
    }
    return { time, value, most };
  }

  /**
   * @param {string} name @param {string} key @param {string} label @param {number} mark whose colour it has @param {(model: Model) => boolean} has
   * @param {(value: number) => string} print @param {(model: Model, rank: RankModel) => Changes} changes
   */
  function add(name, key, label, mark, has, print, changes) {
    /** Made once, kept with the rank. @param {any} model @param {number} r @returns {Steps} */
    const of = (model, r) => (model.ranks[r][name] ??= steps(changes(model, model.ranks[r])));
    tracks[name] = {
      key, label, has, height: 20,
      most: (model, r) => print(of(model, r).most),
      say(model, r, t) {
        const { time, value } = of(model, r);
        return [[label, print(value[facts.last(time, t)])]];
      },
      draw(context, r, { y, h }, _, { model, colours, from, to, x, left, right }) {
        const { time, value } = of(model, r), most = Math.max(...model.ranks.map((_, i) => of(model, i).most));
        context.fillStyle = colours.marks[mark];
        for (let i = facts.last(time, from); time[i] < to; i++) {
          const at = Math.round(x(time[i])), wide = Math.max(1, Math.round(x(time[i + 1] ?? to)) - at), high = Math.round((value[i] / most) * h);
          context.globalAlpha = 0.35;
          context.fillRect(at, y + h, wide, -high);
          context.globalAlpha = 1;
          if (high) context.fillRect(at, y + h - high, wide, 1);
        }
        draw.line(context, colours.line2, left, y + h + 0.5, right, y + h + 0.5);
      },
    };
  }

  add("bytes", "b", "bytes in flight", 6, ({ calls }) => calls.length > 0, scale.bytes, ({ calls }, { rank }) =>
    calls.flatMap(({ members, bytes }) => members.filter((m) => m.rank === rank).flatMap((m) => /** @type {Changes} */ ([[m.begin, bytes], [m.end, -bytes]]))));
  add("microbatches", "i", "micro-batches", 4, ({ microbatches }) => microbatches > 1, String, (_, { phase }) =>
    across.stretches(phase, (i) => [phase.microbatch[i], phase.chunk[i]].join()).flatMap(({ from, to }) => /** @type {Changes} */ ([[from, 1], [to, -1]])));

  timeline.values = ({ state, model }, r, t, track) => (track ? [track] : state.tracks).flatMap((/** @type {string} */ name) => tracks[name]?.say(model, r, t) ?? []);

  timeline.parts.push({ name: "tracks", attach(el) {
    for (const name in tracks) if (tracks[name].has(el.model)) commands.toggle(el, tracks[name].label, tracks[name].key, "tracks", name);
  } });
})();

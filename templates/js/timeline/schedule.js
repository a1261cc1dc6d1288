// @ts-check
"use strict";
var Shardbook = Shardbook || {};

/**
 * What the first rank is doing, said in brackets above it: the phases of a pipeline's schedule, or forward and
 * backward where blocks are too small for words. As generator/publish/figures/lanes.py has it. Knows no colour but ink.
 */
Shardbook.schedule = (function () {
  const { facts, timeline } = Shardbook, { KIND } = Shardbook.model;
  /** @typedef {{ name: string, short: string, from: number, to: number }} Stretch */
  /** @type {WeakMap<Model, Stretch[]>} */
  const known = new WeakMap();

  /** @param {Model} model @returns {Stretch[]} */
  function of(model) {
    let found = known.get(model);
    if (!found) known.set(model, (found = stretches(model)));
    return found;
  }

  /** @param {Model} model @returns {Stretch[]} */
  function stretches(model) {
    const { phase } = model.ranks[0], numbered = model.stages > 1 || model.microbatches > 1;
    const forward = facts.when(phase, (k) => k === KIND.FORWARD), backward = facts.when(phase, (k) => k >= KIND.BACKWARD && k <= KIND.BACKWARD_WEIGHT);
    if (!forward.length || !backward.length) return [];
    const first = forward[0][0], turn = backward[0][0], last = forward[forward.length - 1][1], end = backward[backward.length - 1][1];
    const stretch = (/** @type {string} */ name, /** @type {number} */ from, /** @type {number} */ to, short = "") => ({ name, short, from, to });
    if (!numbered) return [stretch("forward", first, last), stretch("backward", turn, end)];
    if (model.stages === 1) return [];
    if (last <= turn) return [stretch("all forwards", first, last), stretch("all backwards", turn, end)];
    const warm = Math.max(...forward.filter((f) => f[1] <= turn).map((f) => f[1]));
    const steady = alternates(phase, turn, last) ? stretch("one forward, one backward", turn, last, "1F1B") : stretch("steady", turn, last);
    return [stretch("warm-up", first, warm), steady, stretch("drain", last, end)];
  }

  /** Whether forwards and backwards of single micro-batches take turns @param {Spans} phase @param {number} from @param {number} to */
  function alternates(phase, from, to) {
    /** @type {string[]} */
    const turns = [];
    for (let i = 0; i < phase.n; i++) {
      const kind = phase.kind[i];
      if (kind === KIND.BACKWARD_INPUT || kind === KIND.BACKWARD_WEIGHT) return false;
      if (kind > KIND.BACKWARD || phase.start[i] < from || phase.end[i] > to) continue;
      const turn = `${kind} ${phase.microbatch[i]} ${phase.chunk[i]}`;
      if (turns[turns.length - 1] !== turn) turns.push(turn);
    }
    return turns.every((turn, i) => !i || turn[0] !== turns[i - 1][0]);
  }

  /** Whether there is anything to say: of a pipeline, or where blocks are too small @param {Model} model */
  const shown = (model) => of(model).length > 0 && (model.stages > 1 || facts.when(model.ranks[0].phase, (k) => k <= KIND.OPTIMIZER).length > 8);

  /** @param {CanvasRenderingContext2D} context @param {any} _state @param {Geometry} g */
  function draw(context, _state, g) {
    if (!g.bracket) return;
    const y = g.layout.axis + 13.5, { colours: c } = g;
    context.font = `11px ${c.font}`;
    for (const { name, short, from, to } of of(g.model)) {
      const a = Math.round(Math.max(g.left, g.x(from))) + 0.5, b = Math.round(Math.min(g.right, g.x(to))) - 2.5;
      const words = [name, short].find((w) => w && context.measureText(w).width + 16 <= b - a);
      if (!words) continue;
      const wide = context.measureText(words).width + 10, middle = (a + b) / 2;
      context.strokeStyle = c.line2;
      context.beginPath();
      if (from >= g.from) context.moveTo(a, y + 5);
      context.lineTo(a, y);
      context.lineTo(middle - wide / 2, y);
      context.moveTo(middle + wide / 2, y);
      context.lineTo(b, y);
      if (to <= g.to) context.lineTo(b, y + 5);
      context.stroke();
      context.fillStyle = c.ink3;
      context.fillText(words, middle - wide / 2 + 5, y + 3.5);
    }
  }
  timeline.overlays.push(draw);

  return { of, shown };
})();

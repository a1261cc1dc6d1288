// @ts-check
"use strict";
var Shardbook = Shardbook || {};

/**
 * What text and questions point to in a figure: outlines, where the camera starts, and the views that links lead to.
 * Marks are those of generator/lessons/picking.py: `[rank, ...rows]` of events, `[rank, begin, end]` of a gap, `[rank]`.
 *
 * @typedef {{ what: "event" | "gap" | "rank", at: number[][] }} Outline
 * @typedef {{ rank: number, lane: string, from: number, to: number }} Mark rank: index in Model.ranks; lane: empty for all of a rank
 */
Shardbook.marks = (function () {
  const { timeline, select } = Shardbook;

  /** Where outlines are in a model @param {Model} model @param {Outline[]} outlines @returns {Mark[]} */
  function marks(model, outlines) {
    return outlines.flatMap(({ what, at }) => at.flatMap(([number, ...rows]) => {
      const rank = model.ranks.findIndex((r) => r.rank === number);
      if (rank < 0) return [];
      if (what === "rank") return [{ rank, lane: "", from: 0, to: model.stepNs }];
      return what === "gap" ? [{ rank, lane: "phase", from: rows[0], to: rows[1] }] : events(model, rank, new Set(rows));
    }));
  }

  /** The blocks that come from rows, whole ones as such, of others their layers @param {Model} model @param {number} rank @param {Set<number>} rows @returns {Mark[]} */
  function events(model, rank, rows) {
    const { phase, layer, comm } = model.ranks[rank], found = /** @type {Mark[]} */ ([]);
    /** @param {string} lane @param {Spans} spans @param {(i: number) => boolean} chosen */
    const add = (lane, { n, start, end, kind }, chosen) => {
      let open = /** @type {Mark | null} */ (null), of = -1;
      for (let i = 0; i < n; i++) {
        if (!chosen(i)) open = kind[i] === 5 ? open : null;
        else if (open && (lane === "comm" || kind[i] === of) && (start[i] - open.to) * 10 < end[i] - open.from) open.to = end[i];
        else found.push((open = { rank, lane, from: start[i], to: end[i] }));
        if (chosen(i)) of = kind[i];
      }
    };
    const inside = (/** @type {number} */ from, /** @type {number} */ to) => Array.from(layer.row).filter((_, i) => layer.start[i] >= from && layer.end[i] <= to);
    add("phase", phase, (i) => rows.has(phase.row[i]) && (phase.kind[i] < 5 ? inside(phase.start[i], phase.end[i]).every((row) => rows.has(row)) : !comm.row.includes(phase.row[i])));
    const whole = [...found];
    add("layer", layer, (i) => rows.has(layer.row[i]) && !whole.some((m) => m.from <= layer.start[i] && layer.end[i] <= m.to));
    add("comm", comm, (i) => rows.has(comm.row[i]));
    return found;
  }

  /** @type {{ model: Model | null, outlines: Outline[], found: Mark[] }} */
  let known = { model: null, outlines: [], found: [] };

  timeline.overlays.push((context, { outlines }, g) => {
    if (!outlines.length) return;
    if (known.model !== g.model || known.outlines !== outlines) known = { model: g.model, outlines, found: marks(g.model, outlines) };
    for (const { rank, lane, from, to } of known.found) {
      const box = lane ? g.box(rank, lane) : g.layout.ranks.find((r) => r.index === rank);
      if (box && to > g.from && from < g.to) select.outline(context, g.colours, Math.max(g.x(from), g.left - 2), box.y, Math.min(g.x(to), g.right + 2), box.h);
    }
  });

  timeline.parts.push({
    name: "marks",
    attach(el) {
      /** @type {{ focus?: number[][], highlight?: number[][], views?: Record<string, number[][]> }} */
      const points = JSON.parse(el.getAttribute("focus") ?? "{}");
      const outline = (/** @type {number[][]} */ at = []) => /** @type {Outline[]} */ (at.length ? [{ what: "event", at }] : []);
      /** Where the camera has to be for outlines @param {Outline[]} outlines @returns {[number, number]} */
      const around = (outlines) => {
        const found = marks(el.model, outlines), from = Math.min(...found.map((m) => m.from)), to = Math.max(...found.map((m) => m.to)), end = el.model.stepNs;
        return to - from < 0.7 * end ? Shardbook.scale.within(from - (to - from) * 0.6, to + (to - from) * 0.6, end) : [0, end];
      };
      let usual = [...outline(points.focus), ...outline(points.highlight)];
      /** @type {{ from: number, to: number } | null} */
      let before = null;
      el.update({ outlines: usual }, false);
      if (points.focus) {
        const [from, to] = around(outline(points.focus));
        el.update({ from, to }, false);
      }

      /** To the nearest gap of a rank after, or before, what is selected @param {KeyboardEvent} event */
      const gap = (event) => {
        const { selected } = el.state, rank = el.place(selected)?.rank ?? 0, { n, start, end } = el.lanes[rank].phase, t = el.span(selected)?.from ?? -1, { stepNs } = el.model, all = [];
        for (let i = 0; i <= n; i++) {
          const from = i ? end[i - 1] : 0, to = i < n ? start[i] : stepNs;
          if (to - from >= stepNs / 1000 && (event.shiftKey ? from < t : from > t)) all.push({ rank, from, to });
        }
        const found = all[event.shiftKey ? all.length - 1 : 0];
        if (found) el.choose({ gap: found });
      };
      el.commands.set("gap", { label: "Next gap of the rank; with Shift the previous", key: "z", run: gap });

      /** An answer that is known stays outlined @param {Outline} answer @param {boolean} go */
      el.reveal = (answer, go) => {
        el.update({ outlines: (usual = [...usual, answer]) }, false);
        if (go) el.look(...around([answer]));
      };
      /** @param {string} name of a view, empty for back to what was before */
      el.view = (name) => {
        const found = outline(points.views?.[name]), { from, to } = el.state;
        el.update({ outlines: name ? found : usual }, false);
        if (name) {
          before ??= { from, to };
          el.look(...around(found));
        } else if (before) el.look(before.from, before.to);
        if (!name) before = null;
      };
    },
  });

  /** Where the reader was @type {HTMLElement | null} */
  let origin = null;

  /** Go where a link to a view leads, if it is one @param {string} hash @param {HTMLElement} [from] the link */
  function follow(hash, from) {
    const item = hash.startsWith("#show:") ? document.getElementById(hash.slice(1)) : null, figure = item?.closest("figure");
    const el = /** @type {any} */ (figure?.querySelector("trace-timeline"));
    if (!item || !figure || !el || el.closest("[hidden]")) return false;
    origin = from ?? el.stage;
    el.load().then(() => {
      if (!el.started) return;
      show(figure, item);
      el.view(hash.slice(6));
      figure.scrollIntoView({ block: "nearest" });
      item.focus({ preventScroll: true });
    });
    return true;
  }

  /** @param {HTMLElement} figure @param {HTMLElement} [item] the view that is shown */
  const show = (figure, item) => figure.querySelectorAll(".views > li").forEach((one) => one.classList.toggle("on", one === item));

  document.addEventListener("click", (event) => {
    const target = /** @type {Element} */ (event.target), link = /** @type {HTMLAnchorElement | null} */ (target.closest('a[href^="#show:"]'));
    if (link && follow(link.hash, link)) event.preventDefault();
    if (!target.matches(".views button")) return;
    const figure = /** @type {HTMLElement} */ (target.closest("figure"));
    show(figure);
    /** @type {any} */ (figure.querySelector("trace-timeline")).view("");
    origin?.focus();
  });

  return { marks, follow };
})();

// @ts-check
"use strict";
var Shardbook = Shardbook || {};

/**
 * A view as files: as pixels and as shapes, and the step in the shown mode as a trace that Perfetto opens. Shapes are noted
 * while draw.js draws.
 */
(function () {
  const { timeline, layout, panel } = Shardbook, { KINDS } = Shardbook.model;

  /** Events of a Chrome trace, µs: a process a rank, a thread a lane @param {{ model: Model }} el */
  const trace = ({ model: { strings, memoryCategories, ranks, calls } }) => JSON.stringify(ranks.flatMap(({ rank: pid, memory: { time, bytes }, ...lanes }) => {
    const called = (/** @type {string} */ name, /** @type {number} */ tid, /** @type {string} */ words) => ({ name, ph: "M", pid, tid, args: { name: words } });
    return [
      called("process_name", 0, "rank " + pid),
      ...layout.LANES.flatMap((lane, tid) => {
        const { start, end, kind, name, call, layer, microbatch } = lanes[lane];
        return [called("thread_name", tid, lane), ...Array.from(start, (ts, i) => ({
          name: strings[name[i]], cat: KINDS[kind[i]], ph: "X", pid, tid, ts: ts / 1e3, dur: (end[i] - ts) / 1e3,
          args: { ...calls[call[i]], layer: layer[i], microbatch: microbatch[i], members: undefined },
        }))];
      }),
      ...Array.from(time, (ts, i) => ({ name: "memory", ph: "C", pid, ts: ts / 1e3, args: Object.fromEntries(memoryCategories.map((name, k) => [name, bytes[k][i]])) })),
    ];
  }));

  /** The view in paths and words: what the canvas is asked for is noted while it draws @param {any} el */
  function svg(el) {
    const g = el.geometry(), { marks, alpha } = g.colours, boxes = g.layout.ranks.flatMap((/** @type {RankBox} */ { index, lanes }) => lanes.filter((box) => !box.track).map((box) => ({ index, ...box })));
    let out = "", path = "";
    const rect = (/** @type {number[]} */ ...[x, y, w, h]) => `M${x} ${y}h${w}v${h}h${-w}z`;
    const add = (/** @type {string} */ d, /** @type {string} */ fill, /** @type {number} */ opacity, stroke = "") => (out += `<path d="${d}" fill="${fill}" opacity="${opacity}"${stroke}/>`);
    const line = (/** @type {string} */ colour, /** @type {number} */ width, /** @type {any} */ dash) => ` stroke="${colour}" stroke-width="${width}" stroke-dasharray="${dash}"`;
    const note = (/** @type {any} */ pen, /** @type {any} */ name, /** @type {any[]} */ ...a) => {
      const { globalAlpha, fillStyle } = pen, fill = fillStyle.big ? fillStyle : marks[4], shape = /Rect$/.test(name) ? rect(...a) : path;
      if (name === "beginPath") path = "";
      if (/To$/.test(name)) path += (path ? name[0].replace("b", "c") : "m").toUpperCase() + a;
      if (/^fill(R|$)/.test(name)) add(shape, fill, fill === fillStyle ? globalAlpha : 0.3);
      if (/^stroke/.test(name)) add(shape, "none", globalAlpha, line(pen.strokeStyle, pen.lineWidth, pen.getLineDash()));
      if (name === "fillText") out += `<text x="${a[1]}" y="${a[2]}" fill="${fill}" text-anchor="${/** @type {any} */ ({ center: "middle", right: "end" })[pen.textAlign] ?? "start"}" style='font:${pen.font}'>${a[0].replace(/[<&]/g, "")}</text>`;
      if (name === "drawImage") {
        const { index, name, y, h } = boxes.shift(), { n, start, end, cls } = g.lanes[index][name];
        for (let i = 0, last; i < n; i = last + 1) {
          last = name === "comm" ? i : el.block(index, name, i)[1];
          const x = Math.max(g.left, g.x(start[i])), w = Math.min(g.right, g.x(end[last])) - x, mark = (cls[i] & 31) >> 2, opacity = alpha[cls[i]] / 256;
          if (w > 0 && mark === 5) add(`M${x} ${y + h / 2}h${w}`, "none", opacity, line(marks[5], h, "1.4 2.6"));
          else if (w > 0) add(rect(x, y, Math.max(w - 1, w / 2), h), marks[Math.min(6, mark)], opacity);
        }
      }
      return pen[name](...a);
    };
    Shardbook.draw.frame(new Proxy(el.context, { get: (pen, name) => pen[name].call ? note.bind(0, pen, name) : pen[name], set: (pen, name, value) => ((pen[name] = value), true) }), el.state, g);
    return `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${g.width} ${g.height}">${out}</svg>`;
  }

  timeline.parts.push({
    name: "export",
    attach(el) {
      const link = document.createElement("a"), button = "<button class='btn q'>";
      panel(el, "Save as …", "k", `${button}png</button> ${button}svg</button> ${button}trace.json`).onclick = (/** @type {any} */ { target: { type, textContent: end } }) => {
        if (!type) return;
        link.href = end === "png" ? el.canvas.toDataURL() : URL.createObjectURL(new Blob([end === "svg" ? svg(el) : trace(el)]));
        link.download = `${el.model.run}-${el.model.mode}.${end}`;
        link.click();
      };
    },
  });
})();

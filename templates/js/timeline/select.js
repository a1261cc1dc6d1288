// @ts-check
"use strict";
var Shardbook = Shardbook || {};

/**
 * What is pointed at and what is selected: outlines on the canvas, the tip beside the mouse, the panel of details,
 * and a sentence for those who hear the page. Marks and what is dragged over on the axis are drawn here too.
 */
Shardbook.select = (function () {
  const { timeline, describe, scale, draw, layout } = Shardbook;

  /**
   * Outline a box: 2 px outside and 1 px of ground inside, which shows on every mark; around small ones only.
   * @param {CanvasRenderingContext2D} context @param {Colours} c @param {number} x0 @param {number} y @param {number} x1 @param {number} h @param {boolean} [light]
   */
  function outline(context, c, x0, y, x1, h, light) {
    const left = Math.round(x0), wide = Math.max(2, Math.round(x1) - left);
    context.strokeStyle = light ? c.ink2 : c.sel;
    context.lineWidth = light ? 1 : 2;
    const out = light ? 0.5 : 1;
    context.strokeRect(left - out, y - out, wide + 2 * out, h + 2 * out);
    context.lineWidth = 1;
    if (light || wide < 8 || h < 9) return;
    context.strokeStyle = c.ground;
    context.strokeRect(left + 0.5, y + 0.5, wide - 1, h - 1);
  }

  /** Time on the axis, or words elsewhere, on a dark ground @param {CanvasRenderingContext2D} context @param {Geometry} g @param {number} ns @param {string} [words] @param {number} [y] */
  function flag(context, g, ns, words = describe.at(ns), y = 0) {
    const x = g.x(ns);
    if (x < g.left || x > g.right) return;
    context.font = `11px ${g.colours.font}`;
    const wide = context.measureText(words).width + 12, left = Math.max(g.left, Math.min(x - wide / 2, g.right - wide));
    context.fillStyle = g.colours.ink;
    context.fillRect(Math.round(left), y, wide, 17);
    context.fillStyle = g.colours.ground;
    context.fillText(words, Math.round(left) + 6, y + 12);
  }

  /** A dotted line from the axis down, under the blocks @param {CanvasRenderingContext2D} context @param {Geometry} g @param {number} ns @param {string} colour */
  function cursor(context, g, ns, colour) {
    const x = Math.round(g.x(ns)) + 0.5;
    if (x < g.left || x > g.right) return;
    context.setLineDash([2, 3]);
    draw.line(context, colour, x, g.layout.axis - 4, x, g.height - 6);
    context.setLineDash([]);
  }

  /** @param {CanvasRenderingContext2D} context @param {any} state @param {Geometry} g */
  function under(context, state, g) {
    const at = g.span(state.selected);
    if (at) cursor(context, g, at.from, g.colours.ink2);
    for (const mark of state.marks) cursor(context, g, mark, g.colours.link);
  }
  under.under = true;

  timeline.overlays.push(under);

  /** Draw over the lanes, within the plot @param {Overlay} overlay */
  const over = (overlay) => timeline.overlays.push((context, state, g) => {
    context.save();
    context.beginPath();
    context.rect(g.left - 3, 0, g.plot + 6, g.height);
    context.clip();
    overlay(context, state, g);
    context.restore();
  });

  over((context, state, g) => {
    for (const [chosen, light] of [[state.hovered, true], [state.selected, false]]) {
      const span = chosen && "call" in chosen ? null : g.span(chosen), box = span && span.to > g.from && span.from < g.to ? g.boxOf(chosen) : null;
      if (span && box) outline(context, g.colours, Math.max(g.x(span.from), g.left - 9), box.y, Math.min(g.x(span.to), g.right + 9), box.h, light);
    }
  });

  timeline.overlays.push((context, _, g) => {
    for (const ns of g.flags) flag(context, g, ns);
    if (!g.ruler) return;
    const [a, b] = [g.ruler.a, g.ruler.b].sort((p, q) => p - q).map((x) => Math.min(Math.max(x, g.left), g.right));
    context.globalAlpha = 0.14;
    context.fillStyle = g.colours.link;
    context.fillRect(a, 0, b - a, g.height);
    context.globalAlpha = 1;
    draw.line(context, g.colours.link, a, g.layout.axis - 0.5, b, g.layout.axis - 0.5);
  });

  /** @param {string} tag @param {string} [words] @param {string} [name] @returns {any} */
  const make = (tag, words = "", name = "") => Object.assign(document.createElement(tag), { textContent: words, className: name });

  timeline.parts.push({
    name: "select",
    attach(el) {
      const panel = make("div", "", "tl-details");
      el.panels.append(panel);
      const words = (/** @type {Chosen} */ chosen) => describe.describe(el.model, chosen, /** @type {any} */ (el.span(chosen)));

      const tip = () => {
        const { hovered } = el.state, { tip: box, pointer } = el;
        box.hidden = !hovered || !pointer;
        if (box.hidden) return;
        const found = words(hovered), span = el.span(hovered);
        const g = el.geometry(), values = timeline.values(el, el.place(hovered).rank, g.ns(pointer.x), layout.hit(g.layout, pointer.y)?.lane).map((v) => make("div", v.join(" "), "q3"));
        box.replaceChildren(make("b", found.title), make("span", ` ${scale.time(span.to - span.from)}`), make("div", found.note, "q3"), ...values);
        const { width } = el.geometry();
        box.style.left = `${Math.max(0, Math.min(pointer.x + 14, width - box.offsetWidth))}px`;
        box.style.top = `${pointer.y + 18}px`;
      };

      const details = () => {
        const { selected } = el.state;
        panel.replaceChildren();
        if (!selected) return;
        const found = words(selected), who = make("div"), facts = make("dl", "", "tl-facts"), why = make("p", found.why);
        who.append(make("b", found.title), make("div", found.note, "q3"), why);
        for (const [name, value] of [...found.facts, ...timeline.values(el, el.place(selected).rank, el.span(selected).from)]) facts.append(make("dt", name), make("dd", value));
        panel.append(who);
        if (found.members.length) {
          const table = document.createElement("table"), head = table.createTHead().insertRow();
          for (const [name, right] of [["Member", ""], ["Arrived, ms", "r"], ["Waited", "r"], ["Transfer", "r"]]) head.append(Object.assign(make("th", name, right), { scope: "col" }));
          const body = table.createTBody();
          for (const m of found.members) {
            const row = body.insertRow(), name = Object.assign(make("th"), { scope: "row" });
            name.append(make("b", `rank ${m.rank}`), m.role && ` ${m.role}`);
            row.append(name);
            for (const value of [scale.number(m.arrive / 1e6, 3), scale.time(m.wait), scale.time(m.transfer)]) row.append(make("td", value, "r"));
          }
          const scroll = make("div", "", "scroll");
          scroll.append(table);
          panel.append(scroll);
        }
        panel.append(facts);
      };

      el.addEventListener("trace-change", (/** @type {CustomEvent} */ event) => {
        const keys = event.detail, has = (/** @type {string[]} */ ...names) => names.some((n) => keys.includes(n));
        if (has("hovered")) tip();
        if (has("selected", "mode", "whatIf", "tracks")) {
          details();
          if (has("selected")) el.live.textContent = el.state.selected ? words(el.state.selected).line : "Nothing is selected.";
        }
      });
      el.stage.addEventListener("pointermove", tip);
      details();
    },
  });

  return { outline, flag, over, make };
})();

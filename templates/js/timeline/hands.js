// @ts-check
"use strict";
var Shardbook = Shardbook || {};

/**
 * Mouse, wheel, trackpad and touch on a timeline: what fingers do becomes a call of the element. A plain wheel and
 * a vertical swipe stay the page's.
 *
 * A part that wants drags for itself pushes `{ test, start, move, end }` into element.drags; the first whose test
 * says yes to the pointer event that begins one gets it.
 * @typedef {{ test(event: PointerEvent, at: { x: number, y: number, axis: boolean }): boolean, start?(x: number, y: number, event: PointerEvent): void,
 *   move(x: number, y: number, event: PointerEvent): void, end?(x: number, y: number, moved: boolean, event: PointerEvent): void }} Drag
 */
Shardbook.hands = (function () {
  const { scale } = Shardbook;
  /** A pointer that has moved less has not moved, px. */
  const STILL = 4;

  /** @param {any} el */
  function attach(el) {
    const stage = /** @type {HTMLElement} */ (el.stage);
    /** @type {Map<number, { x: number, y: number }>} */
    const down = new Map();
    /** @type {{ drag: Drag, x: number, y: number, moved: boolean } | null} */
    let held = null;
    /** @type {{ from: number, to: number, x: number, apart: number } | null} */
    let pinch = null;

    /** @param {MouseEvent} event */
    const place = (event) => {
      const box = el.canvas.getBoundingClientRect(), x = event.clientX - box.left, y = event.clientY - box.top;
      return { x, y, axis: y < el.geometry().layout.axis };
    };

    /** @type {{ from: number, to: number, x: number }} */
    let began = { from: 0, to: 0, x: 0 };
    /** @type {Drag} */
    const pan = {
      test: () => true,
      start: (x) => (began = { from: el.state.from, to: el.state.to, x }),
      move: (x) => {
        const by = ((began.x - x) / el.geometry().plot) * (began.to - began.from);
        el.look(began.from + by, began.to + by, false);
      },
    };
    /** @type {Drag} */
    const ruler = {
      test: (_, at) => at.axis,
      start: (x) => (el.ruler = { a: x, b: x }),
      move: (x) => {
        el.ruler.b = x;
        el.redraw();
      },
      end: (_x, _y, moved) => {
        const g = el.geometry(), [a, b] = [el.ruler.a, el.ruler.b].sort((p, q) => p - q);
        el.ruler = null;
        if (moved) el.look(g.ns(a), g.ns(b));
      },
    };

    stage.addEventListener("pointerdown", (event) => {
      if (event.button) return;
      const at = place(event);
      down.set(event.pointerId, at);
      if (down.size === 2) {
        const [p, q] = [...down.values()];
        held = null;
        el.ruler = null;
        pinch = { from: el.state.from, to: el.state.to, x: (p.x + q.x) / 2, apart: Math.max(10, Math.abs(p.x - q.x)) };
      } else if (down.size === 1) {
        const drag = [...el.drags, ruler, pan].find((d) => d.test(event, at));
        if (drag) {
          held = { drag, x: at.x, y: at.y, moved: false };
          drag.start?.(at.x, at.y, event);
        }
      }
      stage.setPointerCapture(event.pointerId);
    });

    stage.addEventListener("pointermove", (event) => {
      const at = place(event);
      if (down.has(event.pointerId)) down.set(event.pointerId, at);
      if (pinch && down.size === 2) {
        const [p, q] = [...down.values()], { left, plot } = el.geometry(), length = pinch.to - pinch.from;
        const anchor = pinch.from + ((pinch.x - left) / plot) * length;
        const scaled = Math.min(length * (pinch.apart / Math.max(10, Math.abs(p.x - q.x))), el.end);
        const from = anchor - (((p.x + q.x) / 2 - left) / plot) * scaled;
        el.look(from, from + scaled, false);
      } else if (held) {
        held.moved ||= Math.hypot(at.x - held.x, at.y - held.y) > STILL;
        if (held.moved) {
          stage.classList.add("held");
          held.drag.move(at.x, at.y, event);
        }
      } else el.hover(at.x, at.y);
    });

    /** @param {PointerEvent} event */
    const up = (event) => {
      const at = place(event);
      down.delete(event.pointerId);
      stage.classList.remove("held");
      if (down.size < 2) pinch = null;
      const was = held;
      held = null;
      if (!was) return;
      was.drag.end?.(at.x, at.y, was.moved, event);
      if (!was.moved && event.type === "pointerup") el.choose(el.at(at.x, at.y), false);
    };
    stage.addEventListener("pointerup", up);
    stage.addEventListener("pointercancel", up);
    stage.addEventListener("pointerleave", () => el.hover(-1, -1));

    stage.addEventListener("dblclick", (event) => {
      const { x, y, axis } = place(event), g = el.geometry(), box = axis ? null : el.span(el.at(x, y));
      if (axis) el.look(0, el.end);
      else if (box) el.look(box.from - (box.to - box.from) * 0.15, box.to + (box.to - box.from) * 0.15);
      else el.look(...scale.zoomed(g.from, g.to, 0.5, g.ns(x), el.end));
    });

    stage.addEventListener("wheel", (event) => {
      const { x } = place(event), { from, to } = el.state, g = el.geometry(), unit = event.deltaMode ? 16 : 1;
      const sideways = event.shiftKey ? event.deltaY || event.deltaX : Math.abs(event.deltaX) > Math.abs(event.deltaY) ? event.deltaX : 0;
      if (event.ctrlKey || event.metaKey) {
        const factor = Math.exp(Math.min(60, Math.max(-60, event.deltaY * unit)) * 0.01);
        el.look(...scale.zoomed(from, to, factor, Math.min(to, Math.max(from, g.ns(x))), el.end), false);
      } else if (sideways) {
        const by = ((sideways * unit) / g.plot) * (to - from);
        el.look(from + by, to + by, false);
      } else return;
      event.preventDefault();
    }, { passive: false });
  }

  return { attach };
})();

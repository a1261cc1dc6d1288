// @ts-check
"use strict";
var Shardbook = Shardbook || {};

/**
 * The whole step below the timeline, and which part of it is shown: a window that can be dragged, at its ends too,
 * and moved by keys. It only reads the state and asks the element to look elsewhere.
 */
(function () {
  const { scale, levels, draw, timeline } = Shardbook;
  const PAD = 8, WORDS = 20;

  timeline.parts.push({
    name: "minimap",
    attach(el) {
      const map = document.createElement("div"), canvas = document.createElement("canvas"), context = /** @type {CanvasRenderingContext2D} */ (canvas.getContext("2d"));
      map.className = "tl-map";
      map.tabIndex = 0;
      map.setAttribute("role", "slider");
      map.setAttribute("aria-label", "Part of the step that is shown");
      map.setAttribute("aria-valuemin", "0");
      map.setAttribute("aria-valuenow", "0");
      map.append(canvas);
      el.stage.after(map);

      const place = () => {
        const g = el.geometry(), n = g.model.ranks.length, row = Math.min(5, Math.max(1, Math.floor(60 / n))), pitch = row + (row > 2 ? 1 : 0);
        const inset = Math.max(0, 4 - g.left);
        return { left: g.left + inset, plot: g.plot - 2 * inset, width: g.width, row, pitch, height: n * pitch + 2 * PAD + WORDS, dpr: g.dpr, colours: g.colours, step: el.end };
      };
      const x = (/** @type {any} */ p, /** @type {number} */ ns) => p.left + (ns / p.step) * p.plot;

      /** @type {HTMLCanvasElement | null} */
      let picture = null;
      let drawnFor = "";
      /** @param {any} p */
      const lanes = (p) => {
        const width = Math.round(p.plot * p.dpr), key = [el.model.mode, el.state.whatIf, JSON.stringify(el.state.filters), p.step, width, p.dpr, p.colours.ground].join();
        if (picture && key === drawnFor) return picture;
        drawnFor = key;
        picture ??= document.createElement("canvas");
        picture.width = width;
        picture.height = el.lanes.length;
        const image = new ImageData(width, el.lanes.length), pixels = new Uint32Array(image.data.buffer), strip = levels.strip(width);
        el.lanes.forEach((/** @type {Record<string, Lane>} */ rank, /** @type {number} */ r) => {
          levels.fill(rank.phase, 0, p.step, width, strip, 0);
          for (let i = 0; i < width; i++) pixels[r * width + i] = p.colours.rgb[strip.cls[i]] | (strip.alpha[i] << 24);
        });
        /** @type {CanvasRenderingContext2D} */ (picture.getContext("2d")).putImageData(image, 0, 0);
        return picture;
      };

      const paint = () => {
        const p = place(), { from, to } = el.shown, c = p.colours, w = Math.round(p.width * p.dpr), h = Math.round(p.height * p.dpr);
        if (!p.width) return;
        if (canvas.width !== w || canvas.height !== h) {
          canvas.width = w;
          canvas.height = h;
          canvas.style.height = `${p.height}px`;
        }
        context.setTransform(p.dpr, 0, 0, p.dpr, 0, 0);
        context.clearRect(0, 0, p.width, p.height);
        const source = lanes(p), bottom = p.height - WORDS;
        context.imageSmoothingEnabled = false;
        for (let r = 0; r < source.height; r++) context.drawImage(source, 0, r, source.width, 1, p.left, PAD + 4 + r * p.pitch, p.plot, p.row);
        draw.line(context, c.line, 0, 0.5, p.width, 0.5);
        const a = Math.round(x(p, from)), b = Math.round(x(p, to));
        context.fillStyle = c.ground;
        context.globalAlpha = 0.65;
        context.fillRect(p.left, PAD, a - p.left, bottom - PAD);
        context.fillRect(b, PAD, p.left + p.plot - b, bottom - PAD);
        context.globalAlpha = 1;
        context.strokeStyle = context.fillStyle = c.ink;
        context.lineWidth = 1.5;
        context.strokeRect(a - 0.75, PAD, Math.max(3, b - a + 1.5), bottom - PAD);
        for (const edge of [a - 1, b + 1]) context.fillRect(edge - 2, (PAD + bottom) / 2 - 6, 4, 12);
        context.font = `11px ${c.font}`;
        const whole = from <= 0 && to >= p.step, words = whole ? `step ${el.model.step}\u2002${scale.time(el.model.stepNs)}` : `${scale.time(to - from)} of ${scale.time(p.step)}` + (el.state.from === el.origin.from && el.state.to === el.origin.to ? ", drag sideways for the rest" : "");
        const wide = context.measureText(words).width, middle = Math.min(Math.max((a + b) / 2, p.left + wide / 2), p.left + p.plot - wide / 2);
        context.fillStyle = c.ink2;
        context.fillText(words, whole ? p.left : middle - wide / 2, p.height - 5);
        map.setAttribute("aria-valuemax", String(Math.round(p.step)));
        map.setAttribute("aria-valuenow", String(Math.round(from)));
        map.setAttribute("aria-valuetext", whole ? "the whole step" : `${scale.time(from)} to ${scale.time(to)} of ${scale.time(p.step)}`);
      };
      el.drawings.push(paint);

      /** @type {{ from: number, to: number, x: number, part: "from" | "to" | "both" } | null} */
      let held = null;
      const at = (/** @type {PointerEvent} */ event) => event.clientX - map.getBoundingClientRect().left;
      map.addEventListener("pointerdown", (event) => {
        if (event.button) return;
        const p = place(), px = at(event), { from, to } = el.state, a = x(p, from), b = x(p, to);
        map.setPointerCapture(event.pointerId);
        const near = (/** @type {number} */ edge) => Math.abs(px - edge) < (event.pointerType === "touch" ? 16 : 7);
        held = { from, to, x: px, part: near(a) ? "from" : near(b) ? "to" : "both" };
        if (px < a - 7 || px > b + 7) {
          const middle = ((px - p.left) / p.plot) * p.step;
          [held.from, held.to] = scale.within(middle - (to - from) / 2, middle + (to - from) / 2, p.step);
          el.look(held.from, held.to, false);
        }
      });
      map.addEventListener("pointermove", (event) => {
        const p = place(), px = at(event), near = Math.min(Math.abs(px - x(p, el.state.from)), Math.abs(px - x(p, el.state.to))) < 7;
        map.classList.toggle("edge", held ? held.part !== "both" : near);
        if (!held) return;
        const by = ((px - held.x) / p.plot) * p.step, { from, to, part } = held;
        if (part === "both") el.look(from + by, to + by, false);
        else {
          const [a, b] = [part === "from" ? from + by : from, part === "to" ? to + by : to].sort((q, r) => q - r);
          el.look(Math.max(0, a), Math.min(p.step, b), false);
        }
      });
      const drop = () => (held = null);
      map.addEventListener("pointerup", drop);
      map.addEventListener("pointercancel", drop);
      map.addEventListener("keydown", (event) => {
        const { from, to } = el.state, by = (to - from) / 10, end = el.end;
        /** @type {Record<string, [number, number]>} */
        const moves = { ArrowLeft: [-by, -by], ArrowRight: [by, by], ArrowUp: [by, -by], ArrowDown: [-by, by], PageUp: [-10 * by, -10 * by], PageDown: [10 * by, 10 * by], Home: [-end, -end], End: [end, end] };
        const move = moves[event.key];
        if (!move) return;
        event.preventDefault();
        el.look(from + move[0], to + move[1], false);
      });
    },
  });
})();

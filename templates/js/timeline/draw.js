// @ts-check
"use strict";
var Shardbook = Shardbook || {};

/**
 * Draws what a view shows on a canvas: grid, lanes, words, gutters, and the overlays in their order. Each lane
 * is a row of pixels (levels.js) of one image, scaled to the lane's height; only a lane of communication, hatched
 * where it waits, has as many rows as pixels. It keeps no state: the element calls it with a scene.
 *
 * @typedef {{ ground: string, ink: string, ink2: string, ink3: string, line: string, line2: string, sel: string, link: string,
 *   marks: string[], text: string[], rgb: Uint32Array, alpha: Uint16Array, font: string }} Colours text, rgb and alpha by class
 * @typedef {{ layout: Layout, from: number, to: number, left: number, right: number, plot: number, width: number,
 *   height: number, dpr: number, x(ns: number): number, ns(x: number): number,
 *   box(rank: number, lane: string): LaneBox | null, boxOf(chosen: any): LaneBox | null, span(chosen: any): { from: number, to: number } | null,
 *   bracket: boolean, flags: number[], follow: number | null, ruler: { a: number, b: number } | null, colours: Colours, model: Model, lanes: Record<string, Lane>[], bold: (rank: number, lane: string, i: number) => boolean }} Geometry
 *   CSS px from the canvas's corner; right: the plot's right edge; flags: times that are written on the axis, ns
 * @typedef {((context: CanvasRenderingContext2D, state: any, geometry: Geometry) => void) & { under?: boolean }} Overlay
 * @typedef {{ label: string, height: number, key: string, has(model: Model): boolean,
 *   most(model: Model, rank: number): string, say(model: Model, rank: number, t: number): string[][],
 *   draw(context: CanvasRenderingContext2D, rank: number, box: LaneBox, state: any, geometry: Geometry): void }} Track what it shows at most,
 *   and at an instant
 */
Shardbook.draw = (function () {
  const { levels, scale } = Shardbook;
  /** Mark of a kind: F, B, W, O, H, wait, transfer; 255 is ground. */
  const MARKS = [0, 1, 1, 2, 3, 4, levels.GROUND, levels.GROUND, 5, 6];
  const HOST = 4, WAIT = 5, TRANSFER = 6, FAINT = 32;
  const NAMES = ["f", "b", "w", "o", "h", "x", "x"];
  const LETTERS = ["F", "B", "W", "O", "H"];
  const WORDS = [["forward", "fwd"], ["backward", "bwd"], ["weights", "wgt"], ["optimizer", "opt"], ["host"]];
  /** How strong a class is: whole, a layer with an even and an odd number, the model's ends. */
  const SHADES = [1, 0.66, 0.42, 0.95];

  /** The theme's colours as the canvas needs them @param {Element} element @returns {Colours} */
  function colours(element) {
    const style = getComputedStyle(element), probe = /** @type {CanvasRenderingContext2D} */ (document.createElement("canvas").getContext("2d"));
    const get = (/** @type {string} */ name) => {
      probe.fillStyle = style.getPropertyValue("--" + name).trim() || "#888";
      return String(probe.fillStyle);
    };
    const rgb = new Uint32Array(64), alpha = new Uint16Array(64), text = [], marks = NAMES.map(get), ground = parts(get("ground")), light = shine(ground);
    for (let c = 0; c < 64; c++) {
      const mark = Math.min(6, (c & 31) >> 2), own = parts(marks[mark]), strong = SHADES[c & 3] * (c & FAINT ? 0.22 : 1);
      rgb[c] = (own[2] << 16) | (own[1] << 8) | own[0];
      alpha[c] = 256 * strong;
      // Words on a paler mark are ink, or ground where that is further from it.
      const on = shine(own.map((v, k) => v * strong + ground[k] * (1 - strong))), ink = shine(parts(get("ink")));
      const far = (/** @type {number} */ a) => (Math.max(a, on) + 0.05) / (Math.min(a, on) + 0.05);
      text.push(strong > 0.9 && mark < 5 ? get("on-" + NAMES[mark]) : get(far(ink) > far(light) ? "ink" : "ground"));
    }
    const own = Object.fromEntries(["ground", "ink", "ink2", "ink3", "line", "line2", "sel", "link"].map((name) => [name, get(name)]));
    return /** @type {any} */ ({ ...own, text, marks, rgb, alpha, font: style.fontFamily });
  }

  /** Red, green and blue of #rrggbb @param {string} colour */
  const parts = (colour) => [1, 3, 5].map((k) => parseInt(colour.slice(k, k + 2), 16));

  /** Relative luminance, as WCAG has it @param {number[]} rgb */
  function shine(rgb) {
    const [r, g, b] = rgb.map((v) => (v <= 10 ? v / 3294.6 : ((v / 255 + 0.055) / 1.055) ** 2.4));
    return 0.2126 * r + 0.7152 * g + 0.0722 * b;
  }

  /** Lanes of every rank, made ready to be drawn @param {Model} model @param {(rank: number, lane: string, i: number) => boolean} [chosen] */
  function prepare(model, chosen) {
    return model.ranks.map((rank, r) => Object.fromEntries(Shardbook.layout.LANES.map((name) => {
      const spans = rank[name], { kind, layer, module, microbatch, chunk, call } = spans;
      const classOf = (/** @type {number} */ i) => {
        const mark = MARKS[kind[i]];
        if (mark === levels.GROUND) return mark;
        const shade = name !== "layer" ? 0 : layer[i] < 0 ? 3 : 1 + (layer[i] & 1);
        return mark * 4 + shade + (chosen && !chosen(r, name, i) ? FAINT : 0);
      };
      const same = name === "operation" ? () => false : name === "comm" ? (/** @type {number} */ a, /** @type {number} */ b) => call[a] === call[b]
        : (/** @type {number} */ a, /** @type {number} */ b) => kind[a] === kind[b] && microbatch[a] === microbatch[b] && chunk[a] === chunk[b] && (name === "phase" || (layer[a] === layer[b] && module[a] === module[b]));
      return [name, levels.build(spans, classOf, model.stepNs, same)];
    })));
  }

  /** @type {{ canvas: HTMLCanvasElement | null, width: number, rows: number, image: ImageData | null, pixels: Uint32Array, strip: Strip | null }} */
  const buffer = { canvas: null, width: 0, rows: 0, image: null, pixels: new Uint32Array(0), strip: null };

  /** @param {number} width @param {number} rows */
  function room(width, rows) {
    if (!buffer.canvas || buffer.width !== width || buffer.rows < rows) {
      buffer.canvas ??= document.createElement("canvas");
      buffer.canvas.width = buffer.width = width;
      buffer.canvas.height = buffer.rows = rows;
      buffer.image = new ImageData(width, rows);
      buffer.pixels = new Uint32Array(buffer.image.data.buffer);
      buffer.strip = levels.strip(width);
    }
    return { strip: /** @type {Strip} */ (buffer.strip), pixels: buffer.pixels };
  }

  /** Lines at 45 degrees, 1.4 px every 4: how much of a pixel they cover, by x + y @param {number} dpr */
  function hatch(dpr) {
    const period = Math.round(5.66 * dpr), half = 0.99 * dpr;
    return Float32Array.from({ length: period }, (_, u) => Math.min(1, Math.max(0, half + 0.5 - Math.abs(u - period / 2))));
  }

  /** @param {CanvasRenderingContext2D} context @param {any} state @param {Geometry} g */
  function frame(context, state, g) {
    const { dpr, colours: c } = g, { overlays, tracks } = Shardbook.timeline;
    context.setTransform(dpr, 0, 0, dpr, 0, 0);
    context.fillStyle = c.ground;
    context.fillRect(0, 0, g.width, g.height);
    grid(context, g);
    for (const overlay of overlays) if (overlay.under) overlay(context, state, g);
    const words = lanes(context, g);
    for (const rank of g.layout.ranks) {
      for (const box of rank.lanes) {
        if (!box.track) continue;
        context.save();
        context.beginPath();
        context.rect(g.left, box.y - 1, Math.min(g.plot, g.x(g.model.stepNs) - g.left), box.h + 2);
        context.clip();
        tracks[box.name].draw(context, rank.index, box, state, g);
        context.restore();
      }
    }
    context.textBaseline = "alphabetic";
    context.textAlign = "center";
    let font = 0, colour = "";
    for (const word of words) {
      // Setting these takes longer than writing.
      const wanted = word.size + (word.bold ? 100 : 0);
      if (font !== wanted) context.font = `${word.bold ? 600 : 400} ${word.size}px ${c.font}`;
      if (colour !== word.colour) context.fillStyle = word.colour;
      font = wanted;
      colour = word.colour;
      context.fillText(word.words, word.x, word.y);
    }
    context.textAlign = "left";
    names(context, g);
    for (const overlay of overlays) if (!overlay.under) overlay(context, state, g);
  }

  /** @param {CanvasRenderingContext2D} context @param {Geometry} g */
  function grid(context, g) {
    const least = g.layout.above ? 64 : 90, { step, at } = scale.ticks(g.from, g.to, g.plot, least), y = g.layout.axis - 0.5;
    context.lineWidth = 1;
    context.font = `11px ${g.colours.font}`;
    context.textBaseline = "alphabetic";
    context.beginPath();
    context.strokeStyle = g.colours.line;
    for (const ns of at) {
      const x = Math.round(g.x(ns)) + 0.5;
      context.moveTo(x, y);
      context.lineTo(x, g.height - 4);
    }
    context.stroke();
    context.fillStyle = g.colours.ink3;
    at.forEach((ns, i) => {
      const words = scale.tick(ns, step, i === 0), half = context.measureText(words).width / 2, x = g.x(ns);
      if (x + half <= g.width && !g.flags.some((f) => Math.abs(g.x(f) - x) < half + 44)) context.fillText(words, Math.max(g.left, x - half), 12);
    });
    line(context, g.colours.line2, g.left, y, g.right, y);
  }

  /** @param {CanvasRenderingContext2D} context @param {string} colour @param {number} x0 @param {number} y0 @param {number} x1 @param {number} y1 */
  function line(context, colour, x0, y0, x1, y1) {
    context.strokeStyle = colour;
    context.beginPath();
    context.moveTo(x0, y0);
    context.lineTo(x1, y1);
    context.stroke();
  }

  /** @typedef {{ x: number, y: number, words: string, colour: string, size: number, bold: boolean }} Word */

  /** Draw all lanes; what is to be written on them comes back @param {CanvasRenderingContext2D} context @param {Geometry} g @returns {Word[]} */
  function lanes(context, g) {
    const { dpr } = g, width = Math.round(g.plot * dpr), left = Math.round(g.left * dpr);
    const all = g.layout.ranks.flatMap((rank) => rank.lanes.filter((b) => !b.track).map((box) => ({ rank, box, rows: box.name === "comm" ? Math.round(box.h * dpr) : 1 })));
    // What is pointed at changes more often than what lanes show.
    const key = [g.from, g.to, width, dpr, g.follow, ...all.flatMap(({ rank, box }) => [rank.index, box.y, box.h])].join();
    if (kept.lanes !== g.lanes || kept.colours !== g.colours || kept.key !== key) {
      const { strip, pixels } = room(width, all.reduce((sum, one) => sum + one.rows, 0));
      const { owner, cls, alpha } = strip, { rgb, alpha: weight } = g.colours, lines = hatch(dpr);
      /** @type {Label[]} */
      const labels = [];
      let row = 0;
      for (const { rank, box, rows } of all) {
        const lane = g.lanes[rank.index][box.name], base = row * width;
        levels.fill(lane, g.from, g.to, width, strip, Math.max(1, Math.round(dpr)), HOST);
        if (box.name === "comm") {
          comm(strip, pixels, base, width, rows, lines, g.colours, dpr);
        } else {
          for (let x = 0; x < width; x++) {
            const a = alpha[x], k = cls[x];
            pixels[base + x] = a ? rgb[k] | (((a * weight[k]) >> 8) << 24) : 0;
          }
          if (box.h >= 12) label(labels, g, rank.index, box, lane, owner, width);
        }
        row += rows;
      }
      const into = /** @type {CanvasRenderingContext2D} */ (buffer.canvas?.getContext("2d", { willReadFrequently: true }));
      into.putImageData(/** @type {ImageData} */ (buffer.image), 0, 0, 0, 0, width, row);
      kept = { lanes: g.lanes, colours: g.colours, key, words: choose(context, g, labels) };
    }
    let row = 0;
    context.setTransform(1, 0, 0, 1, 0, 0);
    context.imageSmoothingEnabled = false;
    for (const { box, rows } of all) {
      const y = Math.round(box.y * dpr);
      context.drawImage(/** @type {HTMLCanvasElement} */ (buffer.canvas), 0, row, width, rows, left, y, width, Math.round((box.y + box.h) * dpr) - y);
      row += rows;
    }
    context.setTransform(dpr, 0, 0, dpr, 0, 0);
    return kept.words;
  }
  /** What the buffer holds, and the words on it @type {{ lanes: Record<string, Lane>[] | null, colours: Colours | null, key: string, words: Word[] }} */
  let kept = { lanes: null, colours: null, key: "", words: [] };

  /**
   * The rows of a communication lane: transfers solid and at least 2 px, waits hatched and closed above and below.
   * @param {Strip} strip @param {Uint32Array} pixels @param {number} base @param {number} width @param {number} rows
   * @param {Float32Array} lines @param {Colours} c @param {number} dpr
   */
  function comm(strip, pixels, base, width, rows, lines, c, dpr) {
    const { alpha, cls } = strip, edge = Math.max(1, Math.round(dpr)), period = lines.length;
    for (let x = 0, wide = 0; x < width; x++) {
      if (alpha[x] && (cls[x] & 31) >> 2 === TRANSFER) {
        wide++;
        continue;
      }
      // A transfer is 2 px wide at least, where ground still follows.
      for (; wide && wide < 2 * edge && x + 1 < width && !alpha[x] && !alpha[x + 1]; x++, wide++) {
        alpha[x] = 255;
        cls[x] = cls[x - 1];
      }
      wide = 0;
    }
    // A row in which every mark is whole: the edge of a wait, and all of a transfer.
    waits.length = 0;
    for (let x = 0; x < width; x++) {
      const k = cls[x];
      pixels[base + x] = alpha[x] ? c.rgb[k] | (((alpha[x] * c.alpha[k]) >> 8) << 24) : 0;
      if (alpha[x] && (k & 31) >> 2 === WAIT) waits.push(x);
    }
    for (let y = 1; y < rows; y++) {
      const at = base + y * width, like = y < edge || y >= rows - edge ? 0 : y - period >= edge ? y - period : -1;
      pixels.copyWithin(at, base + Math.max(0, like) * width, base + (Math.max(0, like) + 1) * width);
      if (like < 0) for (const x of waits) pixels[at + x] = (pixels[at + x] & 0xffffff) | (((pixels[at + x] >>> 24) * lines[(x + y) % period]) << 24);
    }
  }
  /** Columns of a lane that wait. @type {number[]} */
  const waits = [];

  /**
   * A stretch of columns that is one block, or ground (mark −1), in CSS px; a to b: its longest piece, `wide`: all of it; `words` from the longest to the shortest.
   * @typedef {{ a: number, b: number, wide: number, y: number, h: number, mark: number, cls: number, words: string[], number: string, bold: boolean, lane: string }} Label
   * @param {Label[]} labels @param {Geometry} g @param {number} rank @param {LaneBox} box @param {Lane} lane @param {Int32Array} owner @param {number} width
   */
  function label(labels, g, rank, box, lane, owner, width) {
    const { dpr, left } = g, sliver = 3.5 * dpr;
    // A block, its last column, the piece of it that is being read, and its longest piece: words stand beside slivers.
    let first = 0, last = -1, mine = -1, piece = 0, a = 0, b = 0, ground = 0;
    const longest = () => {
      if (last + 1 - piece > b - a) [a, b] = [piece, last + 1];
    };
    const close = () => {
      if (mine >= 0 && last + 1 - first >= 5 * dpr) {
        longest();
        const span = lane.span ? lane.span[mine] : mine, px = (/** @type {number} */ x) => left + x / dpr;
        labels.push({ a: px(a), b: px(b), wide: (last + 1 - first) / dpr, y: box.y, h: box.h, mark: (lane.cls[mine] & 31) >> 2, cls: lane.cls[mine], lane: box.name,
          bold: g.bold(rank, box.name, span), ...naming(g, rank, box.name, span, px(first), px(last + 1)) });
      }
      mine = -1;
    };
    for (let x = 0; x <= width; x++) {
      const o = x < width ? owner[x] : -3;
      if (o === -1) {
        if (mine >= 0) close();
        continue;
      }
      if (x - ground >= 58 * dpr && box.name === "phase") idle(labels, g, rank, box, lane, ground, x);
      ground = x + 1;
      if (o === -2 && mine < 0) continue;
      const near = mine >= 0 && x - last <= sliver + 1;
      if (near && o >= 0 && (o === mine || lane.same(mine, o))) {
        if (x > last + 1) {
          longest();
          piece = x;
        }
        last = x;
      } else if (!near || !(o === -2 || (o >= 0 && (lane.cls[o] & 31) >> 2 === HOST && (lane.end[o] - lane.start[o]) * width < sliver * (g.to - g.from)))) {
        close();
        if (o >= 0) {
          first = piece = last = x;
          a = b = x;
          mine = o;
        }
      }
    }
  }

  /** How long a rank does nothing, written on the ground @param {Label[]} labels @param {Geometry} g @param {number} rank @param {LaneBox} box @param {Lane} lane @param {number} first @param {number} end */
  function idle(labels, g, rank, box, lane, first, end) {
    const { dpr, left } = g, gap = gapAt(g.model, lane, rank, g.ns(left + (first + end) / 2 / dpr));
    const words = `${gap.blocked ? "blocked" : "idle"} ${scale.time(gap.to - gap.from)}`;
    labels.push({ a: left + first / dpr, b: Math.min(left + end / dpr, g.x(g.model.stepNs)), wide: 0, y: box.y, h: box.h, mark: -1, cls: 0, words: [words], number: "", bold: false, lane: "" });
  }

  /**
   * The stretch of ground around an instant, and whether the rank is blocked in a wait for most of it. A stage
   * that waits for a message has nothing to do: that is idle, whoever holds the thread.
   * @param {Model} model @param {Lane} lane @param {number} rank @param {number} t
   */
  function gapAt(model, lane, rank, t) {
    const i = levels.find(lane, t), from = i < 0 ? 0 : lane.end[i], to = i + 1 < lane.n ? lane.start[i + 1] : model.stepNs;
    let blocked = 0;
    const spans = model.ranks[rank].phase;
    const a = i < 0 ? 0 : lane.span ? lane.span[i] : i, b = i + 1 < lane.n ? (lane.span ? lane.span[i + 1] : i + 1) : spans.n;
    for (let k = a; k < b; k++) if (spans.kind[k] === 6) blocked += spans.end[k] - spans.start[k];
    return { from, to, blocked: model.stages < 2 && 2 * blocked > to - from };
  }

  /** What a block may say @param {Geometry} g @param {number} rank @param {string} name @param {number} i @param {number} a @param {number} b */
  function naming(g, rank, name, i, a, b) {
    const { model } = g, spans = model.ranks[rank][/** @type {LaneName} */ (name)], mark = MARKS[spans.kind[i]];
    const part = (/** @type {number} */ k, /** @type {Spans} */ of) => (of.layer[k] >= 0 ? String(of.layer[k]) : Shardbook.model.MODULES[of.module[k]] ?? "");
    if (name === "operation") {
      const words = model.strings[spans.name[i]] ?? "";
      return { words: [words, words.replace(/^.*::/, "")], number: "" };
    }
    if (name === "layer") {
      const at = part(i, spans);
      return { words: spans.layer[i] >= 0 ? [`layer ${at}`, at] : [at, at.slice(0, 3)], number: "" };
    }
    if (mark >= 3 || mark < 0) return { words: WORDS[mark], number: "" };
    if (spans.microbatch[i] >= 0 && (model.stages > 1 || model.microbatches > 1)) {
      const number = spans.microbatch[i] + (spans.chunk[i] > 0 && stageOf(model, rank, spans.chunk[i]) ? "′" : "");
      return { words: [LETTERS[mark] + number, number], number };
    }
    if (!g.layout.ranks.some((r) => r.index === rank && r.lanes.some((l) => l.name === "layer" && l.h >= 12))) {
      // Where layers have no names of their own, a block of one layer says which.
      const layers = g.lanes[rank].layer, from = g.ns(a), to = g.ns(b), k = levels.find(layers, (from + to) / 2);
      const [first, last] = k < 0 ? [0, -1] : levels.blockOf(layers, k);
      const at = last < 0 || layers.end[last] - layers.start[first] < 0.7 * (to - from) ? "" : part(layers.span ? layers.span[k] : k, model.ranks[rank].layer);
      if (at) return { words: at.length > 3 ? [at, at.slice(0, 3)] : [`layer ${at}`, at], number: "" };
    }
    return { words: WORDS[mark], number: "" };
  }

  /** Which of its rank's stages a chunk is: 0 for the first @param {Model} model @param {number} rank @param {number} chunk */
  function stageOf(model, rank, chunk) {
    const { chunk: all } = model.ranks[rank].phase;
    return all.some((c) => c >= 0 && c < chunk) ? 1 : 0;
  }

  /** By type size @type {Map<string, number>[]} */
  const widths = [];
  /** @param {CanvasRenderingContext2D} context @param {string} words @param {number} size @param {string} font */
  function widthOf(context, words, size, font) {
    const known = (widths[size] ??= new Map());
    let width = known.get(words);
    if (width === undefined) {
      context.font = `${size}px ${font}`;
      if (known.size > 4000) known.clear();
      known.set(words, (width = context.measureText(words).width));
    }
    return width;
  }

  /**
   * What is written: the longest name that fits. Blocks of one kind that carry numbers are labelled alike, in full
   * where that fits two thirds of them, else by number.
   * @param {CanvasRenderingContext2D} context @param {Geometry} g @param {Label[]} labels @returns {Word[]}
   */
  function choose(context, g, labels) {
    const { colours: c } = g, size = g.layout.above ? 11 : 12, found = /** @type {Word[]} */ ([]);
    const wide = (/** @type {string} */ words, /** @type {number} */ px) => widthOf(context, words, px, c.font);
    const counts = new Map();
    for (const l of labels) {
      if (!l.number) continue;
      const count = counts.get(l.mark) ?? [0, 0, 0];
      count[0]++;
      if (wide(l.words[0], size) + 7 <= l.wide) count[1]++;
      if (wide(l.number, size) + 2.3 <= l.b - l.a) count[2]++;
      counts.set(l.mark, count);
    }
    for (const l of labels) {
      const px = l.mark < 0 ? 11 : l.lane === "phase" ? size : 10;
      let words = l.words;
      if (l.number) {
        const [all, full, numbered] = counts.get(l.mark);
        words = 3 * full >= 2 * all ? l.words : 3 * numbered >= 2 * all ? [l.number] : [];
      }
      const fitting = words.find((w) => w && wide(w, px) + (w === l.number ? 2.3 : 7) <= l.b - l.a);
      if (!fitting) continue;
      found.push({ x: (l.a + l.b) / 2, y: l.y + l.h / 2 + (px > 11 ? 4.5 : px > 10 ? 4 : 3.5), words: fitting, size: px, bold: l.bold,
        colour: l.mark < 0 ? c.ink3 : c.text[l.cls] });
    }
    return found;
  }

  const LANE_WORDS = { layer: "layers", operation: "operators", comm: "comm." };

  /** Names of ranks, lanes and groups @param {CanvasRenderingContext2D} context @param {Geometry} g */
  function names(context, g) {
    const { colours: c, layout, model } = g;
    const write = (/** @type {string} */ words, /** @type {number} */ x, /** @type {number} */ y, /** @type {number} */ size, /** @type {string} */ colour, weight = 400) => {
      context.font = `${weight} ${size}px ${c.font}`;
      context.fillStyle = colour;
      context.fillText(words, x, y);
      return context.measureText(words).width;
    };
    const { shares, word, ranks } = Shardbook.facts.of(model), { tracks } = Shardbook.timeline;
    for (const heading of layout.headings) write(heading.words, 0, heading.y, 11, c.ink2, 600);
    layout.ranks.forEach((box, i) => {
      const rank = model.ranks[box.index], name = `rank ${rank.rank}`, { peak } = ranks[box.index];
      if (layout.above) {
        if (i) line(context, c.line, 0, box.y - (box.collapsed ? 18 : 24.5), g.width, box.y - (box.collapsed ? 18 : 24.5));
        const wide = write(name, 0, box.y - 7, 12, c.ink, 600);
        write(rank.note, wide + 8, box.y - 7, 11, c.ink3);
        context.textAlign = "right";
        write(`${scale.percent(shares[box.index])} ${word}` + (peak ? ` · ${scale.bytes(peak)}` : ""), g.width, box.y - 7, 11, c.ink2);
        context.textAlign = "left";
        for (const { name, y } of box.lanes) if (tracks[name] && name !== "memory") write(`${tracks[name].label}, ${tracks[name].most(model, box.index)} at most`, 2, y + 9, 10, c.ink2);
        return;
      }
      if (box.collapsed) {
        write(name, 0, box.y + 9, 11, c.ink2);
        return;
      }
      // Above the heading of a group, where there is one.
      const rule = box.y - (layout.headings.some((h) => h.y === box.y - 8) ? 22.5 : 10.5);
      if (i) line(context, c.line, 0, rule, g.width, rule);
      write(name, 0, box.y + 12, 13, c.ink, 600);
      // What has no room beside the names of the lanes goes below.
      const note = rank.note.split(" · ").reduce((/** @type {string[]} */ lines, part) => {
        const last = lines.length - 1, longer = `${lines[last]} · ${part}`;
        return last >= 0 && widthOf(context, longer, 11, c.font) <= g.left - (last ? 42 : 2) ? [...lines.slice(0, last), longer] : [...lines, part];
      }, []);
      note.forEach((words, k) => write(words, 0, box.y + 26 + 12 * k, 11, c.ink3));
      context.textAlign = "right";
      for (const lane of box.lanes) {
        const words = lane.track ? tracks[lane.name].label : LANE_WORDS[/** @type {"comm"} */ (lane.name)];
        if (words && lane.h > 6) write(words, g.left - 10, lane.track ? lane.y + lane.h : lane.y + lane.h / 2 + 3.5, 10, c.ink3);
      }
      context.textAlign = "left";
      write(scale.percent(shares[box.index]), g.right + 12, box.y + 12, 11, c.ink);
      write(word, g.right + 12, box.y + 26, 11, c.ink3);
      for (const { name, y, h } of box.lanes) {
        if (!tracks[name]) continue;
        write(tracks[name].most(model, box.index), g.right + 12, y + h - (h > 20 ? 13 : 0), 11, c.ink);
        if (h > 20) write("peak", g.right + 12, y + h, 11, c.ink3);
      }
    });
  }

  return { MARKS, colours, prepare, frame, gapAt, line };
})();

// @ts-check
"use strict";
var Shardbook = Shardbook || {};

/**
 * The element `<trace-timeline>`: holds one state, draws it, tells its listeners. It takes the place of the SVG
 * inside it once the run's data are decoded, never before. What readers do comes from commands.js and hands.js,
 * what is drawn is draw.js's; everything else plugs into registry.js.
 *
 * Attributes: run, mode, src (the script with the run's data), focus. Events: trace-change, whose detail is the
 * list of fields of the state that changed.
 */
Shardbook.view = (function () {
  const { levels, link, layout, draw, commands, hands } = Shardbook;
  /** How long a zoom takes where motion is welcome, ms. */
  const GLIDE = 140;
  const still = matchMedia("(prefers-reduced-motion: reduce)");
  const MODES = [["recorded", "recorded", "As it was measured, ranks sharing cores"], ["isolated", "one device each", "Each rank on a device of its own"]];

  class TraceTimeline extends HTMLElement {
    constructor() {
      super();
      /** @type {ViewState} */
      this.state = link.start();
      /** @type {ViewState} what the page opens with */
      this.origin = this.state;
      /** @type {Model} */
      this.model = /** @type {any} */ (null);
      /** @type {Colours} */
      this.colours = /** @type {any} */ (null);
      /** @type {Promise<void> | null} */
      this.loading = null;
      /** @type {IntersectionObserver | null} */
      this.near = null;
      /** @type {((state: ViewState) => Model) | null} */
      this.source = null;
      /** What is typical of a model's lanes, ns. @type {WeakMap<Model, Record<string, number>>} */
      this.lengths = new WeakMap();
      this.gliding = 0;
      /** What else is drawn with each frame. @type {(() => void)[]} */
      this.drawings = [];
      /** Where the mouse is @type {{ x: number, y: number } | null} */
      this.pointer = null;
      /** @type {RunData | null} */
      this.data = null;
      /** @type {Map<string, Command>} */
      this.commands = new Map();
      /** @type {Map<string, { label: string, run(event?: Event): void }>} */
      this.keys = new Map();
      /** @type {HTMLButtonElement[]} */
      this.buttons = [];
      /** @type {Drag[]} */
      this.drags = [];
      /** @type {{ a: number, b: number } | null} what is dragged over on the axis, px */
      this.ruler = null;
      /** @type {Record<string, Lane>[]} */
      this.lanes = [];
      /** Models by mode. @type {Map<string, Model>} */
      this.models = new Map();
      /** What shows the same stretch of time, this one first. @type {any[]} */
      this.beside = [this];
      this.started = false;
      this.frame = 0;
      this.writing = 0;
      /** The stretch of time on the canvas, on its way to the state's. */
      this.shown = { from: 0, to: 1 };
      const make = (/** @type {string} */ name, tag = "div") => Object.assign(document.createElement(tag), { className: name });
      this.toolbar = make("tl-bar");
      this.modes = make("tl-modes");
      this.stage = make("tl-stage");
      this.canvas = /** @type {HTMLCanvasElement} */ (make("", "canvas"));
      this.context = /** @type {CanvasRenderingContext2D} */ (this.canvas.getContext("2d"));
      this.tip = make("tl-tip");
      this.panels = make("tl-panels");
      this.live = make("vh");
    }

    connectedCallback() {
      if (this.near || !this.getAttribute("src")) return;
      this.near = new IntersectionObserver((found) => found.some((f) => f.isIntersecting) && void this.load(), { rootMargin: "400px" });
      this.near.observe(this);
      addEventListener("hashchange", () => this.follow());
      this.follow();
    }

    /** The id of the figure in links @returns {string} */
    get name() {
      return this.closest("[id]")?.id ?? "";
    }

    /** If the address asks for a view of this figure, show it. */
    follow() {
      const asked = link.parse(location.hash.slice(1));
      if (!asked || asked.id !== this.name) return;
      this.scrollIntoView();
      this.load().then(() => {
        if (!this.started) return;
        // What there is to see can be said only of the model that the link asks for.
        const { state: { from, to, selected = null, ...rest }, problems } = asked;
        try {
          this.update({ ...this.origin, ...rest, selected: null }, false);
        } catch {
          problems.push("what");
          this.update({ ...this.origin, ...rest, selected: null, whatIf: "" }, false);
        }
        if (to && to > this.end * 1.001 && !this.state.compare.length) problems.push("to");
        else if (to) this.update({ from, to }, false);
        if (this.span(selected)) this.update({ selected }, false);
        else if (selected) problems.push("sel");
        if (problems.length) this.notice(`Of this link, “${problems.join("”, “")}” could not be followed.`);
      });
    }

    /** Fetch the data and take the place of the picture, once @returns {Promise<void>} */
    load() {
      this.loading ??= this.fetched().then((data) => this.begin(data), (error) => this.notice(String(error.message)));
      return this.loading;
    }

    /** @returns {Promise<RunData>} */
    fetched() {
      this.near?.disconnect();
      const run = this.getAttribute("run") ?? "", { columns } = Shardbook;
      if (columns.has(run)) return columns.of(run);
      return new Promise((done, failed) => {
        const script = document.createElement("script");
        script.src = this.getAttribute("src") ?? "";
        script.addEventListener("load", () => done(columns.of(run)));
        script.addEventListener("error", () => failed(new Error("The data of this timeline could not be loaded; the picture stays.")));
        document.head.append(script);
      });
    }

    /** One line that the reader must see @param {string} text */
    notice(text) {
      const line = this.querySelector(".notice") ?? document.createElement("p");
      line.className = "notice";
      line.setAttribute("role", "status");
      line.textContent = text;
      this.prepend(line);
    }

    /** @param {RunData} data */
    begin(data) {
      this.data = data;
      this.open((/** @type {ViewState} */ s) => Shardbook.lanes.model(data, s.whatIf ? Shardbook.whatif.parse(s.whatIf) : s.mode === "recorded" ? "recorded" : "isolated"));
    }

    /** Start with a source of models @param {(state: ViewState) => Model} source */
    open(source) {
      this.source = source;
      this.state = { ...this.state, mode: this.getAttribute("mode") ?? "isolated" };
      this.build();
      this.remodel();
      this.state.to = this.opening();
      // More ranks than fit on a screen begin folded.
      if (this.model.ranks.length > 16) this.state.collapsed = this.model.ranks.map((r) => r.rank);
      this.shown = { from: 0, to: this.state.to };
      this.started = true;
      commands.core(this);
      for (const [mode, words, label] of MODES) {
        this.commands.set("mode-" + mode, { label, words, run: () => this.update({ mode, whatIf: "" }), pressed: () => this.state.mode === mode && !this.state.whatIf });
      }
      hands.attach(this);
      for (const part of Shardbook.timeline.parts) part.attach(this);
      this.origin = { ...this.state };
      commands.toolbar(this);
      this.classList.add("live");
      this.closest("figure")?.classList.add("live");
      this.redraw();
      new ResizeObserver(() => this.redraw()).observe(this.stage);
      const repaint = () => {
        this.colours = draw.colours(this);
        this.redraw();
      };
      new MutationObserver(repaint).observe(document.documentElement, { attributeFilter: ["data-theme"] });
      matchMedia("(prefers-color-scheme: dark)").addEventListener("change", repaint);
      this.dispatchEvent(new CustomEvent("trace-ready"));
    }

    /** The elements beside and around the canvas. */
    build() {
      const bar = this.closest("figure")?.querySelector(".figbar") ?? null;
      this.toolbar.setAttribute("role", "toolbar");
      this.toolbar.setAttribute("aria-label", "Timeline");
      this.modes.setAttribute("role", "group");
      this.modes.setAttribute("aria-label", "Mode");
      this.stage.tabIndex = 0;
      this.stage.setAttribute("role", "application");
      this.stage.setAttribute("aria-roledescription", "timeline");
      this.tip.hidden = true;
      this.stage.append(this.canvas, this.tip);
      this.live.setAttribute("aria-live", "polite");
      const words = bar?.querySelector("[data-mode]");
      if (words) words.replaceWith(this.modes);
      else this.append(this.modes);
      if (bar) bar.append(this.toolbar);
      else this.append(this.toolbar);
      this.append(this.stage, this.panels, this.live);
      this.colours = draw.colours(this);
      const figure = this.closest("figure") ?? this;
      figure.addEventListener("keydown", (event) => {
        const key = /** @type {KeyboardEvent} */ (event), target = /** @type {Element} */ (event.target);
        if (key.defaultPrevented || target.closest("input, select, textarea, dialog, summary, [role=slider]") || (target.closest("button, a") && ["Enter", " "].includes(key.key))) return;
        const command = commands.of(this, key);
        if (!command) return;
        key.preventDefault();
        command.run(key);
      });
    }

    /** The model of a mode, made once @param {string} mode @returns {Model} */
    of(mode) {
      let found = this.models.get(mode);
      if (!found) this.models.set(mode, (found = /** @type {(s: ViewState) => Model} */ (this.source)({ ...this.state, mode, whatIf: "" })));
      return found;
    }

    /** How far time goes, ns: as long as the longest step that is shown, and a what-if's as long as the step it asks of. */
    get end() {
      return Math.max(...this.beside.map((el) => el.model.stepNs), this.model.mode === "what-if" ? this.of("isolated").stepNs : 0);
    }

    /** Take the model that the state asks for; the selection goes with its row in the rank file. */
    remodel() {
      const { mode, whatIf, selected, filters } = this.state;
      const was = this.model, at = was && this.place(selected), end = was && this.end;
      const model = whatIf ? /** @type {(s: ViewState) => Model} */ (this.source)(this.state) : this.of(mode);
      this.model = model;
      const { filter } = Shardbook.timeline, now = model;
      this.lanes = draw.prepare(now, filter && Object.keys(filters).length ? (r, lane, i) => filter(now, r, lane, i, filters) : undefined);
      if (was && was !== now) {
        if (at && selected && "lane" in selected) {
          const lane = /** @type {LaneName} */ (at.lane), row = was.ranks[at.rank][lane].row[at.index], kind = was.ranks[at.rank][lane].kind[at.index];
          const { row: rows, kind: kinds } = now.ranks[at.rank][lane], index = rows.findIndex((r, i) => r === row && kinds[i] === kind);
          this.state.selected = index < 0 ? null : { ...at, index };
        } else if (selected && "gap" in selected) this.state.selected = null;
        const whole = this.state.from === 0 && this.state.to >= end - 1;
        const [from, to] = Shardbook.scale.within(this.state.from, whole ? this.end : this.state.to, this.end);
        this.state.from = this.shown.from = from;
        this.state.to = this.shown.to = to;
      }
      this.stage.setAttribute("aria-label", `${now.run}, step ${now.step}, ${now.ranks.length === 1 ? "1 rank" : now.ranks.length + " ranks"}, ${Shardbook.scale.time(now.stepNs)}, ${now.label}. Press ? for the keys.`);
      const tag = this.closest("figure")?.querySelector(".figbar .tag");
      if (tag) {
        tag.className = `tag ${now.label === "recorded" ? "rc" : now.label.slice(0, 2)}`;
        tag.textContent = now.label;
        tag.setAttribute("href", String(tag.getAttribute("href")).replace(/#.*/, "#" + now.label));
      }
    }

    /** Up to when the step is shown at first: where blocks would be slivers, a round first part @returns {number} */
    opening() {
      const { stepNs } = this.model, width = this.stage.clientWidth || 1000, wanted = (this.typical("phase") / 9) * width;
      if (width >= 640 || wanted >= 0.8 * stepNs) return stepNs;
      const unit = Shardbook.scale.niceStep(wanted / 10);
      return Math.max(unit, Math.floor(wanted / unit) * unit);
    }

    /** How long the spans of a kind of lane are in which half of its time goes, ns @param {LaneName} lane */
    typical(lane) {
      const known = this.lengths.get(this.model) ?? {};
      this.lengths.set(this.model, known);
      if (known[lane] === undefined) {
        const all = this.model.ranks.flatMap(({ [lane]: { n, start, end } }) => {
          const some = Math.min(500, n), at = (/** @type {number} */ k) => Math.floor((k * n) / some);
          return Array.from({ length: some }, (_, k) => end[at(k)] - start[at(k)]);
        }).sort((a, b) => a - b);
        let half = all.reduce((sum, ns) => sum + ns, 0) / 2;
        known[lane] = all.find((ns) => (half -= ns) <= 0) ?? 0;
      }
      return known[lane];
    }

    /**
     * Change the state: draws, tells listeners, writes the address.
     * @param {Partial<ViewState>} partial @param {boolean} [write] false: not a reader's doing
     */
    update(partial, write = true) {
      const keys = /** @type {(keyof ViewState)[]} */ (Object.keys(partial)).filter((k) => partial[k] !== this.state[k]);
      if (!keys.length) return;
      this.state = { ...this.state, ...partial };
      if (keys.some((k) => ["mode", "whatIf", "filters"].includes(k))) this.remodel();
      if (!this.gliding) this.shown = { from: this.state.from, to: this.state.to };
      this.redraw();
      commands.refresh(this);
      this.dispatchEvent(new CustomEvent("trace-change", { detail: keys }));
      if (write && keys.some((k) => k !== "hovered")) {
        clearTimeout(this.writing);
        this.writing = setTimeout(() => this.write(), 300);
      }
    }

    write() {
      const text = "#" + link.print(this.name, this.state, this.origin);
      try {
        history.replaceState(null, "", text);
      } catch {
        // Some browsers let no page from the disk change its address; the button that copies a link still does.
      }
    }

    /** Show a stretch of time @param {number} from @param {number} to @param {boolean} [glide] */
    look(from, to, glide = true) {
      [from, to] = Shardbook.scale.within(from, to, this.end);
      const start = { ...this.shown }, begin = performance.now();
      cancelAnimationFrame(this.gliding);
      this.gliding = 0;
      if (!glide || still.matches) return this.update({ from, to });
      const step = () => {
        const part = Math.min(1, (performance.now() - begin) / GLIDE), eased = 1 - (1 - part) ** 3;
        this.shown = { from: start.from + (from - start.from) * eased, to: start.to + (to - start.to) * eased };
        this.gliding = part < 1 ? requestAnimationFrame(step) : 0;
        this.draw();
      };
      this.gliding = requestAnimationFrame(step);
      this.update({ from, to });
    }

    /** Select, and bring what is selected into view @param {Chosen | null} selected @param {boolean} [reveal] */
    choose(selected, reveal = true) {
      this.update({ selected });
      const box = reveal && this.span(selected), { from, to } = this.state;
      if (!box || (box.to > from && box.from < to)) return;
      const middle = (box.from + box.to) / 2, length = Math.max(to - from, (box.to - box.from) * 1.2);
      this.look(middle - length / 2, middle + length / 2);
    }

    /** The lane, rank and index of a selection: of a call those of its first member @param {Chosen | null} s @returns {{ rank: number, lane: string, index: number } | null} */
    place(s) {
      if (!s || "lane" in s) return s;
      if ("gap" in s) return this.lanes[s.gap.rank] ? { rank: s.gap.rank, lane: "phase", index: this.gapIndex(s.gap) } : null;
      const first = this.model.calls[s.call]?.members[0], rank = this.model.ranks.findIndex((r) => r.rank === first?.rank);
      return rank < 0 ? null : { rank, lane: "comm", index: this.model.ranks[rank].comm.call.indexOf(s.call) };
    }

    /** The span that ends where a gap begins @param {{ rank: number, from: number }} gap */
    gapIndex({ rank, from }) {
      const { span, start } = this.lanes[rank].phase, i = Math.max(0, start.length ? levels.find(this.lanes[rank].phase, from) : 0);
      return span ? span[i] : i;
    }

    /** When a selection begins and ends @param {Chosen | null} s @returns {{ from: number, to: number } | null} */
    span(s) {
      if (!s) return null;
      if ("gap" in s) return this.model.ranks[s.gap.rank] ? s.gap : null;
      if ("call" in s) {
        const members = this.model.calls[s.call]?.members;
        return members?.length ? { from: Math.min(...members.map((m) => m.arrive)), to: Math.max(...members.map((m) => m.end)) } : null;
      }
      const spans = this.model.ranks[s.rank]?.[/** @type {LaneName} */ (s.lane)], lane = this.lanes[s.rank]?.[s.lane];
      if (!spans || s.index >= spans.n) return null;
      const i = this.drawn(s.rank, s.lane, s.index);
      if (i < 0 || lane.start[i] !== spans.start[s.index]) return { from: spans.start[s.index], to: spans.end[s.index] };
      const [a, b] = this.block(s.rank, s.lane, i);
      return { from: lane.start[a], to: lane.end[b] };
    }

    /** The pieces that are one block with one of a lane's drawn spans @param {number} rank @param {string} name @param {number} i */
    block(rank, name, i) {
      const lane = this.lanes[rank][name], host = (/** @type {number} */ k) => (lane.cls[k] & 31) >> 2 === 4;
      return levels.blockOf(lane, i, name === "phase" && !host(i) ? host : undefined);
    }

    /** Which of a lane's drawn spans one of the model's is, or comes before @param {number} rank @param {string} lane @param {number} index */
    drawn(rank, lane, index) {
      const { span } = this.lanes[rank][lane];
      if (!span) return index;
      let low = -1, high = span.length - 1;
      while (low < high) {
        const middle = (low + high + 1) >> 1;
        if (span[middle] <= index) low = middle;
        else high = middle - 1;
      }
      return low;
    }

    /** What lies at a point of the canvas, px: an event, within 3 px, or the gap of a rank's phases @param {number} x @param {number} y @returns {Chosen | null} */
    at(x, y) {
      const g = this.geometry(), found = layout.hit(g.layout, y);
      if (!found || x < g.left - 3 || x > g.right + 3) return null;
      // On a track: what the rank does then.
      found.lane = this.lanes[found.rank][found.lane] ? found.lane : "phase";
      const lane = this.lanes[found.rank][found.lane];
      const t = g.ns(x), reach = (3 / g.plot) * (g.to - g.from), i = levels.find(lane, t);
      let best = -1, least = reach;
      for (const k of [i, i + 1]) {
        if (k < 0 || k >= lane.n) continue;
        const far = Math.max(lane.start[k] - t, t - lane.end[k], 0);
        if (far < least || (far === 0 && best < 0)) [best, least] = [k, far];
      }
      if (best >= 0) return this.chosen(found.rank, found.lane, best);
      if (found.lane !== "phase") return null;
      const { from, to } = draw.gapAt(this.model, lane, found.rank, t);
      return { gap: { rank: found.rank, from, to } };
    }

    /** The block that a lane's drawn span belongs to, named by its first piece @param {number} rank @param {string} lane @param {number} i @returns {Chosen} */
    chosen(rank, lane, i) {
      const [first] = this.block(rank, lane, i), { span } = this.lanes[rank][lane];
      return { rank, lane, index: span ? span[first] : first };
    }

    /** @param {number} x @param {number} y */
    hover(x, y) {
      const hovered = y < 0 ? null : this.at(x, y), was = this.state.hovered;
      this.pointer = y < 0 ? null : { x, y };
      if (JSON.stringify(hovered) !== JSON.stringify(was)) this.update({ hovered }, false);
    }

    /** @returns {Geometry} */
    geometry() {
      const { model, state, lanes } = this, { from, to } = this.shown, width = this.stage.clientWidth;
      const tracks = state.tracks.filter((name) => Shardbook.timeline.tracks[name]?.has(model)).map((name) => ({ name, height: Shardbook.timeline.tracks[name].height }));
      const plain = width < 640, plot = Math.max(1, plain ? width : width - 162), px = (to - from) / plot;
      const at = this.span(state.selected), flags = at && at.from >= from && at.from <= to ? [at.from, ...state.marks] : state.marks;
      const bracket = !plain && Shardbook.schedule.shown(model);
      const found = layout.layout(model, { width, bracket, collapsed: state.collapsed, groupBy: state.groupBy, tracks, unfold: this.unfold(px) });
      const { left } = found, box = (/** @type {number} */ rank, /** @type {string} */ lane) => found.ranks.find((r) => r.index === rank)?.lanes.find((l) => l.name === lane) ?? null;
      return { layout: found, from, to, left, right: left + plot, plot, width, height: found.height, dpr: devicePixelRatio || 1, colours: this.colours, model, lanes,
        x: (ns) => left + ((ns - from) / (to - from)) * plot, ns: (x) => from + ((x - left) / plot) * (to - from),
        bracket, flags, follow: state.follow, ruler: this.ruler, span: (chosen) => this.span(chosen),
        boxOf: (chosen) => {
          const at = this.place(chosen);
          return at && box(at.rank, at.lane);
        },
        box,
        bold: (rank, lane, i) => state.follow !== null && model.ranks[rank][/** @type {LaneName} */ (lane)].microbatch[i] === state.follow };
    }

    /** How far layers and operators are unfolded: as wide as theirs typically are @param {number} px ns a pixel */
    unfold(px) {
      const by = (/** @type {LaneName} */ lane, /** @type {number} */ least, /** @type {number} */ most) => Math.min(1, Math.max(0, (this.typical(lane) / px - least) / (most - least)));
      return { layer: by("layer", 22, 44), operation: by("operation", 3, 8) };
    }

    redraw() {
      this.frame ||= requestAnimationFrame(() => this.draw());
    }

    /** Draw now. */
    draw() {
      cancelAnimationFrame(this.frame);
      this.frame = 0;
      if (!this.stage.clientWidth) return;
      const g = this.geometry(), { canvas } = this, w = Math.round(g.width * g.dpr), h = Math.round(g.height * g.dpr);
      if (canvas.width !== w || canvas.height !== h) {
        canvas.width = w;
        canvas.height = h;
        canvas.style.height = `${g.height}px`;
      }
      draw.frame(this.context, this.state, g);
      for (const drawing of this.drawings) drawing();
    }
  }

  customElements.define("trace-timeline", TraceTimeline);
  return { TraceTimeline };
})();

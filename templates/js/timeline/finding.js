// @ts-check
"use strict";
var Shardbook = Shardbook || {};

/**
 * Finding events: a panel with a search, filters, and sums and a table of what they leave in the area or in view, which is
 * also how a figure is read without seeing it; stepping through what was found, and along the ranks of a call. A search is
 * a filter too: all else is drawn faint. Nothing is listed before the panel is open.
 *
 * @typedef {{ at: { rank: number, lane: string, index: number }, from: number, to: number, own: any }} Block
 */
(function () {
  const { timeline, scale, measure, panel } = Shardbook, { make } = Shardbook.select;
  /** Rows of the table; filters and zooming lead to the others. */
  const ROWS = 100;

  /** What can be asked for, by the names of filters @param {Model} model @param {number} rank @param {string} lane or "call", with i a call's index @param {number} i @returns {any} */
  function traits({ ranks, calls, strings, microbatches }, rank, lane, i) {
    const spans = ranks[rank][/** @type {LaneName} */ (lane)], call = calls[lane === "call" ? i : lane === "comm" ? spans.call[i] : -1];
    const { op, phase, layer, microbatch, group } = call ?? { op: lane, phase: Shardbook.model.KINDS[spans.kind[i]], layer: spans.layer[i], microbatch: spans.microbatch[i], group: "" };
    const own = { name: call ? op : strings[spans.name[i]], kind: op, phase, layer: layer < 0 ? "" : "layer " + layer,
      "micro-batch": microbatch < 0 || microbatches < 2 ? "" : "micro-batch " + microbatch, group: group && "group " + group, rank: "rank " + ranks[rank].rank };
    return { ...own, find: [...new Set(Object.values(own))].filter(Boolean).join(" · ") };
  }
  /** A number of a search belongs to the word before it @param {any} own @param {any} filters */
  const passes = (own, filters) => Object.keys(filters).every((key) => key === "find" ? filters.find.split(/ (?!\d)/).every((/** @type {string} */ w) => RegExp(w.replace(/\W/g, ".") + "(?!\\d)", "i").test(own.find)) : own[key] === filters[key]);
  timeline.filter = (model, rank, lane, i, filters) => passes(traits(model, rank, lane, i), filters);

  timeline.parts.push({
    name: "finding",
    attach(el) {
      /** @type {Block[]} */
      let all = [], list = all, model = /** @type {Model | null} */ (null);

      const show = () => {
        const { filters, area, from, to } = el.state, where = area ?? { from, to, ranks: [...el.model.ranks.keys()] };
        if (!box.open) return;
        if (model !== el.model) {
          model = el.model;
          all = [];
          el.lanes.forEach((/** @type {Record<string, Lane>} */ lanes, /** @type {number} */ rank) => {
            for (const lane in lanes) {
              for (let k = 0; k < lanes[lane].n; k++) {
                const at = el.chosen(rank, lane, k);
                if (el.block(rank, lane, k)[0] === k) all.push({ at, ...el.span(at), own: traits(el.model, rank, lane, at.index) });
              }
            }
          });
          all.sort((a, b) => a.from - b.from);
          form.append(...form[5] ? [] : ["kind", "phase", "layer", "micro-batch", "group"].flatMap((key) => {
            const values = [...new Set(all.map((e) => e.own[key]))].filter(Boolean), select = make("select");
            select.name = select.ariaLabel = key;
            select.append(new Option("any " + key, ""), ...values.map((v) => new Option(v)));
            return values[1] ? [select] : [];
          }));
        }
        for (const field of form) if (field.name) field.value = filters[field.name] ?? "";
        list = all.filter((e) => passes(e.own, filters));
        const some = list.filter((e) => e.to > where.from && e.from < where.to && where.ranks.includes(e.at.rank)), { times, calls } = measure.sums(el.model, where, filters);
        if (form[4].checked) some.sort((a, b) => b.to - b.from - a.to + a.from);
        sums.value = [scale.time(where.to - where.from), `events ${some.length}`, `ranks ${where.ranks.length}`, ...Shardbook.model.KINDS.filter((name) => times[name]).map((name) => `${name} ${scale.time(times[name])}`), `calls ${calls.size}`, scale.bytes([...calls].reduce((sum, call) => sum + call.bytes, 0))].join(" · ");
        tell();
        body.replaceChildren(...some.slice(0, ROWS).map(({ at, from, to, own }) => {
          const row = make("tr"), button = make("button", own.name);
          button.onclick = () => el.choose(at);
          row.insertCell().append(button, own.find.slice(own.name.length));
          for (const words of [scale.number(from / 1e6, 3), scale.time(to - from)]) row.insertCell().append(words);
          return row;
        }));
      };
      const box = panel(el, "Find and list events", "/", `<form class="tl-find">
        <input type="search" name="find" aria-label="Find" placeholder="all-reduce layer 3">
        <button class="tl-word" value="1">Next</button><button class="tl-word" value="-1">Previous</button><output></output>
        <label><input type="checkbox"> longest first</label></form><output></output>
        <div class="tl-list"><table aria-label="Events"><thead><tr><th>Event<th>Begin, ms<th>Duration<tbody></table></div>`);
      const [, form, sums, { firstChild: { tBodies: [body] } }] = box.children;

      /** Which of those found is selected */
      const place = () => list.findIndex(({ at }) => JSON.stringify(at) === JSON.stringify(el.place(el.state.selected)));
      const tell = () => (form[3].value = `${place() + 1} of ${list.length}`);
      /** @param {number} by */
      const go = (by) => {
        const next = list.at(Math.max(-1, place() + by) % list.length);
        if (next) el.choose(next.at);
      };
      /** @param {number} by */
      const member = (by) => {
        const { ranks } = el.model, at = el.place(el.state.selected), call = at?.lane === "comm" ? ranks[at.rank].comm.call[at.index] : -1;
        for (let k = 1; call >= 0 && k < ranks.length; k++) {
          const rank = (at.rank + (by + ranks.length) * k) % ranks.length, index = ranks[rank].comm.call.indexOf(call);
          if (index >= 0) return el.choose({ rank, lane: "comm", index });
        }
      };
      el.keys.set("n", { label: "Next event found, with Shift the previous", run: (/** @type {KeyboardEvent} */ event) => go(event.shiftKey ? -1 : 1) });
      el.keys.set("j", { label: "The call on the next rank, with Shift the previous", run: (/** @type {KeyboardEvent} */ event) => member(event.shiftKey ? -1 : 1) });
      form.oninput = () => el.update({ filters: Object.fromEntries([...new FormData(form)].filter((f) => f[1])) });
      form.onsubmit = (/** @type {any} */ event) => {
        event.preventDefault();
        go(+event.submitter.value);
      };
      box.addEventListener("toggle", () => {
        show();
        if (document.activeElement === box.firstChild) form[0].focus();
      });
      el.addEventListener("trace-change", (/** @type {any} */ { detail }) => {
        if (/area|filters/.test(detail)) box.open = true;
        if (detail[0] === "selected") tell();
        else if (detail[0] !== "hovered") show();
      });
    },
  });
})();

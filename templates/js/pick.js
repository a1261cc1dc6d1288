// @ts-check
"use strict";
var Shardbook = Shardbook || {};

/**
 * The control of questions that are answered by pointing into a figure: what is selected there is the answer. The
 * figure has no part in grading: a pick is rank and rows of an event, or times of a gap.
 */
Shardbook.pick = (function () {
  /**
   * What a selection says as an answer; null where it is not of the kind asked for.
   * @param {any} el a timeline @param {PickKey["what"]} what @returns {Picked | null}
   */
  function picked(el, what) {
    const { selected, mode, whatIf } = el.state, at = el.place(selected), rank = at && el.model.ranks[at.rank];
    if (!rank) return null;
    const number = rank.rank;
    if (what === "rank") return { rank: number };
    if (what === "gap") return "gap" in selected ? { rank: number, from: selected.gap.from, to: selected.gap.to, mode: whatIf ? "what-if" : mode } : null;
    return "gap" in selected ? null : { rank: number, rows: rows(rank, at, el.span(selected)) };
  }

  /**
   * Rows of a selection: of a block those of all its layers, of an operator that of the layer around it.
   * @param {RankModel} rank @param {{ lane: string, index: number }} at @param {{ from: number, to: number }} span
   */
  function rows(rank, { lane, index }, { from, to }) {
    const own = rank[/** @type {LaneName} */ (lane)], middle = (from + to) / 2;
    if (lane === "comm" || own.kind[index] > 4) return [own.row[index]];
    for (const { row, start, end, kind } of lane === "operation" ? [rank.layer, rank.phase] : [rank.layer]) {
      const inside = Array.from(row).filter((_, i) => kind[i] < 5 && (lane === "operation" ? start[i] <= middle && middle < end[i] : start[i] >= from && end[i] <= to));
      if (inside.length) return inside;
    }
    return [own.row[index]];
  }

  /** @param {string} text as kept with the progress @returns {Picked | null} */
  function read(text) {
    try {
      const { rank, rows, from, to, mode } = JSON.parse(text), whole = Number.isFinite;
      if (!whole(rank) || (rows && !rows.every(whole)) || (mode && !(whole(from) && whole(to)))) return null;
      return { rank, ...(rows && { rows }), ...(mode && { from, to, mode }) };
    } catch {
      return null;
    }
  }

  /** @param {HTMLElement} root @param {PickKey} answer @returns {Control} */
  function control(root, answer) {
    const el = /** @type {any} */ (document.querySelector(`[id="${answer.figure}"] trace-timeline`));
    const chosen = /** @type {HTMLOutputElement} */ (root.querySelector("output")), go = /** @type {HTMLElement} */ (root.querySelector("[data-go]"));
    const form = /** @type {HTMLFormElement} */ (root.querySelector("form")), bar = document.createElement("p");
    let pick = /** @type {Picked | null} */ (null), closed = false;
    bar.className = "tl-ask";
    bar.innerHTML = `<a href="#${root.id}">${root.querySelector("h2")?.textContent}</a> <span></span> <button type="button" class="btn">Check</button>`;
    const submit = () => {
      form.requestSubmit();
      root.scrollIntoView({ block: "nearest" });
      /** @type {HTMLElement} */ (root.querySelector(".fb")).focus();
    };
    /** @type {HTMLElement} */ (bar.lastChild).onclick = submit;
    const words = (/** @type {string} */ text) => (chosen.value = /** @type {HTMLElement} */ (bar.children[1]).textContent = text);

    el.addEventListener("trace-change", (/** @type {CustomEvent} */ { detail }) => {
      if (closed || !["selected", "mode", "whatIf"].some((key) => detail.includes(key))) return;
      const { selected } = el.state;
      pick = picked(el, answer.what);
      words(!pick ? "Nothing chosen yet." : answer.what === "rank" ? `Rank ${pick.rank}` : Shardbook.describe.describe(el.model, selected, el.span(selected)).line);
    });
    go.onclick = () => el.load().then(() => {
      if (!el.started) return;
      el.querySelector(".tl-ask")?.remove();
      el.stage.before(bar);
      el.commands.set("answer", { label: "Check what is selected as the answer", key: "enter", run: submit });
      el.closest("figure").scrollIntoView({ block: "nearest" });
      el.stage.focus();
    });

    return {
      typed: () => JSON.stringify(pick),
      fill: (text) => {
        pick = read(text);
        if (pick) words(`On rank ${pick.rank}`);
      },
      judge: () => Shardbook.grade.pick(answer, pick),
      close: () => {
        const fresh = root.contains(document.activeElement) || bar.contains(document.activeElement);
        const show = () => el.reveal({ what: answer.what, at: answer.answer }, fresh);
        closed = true;
        if (bar.isConnected) el.commands.delete("answer");
        bar.remove();
        if (el.started) show();
        else el.addEventListener("trace-ready", show, { once: true });
        if (fresh) el.load();
      },
      title: `The answer: ${answer.shown}.`,
    };
  }

  return control;
})();

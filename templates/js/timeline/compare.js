// @ts-check
"use strict";
var Shardbook = Shardbook || {};

/**
 * Other runs of the book below a timeline, each a timeline of its own that shows the same stretch of time, and a table of what
 * differs. Which are shown is state.compare; which there are, and where their data lie, the page's body says.
 */
(function () {
  const { timeline, panel } = Shardbook;

  timeline.parts.push({
    name: "compare",
    attach(el) {
      const runs = new URLSearchParams(document.body.dataset.runs);
      /** @type {Map<string, any>} */
      const others = new Map();
      let whole = true;
      if (el.closest(".tl-with")) return;
      const box = panel(el, "Compare with …", "r", `<select aria-label=Run><option value=''>a run<option>${[...runs.keys()].join("<option>")}</select><div tabindex=0></div>`);
      box.oninput = (/** @type {any} */ { target }) => {
        el.update({ compare: [...el.state.compare, target.value] });
        target.value = "";
      };

      const follow = () => {
        const { from, to, mode } = el.state;
        for (const e of el.beside) e.update({ from, to, mode });
        whole = !from && to >= el.end - 1;
      };
      const show = () => {
        const { compare, mode } = el.state;
        for (const [id, src] of runs) {
          const shown = others.get(id);
          if (compare.includes(id) === !!shown) continue;
          if (others.delete(id)) {
            shown.parentElement.remove();
            continue;
          }
          el.panels.insertAdjacentHTML("beforebegin", `<figure class=tl-with id=${id}><h3>${id}</h3><button class=tl-word>Remove</button><trace-timeline run=${id} mode=${mode} src=${src}></trace-timeline></figure>`);
          const [, away, other] = el.panels.previousSibling.children;
          others.set(id, other);
          other.write = () => {};
          other.look = el.look.bind(el);
          away.onclick = () => el.update({ compare: el.state.compare.filter((/** @type {string} */ c) => c !== id) });
          other.load().then(show);
        }
        el.beside = [el, ...others.values()].filter((e) => e.started);
        for (const e of el.beside) e.beside = el.beside;
        if (whole) el.look(0, el.end, false);
        follow();
        box.lastChild.replaceChildren(panel.table("run", el.beside.map((/** @type {any} */ e) => e.model)));
      };
      el.addEventListener("trace-change", (/** @type {CustomEvent} */ { detail }) => {
        follow();
        if (detail.includes("compare")) box.open = true;
        if (/compare|mode|whatIf/.test(detail)) show();
      });
    },
  });
})();

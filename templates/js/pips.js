// @ts-check
"use strict";
var Shardbook = Shardbook || {};

/** Fills the pips: one a question on an exercise's page, one an exercise on the home page. */
Shardbook.pips = (function () {
  const progress = Shardbook.progress;

  /** `data-questions` of a pip: "key hash key hash …". @param {Element} pip */
  function questions(pip) {
    const words = (pip.getAttribute("data-questions") ?? "").split(" ").filter(Boolean);
    return Array.from({ length: Math.floor(words.length / 2) }, (_, i) => ({ key: words[2 * i], hash: words[2 * i + 1] }));
  }

  /** @param {Element} group an element of class pips */
  function fill(group) {
    let done = 0, begun = 0;
    const pips = [...group.querySelectorAll("[data-questions]")];
    for (const pip of pips) {
      const { done: d, begun: b, total } = progress.count(questions(pip));
      const whole = total > 0 && d === total, some = !whole && d + b > 0;
      pip.classList.toggle("d", whole);
      pip.classList.toggle("h", some);
      done += whole ? 1 : 0;
      begun += some ? 1 : 0;
    }
    const words = `${done} of ${pips.length} done` + (begun ? `, ${begun} begun` : "");
    group.setAttribute("aria-label", words);
    const count = group.parentElement?.querySelector("[data-count]");
    if (count) count.textContent = `${done} of ${pips.length}`;
  }

  /** Steps of a chapter in the header of an exercise. @param {Element} link */
  function mark(link) {
    const { done, begun, total } = progress.count(questions(link));
    link.classList.toggle("d", total > 0 && done === total);
    link.classList.toggle("h", done < total && done + begun > 0);
    const note = link.querySelector("[data-note]");
    if (note) note.textContent = total && done === total ? ", done" : done + begun ? ", begun" : "";
  }

  function refresh() {
    document.querySelectorAll(".pips").forEach(fill);
    document.querySelectorAll(".steps [data-questions]").forEach(mark);
  }

  return { refresh };
})();

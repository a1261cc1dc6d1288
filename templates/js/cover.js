// @ts-check
"use strict";
var Shardbook = Shardbook || {};

/**
 * Figures that are covered until a question is answered. In the page they are closed <details>, which readers without
 * scripts open; here they are hidden, so that neither sight, nor screen readers, nor a search finds what is in them.
 */
Shardbook.cover = (function () {
  /** @param {HTMLDetailsElement} cover */
  function cover(cover) {
    const question = /** @type {HTMLElement} */ (document.getElementById(cover.dataset.until ?? "")), note = document.createElement("p");
    note.className = "cover";
    note.innerHTML = `<span>Covered until you have answered <a href="#${question.id}">${question.querySelector("h2")?.textContent}</a>.</span>`;
    cover.hidden = true;
    cover.before(note);
    question.addEventListener("answered", () => {
      note.remove();
      cover.hidden = false;
      cover.open = true;
      cover.classList.add("shown");
    });
  }

  function start() {
    /** @type {NodeListOf<HTMLDetailsElement>} */ (document.querySelectorAll("details[data-until]")).forEach(cover);
  }

  return { start };
})();

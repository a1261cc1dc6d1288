// @ts-check
"use strict";
var Shardbook = Shardbook || {};

/** What every page has: the theme button, notices, and on the home page the care of progress. */
Shardbook.page = (function () {
  const { store, progress } = Shardbook;
  const THEMES = ["system", "light", "dark"];

  /** @param {string} text one line that the reader must see */
  function notice(text) {
    const line = document.querySelector("[data-notice]");
    if (!line) return;
    line.textContent = text;
    line.removeAttribute("hidden");
  }

  function theme() {
    const button = document.querySelector("[data-theme-button]");
    if (!button) return;
    const root = document.documentElement;
    const label = () => button.setAttribute("aria-label", `Theme: ${root.dataset.theme ?? "system"}. Change`);
    button.addEventListener("click", () => {
      const next = THEMES[(THEMES.indexOf(root.dataset.theme ?? "system") + 1) % THEMES.length];
      if (next === "system") {
        delete root.dataset.theme;
        store.remove("theme");
      } else {
        root.dataset.theme = next;
        store.set("theme", next);
      }
      label();
    });
    label();
  }

  function care() {
    const panel = document.querySelector("[data-progress]");
    if (!panel) return;
    const said = /** @type {HTMLElement} */ (panel.querySelector("[data-said]"));
    const file = /** @type {HTMLInputElement} */ (panel.querySelector("input[type=file]"));
    const reset = /** @type {HTMLButtonElement} */ (panel.querySelector("[data-reset]"));

    panel.querySelector("[data-export]")?.addEventListener("click", () => {
      const link = document.createElement("a");
      link.href = URL.createObjectURL(new Blob([progress.exported()], { type: "application/json" }));
      link.download = "shardbook-progress.json";
      link.click();
      setTimeout(() => URL.revokeObjectURL(link.href), 1000);
      said.textContent = `Saved ${questions(progress.keys().length)}.`;
    });
    panel.querySelector("[data-import]")?.addEventListener("click", () => file.click());
    file.addEventListener("change", () => {
      const chosen = file.files?.[0];
      if (!chosen) return;
      const reader = new FileReader();
      reader.addEventListener("load", () => {
        const { count, problem } = progress.imported(String(reader.result));
        said.textContent = problem || `Took over ${questions(count)}.`;
        Shardbook.pips.refresh();
      });
      reader.addEventListener("error", () => (said.textContent = "This file cannot be read."));
      reader.readAsText(chosen);
      file.value = "";
    });
    reset.addEventListener("click", () => {
      if (reset.dataset.sure !== "1") {
        reset.dataset.sure = "1";
        said.textContent = "Press Reset again to erase all progress in this browser.";
        return;
      }
      delete reset.dataset.sure;
      progress.reset();
      said.textContent = "All progress in this browser is erased.";
      Shardbook.pips.refresh();
    });
    reset.addEventListener("blur", () => delete reset.dataset.sure);
  }

  /** @param {number} count */
  const questions = (count) => (count === 1 ? "1 question" : `${count} questions`);

  function start() {
    theme();
    const damaged = progress.dropDamaged();
    if (damaged) notice(`Stored progress of ${questions(damaged)} could not be read and was left out.`);
    else if (!store.persistent) notice("This browser keeps no data for this page: progress lasts until you close it.");
    Shardbook.cover.start();
    Shardbook.questions.start();
    Shardbook.marks.follow(location.hash);
    Shardbook.pips.refresh();
    care();
  }

  return { start };
})();

Shardbook.page.start();

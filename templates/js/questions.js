// @ts-check
"use strict";
var Shardbook = Shardbook || {};

/** Asks the questions of a page: grades in place, explains, remembers. */
Shardbook.questions = (function () {
  const { grade, progress, key: keys } = Shardbook;

  /** @template {Element} T @param {Element} root @param {string} selector @returns {T} */
  function find(root, selector) {
    const element = root.querySelector(selector);
    if (!element) throw new Error(`no ${selector} in question ${root.id}`);
    return /** @type {T} */ (element);
  }

  /** @param {HTMLElement} root an element with data-key, data-hash and data-answer */
  function question(root) {
    const name = root.dataset.key ?? "", hash = root.dataset.hash ?? "";
    const answer = keys.decode(root.dataset.answer ?? "", name);
    const form = /** @type {HTMLFormElement} */ (find(root, "form"));
    const feedback = /** @type {HTMLElement} */ (find(root, ".fb"));
    const state = /** @type {HTMLElement} */ (find(root, ".st"));
    const giveUp = /** @type {HTMLButtonElement} */ (find(root, "[data-give-up]"));
    const options = /** @type {HTMLInputElement[]} */ ([...root.querySelectorAll(".opts input")]);
    const input = /** @type {HTMLInputElement | null} */ (root.querySelector(".ans input"));

    const typed = () => (input ? input.value : options.map((o) => (o.checked ? "1" : "0")).join(""));

    /** @returns {Verdict} */
    const judge = () => (input ? grade.number(answer, input.value) : grade.choice(answer, options.map((o) => o.checked)));

    /** @param {string} title plain text @param {string[]} html paragraphs of the generator @param {string} kind */
    function say(title, html, kind) {
      const head = document.createElement("p");
      head.className = "hd2";
      head.textContent = title;
      const body = document.createElement("template");
      body.innerHTML = html.filter(Boolean).map((h) => `<div>${h}</div>`).join("");
      feedback.replaceChildren(head, body.content);
      feedback.className = `fb ${kind}`;
    }

    /** @param {string} text @param {string} kind "ok", "no", "gu" or "" */
    function status(text, kind) {
      state.className = `st ${kind}`;
      find(state, "span").textContent = text;
    }

    /** After a right answer or giving up: nothing more to enter, every option shows its reason. */
    function close() {
      root.classList.add("closed");
      if (input) input.readOnly = true;
      options.forEach((option, i) => {
        option.disabled = true;
        const why = find(/** @type {Element} */ (option.closest("li")), ".why");
        why.innerHTML = answer.why[i];
        find(/** @type {Element} */ (option.closest("li")), ".text").classList.toggle("right", answer.correct[i]);
      });
      const computed = root.querySelector("[data-computed]");
      if (computed) computed.innerHTML = answer.computed;
    }

    function show() {
      const title = input ? `The answer: ${answer.shown}.` : "The answer is marked.";
      say(title, [answer.explain], "gu");
      status("given up", "gu");
      close();
    }

    /** @param {boolean} remember */
    function check(remember) {
      const verdict = judge();
      if (verdict.state === "unread") {
        say(verdict.title, verdict.html, "un");
        input?.setAttribute("aria-invalid", "true");
        return;
      }
      input?.setAttribute("aria-invalid", String(verdict.state === "wrong"));
      const right = verdict.state === "right";
      say(verdict.title, verdict.html, right ? "ok" : "no");
      status(right ? "right" : "not yet", right ? "ok" : "no");
      if (remember) progress.set(name, { hash, state: right ? "right" : "tried", answer: typed() });
      if (right) close();
    }

    function restore() {
      const entry = progress.get(name, hash);
      if (!entry) return;
      if (input) input.value = entry.answer;
      options.forEach((o, i) => (o.checked = entry.answer[i] === "1"));
      // A reader who comes back is not read all old feedback aloud.
      feedback.removeAttribute("role");
      if (entry.state === "shown") show();
      else check(false);
      if (entry.state === "right" && !root.classList.contains("closed")) {
        // Right when it was given, not by today's recording: it stays right, and says what is new.
        say(`Right when you answered; the run was recorded again and now gives ${answer.shown ?? "another answer"}.`,
          [answer.explain], "ok");
        status("right", "ok");
        close();
      }
      requestAnimationFrame(() => feedback.setAttribute("role", "status"));
    }

    form.addEventListener("submit", (event) => {
      event.preventDefault();
      if (root.classList.contains("closed")) return;
      check(true);
      Shardbook.pips.refresh();
      // The controls go when the question closes: the reader goes on from the explanation.
      if (root.classList.contains("closed")) feedback.focus();
      else if (input) input.focus();
    });
    giveUp.addEventListener("click", () => {
      progress.set(name, { hash, state: "shown", answer: typed() });
      show();
      Shardbook.pips.refresh();
      feedback.focus();
    });
    restore();
  }

  function start() {
    /** @type {NodeListOf<HTMLElement>} */ (document.querySelectorAll("[data-answer]")).forEach(question);
  }

  return { start };
})();

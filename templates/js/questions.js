// @ts-check
"use strict";
var Shardbook = Shardbook || {};

/**
 * Asks the questions of a page: grades in place, explains, remembers. What differs between kinds is their control.
 *
 * @typedef {{ typed(): string, fill(text: string): void, judge(): Verdict, close(): void, read?(state: string): void, focus?(): void,
 *   title: string }} Control of a question's kind: its answer as text and back, the verdict on it; close: nothing more
 *   to enter; title: said with the answer
 */
Shardbook.questions = (function () {
  const { grade, progress, key: keys } = Shardbook;

  /** @template {Element} T @param {Element} root @param {string} selector @returns {T} */
  function find(root, selector) {
    const element = root.querySelector(selector);
    if (!element) throw new Error(`no ${selector} in question ${root.id}`);
    return /** @type {T} */ (element);
  }

  /** @type {Record<string, (root: HTMLElement, answer: any) => Control>} */
  const controls = {
    number(root, answer) {
      const input = /** @type {HTMLInputElement} */ (find(root, ".ans input"));
      return {
        typed: () => input.value,
        fill: (text) => (input.value = text),
        judge: () => grade.number(answer, input.value),
        close: () => (input.readOnly = true),
        read: (state) => input.setAttribute("aria-invalid", String(state !== "right")),
        focus: () => input.focus(),
        title: `The answer: ${answer.shown}.`,
      };
    },
    choice(root, answer) {
      const options = /** @type {HTMLInputElement[]} */ ([...root.querySelectorAll(".opts input")]);
      return {
        typed: () => options.map((o) => (o.checked ? "1" : "0")).join(""),
        fill: (text) => options.forEach((o, i) => (o.checked = text[i] === "1")),
        judge: () => grade.choice(answer, options.map((o) => o.checked)),
        /** Every option shows its reason. */
        close: () => options.forEach((option, i) => {
          const item = /** @type {Element} */ (option.closest("li"));
          option.disabled = true;
          find(item, ".why").innerHTML = answer.why[i];
          find(item, ".text").classList.toggle("right", answer.correct[i]);
        }),
        title: "The answer is marked.",
      };
    },
    pick: Shardbook.pick,
  };

  /** @param {HTMLElement} root an element with data-key, data-hash and data-answer */
  function question(root) {
    const name = root.dataset.key ?? "", hash = root.dataset.hash ?? "";
    const answer = keys.decode(root.dataset.answer ?? "", name);
    const form = /** @type {HTMLFormElement} */ (find(root, "form"));
    const feedback = /** @type {HTMLElement} */ (find(root, ".fb"));
    const state = /** @type {HTMLElement} */ (find(root, ".st"));
    const giveUp = /** @type {HTMLButtonElement} */ (find(root, "[data-give-up]"));
    const control = controls[answer.kind](root, answer);

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
      root.dispatchEvent(new Event("answered"));
    }

    /** After a right answer or giving up. */
    function close() {
      root.classList.add("closed");
      control.close();
      const computed = root.querySelector("[data-computed]");
      if (computed) computed.innerHTML = answer.computed;
    }

    function show() {
      say(control.title, [answer.explain], "gu");
      status("given up", "gu");
      close();
    }

    /** @param {boolean} remember */
    function check(remember) {
      const verdict = control.judge();
      control.read?.(verdict.state);
      if (verdict.state === "unread") {
        say(verdict.title, verdict.html, "un");
        return;
      }
      const right = verdict.state === "right";
      say(verdict.title, verdict.html, right ? "ok" : "no");
      status(right ? "right" : "not yet", right ? "ok" : "no");
      if (remember) progress.set(name, { hash, state: right ? "right" : "tried", answer: control.typed() });
      if (right) close();
    }

    function restore() {
      const entry = progress.get(name, hash);
      if (!entry) return;
      control.fill(entry.answer);
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
      else control.focus?.();
    });
    giveUp.addEventListener("click", () => {
      progress.set(name, { hash, state: "shown", answer: control.typed() });
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

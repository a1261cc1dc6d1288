// @ts-check
"use strict";
var Shardbook = Shardbook || {};

/**
 * A panel below a timeline, closed until it is asked for; and what panels compare steps with: a table of what they come to.
 * Times and memory are those of facts.js.
 */
Shardbook.panel = (function () {
  const { facts, scale } = Shardbook, { make } = Shardbook.select;
  /** What a step comes to. @type {[name: string, write: (value: any) => string, of: (model: Model) => any][]} */
  const SUMS = [
    ["Step time", scale.time, (model) => model.stepNs],
    ["Exposed communication", scale.time, (model) => facts.of(model).exposed],
    ["Bubble", scale.percent, (model) => facts.of(model).bubble],
    ["Peak memory", scale.bytes, (model) => facts.of(model).peak],
    ["Payload", scale.bytes, (model) => model.calls.reduce((sum, { bytes }) => sum + bytes, 0)],
    ["Calls", String, ({ calls }) => [...new Set(calls.map(({ op }) => op))].map((name) => `${calls.filter(({ op }) => op === name).length} ${name}`).join(", ")],
  ];

  /** @param {any} el @param {string} label @param {string} key @param {string} html what is in it; nothing of it is from outside */
  function panel(el, label, key, html) {
    const box = make("details", "", "tl-panel");
    box.innerHTML = `<summary>${label}</summary>${html}`;
    el.panels.append(box);
    el.commands.set(label, { label, key, run: () => {
      box.open = !box.open;
      box.firstChild.focus();
    } });
    return box;
  }

  /** Each beside how far it is from the first @param {"run" | "label"} name @param {Model[]} models @param {number} [columns] */
  function table(name, models, columns) {
    const found = make("table"), sums = SUMS.slice(0, columns);
    const row = (/** @type {string} */ tag, /** @type {string[]} */ cells) => found.insertRow().append(...cells.map((words, i) => make(i ? tag : "th", words)));
    row("th", [name, ...sums.map(([name]) => name)]);
    for (const model of models) {
      row("td", [model[name], ...sums.map(([, write, of]) => {
        const value = of(model), by = value - of(models[0]);
        return !value ? "–" : write(value) + (by ? ` (${by > 0 ? "+" : ""}${write(by).replace("%", "points")})` : "");
      })]);
    }
    return found;
  }

  return Object.assign(panel, { SUMS, table });
})();

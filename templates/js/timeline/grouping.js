// @ts-check
"use strict";
var Shardbook = Shardbook || {};

/** Which ranks are shown how: grouped, and folded to a strip. Where lanes then stand is layout.js's. */
Shardbook.timeline.parts.push({ name: "grouping", attach(el) {
  const { layout: { groups, hit }, commands } = Shardbook, { model } = el, numbers = model.ranks.map((/** @type {RankModel} */ r) => r.rank);
  const mine = () => numbers[el.place(el.state.selected)?.rank ?? 0];
  // What parts the ranks, but not each from each; once.
  const ways = ["stage", "node", ...Object.keys(model.ranks[0].coordinates)].filter((by) => (by !== "pp" || model.ranks[0].stage < 0) && groups(model, by).length % numbers.length > 1);
  el.addEventListener("trace-change", () => {
    const by = el.state.groupBy;
    if (!by || ways.includes(by)) return;
    el.update({ groupBy: "" }, false);
    el.notice(`Ranks cannot be grouped by “${by}”.`);
  });
  commands.offer(el, "group ranks", "g", () => el.state.groupBy, () => el.update({ groupBy: ways[ways.indexOf(el.state.groupBy) + 1] ?? "" }));
  commands.offer(el, "fold rank", "c", () => el.state.collapsed.includes(mine()), () => commands.flip(el, "collapsed", mine()));
  commands.offer(el, "fold others", "x", () => el.state.collapsed.length, () => el.update({ collapsed: el.state.collapsed.length ? [] : numbers.filter((/** @type {number} */ n) => n !== mine()) }));
  // A click on a rank's name folds it, and selects nothing.
  for (const type of ["pointerdown", "click"]) {
    el.canvas.addEventListener(type, (/** @type {MouseEvent} */ event) => {
      const { layout } = el.geometry(), y = event.offsetY, at = layout.above ? !hit(layout, y) && hit(layout, y + 14) : event.offsetX < layout.left && hit(layout, y);
      if (at) event.stopPropagation();
      if (at && type === "click") commands.flip(el, "collapsed", numbers[at.rank]);
    });
  }
} });

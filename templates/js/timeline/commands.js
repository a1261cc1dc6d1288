// @ts-check
"use strict";
var Shardbook = Shardbook || {};

/**
 * What a reader can do with a timeline, each said once: the toolbar, the keys and the list under `?` are made from
 * the element's commands. Here are the commands of moving and choosing; parts add theirs to element.commands.
 *
 * @typedef {{ label: string, key?: string, also?: string[], icon?: string, words?: string, run(event?: Event): void, pressed?(): boolean,
 *   enabled?(): boolean, menu?: boolean }} Command key and also: as KeyboardEvent.key has them, small letters; icon: a path in a
 *   16 px square, words: a button of text; neither: no button; with `menu` in the menu
 */
Shardbook.commands = (function () {
  const { scale, levels } = Shardbook;
  /** How keys that have no letter are written. @type {Record<string, string>} */
  const SHOWN = { arrowleft: "←", arrowright: "→", arrowup: "↑", arrowdown: "↓", escape: "Esc", home: "Home", end: "End", enter: "Enter" };

  /** @param {any} el */
  function core(el) {
    /** @param {number} factor @param {number} [at] ns */
    const zoom = (factor, at) => {
      const { from, to } = el.state, box = el.span(el.state.selected);
      const middle = box && box.to > from && box.from < to ? (Math.max(from, box.from) + Math.min(to, box.to)) / 2 : (from + to) / 2;
      el.look(...scale.zoomed(from, to, factor, at ?? middle, el.end));
    };
    /** @param {number} share */
    const pan = (share) => {
      const { from, to } = el.state, by = (to - from) * share;
      el.look(from + by, to + by);
    };
    const fit = () => {
      const box = el.span(el.state.selected), { from, to } = el.state, margin = box && (box.to - box.from) * 0.15;
      if (!box) return whole();
      const [a, b] = scale.within(box.from - margin, box.to + margin, el.end);
      if (Math.abs(a - from) + Math.abs(b - to) < (to - from) / 1000) whole();
      else el.look(a, b);
    };
    const whole = () => el.look(0, el.end);
    /** @param {number} by */
    const step = (by) => {
      const { selected, from, to } = el.state;
      let at = el.place(selected);
      if (!at) {
        const lane = el.lanes[0].phase, i = levels.find(lane, from);
        at = { rank: 0, lane: "phase", index: by > 0 ? Math.max(-1, i) : levels.find(lane, to) + 1 };
        if (by > 0 && i >= 0 && lane.end[i] > from) at.index = i - 1;
      } else {
        const i = el.drawn(at.rank, at.lane, at.index), [first, last] = i < 0 ? [0, -1] : el.block(at.rank, at.lane, i);
        at = { ...at, index: by > 0 ? last : first };
      }
      const index = at.index + by;
      if (index >= 0 && index < el.lanes[at.rank][at.lane].n) el.choose(el.chosen(at.rank, at.lane, index));
    };
    /** To the nearest event of the lane above or below. @param {number} by */
    const across = (by) => {
      const at = el.place(el.state.selected), { layout, from, to } = el.geometry();
      const rows = layout.ranks.flatMap((/** @type {RankBox} */ r) => r.lanes.filter((l) => !l.track).map((l) => ({ rank: r.index, lane: l.name })));
      const box = el.span(el.state.selected), t = box ? (Math.max(box.from, from) + Math.min(box.to, to)) / 2 : (from + to) / 2;
      let k = at ? rows.findIndex((/** @type {any} */ r) => r.rank === at.rank && r.lane === at.lane) : by > 0 ? -1 : rows.length;
      for (k += by; k >= 0 && k < rows.length; k += by) {
        const { rank, lane } = rows[k], index = nearest(el.lanes[rank][lane], t);
        if (index >= 0) return el.choose(el.chosen(rank, lane, index));
      }
    };
    /** @param {string} id @param {Command} command */
    const add = (id, command) => el.commands.set(id, command);
    add("zoom-in", { label: "Zoom in", key: "w", also: ["+", "="], icon: "M3 8h10M8 3v10", run: () => zoom(0.5) });
    add("zoom-out", { label: "Zoom out", key: "s", also: ["-"], icon: "M3 8h10", run: () => zoom(2) });
    add("whole", { label: "Show the whole step", key: "0", icon: "M2 3v10M14 3v10M4.5 8h7M6.5 6l-2 2 2 2M9.5 6l2 2-2 2", run: whole });
    add("left", { label: "Move left", key: "a", also: ["arrowleft"], run: () => pan(-0.2) });
    add("right", { label: "Move right", key: "d", also: ["arrowright"], run: () => pan(0.2) });
    add("start", { label: "To the begin of the step", key: "home", run: () => pan(-1e9) });
    add("finish", { label: "To the end of the step", key: "end", run: () => pan(1e9) });
    add("previous", { label: "Previous event on the lane", key: ",", icon: "M10 3L5 8l5 5", run: () => step(-1) });
    add("next", { label: "Next event on the lane", key: ".", icon: "M6 3l5 5-5 5", run: () => step(1) });
    add("up", { label: "Event on the lane above", key: "arrowup", run: () => across(-1) });
    add("down", { label: "Event on the lane below", key: "arrowdown", run: () => across(1) });
    add("fit", { label: "Fit the selection, or the whole step", key: "f", icon: "M2 5V2h3M11 2h3v3M14 11v3h-3M5 14H2v-3M6 8h4", run: fit });
    add("mark", { label: "Set a mark at the selection, or remove it", key: "m", icon: "M4 14V2h8l-2.5 3L12 8H4",
      run: () => {
        const box = el.span(el.state.selected), at = Math.round(box ? box.from : (el.state.from + el.state.to) / 2), { marks } = el.state;
        el.update({ marks: marks.includes(at) ? marks.filter((/** @type {number} */ m) => m !== at) : [...marks.slice(-1), at] });
      } });
    add("clear", { label: "Let go of the selection", key: "escape", run: () => el.update({ selected: null, hovered: null, area: null }) });
    add("help", { label: "What can be done here", key: "?", icon: "M6 6a2 2 0 1 1 2.7 1.9c-.5.2-.7.6-.7 1.1v.6M8 12v.1", run: () => help(el) });
  }

  /** The event of a lane nearest to an instant, −1 when it has none @param {Lane} lane @param {number} t */
  function nearest(lane, t) {
    let i = levels.find(lane, t);
    if (i < 0 || (lane.end[i] < t && i + 1 < lane.n && lane.start[i + 1] - t < t - lane.end[i])) i++;
    return i < lane.n ? i : -1;
  }

  /** @param {string} key */
  const shown = (key) => SHOWN[key] ?? key.toUpperCase();

  /** Which command a key press means @param {any} el @param {KeyboardEvent} event @returns {{ run(event?: Event): void } | undefined} */
  function of(el, event) {
    if (event.ctrlKey || event.metaKey || event.altKey) return undefined;
    const key = event.key.toLowerCase();
    if (el.keys.has(key)) return el.keys.get(key);
    for (const command of el.commands.values()) if (command.key === key || command.also?.includes(key)) return command;
    return undefined;
  }

  /** @param {string} path @returns {SVGElement} */
  function icon(path) {
    const svg = document.createElementNS("http://www.w3.org/2000/svg", "svg"), line = document.createElementNS(svg.namespaceURI, "path");
    svg.setAttribute("viewBox", "0 0 16 16");
    svg.setAttribute("aria-hidden", "true");
    line.setAttribute("d", path);
    svg.append(line);
    return /** @type {SVGElement} */ (svg);
  }

  /** A command of the menu @param {any} el @param {string} words @param {string} key @param {() => any} pressed @param {() => void} run */
  function offer(el, words, key, pressed, run) {
    el.commands.set(words, { label: words[0].toUpperCase() + words.slice(1), words, key, menu: true, pressed, run: () => {
      run();
      el.live.textContent = `${words}: ${pressed() ? "on" : "off"}`;
    } });
  }

  /** Put something on a list of the state, or take it off @param {any} el @param {string} field @param {string | number} item */
  const flip = (el, field, item) => el.update({ [field]: el.state[field].includes(item) ? el.state[field].filter((/** @type {any} */ i) => i !== item) : [...el.state[field], item] });

  /** The same as a command of the menu @param {any} el @param {string} words @param {string} key @param {string} field @param {string} item */
  const toggle = (el, words, key, field, item) => offer(el, words, key, () => el.state[field].includes(item), () => flip(el, field, item));

  /** Buttons for the commands that have an icon or words @param {any} el */
  function toolbar(el) {
    const menu = document.createElement("details");
    menu.className = "tl-menu";
    menu.append(Object.assign(document.createElement("summary"), { textContent: "Show" }), document.createElement("div"));
    menu.addEventListener("focusout", (event) => menu.contains(/** @type {Node | null} */ (event.relatedTarget)) || (menu.open = false));
    el.toolbar.before(menu);
    el.buttons = [];
    for (const [id, command] of el.commands) {
      if (!command.icon && !command.words) continue;
      const button = document.createElement("button");
      button.type = "button";
      button.className = command.icon ? "ib" : "tl-word";
      button.dataset.command = id;
      button.title = command.label + (command.key ? ` (${shown(command.key)})` : "");
      if (command.icon) button.setAttribute("aria-label", command.label);
      button.append(command.icon ? icon(command.icon) : command.words);
      button.addEventListener("click", (event) => command.run(event));
      el.buttons.push(button);
      (command.menu ? menu.children[1] : command.icon ? el.toolbar : el.modes).append(button);
    }
    refresh(el);
  }

  /** Show which commands are on and which can be given now @param {any} el */
  function refresh(el) {
    for (const button of el.buttons) {
      const command = el.commands.get(button.dataset.command);
      if (command?.pressed) button.setAttribute("aria-pressed", String(Boolean(command.pressed())));
      if (command?.enabled) button.disabled = !command.enabled();
    }
  }

  /** @param {any} el */
  function help(el) {
    const dialog = document.createElement("dialog"), list = document.createElement("dl"), title = document.createElement("h2"), close = document.createElement("button");
    dialog.className = "tl-help";
    dialog.setAttribute("aria-labelledby", "tl-help-title");
    title.id = "tl-help-title";
    title.textContent = "What can be done here";
    const line = (/** @type {string[]} */ keys, /** @type {string} */ words) => {
      const dt = document.createElement("dt"), dd = document.createElement("dd");
      keys.forEach((k) => dt.append(Object.assign(document.createElement("kbd"), { textContent: k })));
      dd.textContent = words;
      list.append(dt, dd);
    };
    for (const command of el.commands.values()) if (command.key) line([command.key, ...(command.also ?? [])].map(shown), command.label);
    for (const [key, { label }] of el.keys) line([shown(key)], label);
    for (const [hand, words] of [["drag", "move"], ["drag the axis", "zoom to what is dragged over"], ["click a rank's name", "fold it, or unfold it"], ["Shift + drag, Shift + arrows", "measure an area"], ["Ctrl + wheel, pinch", "zoom"], ["Shift + wheel", "move"], ["double click", "zoom on an event"]]) line([hand], words);
    close.className = "btn";
    close.textContent = "Close";
    close.addEventListener("click", () => dialog.close());
    dialog.addEventListener("close", () => {
      dialog.remove();
      el.stage.focus();
    });
    dialog.append(title, list, close);
    el.append(dialog);
    dialog.showModal();
  }

  return { core, of, offer, flip, toggle, toolbar, refresh, nearest, icon };
})();

// @ts-check
"use strict";
var Shardbook = Shardbook || {};

/**
 * The panel that asks what if: sliders of costs, and how each operation is called. A control stands for one item of the text that
 * is state.whatIf; the element lays the step out anew. What a what-if does is replay.js's.
 */
(function () {
  const { timeline, whatif, scale, panel, replay } = Shardbook;

  timeline.parts.push({
    name: "what-if",
    attach(el) {
      if (!el.data) return;
      const { ranks, phases, layers, ops } = replay.known(el.data);
      /** @param {string} name an item's @param {string} control @param {string} [words] */
      const row = (name, control, words = name) => `<label>${words.replace(/_|(?<=\D)(?=\d)/g, " ")}<${control} name=${name}>`;
      const box = panel(el, "What if …", "v", "<div tabindex=0></div><fieldset>" + [
        ...["latency", "bandwidth", ...ranks.map((r) => "rank" + r), ...phases, ...layers.map((l) => "layer" + l)].map((name, i) => row(name, "input type=range min=-2 max=2 step=.1", name + (i > 1 ? " time" : "")) + "<span></span>"),
        row("free", "input type=checkbox", "communication free"),
        row("balance", "input type=checkbox", "work shared evenly"),
        ...ops.filter((op) => /^\w+$/.test(op)).map((op) => `${row(op, "select")}<option value="">as recorded<option value=free=${op}>free<option value=async=${op}>asynchronous<option value=block=${op}>blocking</select>`),
      ].join("</label>") + "</label></fieldset><output></output><button class='btn q'>Reset</button>");
      const controls = [...box.querySelectorAll("[name]")], [, place, , said, reset] = box.children;
      let frame = 0;
      const show = () => {
        const { whatIf } = el.state;
        for (const c of controls) {
          c.checked = c.value = c.item = RegExp(`,(${c.name}(=\\d+)?|\\w+=${c.name}),`).exec(`,${whatIf},`)?.[1] ?? "";
          if (!c.step) continue;
          const factor = (c.item.split("=")[1] ?? 1000) / 1000;
          c.value = Math.log2(factor || 0.1);
          c.ariaValueText = c.nextSibling.textContent = scale.number(factor, 2) + "×";
        }
        place.replaceChildren(panel.table("label", [...new Set([el.of("isolated"), el.of("recorded"), el.model])], 3));
        said.textContent = "";
        el.live.textContent = `Step time ${scale.time(el.model.stepNs)}`;
      };
      box.ontoggle = show;
      box.oninput = (/** @type {any} */ { target: c }) => {
        c.item = c.step ? `${c.name}=${Math.round(1000 * 2 ** c.value)}` : c.options ? c.value : c.checked ? c.name : "";
        frame ||= requestAnimationFrame(() => {
          const { whatIf } = el.state;
          frame = 0;
          try {
            el.update({ whatIf: whatif.print(whatif.parse(controls.map((c) => c.item).join())) });
          } catch (/** @type {any} */ error) {
            el.update({ whatIf });
            said.textContent = "It would hang. " + error.message;
          }
        });
      };
      reset.onclick = () => el.update({ whatIf: "" });
      el.addEventListener("trace-change", (/** @type {CustomEvent} */ { detail }) => {
        if (!detail.includes("whatIf")) return;
        if (el.state.whatIf) box.open = true;
        show();
      });
    },
  });
})();

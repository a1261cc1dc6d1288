// @ts-check
"use strict";
var Shardbook = Shardbook || {};

/**
 * Time to pixels and to words: ticks, zooming and panning of a stretch of time, and how durations, bytes and
 * rates are written. Times are ns. It knows no element and draws nothing.
 */
Shardbook.scale = (function () {
  /** Nobody sees more of a recording whose times are whole nanoseconds. */
  const LEAST = 100;
  const THIN = "\u2009";

  /** The smallest of 1, 2, 5, 10, 20, … that is no less than `least` @param {number} least */
  function niceStep(least) {
    const power = 10 ** Math.max(0, Math.floor(Math.log10(Math.max(least, 1))));
    return power * ([1, 2, 5, 10].find((k) => power * k >= least) ?? 10);
  }

  /**
   * Round instants, at least `least` px apart.
   * @param {number} from @param {number} to @param {number} width px @param {number} least px
   */
  function ticks(from, to, width, least) {
    const step = niceStep(((to - from) / width) * least), at = [];
    for (let k = Math.ceil(from / step); k * step <= to; k++) at.push(k * step);
    return { step, at };
  }

  /**
   * A tick in the unit of its step: ms down to steps of 1 µs, then µs; s from steps of 1 s.
   * @param {number} ns @param {number} step @param {boolean} unit whether to write the unit
   */
  function tick(ns, step, unit) {
    const [size, name] = step >= 1e9 ? [1e9, "s"] : step >= 1e3 ? [1e6, "ms"] : [1e3, "µs"];
    const digits = [0, 1, 2, 3].find((n) => step % (size / 10 ** n) === 0) ?? 3;
    return number(ns / size, ns ? digits : 0) + (unit ? THIN + name : "");
  }

  /** A number with thin spaces and a true minus. @param {number} value @param {number} digits */
  function number(value, digits) {
    const [whole, part] = Math.abs(value).toFixed(digits).split(".");
    const sign = value < 0 && Number(value.toFixed(digits)) !== 0 ? "−" : "";
    return sign + whole.replace(/\B(?=(\d{3})+$)/g, THIN) + (part ? "." + part : "");
  }

  /** Three digits and a unit. @param {number} value @param {[number, string][]} units largest first */
  function measure(value, units) {
    if (!value) return "0";
    const [size, name] = units.find(([s]) => Math.abs(value) >= s) ?? units[units.length - 1];
    const scaled = value / size, whole = units[units.length - 1][0] === size;
    return number(scaled, whole || Math.abs(scaled) >= 100 ? 0 : Math.abs(scaled) >= 10 ? 1 : 2) + THIN + name;
  }

  /** @param {number} ns */
  const time = (ns) => measure(ns, [[1e9, "s"], [1e6, "ms"], [1e3, "µs"], [1, "ns"]]);
  /** @param {number} count */
  const bytes = (count) => measure(count, [[1e9, "GB"], [1e6, "MB"], [1e3, "kB"], [1, "B"]]);
  /** @param {number} count bytes @param {number} ns */
  const rate = (count, ns) => measure((count * 8e9) / ns, [[1e9, "Gbit/s"], [1e6, "Mbit/s"], [1e3, "kbit/s"], [1, "bit/s"]]);
  /** @param {number} part */
  const percent = (part) => number(part * 100, 1) + THIN + "%";

  /**
   * A stretch of time kept within [0, end] and no shorter than can be told apart.
   * @param {number} from @param {number} to @param {number} end @returns {[number, number]}
   */
  function within(from, to, end) {
    const length = Math.min(Math.max(to - from, LEAST), end);
    const start = Math.min(Math.max(from, 0), end - length);
    return [start, start + length];
  }

  /** `factor` times as long, with the instant `at` staying where it is @param {number} from @param {number} to @param {number} factor @param {number} at @param {number} end */
  function zoomed(from, to, factor, at, end) {
    const f = Math.min(Math.max(factor, LEAST / (to - from)), end / (to - from));
    return within(at - (at - from) * f, at + (to - at) * f, end);
  }

  return { LEAST, niceStep, ticks, tick, number, time, bytes, rate, percent, within, zoomed };
})();

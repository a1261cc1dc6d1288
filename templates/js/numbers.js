// @ts-check
"use strict";
var Shardbook = Shardbook || {};

/**
 * Numbers as people type them: "26.4", "26,4 %", "1 234.5", "1,234", "0.012 s", "3/11", "6e-3", "−2".
 * Free of the DOM.
 */
Shardbook.numbers = (function () {
  /** Factor of each unit to the base of its family; only units of one family convert. @type {Record<string, number>[]} */
  const FAMILIES = [
    { "": 1, "%": 0.01, "percent": 0.01, "per cent": 0.01, "×": 1, "x": 1 },
    { ns: 1e-9, "µs": 1e-6, us: 1e-6, ms: 1e-3, s: 1, min: 60 },
    { B: 1, kB: 1e3, MB: 1e6, GB: 1e9, KiB: 1024, MiB: 1024 ** 2, GiB: 1024 ** 3 },
    { "bit/s": 1, "kbit/s": 1e3, "Mbit/s": 1e6, "Gbit/s": 1e9, "MB/s": 8e6, "GB/s": 8e9 },
  ];
  /** Other spellings of a unit, in lower case. @type {Record<string, string>} */
  const SPELLINGS = {
    "μs": "µs", sec: "s", second: "s", seconds: "s", millisecond: "ms", milliseconds: "ms", bytes: "B",
    byte: "B", b: "B", kb: "kB", mb: "MB", gb: "GB", kib: "KiB", mib: "MiB", gib: "GiB", percent: "%", "per cent": "%",
  };

  /** @param {string} unit @returns {string} */
  function normalUnit(unit) {
    const text = unit.trim().replace(/\s+/g, " ");
    if (FAMILIES.some((family) => text in family)) return SPELLINGS[text] ?? text;
    return SPELLINGS[text.toLowerCase()] ?? text;
  }

  /**
   * How many of unit `to` one of unit `from` is; null when they do not convert.
   * @param {string} from @param {string} to @returns {number | null}
   */
  function factor(from, to) {
    const a = normalUnit(from), b = normalUnit(to);
    if (a === b || a.toLowerCase() === b.toLowerCase()) return 1;
    for (const family of FAMILIES) {
      if (a in family && b in family) return family[a] / family[b];
    }
    return null;
  }

  /**
   * The readings of a numeral, the likeliest first. One comma before three digits is a decimal comma to
   * some and a separator of thousands to others, so it has two.
   * @param {string} text digits, separators and exponent only @returns {number[]}
   */
  function readings(text) {
    const bare = text.replace(/[\s\u00a0\u2009\u202f'’_]/g, "").replace(/[−–]/g, "-");
    const parts = /^([+-]?)([\d.,]*\d[\d.,]*)(?:(?:e|[×x*]10\^?)([+-]?\d+))?$/i.exec(bare);
    if (!parts) return [];
    const [, sign, digits, exponent] = parts;
    const dots = digits.split(".").length - 1, commas = digits.split(",").length - 1;
    /** @type {string[]} */
    let forms;
    if (dots && commas) {
      const decimal = digits.lastIndexOf(".") > digits.lastIndexOf(",") ? "." : ",";
      if ((decimal === "." ? dots : commas) > 1) return [];
      forms = [digits.split(decimal === "." ? "," : ".").join("").replace(",", ".")];
    } else if (dots > 1 || commas > 1) {
      if (!/^\d{1,3}([.,]\d{3})+$/.test(digits)) return [];
      forms = [digits.replace(/[.,]/g, "")];
    } else if (commas === 1) {
      forms = [digits.replace(",", ".")];
      if (/^[1-9]\d{0,2},\d{3}$/.test(digits)) forms.push(digits.replace(",", ""));
    } else {
      forms = [digits];
    }
    return forms.map((f) => Number(sign + f + (exponent ? "e" + exponent : ""))).filter(Number.isFinite);
  }

  /**
   * Reads an answer in the question's unit.
   * @param {string} text what was typed @param {string} unit the question's unit, "" for a plain number
   * @returns {{ values: number[], problem: string, bare: boolean }} values empty: then `problem` says why.
   *   `bare`: no unit was typed
   */
  function parse(text, unit) {
    const typed = text.trim();
    if (!typed) return { values: [], problem: "Type a number first.", bare: true };
    const split = /^([+\-−–]?[\d\s\u00a0\u2009\u202f'’_.,]*\d(?:\s*(?:e|[×x*]\s*10\^?)\s*[+\-−–]?\d+)?)(?:\s*\/\s*(\d[\d\s.,]*))?\s*(\D.*)?$/i.exec(typed);
    const values = split ? readings(split[1].trim()) : [];
    if (!split || !values.length) return { values: [], problem: "That is not a number we can read. Write it like 26.4.", bare: true };
    const below = split[2] ? readings(split[2].trim())[0] : 1;
    const suffix = (split[3] ?? "").trim();
    let scale = 1;
    if (suffix) {
      const found = factor(suffix, unit);
      if (found === null) {
        const wanted = unit ? `The answer is asked for in ${unit}.` : "The answer is a plain number.";
        return { values: [], problem: `“${suffix}” does not fit here. ${wanted}`, bare: false };
      }
      scale = found;
    } else if (split[2]) {
      scale = factor("", unit) ?? 1; // 3/11 is a fraction whatever the unit of the answer
    }
    if (!below) return { values: [], problem: "Nothing can be divided by zero.", bare: true };
    return { values: values.map((v) => (v / below) * scale), problem: "", bare: !suffix && !split[2] };
  }

  return { parse, factor, readings };
})();

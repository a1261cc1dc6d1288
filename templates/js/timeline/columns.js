// @ts-check
"use strict";
var Shardbook = Shardbook || {};

/**
 * Reads what generator/publish/columnar.py writes: base64 of gzip of a head in JSON and columns of integers as
 * byte planes. Knows no meaning of any column, and no page: the texts come in by `Shardbook.register`, which the
 * script with a run's data calls, whoever loads it.
 */
Shardbook.columns = (function () {
  const FORMAT = 1;
  const DAMAGED = "The data of this timeline are damaged: load the page again.";
  /** Texts of runs by id, and what became of them. @type {Map<string, string>} */
  const texts = new Map();
  /** @type {Map<string, Promise<RunData>>} */
  const decoded = new Map();

  /** Hands over the data of a run. @param {string} id @param {string} text */
  function register(id, text) {
    if (texts.get(id) !== text) decoded.delete(id);
    texts.set(id, text);
  }

  /** @param {string} id @returns {boolean} whether the data of a run are there */
  function has(id) {
    return texts.has(id);
  }

  /** The data of a registered run, decoded once. @param {string} id @returns {Promise<RunData>} */
  function of(id) {
    const text = texts.get(id);
    let found = decoded.get(id);
    if (!found) {
      found = text === undefined ? Promise.reject(new Error(DAMAGED)) : decode(text);
      decoded.set(id, found);
    }
    return found;
  }

  /** @param {string} text @returns {Promise<RunData>} rejected with an Error of one line that can be shown */
  async function decode(text) {
    if (typeof DecompressionStream === "undefined") {
      throw new Error("This browser cannot unpack the data of this timeline: use a newer one.");
    }
    try {
      const packed = Uint8Array.from(atob(text), (c) => c.charCodeAt(0));
      const stream = new Blob([packed]).stream().pipeThrough(new DecompressionStream("gzip"));
      return unpack(new Uint8Array(await new Response(stream).arrayBuffer()));
    } catch {
      throw new Error(DAMAGED);
    }
  }

  /** @param {Uint8Array} bytes @returns {RunData} */
  function unpack(bytes) {
    const size = new DataView(bytes.buffer).getUint32(0, true);
    const { columns: listed, ...head } = JSON.parse(new TextDecoder().decode(bytes.subarray(4, 4 + size)));
    if (head.format !== FORMAT) throw new Error(DAMAGED);
    /** @type {Record<string, Int32Array | Float64Array>} */
    const columns = {};
    let at = 4 + size;
    for (const [name, coding, width, count] of listed) {
      columns[name] = column(bytes.subarray(at, (at += width * count)), coding, width, count);
    }
    if (at !== bytes.length) throw new Error(DAMAGED);
    return { ...head, columns };
  }

  /** @param {Uint8Array} planes @param {number} coding bit 0: differences, bit 1: doubles @param {number} width @param {number} count */
  function column(planes, coding, width, count) {
    const out = coding & 2 ? new Float64Array(count) : new Int32Array(count);
    let before = 0;
    for (let i = 0; i < count; i++) {
      let folded = 0;
      for (let k = width - 1; k >= 0; k--) folded = folded * 256 + planes[k * count + i];
      const value = folded % 2 ? -(folded + 1) / 2 : folded / 2;
      out[i] = before = coding & 1 ? before + value : value;
    }
    return out;
  }

  return { register, has, of, decode };
})();
Shardbook.register = Shardbook.columns.register;

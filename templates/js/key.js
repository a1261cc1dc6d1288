// @ts-check
"use strict";
var Shardbook = Shardbook || {};

/**
 * Reads the answer key of a question (written by generator/publish/keys.py): base64 of JSON that is
 * XOR-ed with the question's key. Hidden from a glance, not secret. Free of the DOM.
 */
Shardbook.key = (function () {
  /** @param {string} text @param {string} key @returns {any} */
  function decode(text, key) {
    const mixed = atob(text);
    const by = new TextEncoder().encode(key);
    const bytes = Uint8Array.from(mixed, (c, i) => c.charCodeAt(0) ^ by[i % by.length]);
    return JSON.parse(new TextDecoder("utf-8", { fatal: true }).decode(bytes));
  }

  return { decode };
})();

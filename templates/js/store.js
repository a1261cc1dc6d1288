// @ts-check
"use strict";
var Shardbook = Shardbook || {};

/**
 * What this browser remembers, under one prefix. Where storage is denied (private modes, file:// in
 * some browsers) the page works all the same and forgets when it is closed.
 */
Shardbook.store = (function () {
  const PREFIX = "shardbook:";
  /** @type {Map<string, string>} */
  const memory = new Map();

  /** @returns {Storage | null} */
  function storage() {
    try {
      const probe = PREFIX + "probe";
      localStorage.setItem(probe, "1");
      localStorage.removeItem(probe);
      return localStorage;
    } catch (_error) {
      return null;
    }
  }
  const disk = storage();

  /** @param {string} name @returns {string | null} */
  function get(name) {
    if (!disk) return memory.get(PREFIX + name) ?? null;
    return disk.getItem(PREFIX + name);
  }

  /** @param {string} name @param {string} value */
  function set(name, value) {
    memory.set(PREFIX + name, value);
    try {
      if (disk) disk.setItem(PREFIX + name, value);
    } catch (_error) {
      // The disk is full: kept in memory until the page is closed.
    }
  }

  /** @param {string} name */
  function remove(name) {
    memory.delete(PREFIX + name);
    if (disk) disk.removeItem(PREFIX + name);
  }

  /** Names below the prefix, sorted. @returns {string[]} */
  function names() {
    const all = disk ? Array.from({ length: disk.length }, (_, i) => String(disk.key(i))) : [...memory.keys()];
    return all.filter((n) => n.startsWith(PREFIX)).map((n) => n.slice(PREFIX.length)).sort();
  }

  return { get, set, remove, names, persistent: disk !== null };
})();

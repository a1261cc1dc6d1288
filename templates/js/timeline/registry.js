// @ts-check
"use strict";
var Shardbook = Shardbook || {};

/**
 * What plugs into a timeline. Each list is read when an element draws or starts, so a part is one file that
 * pushes into them. Parts do not call each other: they talk through the element's state.
 */
Shardbook.timeline = {
  /** Called once for each element, after its data are there. @type {{ name: string, attach(element: any): void }[]} */
  parts: [],
  /** Drawn over the lanes in order; those with `under` between the grid and the lanes. @type {Overlay[]} */
  overlays: [],
  /** Rows below a rank's lanes, by the name that state.tracks uses. @type {Record<string, Track>} */
  tracks: {},
  /** What a track, or all that are shown, say of a rank at an instant, ns @type {(element: any, rank: number, t: number, track?: string) => string[][]} */
  values: () => [],
  /**
   * Whether a span is among those that state.filters ask for; the others are drawn faint. Null: no part
   * knows filters. @type {null | ((model: Model, rank: number, lane: string, index: number, filters: any) => boolean)}
   */
  filter: null,
};

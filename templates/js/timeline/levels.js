// @ts-check
"use strict";
var Shardbook = Shardbook || {};

/**
 * A lane seen from any distance: for each pixel column the exact share of its time that is busy, from
 * cumulative busy time; which span it shows; and, where many spans fall into one column, the class that takes
 * most of its time, from levels of time buckets. Levels made of neighbouring pairs would paint over gaps;
 * buckets of time cannot. It knows classes (small numbers), not colours.
 *
 * @typedef {{ n: number, start: Float64Array, end: Float64Array, cls: Uint8Array, span: Int32Array | null,
 *   busy: Float64Array, index: Int32Array, per: number, top: Uint8Array[], bucket: number,
 *   same: (a: number, b: number) => boolean }} Lane start and end without the spans that are ground; `span`
 *   gives each one's index in the model's Spans, null where none is left out; busy: ns before each
 * @typedef {{ share: Float64Array, owner: Int32Array, cls: Uint8Array, alpha: Uint8Array }} Strip one entry a
 *   column; owner: index in the lane, −1 ground, −2 several spans; alpha 0 is ground
 */
Shardbook.levels = (function () {
  const GROUND = 255;
  /** Float noise, not time: ns, and a share of a column. */
  const NOISE_NS = 0.01, NOISE = 1e-6;
  /** What little is there stays visible: the weakest mark, of 255. */
  const FAINTEST = 76;
  /** How many events the columns of all strips have looked at: what a test bounds. */
  const counter = { touched: 0 };

  /**
   * @param {Spans} spans @param {(i: number) => number} classOf 255: ground @param {number} until ns
   * @param {(a: number, b: number) => boolean} same whether two spans are one block @returns {Lane}
   */
  function build(spans, classOf, until, same) {
    let n = 0;
    const all = new Uint8Array(spans.n);
    for (let i = 0; i < spans.n; i++) if ((all[i] = classOf(i)) !== GROUND) n++;
    let { start, end } = spans, cls = all, span = null;
    if (n < spans.n) {
      start = new Float64Array(n);
      end = new Float64Array(n);
      cls = new Uint8Array(n);
      span = new Int32Array(n);
      for (let i = 0, k = 0; i < spans.n; i++) {
        if (all[i] === GROUND) continue;
        start[k] = spans.start[i];
        end[k] = spans.end[i];
        cls[k] = all[i];
        span[k++] = i;
      }
    }
    const busy = new Float64Array(n + 1);
    for (let i = 0; i < n; i++) busy[i + 1] = busy[i] + end[i] - start[i];
    const buckets = Math.max(1, n), per = buckets / Math.max(1, until);
    // index[b]: the last event that starts in a bucket before b.
    const index = new Int32Array(buckets + 1);
    for (let i = 0; i < n; i++) index[bucketOf(start[i], per, buckets) + 1]++;
    for (let b = 0, seen = -1; b <= buckets; b++) index[b] = seen += index[b];
    const bucket = Math.max(1, until) / Math.max(1, n >> 2);
    const top = levels(start, end, cls, n, Math.max(1, n >> 2), bucket);
    const named = span;
    return { n, start, end, cls, span, busy, index, per, top, bucket,
      same: named ? (a, b) => same(named[a], named[b]) : same };
  }

  /** @param {number} t @param {number} per @param {number} buckets */
  const bucketOf = (t, per, buckets) => Math.min(buckets - 1, Math.max(0, Math.floor(t * per)));

  /**
   * The class with most time in every bucket, then in every two, four, … of them.
   * @param {Float64Array} start @param {Float64Array} end @param {Uint8Array} cls @param {number} n
   * @param {number} buckets @param {number} width ns @returns {Uint8Array[]}
   */
  function levels(start, end, cls, n, buckets, width) {
    const slot = new Uint8Array(256), classes = [];
    for (let i = 0; i < n; i++) if (!slot[cls[i]]) slot[cls[i]] = classes.push(cls[i]);
    const k = Math.max(1, classes.length);
    let sums = new Float64Array(buckets * k);
    for (let i = 0; i < n; i++) {
      const s = slot[cls[i]] - 1;
      for (let b = Math.min(buckets - 1, Math.floor(start[i] / width)); b < buckets; b++) {
        const inside = Math.min(end[i], (b + 1) * width) - Math.max(start[i], b * width);
        if (inside > 0) sums[b * k + s] += inside;
        if (end[i] <= (b + 1) * width) break;
      }
    }
    const found = [];
    for (;;) {
      const most = new Uint8Array(buckets);
      for (let b = 0; b < buckets; b++) {
        let best = 0;
        for (let s = 1; s < k; s++) if (sums[b * k + s] > sums[b * k + best]) best = s;
        most[b] = sums[b * k + best] > 0 ? classes[best] : GROUND;
      }
      found.push(most);
      if (buckets === 1) return found;
      const half = (buckets + 1) >> 1, next = new Float64Array(half * k);
      for (let j = 0; j < buckets * k; j++) next[(Math.floor(j / k) >> 1) * k + (j % k)] += sums[j];
      sums = next;
      buckets = half;
    }
  }

  /** The last event that starts before `t`, −1 when there is none @param {Lane} lane @param {number} t */
  function find(lane, t) {
    if (!lane.n) return -1;
    const b = bucketOf(t, lane.per, lane.index.length - 1);
    let low = lane.index[b], high = lane.index[b + 1], touched = 0;
    while (low < high) {
      const middle = (low + high + 1) >> 1;
      touched++;
      if (lane.start[middle] < t) low = middle;
      else high = middle - 1;
    }
    counter.touched += touched;
    return low;
  }

  /** Busy ns before `t`; `i` is the last event that starts earlier @param {Lane} lane @param {number} t @param {number} i */
  const before = ({ busy, start }, t, i) => (i < 0 ? 0 : busy[i] + Math.min(t - start[i], busy[i + 1] - busy[i]));

  /** Busy ns of a window @param {Lane} lane @param {number} from @param {number} to */
  const busyIn = (lane, from, to) => before(lane, to, find(lane, to)) - before(lane, from, find(lane, from));

  /**
   * The pieces that are one block with an event: of the same identity, and apart by less than a tenth of what two of
   * them take. `skip` says which events between them do not count. @param {Lane} lane @param {number} i
   * @param {(i: number) => boolean} [skip] @returns {[number, number]} the first and the last
   */
  function blockOf(lane, i, skip) {
    const { start, end, n } = lane, ends = /** @type {[number, number]} */ ([i, i]);
    for (const [k, by] of [[0, -1], [1, 1]]) {
      for (let at = i; ; ) {
        let next = at + by;
        while (next >= 0 && next < n && skip?.(next)) next += by;
        if (next < 0 || next >= n || !lane.same(at, next)) break;
        const gap = by > 0 ? start[next] - end[at] : start[at] - end[next];
        if (gap * 10 > end[next] - start[next] + end[at] - start[at]) break;
        ends[k] = at = next;
      }
    }
    return ends;
  }

  /** @param {number} width @returns {Strip} */
  const strip = (width) => ({
    share: new Float64Array(width), owner: new Int32Array(width), cls: new Uint8Array(width), alpha: new Uint8Array(width),
  });

  /**
   * Fill a strip with what a lane shows over [from, to). Edges of events of 2 columns or more are rounded to
   * the column; narrower ones show as strong as their columns are busy; one that stands alone is painted
   * in full. Blocks that touch are parted by `part` columns of ground.
   * @param {Lane} lane @param {number} from @param {number} to @param {number} width columns @param {Strip} into
   * @param {number} part @param {number} [bare] a class without its lowest two bits: what has it parts no block where it is 3
   *   columns or less
   */
  function fill(lane, from, to, width, into, part, bare = -1) {
    const { start, end, cls, n, index, per } = lane, { share, owner, alpha, cls: shown } = into, dt = (to - from) / width;
    const last = index.length - 2, tall = 2 * dt, few = 3.5 * dt;
    const level = Math.min(lane.top.length - 1, Math.max(0, Math.floor(Math.log2(dt / lane.bucket)))), wide = 1 / (lane.bucket * 2 ** level);
    let i = find(lane, from), first = 0, touched = 0, t0 = from, block = -1, edge = 0, done = 0, known = -1;
    const near = find(lane, to) - i < 3 * width, top = lane.top[level], coarse = dt * wide >= 1;
    for (let x = 0; x < width; x++) {
      const t1 = x + 1 === width ? to : from + (x + 1) * dt;
      let j = i, own = -1, strong = 0, some = 0, best = -1, most = 0, sliver = false;
      touched++;
      if (i + 1 < n && start[i + 1] < t1) {
        // Of few one after the other; of many as find() does, in place.
        let low = i + 1, high = low + 1;
        if (near) for (; high < n && high < i + 6 && start[high] < t1; high++) low = high;
        touched += low - i;
        if (!near || high === i + 6) {
          const b = t1 * per < last ? (t1 * per) | 0 : last;
          if (index[b] > low) low = index[b];
          for (high = index[b + 1]; low < high; touched++) {
            const middle = (low + high + 1) >> 1;
            if (start[middle] < t1) low = middle;
            else high = middle - 1;
          }
        }
        j = low;
      }
      if (j - i < 4) {
        for (let e = i >= 0 && end[i] > t0 ? i : i + 1; e <= j; e++) {
          const stop = end[e], inside = (stop < t1 ? stop : t1) - (start[e] > t0 ? start[e] : t0);
          some += inside;
          if (inside > most || best < 0) {
            most = inside;
            best = e;
          }
          if (stop - start[e] < tall) sliver = true;
        }
        touched += near ? 1 : 1 + j - i;
      } else {
        // Of many, only the begins and the busy time before them: what is far apart in memory takes long.
        const now = before(lane, t1, j);
        some = now - (known === x ? done : before(lane, t0, i));
        done = now;
        known = x + 1;
        touched += 2;
      }
      const part01 = some > NOISE_NS ? (some < dt ? some / dt : 1) : 0;
      share[x] = part01;
      if (best >= 0 && end[best] - start[best] >= tall) {
        // A block: its edges are where the middle of a column is its own, or where it has most of what is busy.
        const middle = t0 + dt / 2;
        if (most >= dt / 2 || (start[best] <= middle && end[best] > middle)) {
          own = best;
          strong = 255;
        } else if (sliver) {
          own = -2;
          shown[x] = cls[best];
          strong = strength(part01);
        }
      } else if (j > i || part01) {
        own = best >= 0 && j - i < 2 ? best : -2;
        let found = best < 0 && coarse ? top[Math.min(top.length - 1, ((t0 + dt / 2) * wide) | 0)] : GROUND;
        if (found === GROUND) found = cls[best < 0 ? longest(lane, j) : best];
        shown[x] = found;
        strong = strength(part01);
      }
      if (own >= 0) shown[x] = cls[own];
      owner[x] = own;
      alpha[x] = strong;
      if (!strong) {
        if (x && alpha[x - 1]) alone(alpha, share, first, x);
        block = -1;
      } else if (!x || !alpha[x - 1]) first = x;
      if (own >= 0 && strong === 255 && !(shown[x] >> 2 === bare && end[own] - start[own] < few)) {
        // Blocks that touch are parted, at the end of the first; also where all that lies between is bare.
        if (block >= 0 && own !== block && x - edge <= part + 1 && end[block] - start[block] >= (part + 2) * dt && !lane.same(block, own)) {
          for (let p = 1; p <= part && (owner[x - p] === block || owner[x - p] === -2 || shown[x - p] >> 2 === bare); p++) alpha[x - p] = 0;
        }
        block = own;
        edge = x;
      }
      i = j;
      t0 = t1;
      // While nothing begins or ends, columns are like this one.
      if (own === -2) continue;
      const on = i >= 0 && end[i] > t1;
      if (on ? own === i && strong === 255 : own === -1) {
        const next = i + 1 < n ? start[i + 1] : to, stop = Math.min(width - 1, Math.floor(((on && end[i] < next ? end[i] : next) - from) / dt));
        if (stop > x + 6) {
          share.fill(on ? 1 : 0, x + 1, stop);
          owner.fill(own, x + 1, stop);
          alpha.fill(strong, x + 1, stop);
          if (on) shown.fill(shown[x], x + 1, stop);
          x = stop - 1;
          if (on) edge = x;
          t0 = from + stop * dt;
        }
      }
    }
    if (width && alpha[width - 1]) alone(alpha, share, first, width);
    counter.touched += touched;
  }

  /** @param {number} busy */
  const strength = (busy) => (busy > 1 - NOISE ? 255 : (FAINTEST + (255 - FAINTEST) * busy + 0.5) | 0);

  /** A lone mark of a column or two is painted in full where it is most. @param {Uint8Array} alpha @param {Float64Array} share @param {number} first @param {number} end */
  function alone(alpha, share, first, end) {
    if (end - first > 2) return;
    alpha[end - first === 2 && share[first + 1] > share[first] ? first + 1 : first] = 255;
  }

  /** The longest of the last few events up to `j`, where columns are narrower than any level's buckets. @param {Lane} lane @param {number} j */
  function longest({ start, end }, j) {
    let best = j;
    for (let e = j - 3; e < j; e++) if (end[e] - start[e] > end[best] - start[best]) best = e;
    return best;
  }

  return { GROUND, counter, build, find, busyIn, blockOf, strip, fill };
})();

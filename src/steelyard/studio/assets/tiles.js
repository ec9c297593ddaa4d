// Cache of the tiles of a log's pyramid. Tile (z, k) is part k of 2^z parts of the time.
(function () {
  "use strict";
  var BUCKETS = 512;   // a tile has one to two times this number, or every sample of its part
  var MOST_HELD = 160;
  var AT_ONCE = 4;     // parallel requests; a browser opens six connections to a server

  // The address `source` with further query parameters.
  Steelyard.withQuery = function (source, more) { return source + (source.indexOf("?") < 0 ? "?" : "&") + new URLSearchParams(more); };

  // The answer of the server (pyramid.py, Stretch.to_bytes) as views into one buffer.
  Steelyard.readTile = function (buffer) {
    var length = new DataView(buffer).getUint32(0, true);
    var head = JSON.parse(new TextDecoder().decode(new Uint8Array(buffer, 4, length)));
    var n = head.count, raw = head.samples === 1, at = 4 + length;
    function next() { var x = new Float32Array(buffer, at, n); at += 4 * n; return x; }
    var tile = { count: n, samples: head.samples, raw: raw, origin: head.origin, first: next(), last: next(), low: [], high: [] };
    for (var c = 0; c < head.columns; c++) {
      tile.low.push(next());
      tile.high.push(raw ? tile.low[c] : next());
    }
    return tile;
  };

  // `source` is the address of the pyramid, `about` its header; `changed` is called when a tile arrives.
  Steelyard.tiles = function (source, about, changed) {
    var span = Math.max(about.end - about.start, 1e-9), held = new Map(), flying = new Map(), failed = new Map(), wanted = [];
    var finest = Math.max(0, Math.ceil(Math.log2(Math.max(about.samples, 1) / BUCKETS))) + 4;

    function key(z, k) { return z + "/" + k; }
    function border(z, k) { return about.start + k * span / Math.pow(2, z); }

    // The tile or the finest available coarser one; null before the first has arrived.
    function best(z, k) {
      for (; z >= 0; z--, k >>= 1) {
        var found = held.get(key(z, k));
        if (found) {
          if (z) { held.delete(key(z, k)); held.set(key(z, k), found); }  // most recently used: evicted last
          return found;
        }
      }
      return null;
    }

    function is_enough(tile, z) { return tile !== null && (tile.z === z || tile.raw); }

    function ask(z, k) {
      var name = key(z, k), stop = new AbortController();
      flying.set(name, stop);
      fetch(Steelyard.withQuery(source, { t0: border(z, k), t1: border(z, k + 1), pixels: BUCKETS }), { signal: stop.signal, credentials: "same-origin" }).then(function (answer) {
        if (!answer.ok) { throw new Error(answer.status); }
        return answer.arrayBuffer();
      }).then(function (buffer) {
        var tile = Steelyard.readTile(buffer);
        tile.z = z;
        tile.k = k;
        held.set(name, tile);
        for (var old of held.keys()) {
          if (held.size <= MOST_HELD) { break; }
          if (old !== "0/0") { held.delete(old); }
        }
        flying.delete(name);
        changed(tile);
      }).catch(function (error) {
        flying.delete(name);
        if (error.name !== "AbortError") { failed.set(name, performance.now()); changed(null); }
      }).finally(send);
    }

    function send() {
      while (wanted.length && flying.size < AT_ONCE) {
        var next = wanted.shift();
        if (!held.has(key(next[0], next[1])) && !flying.has(key(next[0], next[1]))) { ask(next[0], next[1]); }
      }
    }

    return {
      border: border, finest: finest,
      // The tile level for a number of pixels per second.
      level: function (scale) { return Math.max(0, Math.min(finest, Math.ceil(Math.log2(span * scale / BUCKETS)))); },
      // The tiles for a time range: [tile, from, to]; a coarse tile replaces missing fine ones.
      cover: function (z, t0, t1) {
        var count = Math.pow(2, z), out = [], complete = true;
        var k = Math.max(0, Math.floor((t0 - about.start) / span * count)), last = Math.min(count - 1, Math.floor((t1 - about.start) / span * count));
        while (k <= last) {
          var tile = best(z, k);
          if (!is_enough(tile, z)) { complete = false; }
          if (!tile) { break; }
          var rises = z - tile.z, until = Math.min((tile.k + 1) * Math.pow(2, rises), last + 1);
          // A coarse replacement must not hide fine tiles to its right.
          if (rises && !tile.raw) { for (var n = k + 1; n < until; n++) { if (best(z, n) !== tile) { until = n; } } }
          out.push([tile, border(z, k), border(z, until)]);
          k = until;
        }
        return { parts: out, complete: complete };
      },
      // Request only the tiles of this time range, from its middle outwards.
      want: function (z, t0, t1) {
        var count = Math.pow(2, z), list = [], now = performance.now(), middle = (t0 + t1) / 2, wide = t1 - t0;
        var from = Math.max(0, Math.floor((t0 - wide / 2 - about.start) / span * count));
        var to = Math.min(count - 1, Math.floor((t1 + wide / 2 - about.start) / span * count));
        for (var k = from; k <= to; k++) {
          var late = failed.get(key(z, k));
          if (!is_enough(best(z, k), z) && !(late && now - late < 2000)) { list.push([z, k]); }
        }
        list.sort(function (a, b) { return Math.abs(border(z, a[1] + 0.5) - middle) - Math.abs(border(z, b[1] + 0.5) - middle); });
        if (!held.has("0/0") && !(failed.get("0/0") > now - 2000)) { list.unshift([0, 0]); }
        var needed = new Set(list.map(function (p) { return key(p[0], p[1]); }));
        flying.forEach(function (stop, name) { if (!needed.has(name) && name !== "0/0") { stop.abort(); } });
        wanted = list;
        send();
      },
      waiting: function () { return wanted.length + flying.size; },
      failing: function () { return failed.size > 0 && !held.size; },
      stop: function () { wanted = []; flying.forEach(function (stop) { stop.abort(); }); }
    };
  };
})();

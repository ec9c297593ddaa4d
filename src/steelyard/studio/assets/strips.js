// Cached pictures of a log's lines: strips 128 pixels wide, drawn once and moved on pan.
(function () {
  "use strict";
  var WIDE = 128;
  // Colours of Okabe and Ito; in the dark theme sky blue and yellow replace the dark blue.
  var LIGHT = ["#0072B2", "#D55E00", "#009E73", "#E69F00", "#CC79A7", "#56B4E9", "#8C8C8C"];
  var DARK = ["#56B4E9", "#D55E00", "#009E73", "#E69F00", "#CC79A7", "#F0E442", "#8C8C8C"];
  var DASHES = [[], [7, 3], [2, 3], [9, 3, 2, 3]];

  Steelyard.lineOf = function (k, dark) {
    var colours = dark ? DARK : LIGHT;
    return { colour: colours[k % colours.length], dash: DASHES[Math.floor(k / colours.length) % DASHES.length] };
  };

  // Draw a line through the buckets of a tile from `t0` to `t1`: through each sample, or from low to high per pixel.
  function trace(ink, tile, column, t0, t1, gap, x, y) {
    var first = tile.first, last = tile.last, low = tile.low[column], high = tile.high[column], n = tile.count;
    var a = after(last, t0 - tile.origin), b = Math.min(n, after(first, t1 - tile.origin) + 1);
    a = Math.max(0, a - 1);
    var pen = false, before = 0, pixel = -Infinity, down = 0, up = 0;
    function put() {  // draw the range of a pixel, the nearer end first
      var p = y(down), q = y(up);
      if (Math.abs(q - before) < Math.abs(p - before)) { var r = p; p = q; q = r; }
      if (pen) { ink.lineTo(pixel, p); } else { ink.moveTo(pixel, p); pen = true; }
      if (Math.abs(q - p) > 0.3) { ink.lineTo(pixel, q); }
      before = q;
    }
    for (var k = a; k < b; k++) {
      var broken = gap && k > a && first[k] - last[k - 1] > 0.9 * gap;
      var at = x(tile.origin + (tile.raw ? first[k] : (first[k] + last[k]) / 2));
      if (!tile.raw || at - pixel < 0.5) {
        if (!tile.raw) { at = Math.floor(at) + 0.5; }
        if (at - pixel < 0.5 && !broken) {
          if (low[k] < down) { down = low[k]; }
          if (high[k] > up) { up = high[k]; }
          continue;
        }
      }
      if (pixel > -Infinity) { put(); }
      if (broken) { pen = false; }
      pixel = at;
      down = low[k];
      up = high[k];
    }
    if (pixel > -Infinity) { put(); }
  }

  function after(times, t) {
    var low = 0, high = times.length;
    while (low < high) { var m = (low + high) >> 1; if (times[m] < t) { low = m + 1; } else { high = m; } }
    return low;
  }

  // `look` of the strips: scale (pixels per second), origin (s), panels with top, height, low, high and lines
  // ({column, colour, dash}), height, ratio (device pixels per pixel), gap.
  Steelyard.strips = function (tiles, look) {
    var made = new Map();
    var z = tiles.level(look.scale * look.ratio);

    function time(c) { return look.origin + c * WIDE / look.scale; }

    function draw(c) {
      var strip = made.get(c), canvas = strip ? strip.canvas : document.createElement("canvas");
      var t0 = time(c), t1 = time(c + 1), edge = 3 / look.scale, found = tiles.cover(z, t0 - edge, t1 + edge);
      canvas.width = Math.round(WIDE * look.ratio);
      canvas.height = Math.round(look.height * look.ratio);
      var ink = canvas.getContext("2d");
      ink.scale(look.ratio, look.ratio);
      ink.lineJoin = "bevel";
      ink.lineWidth = 1.25;
      function x(t) { return (t - t0) * look.scale; }
      look.panels.forEach(function (panel) {
        var unit = panel.height / (panel.high - panel.low), bottom = panel.top + panel.height;
        function y(v) { return bottom - (v - panel.low) * unit; }
        ink.save();
        ink.beginPath();
        ink.rect(0, panel.top, WIDE, panel.height);
        ink.clip();
        panel.lines.forEach(function (line) {
          ink.beginPath();
          found.parts.forEach(function (part) {
            trace(ink, part[0], line.column, Math.max(part[1], t0 - edge), Math.min(part[2], t1 + edge), look.gap, x, y);
          });
          ink.strokeStyle = line.colour;
          ink.setLineDash(line.dash);
          ink.stroke();
        });
        ink.restore();
      });
      made.set(c, { canvas: canvas, complete: found.complete, empty: !found.parts.length, stale: false });
    }

    return {
      z: z, look: look,
      // Draw the strips from `t0` to `t1` on `ink` at `left`. New strips get a few milliseconds at most, except where
      // no old picture exists (`covered` tests this).
      paint: function (ink, t0, t1, left, milliseconds, covered) {
        var began = performance.now(), done = true;
        var from = Math.floor((t0 - look.origin) * look.scale / WIDE), to = Math.floor((t1 - look.origin) * look.scale / WIDE);
        for (var c = from; c <= to; c++) {
          var strip = made.get(c);
          if (!strip || strip.stale) {
            var most = strip || covered(time(c), time(c + 1)) ? milliseconds : 8 * milliseconds;
            if (performance.now() - began < most) { draw(c); strip = made.get(c); } else { done = false; }
          }
          if (strip && !strip.empty) {
            // On whole device pixels, to avoid blur.
            var at = left + Math.round((time(c) - t0) * look.scale * look.ratio) / look.ratio;
            ink.clearRect(at, 0, WIDE, look.height);
            ink.drawImage(strip.canvas, at, 0, WIDE, look.height);
          }
        }
        for (var old of made.keys()) { if (made.size > 80 && (old < from - 2 || old > to + 2)) { made.delete(old); } }
        return done;
      },
      // A tile has arrived: redraw strips that used a coarser one.
      refresh: function (tile) {
        var t0 = tiles.border(tile.z, tile.k), t1 = tiles.border(tile.z, tile.k + 1);
        made.forEach(function (strip, c) { if (!strip.complete && time(c + 1) >= t0 && time(c) <= t1) { strip.stale = true; } });
      }
    };
  };
})();

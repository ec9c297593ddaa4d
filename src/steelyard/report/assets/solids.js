// Shapes of size one as triangles and lines.
(function () {
  "use strict";
  // A surface of revolution about z, by its profile of (radius, height, normal outwards, normal upwards).
  function turned(profile, parts) {
    var p = [], n = [], faces = [];
    profile.forEach(function (row, k) {
      for (var i = 0; i <= parts; i++) {
        var c = Math.cos(2 * Math.PI * i / parts), s = Math.sin(2 * Math.PI * i / parts);
        p.push(row[0] * c, row[0] * s, row[1]);
        n.push(row[2] * c, row[2] * s, row[3]);
        if (k && i) {
          var a = k * (parts + 1) + i, b = a - parts - 1;
          faces.push(a, a - 1, b, b, a - 1, b - 1);
        }
      }
    });
    return { p: p, n: n, faces: faces };
  }
  function arc(from, to, steps, lift) {
    var out = [];
    for (var k = 0; k <= steps; k++) {
      var a = from + (to - from) * k / steps;
      out.push([Math.cos(a), Math.sin(a) + lift, Math.cos(a), Math.sin(a)]);
    }
    return out;
  }
  var H = Math.PI / 2;
  // Shapes of size one: a capsule has a radius of 1 and `long` between the centres of its ends, along z.
  Steelyard.solids = {
    sphere: function () { return turned(arc(-H, H, 16, 0), 32); },
    capsule: function (long) { return turned(arc(-H, 0, 6, 0).concat(arc(0, H, 6, long)), 24); },
    cylinder: function () {
      return turned([[0, -0.5, 0, -1], [1, -0.5, 0, -1], [1, -0.5, 1, 0], [1, 0.5, 1, 0], [1, 0.5, 0, 1], [0, 0.5, 0, 1]], 28);
    },
    box: function () {
      var p = [], faces = [];
      for (var k = 0; k < 8; k++) { p.push((k & 1) - 0.5, (k >> 1 & 1) - 0.5, (k >> 2) - 0.5); }
      [[0, 1, 3, 2], [4, 6, 7, 5], [0, 4, 5, 1], [2, 3, 7, 6], [0, 2, 6, 4], [1, 5, 7, 3]].forEach(function (q) {
        faces.push(q[0], q[1], q[2], q[0], q[2], q[3]);
      });
      return { p: p, faces: faces };
    },
    // Three circles of radius one, as lines.
    rings: function () {
      var p = [];
      for (var plane = 0; plane < 3; plane++) {
        for (var i = 0; i < 48; i++) {
          [i, i + 1].forEach(function (k) {
            var c = [0, 0, 0];
            c[plane] = Math.cos(2 * Math.PI * k / 48);
            c[(plane + 1) % 3] = Math.sin(2 * Math.PI * k / 48);
            p.push(c[0], c[1], c[2]);
          });
        }
      }
      return { p: p, lines: true };
    },
    // Along z, from the origin to 1.
    arrow: function () {
      return turned([[0, 0, 0, -1], [0.05, 0, 0, -1], [0.05, 0, 1, 0], [0.05, 0.68, 1, 0], [0.05, 0.68, 0, -1], [0.15, 0.68, 0, -1],
        [0.15, 0.68, 0.9, 0.43], [0, 1, 0.9, 0.43]], 20);
    },
    // The axes of the world, both ways.
    axes: function () { return { p: [-1, 0, 0, 1, 0, 0, 0, -1, 0, 0, 1, 0, 0, 0, -1, 0, 0, 1], lines: true }; },
    grid: function (half, step) {
      var p = [], n = Math.floor(half / step);
      for (var k = -n; k <= n; k++) { p.push(k * step, -n * step, 0, k * step, n * step, 0, -n * step, k * step, 0, n * step, k * step, 0); }
      return { p: p, lines: true };
    }
  };
})();

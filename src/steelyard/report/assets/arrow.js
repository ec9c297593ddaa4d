// The arrow of gravity, in a corner of a robot's picture: its tip follows the pointer and the arrow keys, and comes to
// rest on the axes x, y and z when it is near them; with Shift it goes anywhere.
(function () {
  "use strict";
  var M = Steelyard.matrix, SIZE = 108, EDGE = 10, ARM = 0.74, NEAR = Math.cos(10 * Math.PI / 180);
  var STEP = Math.PI / 12, FINE = Math.PI / 180;

  function dot(a, b) { return a[0] * b[0] + a[1] * b[1] + a[2] * b[2]; }
  function plus(a, s, b) { return [a[0] + s * b[0], a[1] + s * b[1], a[2] + s * b[2]]; }
  function long(v) { return Math.hypot(v[0], v[1], v[2]); }
  function unit(v) { var l = long(v); return [v[0] / l, v[1] / l, v[2] / l]; }
  // The axis, one way or the other, that points most like v.
  function axis(v) {
    var sizes = v.map(Math.abs), k = sizes.indexOf(Math.max.apply(null, sizes)), out = [0, 0, 0];
    out[k] = v[k] < 0 ? -1 : 1;
    return out;
  }
  function snapped(v, free) { var a = axis(v); return !free && dot(a, v) > NEAR ? a : v; }
  // v, turned towards d by an angle, no further than d.
  function towards(v, d, angle, aside) {
    var side = plus(d, -dot(d, v), v);
    if (dot(d, v) > Math.cos(angle)) { return d; }
    side = unit(long(side) > 1e-6 ? side : plus(aside, -dot(aside, v), v));
    return unit(plus(plus([0, 0, 0], Math.cos(angle), v), Math.sin(angle), side));
  }
  function words(v) {
    return v.map(function (x) { return (Math.round(1000 * x) / 1000 || 0).toString().replace("-", "−"); }).join(", ");
  }

  // `changed(vector, done)` is called as it turns, and with `done` when it has been let go.
  Steelyard.arrow = function (canvas, vector, orbit, soon, changed) {
    var strength = long(vector) || 9.81, way = long(vector) ? unit(vector) : [0, 0, -1], held = false, kept = null;
    var button = document.createElement("button"), told = document.createElement("output"), labels = [];
    button.type = "button";
    button.className = "gravity";
    told.className = "gravity-words";
    ["x", "y", "z"].forEach(function (name) {
      var label = button.appendChild(document.createElement("span"));
      label.textContent = name;
      label.setAttribute("aria-hidden", "true");
      labels.push(label);
    });
    canvas.after(button, told);

    function value() { return way.map(function (x) { return Math.round(1e4 * strength * x) / 1e4 || 0; }); }
    function say() {
      told.textContent = "gravity " + words(value()) + " m/s²";
      button.setAttribute("aria-label", "Gravity " + words(value()) + " m/s² along x, y and z. Arrow keys turn it, with Shift in small steps.");
    }
    function turn(to, done) {
      way = to;
      say();
      soon();
      changed(value(), done);
    }
    // Right, up and back of the picture, along the axes of the world.
    function sides() {
      var z = orbit.back(), x = unit([-z[1], z[0], 0]);
      return [x, [z[1] * x[2] - z[2] * x[1], z[2] * x[0] - z[0] * x[2], z[0] * x[1] - z[1] * x[0]], z];
    }

    // The axis whose tip is seen near a place (right, up) of the picture, whichever side of the ball it is on.
    function seenNear(x, y, s) {
      var best = null, least = 0.25;
      [0, 1, 2].forEach(function (k) {
        [-1, 1].forEach(function (way) {
          var gap = Math.hypot(x - way * s[0][k], y - way * s[1][k]) + (way * s[2][k] * kept < 0 ? 0.08 : 0);
          if (gap < least) { least = gap; best = [0, 0, 0]; best[k] = way; }
        });
      });
      return best;
    }
    // Under the pointer, on the half of a ball that it was on: towards the eye, or away from it.
    function follow(e) {
      var s = sides(), place = button.getBoundingClientRect(), arm = ARM * place.width / 2;
      var x = (e.clientX - place.left - place.width / 2) / arm, y = -(e.clientY - place.top - place.height / 2) / arm;
      var out = Math.max(1, Math.hypot(x, y)), depth;
      x /= out;
      y /= out;
      depth = Math.sqrt(Math.max(0, 1 - x * x - y * y));
      var to = (!e.shiftKey && seenNear(x, y, s)) || unit(plus(plus(plus([0, 0, 0], x, s[0]), y, s[1]), kept * depth, s[2]));
      if (Math.abs(dot(to, s[2])) > 1e-6) { kept = Math.sign(dot(to, s[2])); }
      turn(to, false);
    }
    button.addEventListener("pointerdown", function (e) {
      held = true;
      kept = dot(way, orbit.back()) < 0 ? -1 : 1;
      button.setPointerCapture(e.pointerId);
    });
    button.addEventListener("pointermove", function (e) { if (held) { follow(e); } });
    ["pointerup", "pointercancel"].forEach(function (name) {
      button.addEventListener(name, function () { if (held) { held = false; changed(value(), true); } });
    });
    button.addEventListener("keydown", function (e) {
      var s = sides(), to = { ArrowRight: [0, 1], ArrowLeft: [0, -1], ArrowUp: [1, 1], ArrowDown: [1, -1] }[e.key];
      if (!to) { return; }
      var goal = axis(s[to[0]].map(function (x) { return to[1] * x; }));
      turn(snapped(towards(way, goal, e.shiftKey ? FINE : STEP, axis(s[2])), e.shiftKey), true);
      e.preventDefault();
    });
    say();

    var solids = null;
    return {
      remove: function () { button.remove(); told.remove(); },
      draw: function (paint, back, fine, dark) {
        solids = solids || { arrow: paint.shape(Steelyard.solids.arrow()), axes: paint.shape(Steelyard.solids.axes()) };
        var s = sides(), a = ARM, grey = dark ? [0.7, 0.74, 0.78, 0.7] : [0.35, 0.39, 0.43, 0.6];
        // Seen from far away, without perspective.
        var view = [0, 1, 2].map(function (k) { return [a * s[0][k], a * s[1][k], -0.4 * s[2][k], 0]; });
        paint.corner(Math.round(EDGE * fine), Math.round(SIZE * fine), view[0].concat(view[1], view[2], [0, 0, 0, 1]), plus([0, 0, 0], 50, back));
        paint.draw(solids.axes, M.moved([0, 0, 0]), grey);
        var other = Math.abs(way[2]) > 0.9 ? [1, 0, 0] : [0, 0, 1], aside = unit(plus(other, -dot(other, way), way));
        var third = [way[1] * aside[2] - way[2] * aside[1], way[2] * aside[0] - way[0] * aside[2], way[0] * aside[1] - way[1] * aside[0]];
        paint.draw(solids.arrow, aside.concat(0, third, 0, way, 0, 0, 0, 0, 1), [0.835, 0.369, 0, 1]);
        labels.forEach(function (label, k) {
          label.style.left = 50 * (1 + 1.18 * a * s[0][k]) + "%";
          label.style.top = 50 * (1 - 1.18 * a * s[1][k]) + "%";
        });
      }
    };
  };
})();

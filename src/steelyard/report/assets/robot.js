// A robot to look at: bodies, their shadow, ellipsoids of inertia, and the ghost of another posture.
(function () {
  "use strict";
  var M = Steelyard.matrix, HERE = M.moved([0, 0, 0]), CHOSEN = "#CC79A7", GHOST = "#56B4E9";

  function rgb(text, alpha) {
    var n = parseInt(text.slice(1), 16);
    return [(n >> 16) / 255, (n >> 8 & 255) / 255, (n & 255) / 255, alpha];
  }

  // Where the joint frames of all links stand at positions q.
  function poses(links, q) {
    var out = [];
    links.forEach(function (link) {
      var value = link.ratio * q[link.coordinate] + link.offset;
      var motion = link.slides ? M.moved(link.axis.map(function (a) { return a * value; })) : M.turned(link.axis, value);
      var foot = M.times(link.parent < 0 ? HERE : out[link.parent], M.of(link.rotation, link.translation));
      out.push(M.times(foot, motion));
    });
    return out;
  }

  // Positions at a time, between samples on a straight line.
  Steelyard.positions = function (motion, t) {
    var times = motion.t, low = 0, high = times.length - 1;
    if (t <= times[0]) { high = 0; } else if (t >= times[high]) { low = high; }
    while (high - low > 1) { var middle = (low + high) >> 1; if (times[middle] <= t) { low = middle; } else { high = middle; } }
    var span = times[high] - times[low], share = span > 0 ? (t - times[low]) / span : 0;
    return motion.q[low].map(function (x, k) { return x + share * (motion.q[high][k] - x); });
  };

  // The bodies of a scene as solids of a painter, each in its place on a link.
  function bodies(paint, scene) {
    var made = Steelyard.solids, solids = {};
    function one(name) { return solids[name] = solids[name] || paint.shape(made[name]()); }
    return scene.shapes.map(function (s) {
      var size = s.size || [s.unit], solid = s.kind === "mesh" ? paint.shape({ p: s.vertices, faces: s.triangles })
        : s.kind === "capsule" ? paint.shape(made.capsule(size[1] / size[0])) : one(s.kind);
      var by = s.kind === "box" ? size : [size[0], size[0], s.kind === "cylinder" ? size[1] : size[0]];
      return { link: s.link, solid: solid, place: M.scaled(M.of(s.rotation, s.translation), by) };
    });
  }

  // Draws `scene` on the canvas in `box`; null where there is no WebGL 2. What comes back is what can be done with it:
  // set(q), ghost(q or null), play(motion, told, from) and stop(), gravity(vector or null, changed), choose(names of
  // joints or links), show({ bodies, found, nominal: yes or no }), redraw(). Gone from the page, it lets go of everything.
  Steelyard.robot = function (box, scene) {
    var canvas = box.querySelector("canvas"), paint = Steelyard.painter(canvas);
    if (!paint) { return null; }
    var shapes = bodies(paint, scene), made = Steelyard.solids, half = 1.2 * scene.reach;
    var ball = paint.shape(made.sphere()), rings = paint.shape(made.rings());
    var grid = paint.shape(made.grid(half, scene.reach > 2 ? 0.5 : scene.reach > 0.6 ? 0.2 : 0.05));
    var shadow = Steelyard.shadow(paint, scene.middle, 1.6 * scene.reach), orbit = Steelyard.orbit(canvas, scene, soon);
    var shown = { bodies: true, found: true, nominal: true }, gone = new AbortController();
    var now = poses(scene.links, scene.rest), ghost = null, chosen = [], arrow = null, cast = true, dirty = false, played = null;

    function soon() { if (!dirty) { dirty = true; requestAnimationFrame(frame); } }
    function frame(time) {
      dirty = false;
      if (played) {
        played.t += Math.min((time - (played.last || time)) / 1000, 0.1);
        played.last = time;
        if (played.t > played.motion.t[played.motion.t.length - 1]) { played.t = played.motion.t[0]; }
        move(Steelyard.positions(played.motion, played.t));
        played.told(played.t);
      }
      if (!gone.signal.aborted) { paintAll(); }
    }
    function move(q) { now = poses(scene.links, q); cast = true; soon(); }
    function isChosen(link) {
      return link >= 0 && (chosen.indexOf(scene.links[link].joint) >= 0 || chosen.indexOf(scene.links[link].name) >= 0);
    }

    // Of all that `draw` draws, the surface that is foremost.
    function foremost(draw) {
      [true, false].forEach(function (depth) { paint.depthAlone(depth); draw(); });
    }
    function at(frames, link) { return link < 0 ? HERE : frames[link]; }
    function drawBodies(frames, colour) {
      shapes.forEach(function (s) { var c = colour(s.link); if (c) { paint.draw(s.solid, M.times(at(frames, s.link), s.place), c); } });
    }
    // A ghost is seen where it stands apart from the robot.
    function ghostly(link) {
      var apart = link >= 0 && ghost[link].some(function (x, k) { return Math.abs(x - now[link][k]) > 1e-4; });
      return apart ? rgb(GHOST, 0.3) : null;
    }
    function drawEllipsoids(which, solid, size, colour) {
      scene.bodies.forEach(function (body) {
        var e = body[which];
        var c = e && shown[which] && colour(body);
        if (!c) { return; }
        var place = size ? M.scaled(M.moved(e.centre), [size, size, size]) : M.scaled(M.of(e.rotation, e.centre), e.axes);
        paint.draw(solid, M.times(at(now, body.link), place), c);
      });
    }

    function paintAll() {
      var width = canvas.clientWidth, height = canvas.clientHeight, fine = Math.min(window.devicePixelRatio || 1, 2);
      if (!width) { return; }
      if (canvas.width !== Math.round(width * fine) || canvas.height !== Math.round(height * fine)) {
        canvas.width = Math.round(width * fine);
        canvas.height = Math.round(height * fine);
      }
      var dark = Steelyard.dark(), ink = rgb(dark ? "#e6e8eb" : "#1b1f24", 0.8), small = 0.011 * scene.reach, eye = orbit.look(width, height);
      if (cast) { shadow.cast(function () { if (shown.bodies) { drawBodies(now, function () { return ink; }); } }); cast = false; }
      paint.begin(eye.view, eye.eye);
      shadow.lay(eye.view, dark ? 0.5 : 0.24);
      paint.seenBy(eye.view, eye.eye);
      paint.draw(grid, HERE, rgb(dark ? "#4a535d" : "#a9b1ba", 0.6));
      if (shown.bodies) {
        foremost(function () {
          drawBodies(now, function (link) { return rgb(isChosen(link) ? CHOSEN : dark ? "#9aa4af" : "#98a2ad", 1); });
        });
      }
      paint.glass(true);
      if (ghost) { foremost(function () { drawBodies(ghost, ghostly); }); }
      // What is inside is seen through the bodies.
      paint.forget();
      foremost(function () {
        drawEllipsoids("found", ball, 0, function (body) { return rgb(body.colour, 0.62); });
        drawEllipsoids("nominal", ball, 0, function (body) { return body.found ? null : rgb("#0072B2", 0.4); });
      });
      paint.glass(false);
      paint.forget();
      [0, small].forEach(function (size) { drawEllipsoids("nominal", rings, size, function () { return ink; }); });
      drawEllipsoids("found", ball, small, function (body) { return rgb(body.colour, 1); });
      if (arrow) { arrow.draw(paint, orbit.back(), fine, dark); }
      if (played) { soon(); }
    }

    function listen(target, name, what) { target.addEventListener(name, what, { signal: gone.signal }); }
    listen(document, "steelyard-theme", soon);
    listen(window, "beforeprint", function () { Steelyard.pictured(canvas, paintAll); });
    var watch = new ResizeObserver(function () {
      if (canvas.isConnected) { soon(); return; }
      gone.abort();
      watch.disconnect();
      played = null;
      paint.gl.getExtension("WEBGL_lose_context").loseContext();
    });
    watch.observe(canvas);
    return {
      listen: listen,
      set: function (q) { played = null; move(q); },
      ghost: function (q) { ghost = q && poses(scene.links, q); soon(); },
      // From the beginning, or from a time; `told` is called with the time at each picture.
      play: function (motion, told, from) {
        played = { motion: motion, told: told || function () {}, t: from === undefined ? motion.t[0] : from };
        soon();
      },
      stop: function () { played = null; },
      gravity: function (vector, changed) {
        if (arrow) { arrow.remove(); arrow = null; }
        if (vector) { arrow = Steelyard.arrow(canvas, vector, orbit, soon, changed || function () {}); }
        soon();
      },
      choose: function (names) { chosen = [].concat(names); soon(); },
      show: function (which) { Object.assign(shown, which); cast = true; soon(); },
      redraw: soon
    };
  };
})();

// A robot that can be turned and played: bodies, centres of mass and ellipsoids of inertia, found and nominal.
(function () {
  "use strict";
  var M = Steelyard.matrix;

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
      var foot = M.times(link.parent < 0 ? M.moved([0, 0, 0]) : out[link.parent], M.of(link.rotation, link.translation));
      out.push(M.times(foot, motion));
    });
    return out;
  }

  // Positions at a time, between samples on a straight line.
  function positions(motion, t) {
    var times = motion.t, low = 0, high = times.length - 1;
    if (t <= times[0]) { high = 0; } else if (t >= times[high]) { low = high; }
    while (high - low > 1) { var middle = (low + high) >> 1; if (times[middle] <= t) { low = middle; } else { high = middle; } }
    var span = times[high] - times[low], share = span > 0 ? (t - times[low]) / span : 0;
    return motion.q[low].map(function (x, k) { return x + share * (motion.q[high][k] - x); });
  }

  function show(box, scene) {
    var canvas = box.querySelector("canvas"), paint = Steelyard.painter(canvas);
    if (!paint) { refuse(box, "this browser has no WebGL 2"); return; }
    var solids = {}, made = Steelyard.solids;
    ["sphere", "cylinder", "box", "rings", "line"].forEach(function (name) { solids[name] = paint.shape(made[name]()); });
    solids.grid = paint.shape(made.grid(1.2 * scene.reach, scene.reach > 2 ? 0.5 : scene.reach > 0.6 ? 0.2 : 0.05));
    var shapes = scene.shapes.map(function (s) {
      var place = M.of(s.rotation, s.translation), solid;
      if (s.kind === "mesh") { solid = paint.shape({ p: s.vertices, faces: s.triangles }); place = M.scaled(place, [s.unit, s.unit, s.unit]); }
      if (s.kind === "capsule") {
        solid = paint.shape(made.capsule(s.size[1] / s.size[0]));
        place = M.scaled(place, [s.size[0], s.size[0], s.size[0]]);
      }
      if (s.kind === "cylinder") { solid = solids.cylinder; place = M.scaled(place, [s.size[0], s.size[0], s.size[1]]); }
      if (s.kind === "sphere") { solid = solids.sphere; place = M.scaled(place, [s.size[0], s.size[0], s.size[0]]); }
      if (s.kind === "box") { solid = solids.box; place = M.scaled(place, s.size); }
      return { link: s.link, solid: solid, place: place };
    });
    var state = { angle: -0.9, lift: 0.42, far: 2.1, motion: 0, t: scene.motions.length ? scene.motions[0].t[0] : 0, playing: false, joint: "" };
    var shown = { bodies: true, found: true, nominal: true };
    var dirty = true, last = 0;

    function place(body) { return M.scaled(M.of(body.rotation, body.centre), body.axes); }
    function spot(body, size) { return M.scaled(M.moved(body.centre), [size, size, size]); }

    function frame(now) {
      if (state.playing) {
        var motion = scene.motions[state.motion], end = motion.t[motion.t.length - 1];
        state.t += Math.min((now - last) / 1000, 0.1);
        if (state.t > end) { state.t = motion.t[0]; }
        Steelyard.tell(motion.log, state.t, "robot");
        dirty = true;
      }
      last = now;
      if (dirty) { dirty = false; paintAll(); }
      if (state.playing) { requestAnimationFrame(frame); }
    }
    function soon() { if (!dirty) { dirty = true; if (!state.playing) { requestAnimationFrame(frame); } } }

    function paintAll() {
      var width = canvas.clientWidth, height = canvas.clientHeight, fine = Math.min(window.devicePixelRatio || 1, 2);
      if (!width) { return; }
      if (canvas.width !== Math.round(width * fine) || canvas.height !== Math.round(height * fine)) {
        canvas.width = Math.round(width * fine);
        canvas.height = Math.round(height * fine);
      }
      var far = state.far * scene.reach * Math.max(1, height / width), to = scene.middle;
      var eye = [to[0] + far * Math.cos(state.lift) * Math.cos(state.angle), to[1] + far * Math.cos(state.lift) * Math.sin(state.angle),
        to[2] + far * Math.sin(state.lift)];
      paint.begin(M.camera(eye, to, width / height, 0.02 * scene.reach, 30 * scene.reach), eye);
      var q = scene.motions.length ? positions(scene.motions[state.motion], state.t) : scene.rest;
      var frames = poses(scene.links, q), one = M.moved([0, 0, 0]);
      function of(link) { return link < 0 ? one : frames[link]; }
      paint.draw(solids.grid, one, rgb(Steelyard.dark.matches ? "#4a535d" : "#a9b1ba", 0.6));
      // What is inside comes first; bodies lie over it like glass, of which only the foremost surface is drawn.
      scene.bodies.forEach(function (body) {
        if (shown.found && body.found) {
          paint.draw(solids.sphere, M.times(of(body.link), place(body.found)), rgb(body.colour, 1));
        }
      });
      paint.forget();
      if (shown.bodies) {
        [true, false].forEach(function (depth) {
          paint.depthAlone(depth);
          shapes.forEach(function (s) {
            var chosen = s.link >= 0 && scene.links[s.link].joint === state.joint;
            var tone = chosen ? "#CC79A7" : Steelyard.dark.matches ? "#9aa4af" : "#7c8794";
            paint.draw(s.solid, M.times(of(s.link), s.place), rgb(tone, !scene.bodies.length ? 1 : chosen ? 0.6 : 0.42));
          });
        });
      }
      paint.forget();
      scene.bodies.forEach(function (body) {
        var ink = rgb(Steelyard.dark.matches ? "#e6e8eb" : "#1b1f24", 0.8), small = 0.011 * scene.reach;
        if (shown.nominal && body.nominal) { paint.draw(solids.rings, M.times(of(body.link), place(body.nominal)), ink); }
        if (shown.nominal && body.nominal) { paint.draw(solids.rings, M.times(of(body.link), spot(body.nominal, small)), ink); }
        if (shown.found && body.found) { paint.draw(solids.sphere, M.times(of(body.link), spot(body.found, small)), rgb(body.colour, 1)); }
      });
    }

    controls(box, scene, state, shown, soon, function () { last = performance.now(); requestAnimationFrame(frame); });
    document.addEventListener("steelyard-joint", function (event) { state.joint = event.detail; soon(); });
    document.addEventListener("steelyard-time", function (event) {
      var k = scene.motions.findIndex(function (m) { return m.log === event.detail.log; });
      if (k < 0) { return; }
      if (event.detail.by !== "robot") { state.playing = false; }
      state.motion = k;
      state.t = event.detail.t;
      box.dispatchEvent(new Event("moved"));
      soon();
    });
    Steelyard.dark.addEventListener("change", soon);
    new ResizeObserver(soon).observe(canvas);
    requestAnimationFrame(frame);
    box.dataset.drawn = "yes";
  }

  function element(kind, words, parent) { return parent.appendChild(Object.assign(document.createElement(kind), words)); }

  function controls(box, scene, state, shown, soon, go) {
    var canvas = box.querySelector("canvas"), bar = element("div", { className: "player" }, box.querySelector(".stage"));
    if (scene.motions.length) {
      var play = element("button", { type: "button" }, bar);
      var time = element("input", { type: "range", min: 0, max: 1000, step: 1, value: 0 }, bar);
      var clock = element("output", {}, bar);
      time.setAttribute("aria-label", "time in the motion");
      var tell = function () {
        var motion = scene.motions[state.motion], first = motion.t[0], end = motion.t[motion.t.length - 1];
        play.textContent = state.playing ? "❚❚ pause" : "▶ play";
        time.value = 1000 * (state.t - first) / (end - first || 1);
        clock.textContent = state.t.toFixed(2) + " s" + (scene.motions.length > 1 ? ", " + motion.log : "");
      };
      play.addEventListener("click", function () { state.playing = !state.playing; tell(); if (state.playing) { go(); } });
      time.addEventListener("input", function () {
        var motion = scene.motions[state.motion], end = motion.t[motion.t.length - 1];
        state.playing = false;
        Steelyard.tell(motion.log, motion.t[0] + time.value / 1000 * (end - motion.t[0]), "scrub");
      });
      box.addEventListener("moved", tell);
      tell();
    }
    var names = { bodies: "bodies", found: "identified", nominal: "nominal" };
    Object.keys(names).forEach(function (name) {
      if (name !== "bodies" && !scene.bodies.some(function (b) { return b[name]; })) { return; }
      var label = element("label", {}, bar), tick = element("input", { type: "checkbox", checked: true }, label);
      label.appendChild(document.createTextNode(" " + names[name]));
      tick.addEventListener("change", function () { shown[name] = tick.checked; soon(); });
    });

    function turn(dx, dy) {
      state.angle -= dx;
      state.lift = Math.max(-1.4, Math.min(1.4, state.lift + dy));
      soon();
    }
    function zoom(by) { state.far = Math.max(0.6, Math.min(9, state.far * by)); soon(); }
    var held = null;
    canvas.addEventListener("pointerdown", function (e) { held = [e.clientX, e.clientY]; canvas.setPointerCapture(e.pointerId); });
    canvas.addEventListener("pointerup", function () { held = null; });
    canvas.addEventListener("pointermove", function (e) {
      if (held) { turn(0.008 * (e.clientX - held[0]), 0.008 * (e.clientY - held[1])); held = [e.clientX, e.clientY]; }
    });
    // The wheel alone is for the page.
    canvas.addEventListener("wheel", function (e) { if (e.ctrlKey) { zoom(Math.exp(0.002 * e.deltaY)); e.preventDefault(); } }, { passive: false });
    canvas.addEventListener("keydown", function (e) {
      var step = { ArrowLeft: [0.1, 0], ArrowRight: [-0.1, 0], ArrowUp: [0, 0.1], ArrowDown: [0, -0.1] }[e.key];
      if (step) { turn(step[0], step[1]); e.preventDefault(); }
      if (e.key === "+" || e.key === "-") { zoom(e.key === "+" ? 0.9 : 1.1); e.preventDefault(); }
      if (e.key === " " && play) { play.click(); e.preventDefault(); }
    });
  }

  function refuse(box, why) {
    box.dataset.drawn = "no";
    box.querySelector(".stage").innerHTML = "<p>The robot cannot be drawn: " + why + ". The tables of this page have the same numbers.</p>";
  }

  document.querySelectorAll("figure.robot").forEach(function (box) {
    if (!("DecompressionStream" in window)) { refuse(box, "this browser is too old to unpack it"); return; }
    // Where it is drawn by software, WebGL takes a second to begin: only for who looks.
    var watch = new IntersectionObserver(function (entries) {
      if (!entries.some(function (entry) { return entry.isIntersecting; })) { return; }
      watch.disconnect();
      Steelyard.unpacked(box.querySelector(".scene-data")).json().then(function (scene) { show(box, scene); })
        .catch(function (error) { refuse(box, String(error).replace(/[<&]/g, " ")); });
    }, { rootMargin: "100px" });
    watch.observe(box);
  });
})();

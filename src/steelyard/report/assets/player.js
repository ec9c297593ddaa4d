// The robots of a page, each with a bar below it to play its motions and to choose what is seen.
(function () {
  "use strict";
  function element(kind, words, parent) { return parent.appendChild(Object.assign(document.createElement(kind), words)); }

  // Play, pause and a time that can be drawn; the whole page follows the time.
  function player(box, scene, robot, bar) {
    var k = 0, t = scene.motions[0].t[0], playing = false;
    var play = element("button", { type: "button" }, bar);
    var time = element("input", { type: "range", min: 0, max: 1000, step: 1, value: 0 }, bar);
    var clock = element("output", {}, bar);
    time.setAttribute("aria-label", "time in the motion");
    function tell() {
      var motion = scene.motions[k], first = motion.t[0], end = motion.t[motion.t.length - 1];
      play.textContent = playing ? "❚❚ pause" : "▶ play";
      time.value = 1000 * (t - first) / (end - first || 1);
      clock.textContent = t.toFixed(2) + " s" + (scene.motions.length > 1 ? ", " + motion.log : "");
    }
    play.addEventListener("click", function () {
      playing = !playing;
      if (playing) { robot.play(scene.motions[k], function (at) { Steelyard.tell(scene.motions[k].log, at, "robot"); }, t); } else { robot.stop(); }
      tell();
    });
    time.addEventListener("input", function () {
      var motion = scene.motions[k], end = motion.t[motion.t.length - 1];
      Steelyard.tell(motion.log, motion.t[0] + time.value / 1000 * (end - motion.t[0]), "scrub");
    });
    box.querySelector("canvas").addEventListener("keydown", function (e) { if (e.key === " ") { play.click(); e.preventDefault(); } });
    robot.listen(document, "steelyard-time", function (event) {
      var found = scene.motions.findIndex(function (m) { return m.log === event.detail.log; });
      if (found < 0) { return; }
      k = found;
      t = event.detail.t;
      if (event.detail.by !== "robot") { playing = false; robot.set(Steelyard.positions(scene.motions[k], t)); }
      tell();
    });
    tell();
  }

  function ticks(scene, robot, bar) {
    var names = { bodies: "bodies", found: "identified", nominal: "nominal" };
    Object.keys(names).forEach(function (name) {
      if (name !== "bodies" && !scene.bodies.some(function (b) { return b[name]; })) { return; }
      var label = element("label", {}, bar), tick = element("input", { type: "checkbox", checked: true }, label);
      label.appendChild(document.createTextNode(" " + names[name]));
      tick.addEventListener("change", function () { robot.show({ [name]: tick.checked }); });
    });
  }

  function refuse(box, why) {
    box.dataset.drawn = "no";
    box.querySelector(".space").innerHTML = "<p></p>";
    box.querySelector(".space p").textContent = "The robot cannot be drawn: " + why + ". The tables of this page have the same numbers.";
  }

  function show(box, scene) {
    var robot = Steelyard.robot(box, scene);
    if (!robot) { refuse(box, "this browser has no WebGL 2"); return; }
    var bar = element("div", { className: "player" }, box.querySelector(".space"));
    if (scene.motions.length) { player(box, scene, robot, bar); }
    ticks(scene, robot, bar);
    robot.listen(document, "steelyard-joint", function (event) { robot.choose(event.detail); });
    box.dataset.drawn = "yes";
    box.robot = robot;
    box.scene = scene;
    // Whoever has more to do with it is told, and finds it as `robot` on the figure.
    box.dispatchEvent(new CustomEvent("steelyard-robot", { bubbles: true, detail: { robot: robot, scene: scene } }));
  }

  // Draw the robots in `root` that have not been drawn, each when it comes into view: where it is drawn by software,
  // WebGL takes a second to begin.
  Steelyard.robots = function (root) {
    root.querySelectorAll("figure.robot:not([data-watched])").forEach(function (box) {
      box.dataset.watched = "yes";
      if (!("DecompressionStream" in window)) { refuse(box, "this browser is too old to unpack it"); return; }
      var watch = new IntersectionObserver(function (entries) {
        if (!entries.some(function (entry) { return entry.isIntersecting; })) { return; }
        watch.disconnect();
        Steelyard.unpacked(box.querySelector(".scene-data")).json().then(function (scene) { show(box, scene); })
          .catch(function (error) { refuse(box, String(error)); });
      }, { rootMargin: "100px" });
      watch.observe(box);
    });
  };
  Steelyard.adopters.push(Steelyard.robots);
})();

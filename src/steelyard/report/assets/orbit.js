// An eye that goes round a robot: by the pointer, with Ctrl and the wheel, and by arrow keys, + and -.
(function () {
  "use strict";
  var M = Steelyard.matrix;

  // Calls `soon` when it has moved.
  Steelyard.orbit = function (canvas, scene, soon) {
    var angle = -0.9, lift = 0.42, far = 2.1, held = null;
    function turn(dx, dy) {
      angle -= dx;
      lift = Math.max(-1.4, Math.min(1.4, lift + dy));
      soon();
    }
    function zoom(by) { far = Math.max(0.6, Math.min(9, far * by)); soon(); }
    canvas.addEventListener("pointerdown", function (e) { held = [e.clientX, e.clientY]; canvas.setPointerCapture(e.pointerId); });
    ["pointerup", "pointercancel"].forEach(function (name) { canvas.addEventListener(name, function () { held = null; }); });
    canvas.addEventListener("pointermove", function (e) {
      if (held) { turn(0.008 * (e.clientX - held[0]), 0.008 * (e.clientY - held[1])); held = [e.clientX, e.clientY]; }
    });
    // The wheel alone is for the page.
    canvas.addEventListener("wheel", function (e) { if (e.ctrlKey) { zoom(Math.exp(0.002 * e.deltaY)); e.preventDefault(); } }, { passive: false });
    canvas.addEventListener("keydown", function (e) {
      var step = { ArrowLeft: [0.1, 0], ArrowRight: [-0.1, 0], ArrowUp: [0, 0.1], ArrowDown: [0, -0.1] }[e.key];
      if (step) { turn(step[0], step[1]); e.preventDefault(); }
      if (e.key === "+" || e.key === "-") { zoom(e.key === "+" ? 0.9 : 1.1); e.preventDefault(); }
    });
    return {
      // From the robot to the eye, of length one.
      back: function () { return [Math.cos(lift) * Math.cos(angle), Math.cos(lift) * Math.sin(angle), Math.sin(lift)]; },
      look: function (width, height) {
        var away = far * scene.reach * Math.max(1, height / width), to = scene.middle;
        var eye = this.back().map(function (x, k) { return to[k] + away * x; });
        return { eye: eye, view: M.camera(eye, to, width / height, 0.02 * scene.reach, 30 * scene.reach) };
      }
    };
  };
})();

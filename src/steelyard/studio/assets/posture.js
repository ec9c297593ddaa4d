// The robot's 3D view: sliders set the posture, formulas highlight bodies, and the arrow sets gravity.
(function () {
  "use strict";
  function words(value, unit) {
    var plain = value.toFixed(3).replace("-", "−") + " " + unit;
    return unit === "rad" ? plain + " (" + (value * 180 / Math.PI).toFixed(1).replace("-", "−") + "°)" : plain;
  }

  function sliders(view, robot, scene) {
    var all = Array.from(view.querySelectorAll("input[data-coordinate]"));
    function move() {
      var q = all.map(function (slider) { return Number(slider.value); });
      var moved = q.some(function (x, k) { return Math.abs(x - scene.rest[k]) > 1e-3; });
      all.forEach(function (slider, k) {
        slider.parentNode.querySelector("output").textContent = words(q[k], slider.dataset.unit);
        slider.setAttribute("aria-valuetext", words(q[k], slider.dataset.unit));
      });
      robot.set(q);
      robot.ghost(moved ? scene.rest : null);
    }
    all.forEach(function (slider) {
      slider.addEventListener("input", move);
      // A key press moves a slider by 1 % of its range.
      slider.addEventListener("keydown", function (event) {
        var step = { ArrowRight: 1, ArrowUp: 1, ArrowLeft: -1, ArrowDown: -1, PageUp: 10, PageDown: -10 }[event.key];
        if (!step) { return; }
        slider.value = Number(slider.value) + step * (slider.max - slider.min) / (event.shiftKey ? 1000 : 100);
        event.preventDefault();
        move();
      });
    });
    view.querySelector("button.rest").addEventListener("click", function () {
      all.forEach(function (slider, k) { slider.value = scene.rest[k]; });
      move();
    });
    move();
  }

  function gravity(view, robot) {
    var form = view.querySelector(".gravity-form"), waiting = null;
    var fields = ["x", "y", "z"].map(function (name) { return form.elements[name]; });
    function vector() { return fields.map(function (field) { return Number(field.value); }); }
    function turned(to, done) {
      fields.forEach(function (field, k) { field.value = to[k]; });
      clearTimeout(waiting);
      if (done) { waiting = setTimeout(function () { Steelyard.send(form, null); }, 400); }
    }
    form.addEventListener("change", function () { robot.gravity(vector(), turned); });
    robot.gravity(vector(), turned);
  }

  function control(figure) {
    var view = figure.closest(".robot-view");
    if (!view) { return; }
    sliders(view, figure.robot, figure.scene);
    gravity(view, figure.robot);
  }
  document.addEventListener("steelyard-robot", function (event) { control(event.target); });
  // The robot may have been drawn before this script was loaded.
  document.querySelectorAll("figure.robot").forEach(function (figure) { if (figure.robot) { control(figure); } });

  // Show the drop zone when a file is dragged.
  document.addEventListener("dragenter", function () {
    var another = document.getElementById("another");
    if (another) { another.open = true; }
  });

  document.addEventListener("click", function (event) {
    var button = event.target.closest("button.bodies"), figure = document.querySelector(".robot-view figure.robot");
    if (!button) { return; }
    var on = button.getAttribute("aria-pressed") !== "true";
    document.querySelectorAll("button.bodies[aria-pressed=true]").forEach(function (other) { other.setAttribute("aria-pressed", "false"); });
    button.setAttribute("aria-pressed", String(on));
    if (figure && figure.robot) { figure.robot.choose(on ? JSON.parse(button.dataset.bodies) : []); }
    if (figure && on) { figure.scrollIntoView({ block: "nearest" }); }
  });
})();

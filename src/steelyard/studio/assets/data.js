// The stage Data: plots of logs, the robot at the cursor, and the menus of units.
(function () {
  "use strict";
  var drawn = new Map();  // plots by source; a redrawn plot keeps the view of the previous one

  var stage = document.getElementById("stage");
  var sample = null;      // the sample at the cursor of a plot
  document.addEventListener("steelyard-sample", function (event) { sample = event.detail; });

  // The current plots, for scripts that control the page.
  Steelyard.plots = function () { return Array.from(drawn.values()); };

  function plot(box) {
    var source = box.dataset.plot, before = drawn.get(source);
    delete box.dataset.plot;
    drawn.forEach(function (handle) { handle.stop(); });
    drawn.clear();
    drawn.set(source, Steelyard.plot(box, {
      source: source, log: box.dataset.log, title: box.dataset.title, values: document.getElementById("values"),
      view: before && before.view ? before.view() : undefined
    }));
  }

  function follow(figure) {
    var log = figure.dataset.follows, box = figure.querySelector(".space"), query = new URLSearchParams({ log: log });
    delete figure.dataset.follows;
    // After the plots, because the scene needs the pyramid.
    Promise.all(Array.from(drawn.values()).map(function (handle) { return handle.ready; })).then(function () {
      return Steelyard.ask("/data/data/scene?" + query);
    }).then(function (text) {
      var robot = Steelyard.robot(box, JSON.parse(text));
      if (!robot) { figure.querySelector("figcaption").textContent = "The robot cannot be drawn: this browser has no WebGL 2."; return; }
      figure.dataset.drawn = "yes";
      function stand() {
        if (sample && sample.log === log && sample.q) { robot.set(sample.q); figure.dataset.t = sample.t; }
      }
      document.addEventListener("steelyard-sample", function hear() {
        if (figure.isConnected) { stand(); } else { document.removeEventListener("steelyard-sample", hear); }
      });
      stand();
    }).catch(function (error) { figure.querySelector("figcaption").innerHTML = error.html || "The robot cannot be drawn."; });
  }

  // Do not update the stage while the form has unsaved choices.
  document.addEventListener("change", function (event) {
    if (event.target.closest("form[data-action='data/edit'], form[data-action='data/use']")) { stage.dataset.keep = "chosen"; }
  });

  function adopt(element) {
    if (element === stage) { delete stage.dataset.keep; }
    element.querySelectorAll("[data-plot]").forEach(plot);
    element.querySelectorAll("[data-follows]").forEach(follow);
  }
  Steelyard.adopters.push(adopt);
  adopt(document);

  // The signal of a column determines its possible units.
  document.addEventListener("change", function (event) {
    var found = /^signal\.(\d+)$/.exec(event.target.name || ""), box = event.target.closest("[data-units]");
    if (!found || !box) { return; }
    var menu = box.querySelector("select[name='unit." + found[1] + "']"), units = JSON.parse(box.dataset.units)[event.target.value] || [];
    menu.textContent = "";
    [""].concat(units).forEach(function (unit) { menu.add(new Option(unit || "SI", unit)); });
  });
})();

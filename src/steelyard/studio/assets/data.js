// The stage Data: logs are drawn, the robot follows the cursor, menus of units fit what a column is.
(function () {
  "use strict";
  var drawn = new Map();  // plots by their source: one that is drawn anew shows what the old one did

  var stage = document.getElementById("stage");
  var sample = null;      // what the cursor of a plot points at
  document.addEventListener("steelyard-sample", function (event) { sample = event.detail; });

  // What is drawn now, for who drives the page by a script.
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
    // After the plot, which knows how far the robot gets.
    Promise.all(Array.from(drawn.values()).map(function (handle) { return handle.ready; })).then(function () {
      return Steelyard.ask("/data/data/scene?" + query);
    }).then(function (text) {
      var robot = Steelyard.robot(box, JSON.parse(text));
      if (!robot) { figure.querySelector("figcaption").textContent = "This browser has no WebGL 2: the robot is not drawn."; return; }
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

  // What has been chosen, and not written yet, is not taken away by news of something else.
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

  // What a column is decides in which units it may be.
  document.addEventListener("change", function (event) {
    var found = /^signal\.(\d+)$/.exec(event.target.name || ""), box = event.target.closest("[data-units]");
    if (!found || !box) { return; }
    var menu = box.querySelector("select[name='unit." + found[1] + "']"), units = JSON.parse(box.dataset.units)[event.target.value] || [];
    menu.textContent = "";
    [""].concat(units).forEach(function (unit) { menu.add(new Option(unit || "SI", unit)); });
  });
})();

// The stage Data: what takes a moment is filled in, logs are drawn, the robot follows the cursor, menus of units fit.
(function () {
  "use strict";
  var drawn = new Map();  // plots by their source: one that is drawn anew shows what the old one did

  // One after the other: the process that computes them is one.
  var turn = Promise.resolve();
  function fill(box) {
    var query = new URLSearchParams({ log: box.dataset.log });
    if (box.dataset.propose) { query.set("propose", "1"); }
    var address = "/data/data/" + box.dataset.fill + "?" + query;
    delete box.dataset.fill;
    box.setAttribute("aria-busy", "true");
    turn = turn.then(function () { return box.isConnected ? Steelyard.ask(address) : null; }).then(function (html) {
      if (html !== null) { Steelyard.swap(box, html); }
    }, function (error) { box.innerHTML = error.html || "This could not be read: the studio does not answer."; })
      .then(function () { box.removeAttribute("aria-busy"); });
  }

  function plot(box) {
    var source = box.dataset.plot, before = drawn.get(source);
    delete box.dataset.plot;
    drawn.forEach(function (handle) { handle.stop(); });
    drawn.clear();
    drawn.set(source, Steelyard.plot(box, {
      source: source, log: box.dataset.log, title: box.dataset.title, view: before && before.view ? before.view() : undefined
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
      document.addEventListener("steelyard-sample", function hear(event) {
        if (!figure.isConnected) { document.removeEventListener("steelyard-sample", hear); return; }
        if (event.detail.log === log && event.detail.q) { robot.set(event.detail.q); figure.dataset.t = event.detail.t; }
      });
    }).catch(function (error) { figure.querySelector("figcaption").innerHTML = error.html || "The robot cannot be drawn."; });
  }

  function adopt(element) {
    element.querySelectorAll("[data-plot]").forEach(plot);
    element.querySelectorAll("[data-follows]").forEach(follow);
    element.querySelectorAll("[data-fill]").forEach(fill);
  }
  document.addEventListener("steelyard-swapped", function (event) { adopt(event.detail); });
  adopt(document.getElementById("stage"));

  // What a column is decides in which units it may be.
  document.addEventListener("change", function (event) {
    var found = /^signal\.(\d+)$/.exec(event.target.name || ""), box = event.target.closest("[data-units]");
    if (!found || !box) { return; }
    var menu = box.querySelector("select[name='unit." + found[1] + "']"), units = JSON.parse(box.dataset.units)[event.target.value] || [];
    menu.textContent = "";
    [""].concat(units).forEach(function (unit) { menu.add(new Option(unit || "SI", unit)); });
  });
})();

// One time for the whole page: pointing at a figure over time says which, and a line in all of them shows it.
(function () {
  "use strict";
  // The panels of a drawn figure: their axes with the place of each in pixels.
  function panels(area) {
    var full = area._fullLayout, out = [];
    Object.keys(full || {}).forEach(function (name) {
      var found = /^xaxis(\d*)$/.exec(name), y = found && full["yaxis" + found[1]];
      if (y && full[name]._length) { out.push({ x: full[name], y: y }); }
    });
    return out;
  }

  function lines(figure, area) {
    var here = JSON.parse(figure.dataset.clock) === Steelyard.now.log && Steelyard.now.t !== null;
    var all = here ? panels(area) : [], made = area.querySelectorAll(".time-line");
    for (var n = all.length; n < made.length; n++) { made[n].remove(); }
    all.forEach(function (panel, k) {
      var line = made[k] || area.appendChild(Object.assign(document.createElement("div"), { className: "time-line" }));
      var x = panel.x.d2p(Steelyard.now.t);
      line.hidden = !(x >= 0 && x <= panel.x._length);
      line.style.left = panel.x._offset + x + "px";
      line.style.top = panel.y._offset + "px";
      line.style.height = panel.y._length + "px";
    });
  }

  Steelyard.drawn.push(function (figure, area) {
    if (!figure.dataset.clock) { return; }
    lines(figure, area);
    if (area.dataset.listens) { return; }
    area.dataset.listens = "yes";
    area.addEventListener("pointermove", function (event) {
      var box = area.getBoundingClientRect(), x = event.clientX - box.left, y = event.clientY - box.top;
      panels(area).forEach(function (p) {
        var inside = x >= p.x._offset && x <= p.x._offset + p.x._length && y >= p.y._offset && y <= p.y._offset + p.y._length;
        if (inside && event.buttons === 0) { Steelyard.tell(JSON.parse(figure.dataset.clock), p.x.p2d(x - p.x._offset), "figure"); }
      });
    });
  });

  document.addEventListener("steelyard-time", function () {
    Steelyard.figures.forEach(function (figure) {
      if (figure.dataset.clock && figure.dataset.drawn && figure.offsetParent !== null) { lines(figure, figure.querySelector(".area")); }
    });
  });
})();

// Figures with a panel for each joint: all of them small and beside each other, or the one that the reader has chosen.
(function () {
  "use strict";
  var ALL = "";

  function place(which, k) { return k ? which + (k + 1) : which; }
  function key(which, k) { return which + "axis" + (k ? k + 1 : ""); }
  function owner(reference) { var found = /^[xy](\d*)/.exec(reference || "x"); return found && found[1] ? found[1] - 1 : 0; }

  // Where the panels of `names` stand; what belongs to others is left out.
  Steelyard.arrange = function (made, names, joint, width) {
    var layout = made.layout;
    var chosen = names.map(function (_, k) { return k; }).filter(function (k) { return joint === ALL || names[k] === joint; });
    if (!chosen.length) { chosen = names.map(function (_, k) { return k; }); }
    var one = chosen.length === 1;
    var columns = Math.min(chosen.length, width >= 860 ? 3 : width >= 540 ? 2 : 1);
    var rows = Math.ceil(chosen.length / columns);
    var shared = names.some(function (_, k) { return layout[key("x", k)].matches; });
    var tall = one ? 260 : columns === 1 ? 105 : 115;
    var beside = 48, above = shared ? 30 : 46, top = 62, bottom = 50, left = one ? 62 : 46, right = 12;
    var wide = (width - left - right - beside * (columns - 1)) / columns;
    var inside = rows * tall + (rows - 1) * above;
    layout.height = top + inside + bottom;
    layout.margin = { t: top, b: bottom, l: left, r: right };
    layout.legend.y = 1 + 26 / inside;
    layout.annotations = [];
    chosen.forEach(function (k, n) {
      var column = n % columns, row = Math.floor(n / columns), lowest = n + columns >= chosen.length;
      var x = layout[key("x", k)], y = layout[key("y", k)];
      var start = column * (wide + beside) / (width - left - right), end = start + wide / (width - left - right);
      var high = 1 - row * (tall + above) / inside;
      x.domain = [start, Math.min(end, 1)];
      y.domain = [Math.max(high - tall / inside, 0), high];
      x.anchor = place("y", k);
      y.anchor = place("x", k);
      x.automargin = y.automargin = false;
      var unit = /\[[^\]]*\]\s*$/.exec((y.title && y.title.text) || "");
      if (one) { delete x.matches; } else {
        y.title = { text: "" };
        y.nticks = 4;
        x.nticks = 6;
      }
      x.showticklabels = !shared || lowest;
      if (lowest && !one && shared) { x.title = Object.assign({}, x.title, layout[key("x", names.length - 1)].title); }
      if (!lowest) { x.title = { text: "" }; }
      layout.annotations.push({
        text: made.joints[k] + (!one && unit ? " " + unit[0] : ""), font: { size: 13 }, showarrow: false, x: start,
        xanchor: "left", xref: "paper", y: high, yanchor: "bottom", yref: "paper"
      });
    });
    names.forEach(function (_, k) {
      if (chosen.indexOf(k) < 0) { delete layout[key("x", k)]; delete layout[key("y", k)]; }
    });
    var told = {};
    made.data.forEach(function (trace) { if (trace.showlegend) { told[trace.legendgroup] = true; } });
    made.data = made.data.filter(function (trace) { return chosen.indexOf(owner(trace.xaxis)) >= 0; });
    made.data.forEach(function (trace) {
      if (trace.legendgroup === undefined) { return; }
      trace.showlegend = Boolean(told[trace.legendgroup]);
      delete told[trace.legendgroup];
    });
    layout.shapes = (layout.shapes || []).filter(function (shape) { return chosen.indexOf(owner(shape.xref)) >= 0; });
  };

  // One selector for the whole page.
  var bar = null, picked = false;
  Steelyard.choose = function (name) {
    Steelyard.joint = name;
    if (bar) { bar.querySelectorAll("input").forEach(function (input) { input.checked = input.value === name; }); }
    Steelyard.redraw(function (figure) { return figure.dataset.joints; });
    document.dispatchEvent(new CustomEvent("steelyard-joint", { detail: name }));
  };

  Steelyard.adopters.push(function () {
    var names = [];
    Steelyard.figures.forEach(function (figure) {
      var data = figure.querySelector(".plot-data");
      ["joints", "clock"].forEach(function (what) { if (data.dataset[what]) { figure.dataset[what] = data.dataset[what]; } });
      JSON.parse(data.dataset.joints || "[]").forEach(function (name) { if (names.indexOf(name) < 0) { names.push(name); } });
    });
    if (bar) { bar.remove(); bar = null; }
    if (names.length < 2) { return; }
    // A phone has no room for all of them.
    if (names.indexOf(Steelyard.joint) < 0) {
      Steelyard.joint = window.innerWidth < 600 ? names[0] : ALL;
      // A frame may get its width only after it was loaded.
      window.addEventListener("resize", function wider() {
        if (window.innerWidth < 600) { return; }
        window.removeEventListener("resize", wider);
        if (!picked) { Steelyard.choose(ALL); }
      });
    }
    bar = document.createElement("fieldset");
    bar.className = "joints";
    bar.innerHTML = "<legend>Joint</legend>";
    [ALL].concat(names).forEach(function (name) {
      var label = document.createElement("label"), input = document.createElement("input");
      input.type = "radio";
      input.name = "joint";
      input.value = name;
      input.checked = name === Steelyard.joint;
      label.appendChild(input);
      label.appendChild(document.createTextNode(name === ALL ? "all" : name));
      bar.appendChild(label);
      input.addEventListener("change", function () { picked = true; Steelyard.choose(name); });
    });
    document.querySelector("main").prepend(bar);
  });
})();

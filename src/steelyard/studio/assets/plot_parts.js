// Parts around a plot of a log: buttons, the legend, and a table of values for screen readers.
(function () {
  "use strict";
  var SVG = "http://www.w3.org/2000/svg", WORDS = { q: "position", dq: "velocity", tau: "torque" };

  function digits(x) { return Number.isFinite(x) ? String(Number(x.toPrecision(4))).replace("-", "−") : "–"; }

  Steelyard.plotButtons = function (bar, legend, on) {
    [["◀", "Earlier", on.back], ["▶", "Later", on.on], ["+", "Zoom in", on.larger], ["−", "Zoom out", on.smaller],
     ["All", "Show the whole log", on.all], ["Fit", "Fit the heights to the visible part", on.fit]].forEach(function (one) {
      var button = document.createElement("button");
      button.type = "button";
      button.textContent = one[0];
      button.title = one[1];
      button.setAttribute("aria-label", one[1]);
      button.addEventListener("click", one[2]);
      bar.appendChild(button);
    });
    on.joints.forEach(function (joint, k) {
      var button = document.createElement("button"), picture = document.createElementNS(SVG, "svg"), path = document.createElementNS(SVG, "path");
      button.type = "button";
      button.setAttribute("aria-pressed", String(on.seen[k]));
      picture.setAttribute("width", "26");
      picture.setAttribute("height", "8");
      picture.setAttribute("aria-hidden", "true");
      path.setAttribute("d", "M0 4H26");
      path.setAttribute("stroke-width", "2.5");
      picture.appendChild(path);
      button.appendChild(picture);
      var units = on.about.columns.filter(function (c) { return c.joint === joint && c.signal === "q"; }).map(function (c) { return c.unit; });
      button.appendChild(document.createTextNode(joint + (on.units && units.length ? " [" + units[0] + "]" : "")));
      function colours() {
        var line = Steelyard.lineOf(k, Steelyard.dark());
        path.setAttribute("stroke", line.colour);
        path.setAttribute("stroke-dasharray", line.dash.join(" "));
      }
      button.addEventListener("click", function () {
        on.seen[k] = !on.seen[k];
        button.setAttribute("aria-pressed", String(on.seen[k]));
        on.changed();
      });
      legend.addEventListener("colours", colours);
      colours();
      legend.appendChild(button);
    });
  };

  // A table of the ranges of all lines and of the values at the cursor.
  Steelyard.plotValues = function (place, about, joints, signals) {
    var title = document.createElement("p"), scroll = document.createElement("div"), table = document.createElement("table");
    title.className = "table-title";
    title.textContent = "Point at the plot to see the values at a time";
    scroll.className = "scroll plot-values";
    scroll.tabIndex = 0;
    scroll.setAttribute("role", "region");
    scroll.setAttribute("aria-label", "Values at the cursor and ranges of the whole log");
    var head = table.createTHead().insertRow(), body = table.createTBody(), cells = [];
    function top(text, number) {
      var cell = document.createElement("th");
      cell.scope = "col";
      cell.textContent = text;
      if (number) { cell.className = "number"; }
      head.appendChild(cell);
    }
    top("joint");
    // A unit that all joints share is in the header.
    var shared = {};
    signals.forEach(function (s) {
      var units = about.columns.filter(function (c) { return c.signal === s; }).map(function (c) { return c.unit; });
      shared[s] = units.every(function (u) { return u === units[0]; });
      top((WORDS[s] || s) + (shared[s] ? " [" + units[0] + "]" : ""), true);
      top("smallest … largest", true);
      if (!shared[s]) { top("unit"); }
    });
    joints.forEach(function (joint) {
      var row = body.insertRow(), name = document.createElement("th");
      name.scope = "row";
      name.textContent = joint;
      row.appendChild(name);
      signals.forEach(function (s) {
        var index = about.columns.findIndex(function (c) { return c.joint === joint && c.signal === s; }), column = about.columns[index];
        var value = row.insertCell(), range = row.insertCell();
        value.className = range.className = "number";
        value.textContent = "–";
        range.textContent = column ? digits(column.low) + " … " + digits(column.high) : "–";
        if (!shared[s]) { row.insertCell().textContent = column ? column.unit : ""; }
        cells.push([index, value]);
      });
    });
    scroll.appendChild(table);
    place.appendChild(title);
    place.appendChild(scroll);
    return {
      show: function (found) {
        title.textContent = "At " + found.t.toFixed(4) + " s";
        cells.forEach(function (cell) { if (cell[0] >= 0) { cell[1].textContent = digits(found.values[cell[0]]); } });
      }
    };
  };
})();

// Parts around a plot of a log: buttons, the legend, and a table of values for screen readers.
(function () {
  "use strict";
  var SVG = "http://www.w3.org/2000/svg", WORDS = { q: "position", dq: "velocity", tau: "torque" };

  function digits(x) { return Number.isFinite(x) ? String(Number(x.toPrecision(4))).replace("-", "−") : "–"; }

  Steelyard.plotButtons = function (bar, legend, on) {
    [["◀", "Earlier", on.back], ["▶", "Later", on.on], ["+", "Zoom in", on.larger], ["−", "Zoom out", on.smaller],
     ["All", "Show the whole log", on.all], ["Fit", "Fit the heights to the visible part", on.fit],
     ["PNG", "Save the picture as PNG", on.picture], ["CSV", "Save the visible samples as CSV", on.csv]].forEach(function (one) {
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

  function save(blob, name) {
    var link = document.createElement("a");
    link.href = URL.createObjectURL(blob);
    link.download = name;
    link.click();
    setTimeout(function () { URL.revokeObjectURL(link.href); }, 10000);
  }
  function fileName(options, ending) { return (options.log || "plot").replace(/^.*\//, "").replace(/[^\w.-]+/g, "_") + ending; }

  // Save the drawn canvas with a title and the legend of its lines; the page's canvas is transparent and has neither.
  Steelyard.savePicture = function (canvas, options, joints, seen) {
    var ratio = canvas.width / canvas.clientWidth, made = document.createElement("canvas"), ink = made.getContext("2d");
    var LINE = 20, left = 64, right = canvas.clientWidth - 12, at = left, row = 1;
    ink.font = "13px system-ui, sans-serif";
    var places = joints.map(function (joint, k) { return { joint: joint, k: k }; }).filter(function (one) { return seen[one.k]; }).map(function (one) {
      var wide = 40 + ink.measureText(one.joint).width + 14;
      if (at + wide > right && at > left) { at = left; row += 1; }
      var place = { joint: one.joint, k: one.k, x: at, row: row };
      at += wide;
      return place;
    });
    var top = LINE * (row + 1) + 10;
    made.width = canvas.width;
    made.height = canvas.height + Math.round(top * ratio);
    ink.fillStyle = Steelyard.colour("--paper");
    ink.fillRect(0, 0, made.width, made.height);
    ink.scale(ratio, ratio);
    ink.textBaseline = "middle";
    ink.fillStyle = Steelyard.colour("--ink");
    ink.font = "600 14px system-ui, sans-serif";
    ink.fillText((options.title ? options.title + ": " : "") + (options.log || ""), left, 14);
    ink.font = "13px system-ui, sans-serif";
    places.forEach(function (place) {
      var line = Steelyard.lineOf(place.k, Steelyard.dark()), y = 14 + LINE * place.row;
      ink.strokeStyle = line.colour;
      ink.lineWidth = 2.5;
      ink.setLineDash(line.dash);
      ink.beginPath();
      ink.moveTo(place.x, y);
      ink.lineTo(place.x + 28, y);
      ink.stroke();
      ink.fillText(place.joint, place.x + 36, y);
    });
    ink.setLineDash([]);
    ink.drawImage(canvas, 0, top, canvas.clientWidth, canvas.clientHeight);
    made.toBlob(function (blob) { save(blob, fileName(options, ".png")); });
  };

  Steelyard.saveSamples = function (figure, options, t0, t1) {
    Steelyard.ask(Steelyard.withQuery(options.source, { csv: 1, t0: t0, t1: t1 })).then(function (text) {
      save(new Blob([text], { type: "text/csv" }), fileName(options, ".part.csv"));
    }).catch(function (error) { Steelyard.trouble(figure, error); });
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

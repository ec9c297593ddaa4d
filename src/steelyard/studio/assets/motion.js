// The stage Motion: the command of the form, the live curve of a search, and the robots of a rehearsal.
(function () {
  "use strict";
  var WIDE = 720, HIGH = 240, LEFT = 64, RIGHT = 14, TOP = 12, FOOT = 36;
  var received = {}, bestOf = {};

  function svg(name, attributes, parent) {
    var made = document.createElementNS("http://www.w3.org/2000/svg", name);
    Object.keys(attributes).forEach(function (key) { made.setAttribute(key, attributes[key]); });
    return parent ? parent.appendChild(made) : made;
  }
  function words(x) { return x === null || x === undefined ? "–" : Math.abs(x) >= 1e5 || (x && Math.abs(x) < 1e-3) ? x.toExponential(2) : String(+x.toPrecision(4)); }

  // Three to six round numbers between two values.
  function marks(low, high) {
    var step = Math.pow(10, Math.floor(Math.log10((high - low) / 3 || 1))), out = [];
    if ((high - low) / step > 6) { step *= 2; }
    if ((high - low) / step > 6) { step *= 2.5; }
    for (var x = Math.ceil(low / step) * step; x <= high + 1e-9 * step; x += step) { out.push(x); }
    return out;
  }
  function powers(low, high) {
    var out = [], few = high - low < 2.5;
    for (var k = Math.floor(low); k <= Math.ceil(high); k++) {
      (few ? [1, 2, 5] : [1]).forEach(function (m) {
        var at = Math.log10(m) + k;
        if (at >= low - 1e-9 && at <= high + 1e-9) { out.push(m * Math.pow(10, k)); }
      });
    }
    return out;
  }

  // The events as a line (best so far), dots (trials) and a diamond (saved motion).
  function points(seen, key) {
    var best = [], tried = [], kept = null;
    seen.forEach(function (one) {
      (one.earlier && key === "best" ? one.earlier : []).forEach(function (pair) { best.push([pair[0], pair[1]]); });
      if (one[key] !== null && one[key] !== undefined) { best.push([one.evaluations, one[key]]); }
      if (key === "best" && one.now) { tried.push([one.evaluations, one.now]); }
      if (key === "best" && one.settled) { kept = [one.evaluations, one.settled]; }
    });
    best.sort(function (a, b) { return a[0] - b[0]; });
    return { best: best, tried: tried, kept: kept };
  }

  function draw(box, found, title) {
    var values = found.best.map(function (p) { return p[1]; }).concat(found.kept ? [found.kept[1]] : []);
    if (!values.length) { return; }
    var low = Math.min.apply(null, values), high = Math.max.apply(null, values), log = low > 0 && high > 3 * low;
    function scale(y) { return log ? Math.log10(y) : y; }
    var bottom = scale(low), top = scale(high), room = 0.06 * (top - bottom) || 0.05 * Math.abs(top) || 1;
    bottom -= room; top += room;
    var last = found.best[found.best.length - 1][0], most = Math.max(last, found.tried.length ? found.tried[found.tried.length - 1][0] : 0, 1);
    function x(n) { return LEFT + (WIDE - LEFT - RIGHT) * n / most; }
    function y(v) { return TOP + (HIGH - TOP - FOOT) * (top - scale(v)) / (top - bottom); }
    var picture = svg("svg", { viewBox: "0 0 " + WIDE + " " + HIGH, role: "img", "aria-label": title + ": best " + words(found.best[found.best.length - 1][1]) + " after " + last + " evaluations" });
    (log ? powers(bottom, top) : marks(bottom, top)).forEach(function (v) {
      svg("path", { d: "M" + LEFT + " " + y(v).toFixed(1) + "H" + (WIDE - RIGHT), "class": "grid" }, picture);
      svg("text", { x: LEFT - 8, y: y(v) + 4, "text-anchor": "end" }, picture).textContent = words(v);
    });
    marks(0, most).forEach(function (n) {
      svg("text", { x: x(n), y: HIGH - FOOT + 18, "text-anchor": "middle" }, picture).textContent = words(n);
    });
    svg("text", { x: WIDE - RIGHT, y: HIGH - 4, "text-anchor": "end" }, picture).textContent = "evaluations";
    svg("path", { d: "M" + LEFT + " " + TOP + "V" + (HIGH - FOOT) + "H" + (WIDE - RIGHT), "class": "axis" }, picture);
    found.tried.slice(-400).forEach(function (p) {
      var v = p[1];
      if (log && v <= 0 || scale(v) > top || scale(v) < bottom) { return; }
      svg("circle", { cx: x(p[0]).toFixed(1), cy: y(v).toFixed(1), r: 1.6, "class": "tried" }, picture);
    });
    var way = found.best.map(function (p, k) { return k ? "H" + x(p[0]).toFixed(1) + "V" + y(p[1]).toFixed(1) : "M" + x(p[0]).toFixed(1) + " " + y(p[1]).toFixed(1); }).join("");
    svg("path", { d: way + "H" + x(most).toFixed(1), "class": "best" }, picture);
    if (found.kept) { svg("path", { d: "M" + x(found.kept[0]).toFixed(1) + " " + (y(found.kept[1]) - 6).toFixed(1) + "l6 6l-6 6l-6 -6z", "class": "kept" }, picture); }
    var name = document.createElement("p");
    name.className = "curve-title";
    name.textContent = title;
    box.append(name, picture);
  }

  function show(box) {
    var seen = box.dataset.history ? null : received[box.dataset.curve] || [];
    if (seen && !seen.length) { return; }
    box.replaceChildren();
    if (!seen) {
      draw(box, { best: JSON.parse(box.dataset.history), tried: [], kept: null }, box.dataset.of);
      return;
    }
    var at = seen[seen.length - 1], known = seen.filter(function (one) { return one.criterion; }).pop() || {};
    draw(box, points(seen, "best"), known.criterion || "criterion");
    if (known.criterion && Math.abs(known.condition_number / known.best - 1) > 1e-6) { draw(box, points(seen, "condition_number"), "condition number"); }
    var line = document.createElement("p");
    line.className = "numbers";
    line.textContent = at.evaluations + " evaluations · best " + words(known.best) + " · condition number " + words(known.condition_number) +
      (at.settled ? " · within all limits " + words(at.settled) : at.feasible === false ? " · not within all limits yet" : "");
    box.append(line);
  }

  // A search can be stopped once it has a motion; before that it can only be cancelled.
  function ready(job) {
    bestOf[job] = bestOf[job] || (received[job] || []).some(function (one) { return one.best !== null && one.best !== undefined; });
    document.querySelectorAll("[data-job='" + CSS.escape(job) + "'] form[data-action='motion/stop'] button").forEach(function (b) {
      b.disabled = !bestOf[job];
      b.title = bestOf[job] ? "" : "The search has no motion yet.";
    });
  }

  function trials(job) {
    document.querySelectorAll("table[data-trials='" + CSS.escape(job) + "'] tbody").forEach(function (body) {
      body.replaceChildren();
      (received[job] || []).filter(function (one) { return one.of === "rehearsal"; }).forEach(function (one) {
        var row = body.insertRow();
        [one.robot + " of " + one.robots, one.outside].concat([one.share_of_limit, one.share_of_torque_limit, one.error_over_allowed]
          .map(function (x) { return x === null ? "–" : words(100 * x); })).forEach(function (value, k) {
          var cell = row.insertCell();
          cell.textContent = value;
          if (k) { cell.className = "number"; }
        });
      });
    });
  }

  function all(root) { root.querySelectorAll("[data-curve]").forEach(show); }
  // Draw at most five times per second.
  var waiting = {};
  function soon(job) {
    if (waiting[job]) { return; }
    waiting[job] = setTimeout(function () {
      delete waiting[job];
      document.querySelectorAll("[data-curve='" + CSS.escape(job) + "']").forEach(show);
      ready(job);
      trials(job);
    }, 200);
  }

  document.addEventListener("steelyard-progress", function (event) {
    var news = event.detail;
    if (!news.seen || !news.seen.length) { return; }
    received[news.job] = (received[news.job] || []).concat(news.seen);
    if (received[news.job].length > 6000) { received[news.job] = received[news.job].filter(function (one, k) { return one.earlier || k % 2; }); }
    soon(news.job);
  });

  // The command for the current form.
  var previews = 0;
  function preview(form) {
    var mine = ++previews;
    Steelyard.post("motion/set", new FormData(form)).then(function (html) {
      var box = document.getElementById("motion-command");
      if (box && mine === previews) { Steelyard.swap(box, html); }
    }).catch(function (error) {
      var box = document.getElementById("motion-command");
      if (box && mine === previews && error.html) { Steelyard.swap(box, error.html); }
    });
  }
  document.addEventListener("change", function (event) {
    var form = event.target.closest("form.motion-form");
    if (form) { preview(form); }
  });

  // Events from before this page was opened.
  function begin(root) {
    all(root);
    root.querySelectorAll("[data-curve]:not([data-history]), [data-trials]").forEach(function (box) {
      var job = box.dataset.curve || box.dataset.trials;
      ready(job);
      trials(job);
      if (received[job]) { return; }
      Steelyard.ask("/data/motion/curve?job=" + encodeURIComponent(job)).then(function (text) {
        received[job] = JSON.parse(text).concat(received[job] || []);
        soon(job);
      }).catch(function () { return null; });
    });
  }
  document.addEventListener("steelyard-swapped", function (event) {
    if (event.detail.id === "stage") { begin(event.detail); }
  });
  document.addEventListener("steelyard-theme", function () { all(document); });
  begin(document);
})();

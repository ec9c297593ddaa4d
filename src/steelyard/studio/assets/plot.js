// Plot of a log of any length over time: panels with pan and zoom by wheel, touch and keys.
(function () {
  "use strict";
  var WORDS = { q: "position", dq: "velocity", tau: "torque" };
  var LEFT = 64, RIGHT = 12, TOP = 8, BOTTOM = 40, BETWEEN = 14, PANEL = 150;
  var HELP = "Arrow keys: pan. Plus and minus: zoom. Home: whole log. F: fit the heights. Comma and full stop: move the cursor.";

  function make(name, into, text, classes) {
    var element = document.createElement(name);
    if (text) { element.textContent = text; }
    if (classes) { element.className = classes; }
    if (into) { into.appendChild(element); }
    return element;
  }

  // About `count` ticks with steps of 1, 2 or 5 times a power of ten.
  function ticks(low, high, count) {
    var step = Math.pow(10, Math.floor(Math.log10((high - low) / count))), rest = (high - low) / count / step;
    step *= rest > 7 ? 10 : rest > 3.5 ? 5 : rest > 1.5 ? 2 : 1;
    var out = [], places = Math.max(0, -Math.floor(Math.log10(step) + 1e-9));
    for (var k = Math.ceil(low / step - 1e-9); k * step <= high + 1e-9 * step; k++) { out.push([k * step, (k * step).toFixed(places).replace("-", "−")]); }
    return out;
  }
  // The power of ten for numbers with many digits, and its text before the unit.
  function power(low, high) {
    var n = Math.floor(Math.log10(Math.max(Math.abs(low), Math.abs(high))) + 1e-9);
    return n < -2 || n > 4 ? n : 0;
  }
  function ten(n) { return n ? "10" + String(n).replace("-", "⁻").replace(/\d/g, function (d) { return "⁰¹²³⁴⁵⁶⁷⁸⁹"[d]; }) + " " : ""; }
  function digits(x) { return Number.isFinite(x) ? String(Number(x.toPrecision(4))).replace("-", "−") : "–"; }
  function distinct(list) { return list.filter(function (x, k) { return list.indexOf(x) === k; }); }
  function plain(html) { return new DOMParser().parseFromString(html, "text/html").body.textContent.trim(); }
  // A range with a margin, also for a range of zero width.
  function roomy(low, high) { var rest = (high - low) * 0.06 || Math.abs(high) * 0.1 || 1; return [low - rest, high + rest]; }

  // `options`: source (address of the pyramid), log (its name in the page's clock), title, panels (default: all there
  // are), joints (names to begin with; default: all), units (true: in the legend, where joints differ), view (from, to),
  // values (an element for the table of values; default: below).
  Steelyard.plot = function (box, options) {
    var stopped = false, handle = { frames: 0, ready: null, stop: function () { stopped = true; } };
    var figure = make("figure", box, "", "long-plot");
    if (options.title) { make("h3", figure, options.title); }
    var word = make("p", figure, "Loading the plot …", "plot-word");
    word.setAttribute("role", "status");
    handle.ready = fetch(options.source, { credentials: "same-origin" }).then(function (answer) {
      if (!answer.ok) { return answer.text().then(function (text) { throw new Error(plain(text) || answer.status); }); }
      return answer.json();
    }).then(function (about) {
      if (stopped) { return handle; }
      word.textContent = about.wait || "";  // a job prepares the plot; the stage is updated when it is done
      if (about.wait) { return handle; }
      return show(figure, word, about, options, handle);
    }).catch(function (error) { word.textContent = "The plot cannot be drawn: " + error.message; return handle; });
    return handle;
  };

  function show(figure, word, about, options, handle) {
    var signals = distinct(about.columns.map(function (c) { return c.signal; })).filter(function (s) { return !options.panels || options.panels.indexOf(s) >= 0; });
    var joints = distinct(about.columns.map(function (c) { return c.joint; }));
    var seen = joints.map(function (j) { return !options.joints || options.joints.indexOf(j) >= 0; });
    var log = options.log || options.source;
    var t0 = about.start, t1 = about.end, cursor = null, fitted = null, frame = 0, drag = null, fingers = new Map();
    var tiles = Steelyard.tiles(options.source, about, function (tile) {
      if (tile && strips) { strips.refresh(tile); }
      word.textContent = tiles.failing() ? "The server does not answer; the plot retries automatically." : "";
      if (!tile) { setTimeout(draw, 2100); }
      draw();
    });
    var strips = null, ghost = null;
    var legend = make("div", figure, "", "plot-legend"), bar = make("div", figure, "", "plot-bar");
    legend.setAttribute("role", "group");
    legend.setAttribute("aria-label", "Joints shown");
    var area = make("div", figure, "", "plot-area"), canvas = make("canvas", area), line = make("div", area, "", "time-line");
    canvas.tabIndex = 0;
    canvas.setAttribute("role", "img");
    line.hidden = true;
    var help = make("p", figure, HELP, "plot-help");
    help.id = "plot-help-" + Math.random().toString(36).slice(2);
    canvas.setAttribute("aria-describedby", help.id);
    var values = Steelyard.plotValues(options.values || figure, about, joints, signals);
    var ink = canvas.getContext("2d"), height = TOP + BOTTOM + signals.length * PANEL + (signals.length - 1) * BETWEEN, wide = 0, ratio = 1;

    function columns(signal) {
      return about.columns.map(function (c, k) { return { about: c, index: k, joint: joints.indexOf(c.joint) }; })
        .filter(function (c) { return c.about.signal === signal && seen[c.joint]; });
    }
    function whole(signal) {
      var shown = columns(signal);
      if (!shown.length) { return [-1, 1]; }
      return roomy(Math.min.apply(null, shown.map(function (c) { return c.about.low; })), Math.max.apply(null, shown.map(function (c) { return c.about.high; })));
    }
    function scale() { return (wide - LEFT - RIGHT) / (t1 - t0); }

    // The current look of the strips.
    function look() {
      var made = { scale: scale(), origin: about.start, height: height - BOTTOM, ratio: ratio, gap: about.gap, panels: [] };
      signals.forEach(function (signal, n) {
        var range = fitted && fitted[signal] || whole(signal);
        // Lines with the smallest range last, or the others would hide them.
        var lines = columns(signal).sort(function (a, b) { return b.about.high - b.about.low - a.about.high + a.about.low; })
          .map(function (c) { return Object.assign({ column: c.index }, Steelyard.lineOf(c.joint, Steelyard.dark())); });
        made.panels.push({ signal: signal, top: TOP + n * (PANEL + BETWEEN), height: PANEL, low: range[0], high: range[1], lines: lines });
      });
      return made;
    }
    function same(a, b) { return Math.abs(a.scale / b.scale - 1) < 1e-9 && JSON.stringify(Object.assign({}, a, { scale: 0 })) === JSON.stringify(Object.assign({}, b, { scale: 0 })); }

    function measure() {
      ratio = Math.min(window.devicePixelRatio || 1, 2);
      wide = Math.max(240, area.clientWidth);
      canvas.width = Math.round(wide * ratio);
      canvas.height = Math.round(height * ratio);
      canvas.style.height = height + "px";
      ghost = null;
      changed();
    }

    // The look of lines changes: keep the old picture until they are drawn.
    function changed() {
      var next = look();
      if (strips && same(strips.look, next)) { draw(); return; }
      if (strips && canvas.width && handle.frames) {
        var picture = document.createElement("canvas");
        picture.width = canvas.width;
        picture.height = canvas.height;
        picture.getContext("2d").drawImage(canvas, 0, 0);
        ghost = { canvas: picture, t0: handle.t0, t1: handle.t1, panels: JSON.stringify(strips.look.panels.map(function (p) { return [p.low, p.high]; })) };
      }
      strips = Steelyard.strips(tiles, next);
      draw();
    }

    function draw() { if (!frame) { frame = requestAnimationFrame(paint); } }

    function paint() {
      frame = 0;
      if (!canvas.isConnected) { tiles.stop(); return; }
      handle.frames += 1;
      handle.t0 = t0;
      handle.t1 = t1;
      var s = scale(), inside = wide - LEFT - RIGHT;
      ink.setTransform(ratio, 0, 0, ratio, 0, 0);
      ink.clearRect(0, 0, wide, height);
      ink.save();
      ink.beginPath();
      ink.rect(LEFT, 0, inside, height - BOTTOM);
      ink.clip();
      var stands = ghost && ghost.panels === JSON.stringify(strips.look.panels.map(function (p) { return [p.low, p.high]; }));
      if (stands) {
        var stretch = s * (ghost.t1 - ghost.t0) / inside;
        ink.drawImage(ghost.canvas, LEFT * ratio, 0, inside * ratio, (height - BOTTOM) * ratio, LEFT + (ghost.t0 - t0) * s, 0, inside * stretch, height - BOTTOM);
      }
      var done = strips.paint(ink, t0, t1, LEFT, 8, function (from, to) {
        return stands && Math.max(from, t0) >= ghost.t0 && Math.min(to, t1) <= ghost.t1;
      });
      ink.restore();
      axes(s, inside);
      if (done) { ghost = null; } else { draw(); }
      tiles.want(strips.z, t0, t1);
      place();
      handle.complete = done && !tiles.waiting();
    }

    function axes(s, inside) {
      var colour = Steelyard.colour, text = colour("--ink"), faint = colour("--faint"), grid = colour("--grid"), edge = colour("--line");
      ink.font = "12px system-ui, sans-serif";
      ink.lineWidth = 1;
      var across = ticks(t0, t1, Math.max(2, inside / 110));
      ink.globalCompositeOperation = "destination-over";  // behind the lines
      strips.look.panels.forEach(function (p) {
        p.power = power(p.low, p.high);
        var by = Math.pow(10, p.power);
        p.ticks = ticks(p.low / by, p.high / by, 4).map(function (tick) { return [tick[0] * by, tick[1]]; });
        ink.strokeStyle = grid;
        ink.beginPath();
        across.forEach(function (tick) { var x = Math.round(LEFT + (tick[0] - t0) * s) + 0.5; ink.moveTo(x, p.top); ink.lineTo(x, p.top + p.height); });
        p.ticks.forEach(function (tick) { var y = level(p, tick[0]); ink.moveTo(LEFT, y); ink.lineTo(LEFT + inside, y); });
        ink.stroke();
      });
      ink.globalCompositeOperation = "source-over";
      ink.textBaseline = "middle";
      strips.look.panels.forEach(function (p) {
        ink.strokeStyle = edge;
        ink.strokeRect(LEFT - 0.5, p.top + 0.5, inside + 1, p.height - 1);
        ink.fillStyle = faint;
        ink.textAlign = "right";
        p.ticks.forEach(function (tick) { ink.fillText(tick[1], LEFT - 6, level(p, tick[0])); });
        ink.save();
        ink.translate(13, p.top + p.height / 2);
        ink.rotate(-Math.PI / 2);
        ink.textAlign = "center";
        ink.fillStyle = text;
        var units = distinct(columns(p.signal).map(function (c) { return c.about.unit; }));
        var word = units.join() === "A" ? "current" : WORDS[p.signal] || p.signal;
        ink.fillText(word + (units.length ? " [" + ten(p.power) + units.join(", ") + "]" : ""), 0, 0);
        ink.restore();
      });
      ink.textAlign = "center";
      ink.fillStyle = faint;
      across.forEach(function (tick) {
        var half = ink.measureText(tick[1]).width / 2;
        ink.fillText(tick[1], Math.min(LEFT + (tick[0] - t0) * s, wide - half - 1), height - BOTTOM + 12);
      });
      ink.fillStyle = text;
      ink.fillText("time [s]", LEFT + inside / 2, height - 10);
    }
    function level(p, v) { return Math.round(p.top + p.height - (v - p.low) * p.height / (p.high - p.low)) + 0.5; }

    // ------------------------------------------------------------ view

    function go(from, to) {
      var least = Math.max(8 * (about.end - about.start) / Math.max(about.samples, 8), 1e-6), most = about.end - about.start || 1;
      var span = Math.min(Math.max(to - from, least), most), middle = (from + to) / 2;
      var before = t1 - t0;
      t0 = Math.min(Math.max(middle - span / 2, about.start), about.end - span);
      t1 = t0 + span;
      canvas.setAttribute("aria-label", label());
      if (Math.abs(span / before - 1) > 1e-12) { changed(); } else { draw(); }
    }
    function label() {
      return (options.title || "Log") + ": " + signals.map(function (s) { return WORDS[s] || s; }).join(", ") + " of " + joints.length +
        " joints, from " + digits(t0) + " to " + digits(t1) + " s of " + digits(about.start) + " to " + digits(about.end) + " s";
    }
    function move(share) { go(t0 + share * (t1 - t0), t1 + share * (t1 - t0)); }
    function magnify(factor, about_t) {
      var at = about_t === undefined ? (t0 + t1) / 2 : about_t;
      var from = at - (at - t0) * factor;
      go(from, from + (t1 - t0) * factor);
    }
    function all() { fitted = null; go(about.start, about.end); changed(); }
    // Fit the heights to the visible part.
    function fit() {
      fitted = {};
      var found = tiles.cover(strips.z, t0, t1).parts;
      signals.forEach(function (signal) {
        var low = Infinity, high = -Infinity;
        columns(signal).forEach(function (c) {
          found.forEach(function (part) {
            var tile = part[0];
            for (var k = 0; k < tile.count; k++) {
              if (tile.origin + tile.last[k] < t0 || tile.origin + tile.first[k] > t1) { continue; }
              low = Math.min(low, tile.low[c.index][k]);
              high = Math.max(high, tile.high[c.index][k]);
            }
          });
        });
        if (low <= high) { fitted[signal] = roomy(low, high); }
      });
      ghost = null;
      changed();
    }
    function time(event) { return t0 + (event.clientX - canvas.getBoundingClientRect().left - LEFT) / scale(); }

    // ------------------------------------------------------------ the cursor

    function place() {
      var x = cursor === null ? -1 : LEFT + (cursor - t0) * scale();
      line.hidden = !(x >= LEFT && x <= wide - RIGHT);
      line.style.left = x + "px";
      line.style.top = TOP + "px";
      line.style.height = height - BOTTOM - TOP + "px";
    }
    var asking = false, due = null;
    // The exact sample instead of a coarse tile's; one request at a time, then the latest.
    function sample() {
      if (asking || due === null) { return; }
      var t = due;
      due = null;
      asking = true;
      fetch(Steelyard.withQuery(options.source, { at: t }), { credentials: "same-origin" }).then(function (a) { return a.json(); }).then(function (found) {
        values.show(found);
        var by = {};
        signals.forEach(function (s) { by[s] = []; });
        about.columns.forEach(function (c, k) { (by[c.signal] = by[c.signal] || []).push(found.values[k]); });
        document.dispatchEvent(new CustomEvent("steelyard-sample", { detail: Object.assign({ log: log, t: found.t, joints: joints }, by) }));
      }).catch(function () { /* the next move asks again */ }).finally(function () { asking = false; sample(); });
    }
    function point(t, by) {
      cursor = Math.min(Math.max(t, about.start), about.end);
      place();
      due = cursor;
      sample();
      if (by !== "clock") { Steelyard.tell(log, cursor, "plot"); }
    }
    document.addEventListener("steelyard-time", function hear(event) {
      if (!canvas.isConnected) { document.removeEventListener("steelyard-time", hear); return; }
      if (event.detail.log === log && event.detail.by !== "plot") { point(event.detail.t, "clock"); }
    });

    // ------------------------------------------------------------ input

    canvas.addEventListener("wheel", function (event) {
      event.preventDefault();
      var sideways = event.shiftKey ? event.deltaY : event.deltaX;
      if (Math.abs(sideways) > Math.abs(event.shiftKey ? 0 : event.deltaY)) { move(sideways / (wide - LEFT - RIGHT)); return; }
      magnify(Math.exp(Math.max(-120, Math.min(120, event.deltaY)) * 0.0025), time(event));
    }, { passive: false });
    canvas.addEventListener("pointerdown", function (event) {
      fingers.set(event.pointerId, event.clientX);
      canvas.setPointerCapture(event.pointerId);
      drag = { x: event.clientX, t0: t0, t1: t1, wide: 0 };
    });
    canvas.addEventListener("pointermove", function (event) {
      if (fingers.has(event.pointerId)) { fingers.set(event.pointerId, event.clientX); }
      if (fingers.size === 2) {
        var ends = Array.from(fingers.values()), apart = Math.max(8, Math.abs(ends[0] - ends[1]));
        if (drag.wide) { magnify(drag.wide / apart, time({ clientX: (ends[0] + ends[1]) / 2 })); }
        drag = { x: event.clientX, t0: t0, t1: t1, wide: apart };
      } else if (fingers.size === 1 && !drag.wide) {
        var by = (event.clientX - drag.x) / scale();
        go(drag.t0 - by, drag.t1 - by);
      } else if (!fingers.size) { point(time(event)); }
    });
    ["pointerup", "pointercancel"].forEach(function (name) {
      canvas.addEventListener(name, function (event) {
        if (name === "pointerup" && drag && Math.abs(event.clientX - drag.x) < 4 && !drag.wide) { point(time(event)); }
        fingers.delete(event.pointerId);
        if (!fingers.size) { drag = null; }
      });
    });
    canvas.addEventListener("dblclick", all);
    canvas.addEventListener("keydown", function (event) {
      if (event.ctrlKey || event.metaKey || event.altKey) { return; }
      var far = event.shiftKey ? 0.5 : 0.1, step = (t1 - t0) / 200, now = cursor === null ? (t0 + t1) / 2 : cursor;
      var does = {
        ArrowLeft: function () { move(-far); }, ArrowRight: function () { move(far); },
        "+": function () { magnify(0.7); }, "=": function () { magnify(0.7); }, "-": function () { magnify(1 / 0.7); },
        Home: all, f: fit, F: fit, ",": function () { point(now - step); }, ".": function () { point(now + step); }
      }[event.key];
      if (does) { does(); event.preventDefault(); }
    });

    Steelyard.plotButtons(bar, legend, {
      joints: joints, seen: seen, units: options.units, about: about, changed: function () { ghost = null; changed(); },
      back: function () { move(-0.5); }, on: function () { move(0.5); }, larger: function () { magnify(0.5); },
      smaller: function () { magnify(2); }, all: all, fit: fit,
      picture: function () { Steelyard.savePicture(canvas, options, joints, seen); },
      csv: function () { Steelyard.saveSamples(figure, options, t0, t1); }
    });
    function recolour() {
      if (!canvas.isConnected) { document.removeEventListener("steelyard-theme", recolour); return; }
      ghost = null; legend.dispatchEvent(new Event("colours")); changed();
    }
    document.addEventListener("steelyard-theme", recolour);
    new ResizeObserver(function () { if (area.clientWidth !== wide || !strips) { measure(); } }).observe(area);
    measure();
    go.apply(null, options.view || [t0, t1]);
    Object.assign(handle, { go: go, move: move, all: all, fit: fit, point: point, about: about, view: function () { return [t0, t1]; }, stop: function () { tiles.stop(); figure.remove(); } });
    return handle;
  }
})();

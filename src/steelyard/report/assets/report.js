// Draws each figure when it comes near the screen, in the colours of the page, and again when those change.
(function () {
  "use strict";
  // What a figure shows, as a table of lines, x and y.
  function save(area) {
    var quoted = function (words) { return "\"" + String(words).replace(/"/g, "\"\"") + "\""; }, rows = ["line,x,y"];
    area.data.forEach(function (trace, n) {
      if (trace.visible === false || !trace.x || !trace.y) { return; }
      for (var k = 0; k < trace.x.length; k++) { rows.push([quoted(trace.name || "line " + (n + 1)), trace.x[k], trace.y[k]].join(",")); }
    });
    var link = document.createElement("a");
    link.href = URL.createObjectURL(new Blob([rows.join("\n") + "\n"], { type: "text/csv" }));
    link.download = "figure.csv";
    link.click();
    setTimeout(function () { URL.revokeObjectURL(link.href); }, 10000);
  }
  var sheet = { name: "csv", title: "Save the data as CSV", click: save, icon: { width: 24, height: 24, path: "M4 3h16v18H4zM6 5v3h5V5zM13 5v3h5V5zM6 10v4h5v-4zM13 10v4h5v-4zM6 16v3h5v-3zM13 16v3h5v-3z" } };
  var config = { responsive: true, displaylogo: false, modeBarButtons: [["zoom2d", "pan2d", "resetScale2d", "toImage", sheet]] };
  var figures = [];
  var texts = new Map();
  // `drawn` is called with a figure after it has been drawn; `adopters` with an element whose inside is new: the whole
  // page, at first.
  var shared = Object.assign(Steelyard, { figures: figures, joint: "", drawn: [], adopters: [] }), colour = shared.colour;

  function themed(layout) {
    var narrow = window.innerWidth < 600;
    layout.paper_bgcolor = layout.plot_bgcolor = "rgba(0,0,0,0)";
    layout.font = Object.assign({}, layout.font, { color: colour("--ink"), size: narrow ? 11 : 12 });
    layout.hoverlabel = { bgcolor: colour("--panel"), bordercolor: colour("--line"), font: { color: colour("--ink") } };
    Object.keys(layout).forEach(function (key) {
      if (/^[xy]axis\d*$/.test(key)) {
        layout[key].gridcolor = colour("--grid");
        layout[key].zerolinecolor = layout[key].linecolor = colour("--line");
      }
    });
    ["xaxis", "yaxis", "zaxis"].forEach(function (key) {
      if (layout.scene && layout.scene[key]) { layout.scene[key].gridcolor = layout.scene[key].zerolinecolor = colour("--grid"); }
    });
    layout.modebar = { bgcolor: "rgba(0,0,0,0)", color: colour("--faint"), activecolor: colour("--ink") };
    layout.margin = Object.assign({}, narrow ? { l: 8, r: 6 } : { l: 16, r: 16 }, layout.margin);
    if (narrow) { layout.dragmode = false; }
    return layout;
  }

  function draw(figure) {
    var area = figure.querySelector(".area");
    var text = texts.get(figure);
    // Ink would not be seen on a dark page, and the blue of the palette is too dark for thin lines there; its sky blue
    // is as easily told apart.
    if (shared.dark()) { text = text.replace(/#0072B2/g, "#56B4E9").replace(/#1B1F24/g, "#E6E8EB"); }
    var made = JSON.parse(text);
    if (shared.paper) { shared.thinned(made); }
    if (figure.dataset.joints) { shared.arrange(made, JSON.parse(figure.dataset.joints), shared.joint, area.clientWidth); }
    area.style.height = made.layout.height + "px";
    delete made.layout.height;
    var bar = window.innerWidth < 600 ? { displayModeBar: false } : {};
    var shown = window.Plotly.react(area, made.data, themed(made.layout), Object.assign({}, config, bar));
    if (made.frames.length && !figure.dataset.drawn) { shown.then(function () { window.Plotly.addFrames(area, made.frames); }); }
    figure.dataset.drawn = "yes";
    shared.drawn.forEach(function (what) { what(figure, area); });
  }

  var watch = null;
  function each(what) { figures.forEach(function (f) { if (!f.dataset.drawn) { what(f); } }); }

  // Draw again what is seen; what is hidden or far away is drawn when it comes into view.
  shared.redraw = function (which) {
    figures.filter(function (f) { return f.dataset.drawn && which(f); }).forEach(function (f) {
      delete f.dataset.drawn;
      watch.observe(f);
    });
  };

  // Milliseconds after which the page was this far: what is in view is drawn ("ready"), and all of it can be ("loaded").
  function note(what) {
    var page = document.documentElement.dataset;
    if (!page[what]) { page[what] = Math.round(performance.now()); }
  }

  // What plotly.js takes half a second for is not waited for where no figure is in view.
  function start() {
    watch = new IntersectionObserver(function (entries) {
      var near = entries.filter(function (entry) { return entry.isIntersecting && !entry.target.dataset.drawn; });
      near.forEach(function (entry) { watch.unobserve(entry.target); });
      if (!near.length) { note("ready"); return; }
      loaded().then(function () {
        near.forEach(function (entry) { if (!entry.target.dataset.drawn) { draw(entry.target); } });
        note("ready");
      });
    }, { rootMargin: "300px" });
    // All of it comes soon after, when nothing else is to be done.
    setTimeout(function () { loaded().then(function () { note("loaded"); }); }, 500);
    // Whoever prints wants all of them, and does not wait: so everything has been unpacked before.
    window.addEventListener("beforeprint", function () {
      shared.paper = true;
      figures.filter(function (f) { return texts.has(f); }).forEach(draw);
    });
    window.addEventListener("afterprint", function () {
      shared.paper = false;
      shared.redraw(function () { return true; });
    });
    document.addEventListener("steelyard-theme", function () { shared.redraw(function () { return true; }); });
    var width = window.innerWidth;
    window.addEventListener("resize", function () {
      if (window.innerWidth !== width) { shared.redraw(function (f) { return f.dataset.joints; }); }
      width = window.innerWidth;
    });
  }

  function refuse(why) {
    each(function (f) { f.querySelector(".area").textContent = "This figure cannot be drawn: " + why; });
  }

  // plotly.js stands in the page, or, where pages come from a server, in a file beside it.
  function library() {
    var inside = document.getElementById("plotly-js"), script = document.createElement("script");
    if (!inside) {
      return new Promise(function (done, failed) {
        script.onload = done;
        script.onerror = function () { failed("plotly.js did not come"); };
        script.src = "/assets/plotly.js";
        document.head.appendChild(script);
      });
    }
    return shared.unpacked(inside).text().then(function (code) {
      script.textContent = code;
      document.head.appendChild(script);
    });
  }
  function data(figure) {
    if (texts.has(figure)) { return null; }
    return shared.unpacked(figure.querySelector(".plot-data")).text().then(function (text) { texts.set(figure, text); });
  }
  var plotly = null;
  function loaded() {
    plotly = plotly || library();
    return Promise.all([plotly].concat(figures.map(data))).catch(function (error) { refuse(error + "."); });
  }

  // Take charge of what is new inside an element; the whole page, when all scripts have been read.
  shared.adopt = function (root) {
    for (var k = figures.length - 1; k >= 0; k--) {
      if (!figures[k].isConnected) { texts.delete(figures[k]); figures.splice(k, 1); }
    }
    var fresh = Array.from(root.querySelectorAll("figure.plot")).filter(function (f) { return figures.indexOf(f) < 0; });
    Array.prototype.push.apply(figures, fresh);
    shared.adopters.forEach(function (adopter) { adopter(root); });
    if (!fresh.length) { return; }
    if (!("DecompressionStream" in window)) {
      refuse("this browser is too old to unpack it. Chrome and Edge can since 80, Firefox since 113, Safari since 16.4.");
      return;
    }
    if (!watch) { start(); }
    fresh.forEach(function (figure) { watch.observe(figure); });
  };
  // In a frame of another page the contents and the title are not repeated.
  if (window.parent !== window) {
    document.documentElement.classList.add("framed");
    window.addEventListener("message", function (event) {
      if (event.source !== window.parent || (event.data !== "light" && event.data !== "dark")) { return; }
      document.documentElement.dataset.theme = event.data;
      document.dispatchEvent(new Event("steelyard-theme"));
    });
    window.parent.postMessage("steelyard-report", "*");
  }
  if (window.innerWidth < 800) {
    document.querySelectorAll("nav details").forEach(function (d) { d.open = false; });
  }
})();

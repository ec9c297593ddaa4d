// Draws each figure when it comes near the screen, in the colours of the page, and again when those change.
(function () {
  "use strict";
  var dark = window.matchMedia("(prefers-color-scheme: dark)");
  var config = { responsive: true, displaylogo: false, modeBarButtons: [["zoom2d", "pan2d", "resetScale2d", "toImage"]] };

  function colour(name) {
    return getComputedStyle(document.documentElement).getPropertyValue(name).trim();
  }

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
    layout.margin = Object.assign({}, layout.margin, narrow ? { l: 8, r: 6 } : { l: 16, r: 16 });
    if (narrow) { layout.dragmode = false; }
    return layout;
  }

  // The library and the data of the figures are gzip in base64. Gives a promise of text.
  function unpacked(element) {
    var bytes = Uint8Array.from(atob(element.textContent), function (c) { return c.charCodeAt(0); });
    return new Response(new Blob([bytes]).stream().pipeThrough(new DecompressionStream("gzip"))).text();
  }

  function draw(figure) {
    var area = figure.querySelector(".area");
    var text = texts.get(figure);
    // The blue of the palette is too dark for thin lines on a dark page; its sky blue is as easily told apart.
    if (dark.matches) { text = text.replace(/#0072B2/g, "#56B4E9"); }
    var made = JSON.parse(text);
    delete made.layout.height;
    var bar = window.innerWidth < 600 ? { displayModeBar: false } : {};
    var shown = window.Plotly.react(area, made.data, themed(made.layout), Object.assign({}, config, bar));
    if (made.frames.length && !figure.dataset.drawn) { shown.then(function () { window.Plotly.addFrames(area, made.frames); }); }
    figure.dataset.drawn = "yes";
  }

  var figures = Array.from(document.querySelectorAll("figure.plot"));
  var texts = new Map();
  function each(what) { figures.forEach(function (f) { if (!f.dataset.drawn) { what(f); } }); }

  function start() {
    var watch = new IntersectionObserver(function (entries) {
      entries.forEach(function (entry) {
        if (entry.isIntersecting && !entry.target.dataset.drawn) {
          watch.unobserve(entry.target);
          draw(entry.target);
        }
      });
    }, { rootMargin: "600px" });
    each(function (figure) { watch.observe(figure); });
    // Whoever prints wants all of them, and does not wait: so everything has been unpacked before.
    window.addEventListener("beforeprint", function () { each(draw); });
    dark.addEventListener("change", function () {
      figures.forEach(function (f) { if (f.dataset.drawn) { draw(f); } });
    });
  }

  function refuse(why) {
    each(function (f) { f.querySelector(".area").textContent = "This figure cannot be drawn: " + why; });
  }

  if ("DecompressionStream" in window) {
    var library = unpacked(document.getElementById("plotly-js")).then(function (code) {
      var script = document.createElement("script");
      script.textContent = code;
      document.head.appendChild(script);
    });
    var data = figures.map(function (figure) {
      return unpacked(figure.querySelector(".plot-data")).then(function (text) { texts.set(figure, text); });
    });
    Promise.all([library].concat(data)).then(start).catch(function (error) { refuse(error + "."); });
  } else {
    refuse("this browser is too old to unpack it. Chrome and Edge can since 80, Firefox since 113, Safari since 16.4.");
  }
  if (window.innerWidth < 800) {
    document.querySelectorAll("nav details").forEach(function (d) { d.open = false; });
  }
})();

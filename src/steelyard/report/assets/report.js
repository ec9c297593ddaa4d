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

  function draw(figure) {
    var area = figure.querySelector(".area");
    var text = figure.querySelector(".plot-data").textContent;
    // The blue of the palette is too dark for thin lines on a dark page; its sky blue is as easily told apart.
    if (dark.matches) { text = text.replace(/#0072B2/g, "#56B4E9"); }
    var made = JSON.parse(text);
    delete made.layout.height;
    delete made.layout.template;
    var bar = window.innerWidth < 600 ? { displayModeBar: false } : {};
    var shown = window.Plotly.react(area, made.data, themed(made.layout), Object.assign({}, config, bar));
    if (made.frames && !figure.dataset.drawn) { shown.then(function () { window.Plotly.addFrames(area, made.frames); }); }
    figure.dataset.drawn = "yes";
  }

  var figures = Array.prototype.slice.call(document.querySelectorAll("figure.plot"));
  function drawAll() { figures.forEach(function (f) { if (!f.dataset.drawn) { draw(f); } }); }
  if ("IntersectionObserver" in window) {
    var watch = new IntersectionObserver(function (entries) {
      entries.forEach(function (entry) {
        if (entry.isIntersecting && !entry.target.dataset.drawn) {
          watch.unobserve(entry.target);
          draw(entry.target);
        }
      });
    }, { rootMargin: "600px" });
    figures.forEach(function (figure) { watch.observe(figure); });
  } else {
    drawAll();
  }
  window.addEventListener("beforeprint", drawAll);
  dark.addEventListener("change", function () {
    figures.forEach(function (f) { if (f.dataset.drawn) { draw(f); } });
  });
  if (window.innerWidth < 800) {
    document.querySelectorAll("nav details").forEach(function (d) { d.open = false; });
  }
})();

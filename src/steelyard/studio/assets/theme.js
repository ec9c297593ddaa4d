// Light or dark theme: that of the system, or the saved choice of the button.
(function () {
  "use strict";
  var system = window.matchMedia("(prefers-color-scheme: dark)"), kept = null;
  try { kept = localStorage.getItem("steelyard-theme"); } catch (error) { kept = null; }
  function dark() { return kept ? kept === "dark" : system.matches; }
  function show() {
    document.documentElement.dataset.theme = dark() ? "dark" : "light";
    document.dispatchEvent(new Event("steelyard-theme"));
  }
  show();
  system.addEventListener("change", show);
  document.addEventListener("click", function (event) {
    if (!event.target.closest("#theme")) { return; }
    kept = dark() ? "light" : "dark";
    try { localStorage.setItem("steelyard-theme", kept); } catch (error) { /* without storage the choice holds for this page only */ }
    show();
  });
  // A report in a frame has the theme of the page around it; it is told when it asks, and after a change.
  function tell(frame) { frame.contentWindow.postMessage(dark() ? "dark" : "light", "*"); }
  window.addEventListener("message", function (event) {
    if (event.data !== "steelyard-report") { return; }
    document.querySelectorAll("iframe.report").forEach(function (frame) { if (frame.contentWindow === event.source) { tell(frame); } });
  });
  document.addEventListener("steelyard-theme", function () { document.querySelectorAll("iframe.report").forEach(tell); });
})();

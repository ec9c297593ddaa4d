// What the scripts of a page share: its colours, what is packed in it, and the time that its reader points at.
var Steelyard = window.Steelyard || {};
(function () {
  "use strict";
  Steelyard.colour = function (name) {
    return getComputedStyle(document.documentElement).getPropertyValue(name).trim();
  };
  // Whether the page is dark, whoever made it so; `steelyard-theme` tells of a change.
  Steelyard.dark = function () { return parseInt(Steelyard.colour("--paper").slice(1, 3), 16) < 128; };
  window.matchMedia("(prefers-color-scheme: dark)").addEventListener("change", function () {
    document.dispatchEvent(new Event("steelyard-theme"));
  });

  // The library and the data of figures and scenes are gzip in base64. Gives a promise of a response.
  Steelyard.unpacked = function (element) {
    var text = atob(element.textContent), bytes = new Uint8Array(text.length);
    for (var k = 0; k < text.length; k++) { bytes[k] = text.charCodeAt(k); }  // ten times as fast as Uint8Array.from
    return new Response(new Blob([bytes]).stream().pipeThrough(new DecompressionStream("gzip")));
  };

  // Say what time it is in a log; whoever listens to `steelyard-time` follows.
  Steelyard.now = { log: "", t: null };
  Steelyard.tell = function (log, t, by) {
    Steelyard.now = { log: log, t: t };
    document.dispatchEvent(new CustomEvent("steelyard-time", { detail: { log: log, t: t, by: by } }));
  };
})();

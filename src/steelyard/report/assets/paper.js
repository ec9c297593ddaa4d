// What a print-out needs: figures with few points, and pictures of the robots, whose canvases print empty.
(function () {
  "use strict";
  // Points of a line and marks of a cloud on paper; a panel is at most 700 pixels wide there.
  var LINE = 500, CLOUD = 250;
  Steelyard.paper = false;

  // Keep the lowest and the highest point of each part of a line, so that no peak is lost.
  function outline(y) {
    var size = Math.ceil(2 * y.length / LINE), keep = [0];
    for (var from = 0; from < y.length; from += size) {
      var low = from, high = from;
      for (var k = from; k < Math.min(from + size, y.length); k++) {
        if (y[k] < y[low]) { low = k; }
        if (y[k] > y[high]) { high = k; }
      }
      keep.push(Math.min(low, high));
      if (low !== high) { keep.push(Math.max(low, high)); }
    }
    keep.push(y.length - 1);
    return keep;
  }
  function every(length, most) {
    var step = Math.ceil(length / most), keep = [];
    for (var k = 0; k < length; k += step) { keep.push(k); }
    keep.push(length - 1);
    return keep;
  }

  // Take points away from the traces of a figure.
  Steelyard.thinned = function (made) {
    made.data.forEach(function (trace) {
      var cloud = trace.mode === "markers", most = cloud ? CLOUD : LINE;
      if (!Array.isArray(trace.x) || !Array.isArray(trace.y) || trace.x.length !== trace.y.length || trace.x.length <= most) { return; }
      if (trace.y.indexOf(null) >= 0 || trace.z) { return; }
      var keep = cloud || trace.fill ? every(trace.x.length, most) : outline(trace.y);
      ["x", "y"].forEach(function (name) { trace[name] = keep.map(function (k) { return trace[name][k]; }); });
    });
  };

  // A picture of a canvas beside it, which only the print-out shows; `paint` paints the canvas at once.
  Steelyard.pictured = function (canvas, paint) {
    var picture = new Image();
    paint();
    picture.className = "on-paper";
    picture.alt = canvas.getAttribute("aria-label") || "";
    picture.src = canvas.toDataURL("image/png");
    canvas.after(picture);
    window.addEventListener("afterprint", function () { picture.remove(); }, { once: true });
  };
})();

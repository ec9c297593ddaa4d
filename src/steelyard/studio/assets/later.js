// What takes a moment to compute is asked for when the page is there: elements that say where it comes from.
(function () {
  "use strict";
  function fill(element) {
    var from = element.dataset.later;
    element.removeAttribute("data-later");
    Steelyard.ask(from).then(function (html) { Steelyard.swap(element, html); }, function (error) {
      if (error.html) { element.innerHTML = error.html; } else { element.textContent = "The studio does not answer; reload the page when it does."; }
    }).then(function () { element.removeAttribute("aria-busy"); Steelyard.refreshed(); });
  }
  // What stands in closed details waits until they are opened.
  function adopt(root) {
    root.querySelectorAll("[data-later]").forEach(function (element) {
      var closed = element.closest("details:not([open])");
      if (!closed) { fill(element); return; }
      closed.addEventListener("toggle", function () { if (element.dataset.later) { fill(element); } });
    });
  }
  Steelyard.adopters.push(adopt);
  adopt(document);
})();

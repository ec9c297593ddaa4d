// Loads the content of elements with data-lazy (an address) after the page.
(function () {
  "use strict";
  function fill(element) {
    var from = element.dataset.lazy;
    element.removeAttribute("data-lazy");
    Steelyard.ask(from).then(function (html) { Steelyard.swap(element, html); }, function (error) {
      if (error.html) { element.innerHTML = error.html; } else { element.textContent = "The studio does not answer. Check that it is running, then reload the page."; }
    }).then(function () { element.removeAttribute("aria-busy"); Steelyard.refreshed(); });
  }
  // Elements in closed details are loaded when these are opened.
  function adopt(root) {
    root.querySelectorAll("[data-lazy]").forEach(function (element) {
      var closed = element.closest("details:not([open])");
      if (!closed) { fill(element); return; }
      closed.addEventListener("toggle", function () { if (element.dataset.lazy) { fill(element); } });
    });
  }
  Steelyard.adopters.push(adopt);
  adopt(document);
})();

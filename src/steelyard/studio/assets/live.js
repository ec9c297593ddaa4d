// Polls the page of the live monitor while it is visible.
(function () {
  "use strict";
  function follow(box) {
    if (box.dataset.follows) { return; }
    box.dataset.follows = "yes";
    (function again() {
      if (!box.isConnected) { return; }
      if (document.hidden) { setTimeout(again, 1000); return; }
      Steelyard.ask("/data/use/live?job=" + encodeURIComponent(box.dataset.liveJob)).then(function (html) {
        if (box.innerHTML !== html) { box.innerHTML = html; }
      }).catch(function () { return null; }).then(function () { setTimeout(again, 500); });
    })();
  }
  function adopt(root) { root.querySelectorAll("[data-live-job]").forEach(follow); }
  Steelyard.adopters.push(adopt);
  adopt(document);
})();

// Loaded before the page: a form that is sent before the other scripts are here waits for them (studio.js sends it), since
// the browser itself would leave the page.
(function () {
  "use strict";
  var early = window.steelyardEarly = [];
  document.addEventListener("submit", function (event) {
    if (window.steelyardEarly && event.target.closest("form[data-action]")) {
      event.preventDefault();
      early.push([event.target, event.submitter]);
    }
  });
})();

// Loaded before the page: holds user actions until the other scripts are loaded (DOMContentLoaded). Otherwise the browser
// would leave the page on a submitted form, or lose a dropped file.
(function () {
  "use strict";
  var held = [];
  var KINDS = {
    submit: function (event) {
      var form = event.target, by = event.submitter;
      return form.closest("form[data-action]") && function () { form.requestSubmit(by); };
    },
    change: function (event) {
      var field = event.target;
      return function () { field.dispatchEvent(new Event("change", { bubbles: true })); };
    },
    click: function (event) {
      var button = event.target.closest("button[type=button]");
      return button && function () { button.click(); };
    },
    dragover: function () { return function () { return null; }; },
    drop: function (event) {
      // Dropped files can be read only during the event.
      var target = event.target, again = new DataTransfer();
      Array.from(event.dataTransfer.files).forEach(function (file) { again.items.add(file); });
      return function () {
        target.dispatchEvent(new DragEvent("drop", { bubbles: true, cancelable: true, dataTransfer: again }));
      };
    }
  };
  function hold(event) {
    var later = KINDS[event.type](event);
    if (!later) { return; }
    event.preventDefault();
    event.stopImmediatePropagation();
    held.push(later);
  }
  Object.keys(KINDS).forEach(function (kind) { window.addEventListener(kind, hold, true); });
  document.addEventListener("DOMContentLoaded", function () {
    Object.keys(KINDS).forEach(function (kind) { window.removeEventListener(kind, hold, true); });
    // After the other handlers of DOMContentLoaded.
    setTimeout(function () { held.forEach(function (later) { later(); }); }, 0);
  });
})();

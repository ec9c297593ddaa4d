// Loaded before the page: what a quick hand does before the other scripts are here (they all are, when the page says that
// it is read) waits for them. The browser itself would leave the page, or forget a file.
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
      // What was dropped can be read during the event alone.
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
    // After what the other scripts do at this moment.
    setTimeout(function () { held.forEach(function (later) { later(); }); }, 0);
  });
})();

// Keeps unsent input of forms when the page around them is updated.
(function () {
  "use strict";
  var typed = {};

  function of(form) {
    return form.dataset.action + "?" + Array.from(form.querySelectorAll("input[type=hidden]")).map(function (one) {
      return one.name + "=" + one.value;
    }).join("&");
  }
  function ticked(field) { return field.type === "checkbox" || field.type === "radio"; }
  function called(field) { return ticked(field) ? field.name + "=" + field.value : field.name; }
  function kept(field) { return field.name && ["hidden", "file", "range", "password"].indexOf(field.type) < 0; }

  document.addEventListener("input", function (event) {
    var field = event.target, form = field.closest && field.closest("form[data-action]");
    if (!form || !kept(field)) { return; }
    var mine = typed[of(form)] = typed[of(form)] || {};
    if (field.type === "radio") {
      form.querySelectorAll("input[type=radio]").forEach(function (one) { if (one.name === field.name) { delete mine[called(one)]; } });
    }
    mine[called(field)] = ticked(field) ? field.checked : field.value;
  });
  document.addEventListener("steelyard-sent", function (event) { delete typed[of(event.detail)]; });

  Steelyard.adopters.push(function (root) {
    root.querySelectorAll("form[data-action]").forEach(function (form) {
      var mine = typed[of(form)];
      if (!mine) { return; }
      form.querySelectorAll("input, select, textarea").forEach(function (field) {
        var value = mine[called(field)];
        if (value === undefined || !kept(field)) { return; }
        if (ticked(field)) { field.checked = value; } else { field.value = value; }
      });
    });
  });
})();

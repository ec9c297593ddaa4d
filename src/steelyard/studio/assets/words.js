// The command that a form stands for, as it is filled in: elements in it that say who knows.
(function () {
  "use strict";
  function preview(form) {
    var box = form.querySelector("[data-words]");
    if (!box) { return; }
    var mine = box.dataset.asked = String(Number(box.dataset.asked || 0) + 1);
    function put(html) { if (box.isConnected && box.dataset.asked === mine && html) { Steelyard.swap(box, html); } }
    var query = new URLSearchParams(new FormData(form));
    query.append("what", box.dataset.words);
    Steelyard.ask("/data/" + document.body.dataset.stage + "/words?" + query).then(put, function (error) { put(error.html); });
  }
  function adopt(root) { root.querySelectorAll("form[data-action]").forEach(preview); }
  document.addEventListener("change", function (event) {
    var form = event.target.closest("form[data-action]");
    if (form) { preview(form); }
  });
  Steelyard.adopters.push(adopt);
  adopt(document);
})();

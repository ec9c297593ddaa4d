// Shows the command of a form in its element with data-words.
(function () {
  "use strict";
  function preview(form) {
    var box = form.querySelector("[data-words]");
    if (!box) { return; }
    var mine = box.dataset.requests = String(Number(box.dataset.requests || 0) + 1);
    function put(html) { if (box.isConnected && box.dataset.requests === mine && html) { Steelyard.swap(box, html); } }
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

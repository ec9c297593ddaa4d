// Pieces of which one is shown at a time, commands that can be copied; then everything starts.
(function () {
  "use strict";
  var number = 0;
  Steelyard.adopters.push(function (root) { root.querySelectorAll(".tabs").forEach(tabs); root.querySelectorAll(".command").forEach(command); });

  function tabs(box) {
    number += 1;
    var pieces = Array.from(box.children), list = document.createElement("div");
    list.className = "tablist";
    list.setAttribute("role", "tablist");
    var buttons = pieces.map(function (piece, k) {
      var button = document.createElement("button");
      button.type = "button";
      button.textContent = piece.dataset.title;
      button.setAttribute("role", "tab");
      piece.id = "tab-" + number + "-" + k;
      piece.setAttribute("role", "tabpanel");
      piece.setAttribute("aria-label", piece.dataset.title);
      button.setAttribute("aria-controls", piece.id);
      button.addEventListener("click", function () { show(k); });
      list.appendChild(button);
      return button;
    });
    function show(k) {
      pieces.forEach(function (piece, n) { piece.classList.toggle("away", n !== k); });
      buttons.forEach(function (button, n) {
        button.setAttribute("aria-selected", String(n === k));
        button.tabIndex = n === k ? 0 : -1;
      });
    }
    list.addEventListener("keydown", function (event) {
      var step = { ArrowRight: 1, ArrowLeft: -1 }[event.key], now = buttons.indexOf(document.activeElement);
      if (!step || now < 0) { return; }
      var next = (now + step + buttons.length) % buttons.length;
      show(next);
      buttons[next].focus();
      event.preventDefault();
    });
    box.prepend(list);
    show(0);
  }

  // The folder of the page, where it is known: opened from a disk.
  if (location.protocol === "file:") {
    var folder = decodeURIComponent(location.pathname).replace(/\/[^/]*$/, "").replace(/^\/([A-Za-z]:)/, "$1");
    document.querySelectorAll(".run").forEach(function (place) {
      place.textContent = /^[\w./:+-]+$/.test(folder) ? folder : "'" + folder.replace(/'/g, "'\\''") + "'";
    });
  }
  function command(box) {
    var button = document.createElement("button"), code = box.querySelector("code");
    button.type = "button";
    button.textContent = "copy";
    button.addEventListener("click", function () {
      var range = document.createRange();
      range.selectNodeContents(code);
      getSelection().removeAllRanges();
      getSelection().addRange(range);
      // From a file the clipboard may be out of reach; what is selected can be copied by hand.
      var done = document.execCommand("copy");
      button.textContent = done ? "copied" : "selected";
      setTimeout(function () { button.textContent = "copy"; }, 1500);
    });
    box.appendChild(button);
  }

  Steelyard.adopt(document);
})();

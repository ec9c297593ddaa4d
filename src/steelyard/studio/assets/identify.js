// The stage Identify: the command of the form, its conditional fields, and the live table of the search.
(function () {
  "use strict";
  var received = {}, requested = {}, waiting = {};

  // Collect the events of a job without duplicates: old ones come from a request, new ones from the stream.
  function collect(job, seen) {
    var known = received[job] = received[job] || { keys: {}, all: [] };
    seen.forEach(function (one) {
      var key = [one.of, one.event, one.way, one.round, one.joint, one.change].join("|");
      if (!known.keys[key]) { known.keys[key] = true; known.all.push(one); }
    });
    soon(job);
  }
  function number(x, digits) { return x === null || x === undefined ? "–" : x.toPrecision(digits || 3); }
  function cell(row, words, kind) {
    var made = row.insertCell();
    made.textContent = words;
    if (kind) { made.className = kind; }
    return made;
  }
  // The error before (light) and after (full) as a bar.
  function bar(row, step, most) {
    var share = function (x) { return Math.max(0, Math.min(100, 100 * x / most)); };
    var ns = "http://www.w3.org/2000/svg", picture = document.createElementNS(ns, "svg");
    picture.setAttribute("class", "gain");
    picture.setAttribute("viewBox", "0 0 100 10");
    picture.setAttribute("preserveAspectRatio", "none");
    picture.setAttribute("aria-hidden", "true");
    [["was", step.before_percent], ["is", step.after_percent]].forEach(function (part) {
      var made = document.createElementNS(ns, "rect");
      made.setAttribute("class", part[0]);
      made.setAttribute("height", 10);
      made.setAttribute("width", share(part[1]).toFixed(1));
      picture.append(made);
    });
    row.insertCell().append(picture);
  }
  function others(step) {
    var list = (step.candidates || []).filter(function (one) { return step.change.indexOf(one.change) < 0; });
    return list.map(function (one) { return one.change + ": " + (one.why || number(one.after_percent) + " %"); });
  }

  function show(box) {
    var seen = (received[box.dataset.search] || { all: [] }).all.filter(function (one) { return one.of === "structure"; });
    var steps = seen.filter(function (one) { return one.event === "step"; });
    var chosen = seen.filter(function (one) { return one.event === "chosen"; }).pop();
    var at = seen[seen.length - 1], line = box.querySelector(".numbers"), body = box.querySelector("tbody");
    if (!at) { return; }
    box.querySelectorAll(".scroll, .hint").forEach(function (one) { one.hidden = false; });
    line.textContent = at.tried + " structures tried · " + (chosen ? "result: " + chosen.way + ", " +
      chosen.steps.filter(function (one) { return one.taken; }).length + " changes accepted" : "now: " + at.way + ", round " + (at.round + 1) + ", " + (at.joint || ""));
    var most = Math.max.apply(null, steps.map(function (one) { return one.before_percent; }));
    var end = body.parentNode.parentNode, low = end.scrollTop + end.clientHeight >= end.scrollHeight - 4;
    // Keep existing rows, so that the table does not move under the pointer.
    if (body.dataset.chosen !== String(!!chosen)) { body.replaceChildren(); body.dataset.chosen = String(!!chosen); }
    steps.slice(body.rows.length).forEach(function (step) {
      var row = body.insertRow(), more = others(step);
      row.className = (step.taken ? "taken" : "left") + (chosen && chosen.way !== step.way ? " away" : "");
      cell(row, step.joint);
      cell(row, step.change);
      cell(row, number(step.before_percent), "number");
      cell(row, number(step.after_percent), "number");
      bar(row, step, most);
      cell(row, number(step.doubt_percent, 2), "number");
      var why = cell(row, (step.taken ? "✓ accepted: " : "rejected: ") + step.why + (more.length ? "; " + more.length + " others tried" : ""));
      if (more.length) { why.title = more.join("\n"); }
    });
    if (low && !chosen) { end.scrollTop = end.scrollHeight; }
  }
  function soon(job) {
    if (waiting[job]) { return; }
    waiting[job] = setTimeout(function () {
      delete waiting[job];
      document.querySelectorAll("[data-search='" + CSS.escape(job) + "']").forEach(show);
    }, 150);
  }

  document.addEventListener("steelyard-progress", function (event) {
    var news = event.detail;
    if (news.seen && news.seen.length) { collect(news.job, news.seen); }
  });

  // Show fields that depend on other fields.
  function arrange(form) {
    form.querySelectorAll("[data-when]").forEach(function (part) {
      var pair = part.dataset.when.split("=");
      part.hidden = form.elements[pair[0]].value !== pair[1];
    });
  }
  var previews = 0;
  function preview(form) {
    var mine = ++previews;
    function put(html) {
      var box = document.getElementById("identify-command");
      if (box && mine === previews) { Steelyard.swap(box, html); }
    }
    arrange(form);
    Steelyard.post("identify/set", new FormData(form)).then(put, function (error) { put(error.html || ""); });
  }
  document.addEventListener("change", function (event) {
    var form = event.target.closest("form.identify-form");
    if (form) { preview(form); }
  });

  function begin(root) {
    root.querySelectorAll("form.identify-form").forEach(preview);
    root.querySelectorAll("[data-search]").forEach(function (box) {
      var job = box.dataset.search;
      show(box);
      if (requested[job]) { return; }
      requested[job] = true;
      Steelyard.ask("/jobs/" + job + "/events").then(function (text) {
        collect(job, JSON.parse(text).filter(function (one) { return one.seen; }).map(function (one) { return one.seen; }));
      }).catch(function () { requested[job] = false; });
    });
  }
  Steelyard.adopters.push(begin);
  begin(document);
})();

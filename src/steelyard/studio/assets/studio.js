// Sends forms and buttons without reloading the page; the HTML in the answer replaces the content of an element.
(function () {
  "use strict";
  // Id of this page. Events carry it, so that a page ignores its own changes.
  Steelyard.tab = Array.from(crypto.getRandomValues(new Uint32Array(2))).join("-");
  var OWN = { "X-Steelyard": Steelyard.tab };
  var stage = document.body.dataset.stage;

  var silence = null;
  Steelyard.say = function (words) {
    var said = document.getElementById("said");
    said.textContent = words;
    clearTimeout(silence);
    silence = setTimeout(function () { said.textContent = ""; }, 8000);
  };

  // Replace the content of an element; the focus and open details are kept.
  Steelyard.swap = function (element, html) {
    var active = document.activeElement, inside = element.contains(active);
    var key = inside && (active.id ? "#" + CSS.escape(active.id) : active.name && active.closest("form") ?
      "form[data-action='" + CSS.escape(active.closest("form").dataset.action || "") + "'] [name='" + CSS.escape(active.name) + "']" : "");
    var open = Array.from(element.querySelectorAll("details[id][open]")).map(function (d) { return d.id; });
    element.innerHTML = html;
    open.forEach(function (id) { var d = document.getElementById(id); if (d) { d.open = true; } });
    Steelyard.adopt(element);
    if (inside) {
      var again = key && element.querySelector(key);
      (again || (element.querySelector(".trouble") ? element : document.getElementById("stage"))).focus({ preventScroll: true });
    }
    document.dispatchEvent(new CustomEvent("steelyard-swapped", { detail: element }));
  };

  // Fetch from the server: a promise of text; an error carries the server's message in `html`.
  Steelyard.ask = function (address, given) {
    return fetch(address, Object.assign({ headers: OWN, credentials: "same-origin" }, given)).then(function (answer) {
      return answer.text().then(function (text) {
        if (!answer.ok) { throw Object.assign(new Error("refused"), { html: text }); }
        return text;
      });
    }, function () { throw Object.assign(new Error("away"), { html: "" }); });
  };
  Steelyard.post = function (action, fields) {
    return Steelyard.ask("/do/" + action, { method: "POST", body: new URLSearchParams(fields) });
  };

  function where(form) {
    if (form.dataset.target) { return document.getElementById(form.dataset.target); }
    return document.getElementById(form.dataset.action.indexOf("job/") === 0 ? "jobs" : "stage");
  }

  function trouble(form, error) {
    var old = document.querySelector(".trouble.refusal");
    if (old) { old.remove(); }
    var box = document.createElement("div");
    box.className = "trouble refusal";
    box.setAttribute("role", "alert");
    if (error.html) { box.innerHTML = error.html; } else { box.textContent = error.words ? error.words : error.message === "away" ? "The studio does not answer. Check that `steelyard studio` is still running, then try again." : "This failed; reload the page and try again."; }
    box.dataset.action = form.dataset.action || "";
    show(box, form);
  }

  // Put a message beside its form, where the reader looks, but not inside a cell or a row. If the stage was renewed in
  // the meantime, the form of the same action is on the page.
  function show(box, form) {
    var main = document.getElementById("stage");
    form = form.isConnected ? form : main.querySelector("form[data-action='" + CSS.escape(box.dataset.action) + "']") || main.firstElementChild || main;
    if (form === main) { main.prepend(box); return; }
    var hosts = [".scroll", "table", ".cards", ".shelf", ".row"].map(function (name) { return form.closest(name); });
    (hosts.filter(Boolean)[0] || form).before(box);
    for (var shut; (shut = box.closest("details:not([open])"));) { shut.open = true; }
    box.scrollIntoView({ block: "nearest", behavior: "instant" });
  }

  function send(form, submitter) {
    if (form.dataset.ask && !window.confirm(form.dataset.ask)) { return; }
    var data = new FormData(form);
    if (submitter && submitter.name) { data.append(submitter.name, submitter.value); }
    var button = submitter || form.querySelector("button");
    if (button) { button.disabled = true; }
    form.setAttribute("aria-busy", "true");
    var target = where(form);
    Steelyard.ask("/do/" + form.dataset.action, { method: "POST", body: new URLSearchParams(data) }).then(function (html) {
      document.dispatchEvent(new CustomEvent("steelyard-sent", { detail: form }));
      Steelyard.swap(target, html);
      Steelyard.refreshed();
    }).catch(function (error) { trouble(form, error); }).then(function () {
      if (button) { button.disabled = false; }
      form.removeAttribute("aria-busy");
    });
  }
  Steelyard.send = send;
  Steelyard.trouble = trouble;

  document.addEventListener("submit", function (event) {
    var form = event.target.closest("form[data-action]");
    if (form) { event.preventDefault(); send(form, event.submitter); }
  });
  document.addEventListener("change", function (event) {
    var form = event.target.closest("form[data-live]");
    if (form) { send(form, null); }
  });
  // Update the rail and the list of jobs.
  var waiting = null;
  Steelyard.refreshed = function () {
    if (waiting) { return; }
    waiting = setTimeout(function () {
      waiting = null;
      Steelyard.ask("/rail/" + stage).then(function (html) { put("rail", html); }).catch(function () { return null; });
      Steelyard.ask("/jobs").then(function (html) { put("jobs", html); document.dispatchEvent(new Event("steelyard-jobs")); })
        .catch(function () { return null; });
    }, 60);
  };
  function put(id, html) {
    var element = document.getElementById(id);
    if (element.innerHTML === html) { return; }
    Steelyard.swap(element, html);
    if (id === "rail") { showStage(); }
  }

  // Update the stage, but not while the user types in it.
  Steelyard.renew = function () {
    var main = document.getElementById("stage"), active = document.activeElement;
    if (main.contains(active) && /^(INPUT|SELECT|TEXTAREA)$/.test(active.tagName) && active.type !== "range") {
      Steelyard.say("Something has changed; the page updates when you leave this field.");
      active.addEventListener("blur", function () { setTimeout(Steelyard.renew, 0); }, { once: true });
      return;
    }
    if (main.dataset.keep) { return; }
    Steelyard.ask("/body/" + stage + location.search).then(function (html) { replace(main, html); })
      .catch(function () { return null; });
  };

  // A pressed button must still be there when it is let go.
  var pressed = false;
  document.addEventListener("pointerdown", function () { pressed = true; }, true);
  ["pointerup", "pointercancel"].forEach(function (kind) {
    document.addEventListener(kind, function () { setTimeout(function () { pressed = false; }, 0); }, true);
  });

  // Replace the stage, but leave its refusal and what the user has typed in the meantime.
  function replace(main, html) {
    if (pressed || main.querySelector("form[aria-busy]")) { setTimeout(replace, 50, main, html); return; }
    var refusal = main.querySelector(".trouble.refusal"), entries = typed(main);
    Steelyard.swap(main, html);
    entries.forEach(function (entry) {
      var form = main.querySelector("form[data-action='" + CSS.escape(entry.action) + "']");
      var field = form && form.elements.namedItem(entry.name);
      if (field && field.type === entry.type) { field.value = entry.value; }
    });
    if (refusal) { show(refusal, refusal); }
  }
  function typed(main) {
    return Array.from(main.querySelectorAll("form[data-action] input, form[data-action] textarea")).filter(function (field) {
      return field.name && /^(text|number|search|textarea)$/.test(field.type) && field.value !== field.defaultValue;
    }).map(function (field) {
      return { action: field.form.dataset.action, name: field.name, type: field.type, value: field.value };
    });
  }

  // On a narrow screen the rail is a row; scroll the current stage to its middle.
  function showStage() {
    var item = document.querySelector("#rail li:has(a[aria-current])"), row = item && item.parentNode;
    if (row) { row.scrollLeft = item.offsetLeft - (row.clientWidth - item.offsetWidth) / 2; }
  }
  showStage();
  window.addEventListener("resize", showStage);

  // The placeholder of a stage that the server is still rendering.
  var placeholder = document.querySelector("#stage > .placeholder");
  if (placeholder) {
    Steelyard.ask("/pending/" + placeholder.dataset.pending).then(function (html) { Steelyard.swap(document.getElementById("stage"), html); },
      Steelyard.renew);
  }
})();

// Shows events of jobs as they arrive; waits if the server is away.
(function () {
  "use strict";
  var stage = document.body.dataset.stage, last = {}, away = false;

  function show(id) {
    var progress = last[id];
    document.querySelectorAll("[data-job='" + CSS.escape(id) + "']").forEach(function (box) {
      var bar = box.querySelector("progress"), how = box.querySelector(".how");
      if (!progress || box.dataset.state !== "running") { return; }
      if (bar) { bar.value = progress.fraction; }
      if (how) { how.textContent = progress.stage + (progress.message ? ": " + progress.message : "") + ", " + Math.round(100 * progress.fraction) + " %"; }
    });
  }
  document.addEventListener("steelyard-jobs", function () { Object.keys(last).forEach(show); });
  document.addEventListener("steelyard-swapped", function () { Object.keys(last).forEach(show); });

  function hear(event) {
    var news = JSON.parse(event.data);
    if (news.type === "progress") {
      last[news.job] = news;
      show(news.job);
      document.dispatchEvent(new CustomEvent("steelyard-progress", { detail: news }));
      return;
    }
    Steelyard.refreshed();
    if (news.type === "changed" && news.stage_name === stage && news.tab !== Steelyard.tab) { Steelyard.renew(); }
    if (news.type === "job") {
      document.dispatchEvent(new CustomEvent("steelyard-job", { detail: news }));
      if (news.state === "done" || news.state === "failed" || news.state === "lost" || news.state === "cancelled") {
        Steelyard.say("A job is " + news.state + ".");
      }
      // The library shows new runs of any job, but not while the user selects runs.
      var library = stage === "library" && news.state === "done" && !document.querySelector("main input:checked");
      if (news.stage_name === stage || library) { Steelyard.renew(); }
    }
  }

  var source = new EventSource("/events");
  source.onmessage = hear;
  source.onopen = function () {
    if (away) { Steelyard.say("Connected to the studio again."); document.body.classList.remove("alone"); Steelyard.refreshed(); Steelyard.renew(); }
    away = false;
  };
  source.onerror = function () {
    if (!away) { Steelyard.say("The studio does not answer. Jobs continue; this page reconnects automatically."); }
    away = true;
    document.body.classList.add("alone");
    // After a refused connection EventSource does not retry, so reload the page.
    if (source.readyState === 2) {
      source.close();
      setTimeout(function () { location.reload(); }, 2000);
    }
  };
  // Progress of running jobs before this page was opened.
  document.querySelectorAll("[data-job][data-state='running']").forEach(function (box) {
    Steelyard.ask("/jobs/" + box.dataset.job + "/events").then(function (text) {
      var events = JSON.parse(text), at = events[events.length - 1];
      if (at && !last[box.dataset.job]) { last[box.dataset.job] = at; show(box.dataset.job); }
    }).catch(function () { return null; });
  });
})();

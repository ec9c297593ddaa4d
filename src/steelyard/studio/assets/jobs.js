// What jobs tell, as they tell it; a server that went away is waited for.
(function () {
  "use strict";
  var stage = document.body.dataset.stage, last = {}, away = false;

  function show(id) {
    var told = last[id];
    document.querySelectorAll("[data-job='" + CSS.escape(id) + "']").forEach(function (box) {
      var bar = box.querySelector("progress"), how = box.querySelector(".how");
      if (!told || box.dataset.state !== "running") { return; }
      if (bar) { bar.value = told.fraction; }
      if (how) { how.textContent = told.stage + (told.message ? ": " + told.message : "") + ", " + Math.round(100 * told.fraction) + " %"; }
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
      // The library shows what comes of any job, unless someone is choosing there.
      var shelf = stage === "library" && news.state === "done" && !document.querySelector("main input:checked");
      if (news.stage_name === stage || shelf) { Steelyard.renew(); }
    }
  }

  var source = new EventSource("/events");
  source.onmessage = hear;
  source.onopen = function () {
    if (away) { Steelyard.say("The studio is back."); document.body.classList.remove("alone"); Steelyard.refreshed(); Steelyard.renew(); }
    away = false;
  };
  source.onerror = function () {
    if (!away) { Steelyard.say("The studio does not answer; jobs go on, and this page waits for it."); }
    away = true;
    document.body.classList.add("alone");
    // A browser gives up for good where the door was shut in between.
    if (source.readyState === 2) {
      source.close();
      setTimeout(function () { location.reload(); }, 2000);
    }
  };
  // How far running jobs were before this page was opened.
  document.querySelectorAll("[data-job][data-state='running']").forEach(function (box) {
    Steelyard.ask("/jobs/" + box.dataset.job + "/events").then(function (text) {
      var events = JSON.parse(text), at = events[events.length - 1];
      if (at && !last[box.dataset.job]) { last[box.dataset.job] = at; show(box.dataset.job); }
    }).catch(function () { return null; });
  });
})();

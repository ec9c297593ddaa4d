// Uploads dropped or chosen files one after the other, with progress and a cancel button.
(function () {
  "use strict";
  function sendOne(zone, file, index, count) {
    return new Promise(function (done, failed) {
      var request = new XMLHttpRequest(), box = zone.querySelector(".going");
      box.textContent = "";
      var words = box.appendChild(document.createElement("span")), bar = box.appendChild(document.createElement("progress"));
      var stop = box.appendChild(document.createElement("button"));
      words.textContent = "Sending " + file.name + (count > 1 ? " (" + (index + 1) + " of " + count + ")" : "");
      bar.max = 1;
      bar.setAttribute("aria-label", words.textContent);
      stop.type = "button";
      stop.textContent = "Cancel";
      stop.addEventListener("click", function () { request.abort(); });
      request.upload.onprogress = function (event) { if (event.lengthComputable) { bar.value = event.loaded / event.total; } };
      request.onload = function () {
        box.textContent = "";
        if (request.status === 200) { done(JSON.parse(request.responseText).path); } else { failed({ html: request.responseText }); }
      };
      request.onabort = function () { box.textContent = "Cancelled; the file was not saved."; failed(null); };
      request.onerror = function () { box.textContent = ""; failed({ html: "", message: "away" }); };
      request.open("PUT", "/upload/" + zone.dataset.folder + "/" + encodeURIComponent(file.name.replace(/[\/\\]/g, "_")));
      request.setRequestHeader("X-Steelyard", "1");
      request.send(file);
    });
  }

  function send(zone, files) {
    var paths = [], chain = Promise.resolve(), main = document.getElementById("stage"), left = null;
    main.dataset.keep = "sending";
    Array.from(files).forEach(function (file, k) {
      chain = chain.then(function () { return sendOne(zone, file, k, files.length); }).then(function (path) { paths.push(path); });
    });
    // Files before a failed or cancelled one are still added.
    chain.catch(function (error) { left = { error: error }; if (!paths.length) { throw error; } }).then(function () {
      var body = new URLSearchParams();
      paths.forEach(function (path) { body.append("file", path); });
      zone.querySelector(".going").textContent = "Reading " + paths.join(", ") + " …";
      return Steelyard.post(zone.dataset.done, body);
    }).then(function (html) {
      delete main.dataset.keep;
      Steelyard.swap(main, html);
      Steelyard.refreshed();
      if (left && left.error) { Steelyard.trouble(main.querySelector(".drop") || zone, left.error); }
    }).catch(function (error) {
      delete main.dataset.keep;
      if (!error) { return; }
      zone.querySelector(".going").textContent = "";
      Steelyard.trouble(zone, error);
    });
  }

  Steelyard.upload = send;

  document.addEventListener("dragover", function (event) {
    event.preventDefault();
    var zone = event.target.closest(".drop");
    document.querySelectorAll(".drop.over").forEach(function (one) { if (one !== zone) { one.classList.remove("over"); } });
    if (zone) { zone.classList.add("over"); }
  });
  document.addEventListener("drop", function (event) {
    event.preventDefault();
    var zone = event.target.closest(".drop") || document.querySelector(".drop");
    if (zone && event.dataTransfer.files.length) { zone.classList.remove("over"); send(zone, event.dataTransfer.files); }
  });
  document.addEventListener("change", function (event) {
    var zone = event.target.closest(".drop");
    if (zone && event.target.type === "file" && event.target.files.length) { send(zone, event.target.files); }
  });
})();

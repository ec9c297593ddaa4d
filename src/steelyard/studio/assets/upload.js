// Uploads dropped or chosen files, and folders that are logs, one file after the other, with progress and a cancel button.
(function () {
  "use strict";
  // Files of a folder that no reader needs: pictures, videos and hidden files.
  var LEFT_OUT = /\.(mp4|avi|mkv|mov|webm|png|jpe?g|gif)$|(^|\/)\./i, MOST = 3000;

  function sendOne(zone, task, index, count) {
    return new Promise(function (done, failed) {
      var request = new XMLHttpRequest(), box = zone.querySelector(".going");
      box.textContent = "";
      var words = box.appendChild(document.createElement("span")), bar = box.appendChild(document.createElement("progress"));
      var stop = box.appendChild(document.createElement("button"));
      words.textContent = "Sending " + task.name + (count > 1 ? " (" + (index + 1) + " of " + count + ")" : "");
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
      request.onabort = function () { box.textContent = "Cancelled; the " + (task.folder ? "folder" : "file") + " was not saved."; failed(null); };
      request.onerror = function () { box.textContent = ""; failed({ html: "", message: "away" }); };
      request.open("PUT", "/upload/" + zone.dataset.folder + "/" + task.address);
      request.setRequestHeader("X-Steelyard", "1");
      request.send(task.file);
    });
  }

  function key() { return Array.from(crypto.getRandomValues(new Uint8Array(8))).map(function (b) { return b.toString(16).padStart(2, "0"); }).join(""); }

  // What to send: single files, and the files of `folders`, which are { name, files: [[path in the folder, file], …] }.
  function tasks(files, folders) {
    var list = Array.from(files).map(function (file) {
      return { name: file.name, file: file, address: encodeURIComponent(file.name.replace(/[\/\\]/g, "_")) };
    });
    folders.forEach(function (folder) {
      var own = { key: key(), name: folder.name, left: folder.files.length };
      folder.files.forEach(function (pair) {
        var query = new URLSearchParams({ key: own.key, path: pair[0] });
        list.push({ name: folder.name + "/" + pair[0], file: pair[1], folder: own, address: "part?" + query });
      });
    });
    return list;
  }

  function send(zone, files, folders) {
    var list = tasks(files, folders || []), body = new URLSearchParams(), chain = Promise.resolve();
    var main = document.getElementById("stage"), left = null;
    main.dataset.keep = "sending";
    list.forEach(function (task, k) {
      chain = chain.then(function () { return sendOne(zone, task, k, list.length); }).then(function (path) {
        if (!task.folder) { body.append("file", path); return; }
        task.folder.left -= 1;
        if (!task.folder.left) { body.append("folder", task.folder.key + ":" + task.folder.name); }
      });
    });
    // Files before a failed or cancelled one are still added.
    chain.catch(function (error) { left = { error: error }; if (!body.toString()) { throw error; } }).then(function () {
      var words = Array.from(body.values()).map(function (value) { return value.replace(/^[0-9a-f]{16}:/, ""); });
      zone.querySelector(".going").textContent = "Reading " + words.join(", ") + " …";
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

  // All files below a dropped entry, as [path in the dropped folder, file].
  function below(entry, path, found) {
    if (found.length > MOST) { return Promise.resolve(); }
    if (entry.isFile) {
      if (LEFT_OUT.test(path)) { return Promise.resolve(); }
      return new Promise(function (done, failed) { entry.file(done, failed); }).then(function (file) { found.push([path, file]); });
    }
    var reader = entry.createReader();
    function some() {
      return new Promise(function (done, failed) { reader.readEntries(done, failed); }).then(function (entries) {
        if (!entries.length) { return null; }
        return entries.reduce(function (chain, one) {
          return chain.then(function () { return below(one, path ? path + "/" + one.name : one.name, found); });
        }, Promise.resolve()).then(some);
      });
    }
    return some();
  }
  function refuse(zone, words) { Steelyard.trouble(zone, { words: words }); }
  function sendFolders(zone, files, folders) {
    var odd = folders.find(function (folder) { return !folder.files.length || folder.files.length > MOST; });
    if (odd) {
      refuse(zone, odd.name + (odd.files.length ? " has more than " + MOST + " files; drop the folder of one log." : " has no files that can be read; drop the folder of a log."));
      return;
    }
    send(zone, files, folders);
  }

  document.addEventListener("dragover", function (event) {
    event.preventDefault();
    var zone = event.target.closest(".drop");
    document.querySelectorAll(".drop.over").forEach(function (one) { if (one !== zone) { one.classList.remove("over"); } });
    if (zone) { zone.classList.add("over"); }
  });
  document.addEventListener("drop", function (event) {
    event.preventDefault();
    var zone = event.target.closest(".drop") || document.querySelector(".drop");
    if (!zone || !event.dataTransfer.files.length) { return; }
    zone.classList.remove("over");
    // Entries can be taken only during the event.
    var entries = Array.from(event.dataTransfer.items || []).map(function (item) { return item.webkitGetAsEntry && item.webkitGetAsEntry(); });
    var kept = Array.from(event.dataTransfer.files), dropped = entries.filter(function (entry) { return entry && entry.isDirectory; });
    if (!dropped.length) { send(zone, kept); return; }
    if (!("folders" in zone.dataset)) { refuse(zone, "Folders cannot be dropped here; drop the files in it."); return; }
    var files = kept.filter(function (file, k) { return !entries[k] || entries[k].isFile; }), folders = [];
    dropped.reduce(function (chain, entry) {
      return chain.then(function () {
        var folder = { name: entry.name, files: [] };
        folders.push(folder);
        return below(entry, "", folder.files);
      });
    }, Promise.resolve()).then(function () { sendFolders(zone, files, folders); }, function () {
      refuse(zone, "This folder cannot be read by the browser; choose it with the button instead.");
    });
  });
  document.addEventListener("change", function (event) {
    var zone = event.target.closest(".drop"), files = event.target.files;
    if (!zone || event.target.type !== "file" || !files.length) { return; }
    if (!event.target.webkitdirectory) { send(zone, files); return; }
    var pairs = Array.from(files).map(function (file) { return [file.webkitRelativePath.split("/").slice(1).join("/"), file]; });
    pairs = pairs.filter(function (pair) { return !LEFT_OUT.test(pair[0]); });
    sendFolders(zone, [], [{ name: files[0].webkitRelativePath.split("/")[0], files: pairs }]);
  });
})();

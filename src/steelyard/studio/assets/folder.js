// Uploads the robot files and meshes of a folder as one uncompressed archive.
(function () {
  "use strict";
  var WANTED = /\.(urdf|xml|ya?ml|toml|stl|obj|dae|ply|glb|off)$/i, MOST = 3000;
  var table = null;

  function crc(bytes) {
    if (!table) {
      table = new Uint32Array(256).map(function (_, n) {
        for (var k = 0; k < 8; k++) { n = n & 1 ? 0xedb88320 ^ n >>> 1 : n >>> 1; }
        return n;
      });
    }
    var c = 0xffffffff;
    for (var k = 0; k < bytes.length; k++) { c = table[(c ^ bytes[k]) & 255] ^ c >>> 8; }
    return (c ^ 0xffffffff) >>> 0;
  }
  // Little-endian numbers from pairs of [value, bytes].
  function packed(pairs) {
    var out = [];
    pairs.forEach(function (pair) { for (var k = 0; k < pair[1]; k++) { out.push(Math.floor(pair[0] / Math.pow(256, k)) & 255); } });
    return new Uint8Array(out);
  }

  // A ZIP archive of [path, file] pairs (PKWARE's APPNOTE, 4.3).
  function archive(name, entries) {
    var pieces = [], list = [], at = 0, chain = Promise.resolve();
    function add(piece) { pieces.push(piece); at += piece.length; }
    entries.forEach(function (entry) {
      chain = chain.then(function () { return entry[1].arrayBuffer(); }).then(function (held) {
        var bytes = new Uint8Array(held), path = new TextEncoder().encode(entry[0]), start = at;
        // UTF-8 names (0x800), stored, 1 January 1980, checksum, sizes, length of the name.
        var same = [[0x800, 2], [0, 2], [0, 2], [33, 2], [crc(bytes), 4], [bytes.length, 4], [bytes.length, 4], [path.length, 2], [0, 2]];
        add(packed([[0x04034b50, 4], [20, 2]].concat(same)));
        add(path);
        add(bytes);
        list.push(packed([[0x02014b50, 4], [20, 2], [20, 2]].concat(same, [[0, 2], [0, 2], [0, 2], [0, 4], [start, 4]])), path);
      });
    });
    return chain.then(function () {
      var start = at, count = entries.length;
      list.forEach(add);
      add(packed([[0x06054b50, 4], [0, 2], [0, 2], [count, 2], [count, 2], [at - start, 4], [start, 4], [0, 2]]));
      return new File(pieces, name + ".zip");
    });
  }

  // All files below a dropped entry, as [path, file].
  function below(entry, found) {
    if (found.length >= MOST) { return Promise.resolve(); }
    if (entry.isFile) {
      if (!WANTED.test(entry.name)) { return Promise.resolve(); }
      return new Promise(function (done, failed) { entry.file(done, failed); }).then(function (file) { found.push([entry.fullPath.replace(/^\//, ""), file]); });
    }
    var reader = entry.createReader();
    function some() {
      return new Promise(function (done, failed) { reader.readEntries(done, failed); }).then(function (entries) {
        if (!entries.length) { return null; }
        return entries.reduce(function (chain, one) { return chain.then(function () { return below(one, found); }); }, Promise.resolve()).then(some);
      });
    }
    return some();
  }

  function send(zone, name, found) {
    if (!found.length) { Steelyard.trouble(zone, { words: "This folder has neither a robot file nor a mesh; choose another one." }); return; }
    zone.querySelector(".going").textContent = "Packing " + found.length + " files …";
    archive(name, found).then(function (file) { Steelyard.upload(zone, [file]); });
  }
  function home() { return document.querySelector(".drop[data-folder=robot]"); }

  // Before other handlers, because a folder cannot be uploaded directly.
  document.addEventListener("drop", function (event) {
    var entries = Array.from(event.dataTransfer.items || []).map(function (item) { return item.webkitGetAsEntry && item.webkitGetAsEntry(); });
    var folder = entries.find(function (entry) { return entry && entry.isDirectory; }), zone = home(), found = [];
    if (!folder || !zone) { return; }
    event.preventDefault();
    event.stopPropagation();
    zone.classList.remove("over");
    below(folder, found).then(function () { send(zone, folder.name, found); });
  }, true);
  document.addEventListener("change", function (event) {
    if (!event.target.webkitdirectory || event.target.closest(".drop")) { return; }
    var found = Array.from(event.target.files).filter(function (file) { return WANTED.test(file.name); }).slice(0, MOST);
    var name = event.target.files.length ? event.target.files[0].webkitRelativePath.split("/")[0] : "robot";
    send(home(), name, found.map(function (file) { return [file.webkitRelativePath, file]; }));
  });
})();

// Placements and cameras as matrices of 4 × 4, which go by columns.
(function () {
  "use strict";
  var M = Steelyard.matrix = {
    // A rotation by rows and a translation, as a placement.
    of: function (R, t) { return [R[0], R[3], R[6], 0, R[1], R[4], R[7], 0, R[2], R[5], R[8], 0, t[0], t[1], t[2], 1]; },
    times: function (A, B) {
      var C = new Array(16);
      for (var j = 0; j < 4; j++) {
        for (var i = 0; i < 4; i++) {
          C[4 * j + i] = A[i] * B[4 * j] + A[4 + i] * B[4 * j + 1] + A[8 + i] * B[4 * j + 2] + A[12 + i] * B[4 * j + 3];
        }
      }
      return C;
    },
    scaled: function (A, s) { return A.map(function (x, k) { return k < 12 ? x * s[k >> 2] : x; }); },
    // Turned about an axis of unit length by an angle (Rodrigues).
    turned: function (a, angle) {
      var c = Math.cos(angle), s = Math.sin(angle), k = 1 - c, x = a[0], y = a[1], z = a[2];
      return M.of([c + k * x * x, k * x * y - s * z, k * x * z + s * y, k * x * y + s * z, c + k * y * y, k * y * z - s * x,
        k * x * z - s * y, k * y * z + s * x, c + k * z * z], [0, 0, 0]);
    },
    moved: function (d) { return M.of([1, 0, 0, 0, 1, 0, 0, 0, 1], d); },
    camera: function (eye, to, wide, near, far) {
      var z = unit([eye[0] - to[0], eye[1] - to[1], eye[2] - to[2]]), x = unit([-z[1], z[0], 0]);
      var y = [z[1] * x[2] - z[2] * x[1], z[2] * x[0] - z[0] * x[2], z[0] * x[1] - z[1] * x[0]];
      function dot(a) { return a[0] * eye[0] + a[1] * eye[1] + a[2] * eye[2]; }
      var look = [x[0], y[0], z[0], 0, x[1], y[1], z[1], 0, x[2], y[2], z[2], 0, -dot(x), -dot(y), -dot(z), 1];
      var f = 2.4, lens = [f / wide, 0, 0, 0, 0, f, 0, 0, 0, 0, (far + near) / (near - far), -1, 0, 0, 2 * far * near / (near - far), 0];
      return M.times(lens, look);
    }
  };
  function unit(v) { var l = Math.hypot(v[0], v[1], v[2]) || 1; return [v[0] / l, v[1] / l, v[2] / l]; }
})();

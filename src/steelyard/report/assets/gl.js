// A few triangles and lines by WebGL: shapes, a camera that goes round them, and nothing else. Matrices go by columns.
(function () {
  "use strict";
  var VERTEX = "#version 300 es\nin vec3 p; in vec3 n; uniform mat4 view, place; out vec3 at, normal;\n" +
    "void main() { vec4 w = place * vec4(p, 1.0); at = w.xyz; normal = mat3(place) * n; gl_Position = view * w; }";
  var FRAGMENT = "#version 300 es\nprecision highp float; in vec3 at, normal; uniform vec4 colour; uniform vec3 eye;\n" +
    "uniform float plain; out vec4 seen;\nvoid main() {\n" +
    "  vec3 flatNormal = cross(dFdx(at), dFdy(at));\n" +
    "  vec3 m = length(normal) > 1e-9 ? normalize(normal) : normalize(flatNormal + vec3(1e-20));\n" +
    "  float light = plain > 0.5 ? 1.0 : 0.45 + 0.55 * abs(dot(m, normalize(eye - at)));\n" +
    "  seen = vec4(colour.rgb * light, colour.a); }";

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

  // A surface of revolution about z, by its profile of (radius, height, normal outwards, normal upwards).
  function turned(profile, parts) {
    var p = [], n = [], faces = [];
    profile.forEach(function (row, k) {
      for (var i = 0; i <= parts; i++) {
        var c = Math.cos(2 * Math.PI * i / parts), s = Math.sin(2 * Math.PI * i / parts);
        p.push(row[0] * c, row[0] * s, row[1]);
        n.push(row[2] * c, row[2] * s, row[3]);
        if (k && i) {
          var a = k * (parts + 1) + i, b = a - parts - 1;
          faces.push(a, a - 1, b, b, a - 1, b - 1);
        }
      }
    });
    return { p: p, n: n, faces: faces };
  }
  function arc(from, to, steps, lift) {
    var out = [];
    for (var k = 0; k <= steps; k++) {
      var a = from + (to - from) * k / steps;
      out.push([Math.cos(a), Math.sin(a) + lift, Math.cos(a), Math.sin(a)]);
    }
    return out;
  }
  var H = Math.PI / 2;
  // Shapes of size one: a capsule has a radius of 1 and `long` between the centres of its ends, along z.
  Steelyard.solids = {
    sphere: function () { return turned(arc(-H, H, 16, 0), 32); },
    capsule: function (long) { return turned(arc(-H, 0, 6, 0).concat(arc(0, H, 6, long)), 24); },
    cylinder: function () {
      return turned([[0, -0.5, 0, -1], [1, -0.5, 0, -1], [1, -0.5, 1, 0], [1, 0.5, 1, 0], [1, 0.5, 0, 1], [0, 0.5, 0, 1]], 28);
    },
    box: function () {
      var p = [], faces = [];
      for (var k = 0; k < 8; k++) { p.push((k & 1) - 0.5, (k >> 1 & 1) - 0.5, (k >> 2) - 0.5); }
      [[0, 1, 3, 2], [4, 6, 7, 5], [0, 4, 5, 1], [2, 3, 7, 6], [0, 2, 6, 4], [1, 5, 7, 3]].forEach(function (q) {
        faces.push(q[0], q[1], q[2], q[0], q[2], q[3]);
      });
      return { p: p, faces: faces };
    },
    // Three circles of radius one, as lines.
    rings: function () {
      var p = [];
      for (var plane = 0; plane < 3; plane++) {
        for (var i = 0; i < 48; i++) {
          [i, i + 1].forEach(function (k) {
            var c = [0, 0, 0];
            c[plane] = Math.cos(2 * Math.PI * k / 48);
            c[(plane + 1) % 3] = Math.sin(2 * Math.PI * k / 48);
            p.push(c[0], c[1], c[2]);
          });
        }
      }
      return { p: p, lines: true };
    },
    line: function () { return { p: [0, 0, 0, 0, 0, 1], lines: true }; },
    grid: function (half, step) {
      var p = [], n = Math.floor(half / step);
      for (var k = -n; k <= n; k++) { p.push(k * step, -n * step, 0, k * step, n * step, 0, -n * step, k * step, 0, n * step, k * step, 0); }
      return { p: p, lines: true };
    }
  };

  // Draws on a canvas; null where the browser has no WebGL 2.
  Steelyard.painter = function (canvas) {
    var gl = canvas.getContext("webgl2", { antialias: true });
    if (!gl) { return null; }
    var program = gl.createProgram();
    [[gl.VERTEX_SHADER, VERTEX], [gl.FRAGMENT_SHADER, FRAGMENT]].forEach(function (pair) {
      var shader = gl.createShader(pair[0]);
      gl.shaderSource(shader, pair[1]);
      gl.compileShader(shader);
      gl.attachShader(program, shader);
    });
    gl.bindAttribLocation(program, 0, "p");
    gl.bindAttribLocation(program, 1, "n");
    gl.linkProgram(program);
    gl.useProgram(program);
    gl.enable(gl.BLEND);
    gl.blendFuncSeparate(gl.SRC_ALPHA, gl.ONE_MINUS_SRC_ALPHA, gl.ONE, gl.ONE_MINUS_SRC_ALPHA);
    var at = {};
    ["view", "place", "colour", "eye", "plain"].forEach(function (name) { at[name] = gl.getUniformLocation(program, name); });

    function buffer(kind, data) {
      var made = gl.createBuffer();
      gl.bindBuffer(kind, made);
      gl.bufferData(kind, data, gl.STATIC_DRAW);
      return made;
    }
    return {
      shape: function (made) {
        var held = gl.createVertexArray();
        gl.bindVertexArray(held);
        buffer(gl.ARRAY_BUFFER, new Float32Array(made.p));
        gl.enableVertexAttribArray(0);
        gl.vertexAttribPointer(0, 3, gl.FLOAT, false, 0, 0);
        if (made.n) {
          buffer(gl.ARRAY_BUFFER, new Float32Array(made.n));
          gl.enableVertexAttribArray(1);
          gl.vertexAttribPointer(1, 3, gl.FLOAT, false, 0, 0);
        }
        if (made.faces) { buffer(gl.ELEMENT_ARRAY_BUFFER, new Uint32Array(made.faces)); }
        gl.bindVertexArray(null);
        return { held: held, count: made.faces ? made.faces.length : made.p.length / 3, lines: made.lines };
      },
      begin: function (view, eye) {
        gl.viewport(0, 0, canvas.width, canvas.height);
        gl.clearColor(0, 0, 0, 0);
        gl.depthMask(true);
        gl.colorMask(true, true, true, true);
        gl.clear(gl.COLOR_BUFFER_BIT | gl.DEPTH_BUFFER_BIT);
        gl.enable(gl.DEPTH_TEST);
        gl.uniformMatrix4fv(at.view, false, view);
        gl.uniform3fv(at.eye, eye);
      },
      // Forget what lies in front of what; draw into the depth alone, or only what is foremost there.
      forget: function () { gl.clear(gl.DEPTH_BUFFER_BIT); },
      depthAlone: function (yes) { gl.colorMask(!yes, !yes, !yes, !yes); gl.depthFunc(yes ? gl.LESS : gl.LEQUAL); },
      draw: function (shape, place, colour) {
        gl.uniformMatrix4fv(at.place, false, place);
        gl.uniform4fv(at.colour, colour);
        gl.uniform1f(at.plain, shape.lines ? 1 : 0);
        gl.bindVertexArray(shape.held);
        if (shape.lines) { gl.drawArrays(gl.LINES, 0, shape.count); } else { gl.drawElements(gl.TRIANGLES, shape.count, gl.UNSIGNED_INT, 0); }
      }
    };
  };
})();

// A few triangles and lines by WebGL, and nothing else.
(function () {
  "use strict";
  // Normals go by the cofactors of a placement, so that what is stretched is lit as it lies.
  var VERTEX = "#version 300 es\nin vec3 p; in vec3 n; uniform mat4 view, place; out vec3 at, normal;\n" +
    "void main() { vec4 w = place * vec4(p, 1.0); at = w.xyz; gl_Position = view * w; vec3 a = place[0].xyz,\n" +
    "  b = place[1].xyz, c = place[2].xyz; normal = mat3(cross(b, c), cross(c, a), cross(a, b)) * n; }";
  // Light comes from the eye and from above; glass is denser where it is seen from the side.
  var FRAGMENT = "#version 300 es\nprecision highp float; in vec3 at, normal; uniform vec4 colour; uniform vec3 eye;\n" +
    "uniform float plain, glass; out vec4 seen;\nvoid main() {\n" +
    "  vec3 flatNormal = cross(dFdx(at), dFdy(at)), to = normalize(eye - at);\n" +
    "  vec3 m = normalize(dot(normal, normal) > 0.0 ? normal : flatNormal + vec3(1e-20));\n" +
    "  m = dot(m, to) < 0.0 ? -m : m; float facing = dot(m, to);\n" +
    "  float light = 0.34 + 0.4 * facing + 0.13 * (1.0 + dot(m, vec3(0.3, 0.2, 0.93)));\n" +
    "  float side = 1.0 - facing, dense = mix(1.0, 0.6 + 1.2 * side * side, glass);\n" +
    "  seen = plain > 0.5 ? colour : vec4(colour.rgb * light, min(1.0, colour.a * dense)); }";

  // Draws on a canvas; null where the browser has no WebGL 2.
  Steelyard.painter = function (canvas) {
    var gl = canvas.getContext("webgl2", { antialias: true });
    if (!gl) { return null; }

    // A program and its uniforms by name.
    function program(vertex, fragment, names) {
      var made = gl.createProgram(), at = {};
      [[gl.VERTEX_SHADER, vertex], [gl.FRAGMENT_SHADER, fragment]].forEach(function (pair) {
        var shader = gl.createShader(pair[0]);
        gl.shaderSource(shader, pair[1]);
        gl.compileShader(shader);
        gl.attachShader(made, shader);
      });
      gl.bindAttribLocation(made, 0, "p");
      gl.bindAttribLocation(made, 1, "n");
      gl.linkProgram(made);
      names.forEach(function (name) { at[name] = gl.getUniformLocation(made, name); });
      return { made: made, at: at };
    }
    var main = program(VERTEX, FRAGMENT, ["view", "place", "colour", "eye", "plain", "glass"]), at = main.at;
    gl.enable(gl.BLEND);
    gl.blendFuncSeparate(gl.SRC_ALPHA, gl.ONE_MINUS_SRC_ALPHA, gl.ONE, gl.ONE_MINUS_SRC_ALPHA);

    function buffer(kind, data) {
      var made = gl.createBuffer();
      gl.bindBuffer(kind, made);
      gl.bufferData(kind, data, gl.STATIC_DRAW);
      return made;
    }
    function seenBy(view, eye) {
      gl.useProgram(main.made);
      gl.uniformMatrix4fv(at.view, false, view);
      gl.uniform3fv(at.eye, eye);
      gl.uniform1f(at.glass, 0);
    }
    return {
      gl: gl, program: program, seenBy: seenBy,
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
        seenBy(view, eye);
      },
      // A square in the upper left corner, so many pixels from both edges, with a view of its own.
      corner: function (from, size, view, eye) {
        gl.viewport(from, canvas.height - from - size, size, size);
        gl.clear(gl.DEPTH_BUFFER_BIT);
        seenBy(view, eye);
      },
      // Forget what lies in front of what; draw into the depth alone, or only what is foremost there.
      forget: function () { gl.clear(gl.DEPTH_BUFFER_BIT); },
      depthAlone: function (yes) { gl.colorMask(!yes, !yes, !yes, !yes); gl.depthFunc(yes ? gl.LESS : gl.LEQUAL); },
      glass: function (yes) { gl.uniform1f(at.glass, yes ? 1 : 0); },
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

// The shadow on the floor: what stands on it, seen along the light into a small picture, made soft, and laid down.
(function () {
  "use strict";
  var SHARP = 160, SOFT = 80;
  var VERTEX = "#version 300 es\nin vec3 p; uniform mat4 view; uniform vec3 square; out vec2 uv;\n" +
    "void main() { uv = 0.5 + 0.5 * p.xy; gl_Position = view * vec4(square.xy + square.z * p.xy, 0.0, 1.0); }";
  var FRAGMENT = "#version 300 es\nprecision highp float; in vec2 uv; uniform sampler2D picture; uniform int around;\n" +
    "uniform vec4 colour; out vec4 seen;\nvoid main() { float sum = 0.0, all = 0.0;\n" +
    "  for (int i = -around; i <= around; i++) { for (int j = -around; j <= around; j++) {\n" +
    "    float w = max(0.0, 18.0 - float(i * i + j * j)); all += w;\n" +
    "    sum += w * texture(picture, uv + vec2(i, j) / " + SHARP.toFixed(1) + ").a; } }\n" +
    "  float rim = smoothstep(0.0, 0.1, min(min(uv.x, 1.0 - uv.x), min(uv.y, 1.0 - uv.y)));\n" +
    "  seen = vec4(colour.rgb, colour.a * sum / all * rim); }";

  // On a square of the floor, z = 0, about `middle` and `half` of its edge to each side.
  Steelyard.shadow = function (paint, middle, half) {
    var gl = paint.gl, program = paint.program(VERTEX, FRAGMENT, ["view", "square", "picture", "around", "colour"]), at = program.at;
    var quad = paint.shape({ p: [-1, -1, 0, 1, -1, 0, 1, 1, 0, -1, 1, 0], faces: [0, 1, 2, 0, 2, 3] });
    // Along the light, which leans a little; what is below the floor lies outside.
    var h = 1 / half, light = [h, 0, 0, 0, 0, h, 0, 0, 0.22 * h, 0.14 * h, 0.25 * h, 0, -middle[0] * h, -middle[1] * h, -1, 1];

    function picture(side) {
      var texture = gl.createTexture(), frame = gl.createFramebuffer();
      gl.bindTexture(gl.TEXTURE_2D, texture);
      gl.texStorage2D(gl.TEXTURE_2D, 1, gl.RGBA8, side, side);
      [gl.TEXTURE_WRAP_S, gl.TEXTURE_WRAP_T].forEach(function (way) { gl.texParameteri(gl.TEXTURE_2D, way, gl.CLAMP_TO_EDGE); });
      gl.bindFramebuffer(gl.FRAMEBUFFER, frame);
      gl.framebufferTexture2D(gl.FRAMEBUFFER, gl.COLOR_ATTACHMENT0, gl.TEXTURE_2D, texture, 0);
      gl.bindFramebuffer(gl.FRAMEBUFFER, null);
      return { texture: texture, frame: frame, side: side };
    }
    var sharp = picture(SHARP), soft = picture(SOFT);
    function into(target) {
      gl.bindFramebuffer(gl.FRAMEBUFFER, target.frame);
      gl.viewport(0, 0, target.side, target.side);
      gl.clearColor(0, 0, 0, 0);
      gl.colorMask(true, true, true, true);
      gl.clear(gl.COLOR_BUFFER_BIT);
    }
    function lay(view, from, around, colour) {
      gl.useProgram(program.made);
      gl.uniformMatrix4fv(at.view, false, view);
      gl.uniform3f(at.square, middle[0], middle[1], half);
      gl.uniform1i(at.around, around);
      gl.uniform4fv(at.colour, colour);
      gl.bindTexture(gl.TEXTURE_2D, from.texture);
      gl.bindVertexArray(quad.held);
      gl.disable(gl.DEPTH_TEST);
      gl.drawElements(gl.TRIANGLES, quad.count, gl.UNSIGNED_INT, 0);
      gl.enable(gl.DEPTH_TEST);
    }
    return {
      // Anew, of what `draw` draws.
      cast: function (draw) {
        gl.disable(gl.DEPTH_TEST);
        into(sharp);
        paint.seenBy(light, [0, 0, 9 * half]);
        draw();
        into(soft);
        lay(light, sharp, 4, [0, 0, 0, 1]);
        gl.bindFramebuffer(gl.FRAMEBUFFER, null);
      },
      // As `view` sees it.
      lay: function (view, darkness) { lay(view, soft, 0, [0, 0, 0, darkness]); }
    };
  };
})();

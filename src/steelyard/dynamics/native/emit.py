"""Straight-line LLVM code from a graph: the lanes of a vector register are samples (or robots).

`emit` writes the text of a function

    void name(const double* in, double* out, int64 vectors)

that reads input row r of lane s at in[r·STRIDE + s] and writes output row k at out[k·STRIDE + s], for
`vectors` groups of `width` lanes. Nothing is reassociated (results are those of the formulas, up to fused
multiply-add), and sines and cosines are polynomials in vector registers.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from steelyard.dynamics.graph import Graph, Node, arguments, live
from steelyard.dynamics.native._text import Vectors, double

# Lanes of a block. Rows of a block are STRIDE apart, which is not a power of two: otherwise all rows would use the same
# sets of the cache (measured: 2–3× slower).
LANES = 64
STRIDE = LANES + 8

# Cody & Waite's π/2 in three parts (33 + 33 + 53 bits): k·π/2 is removed exactly for |k| < 2²⁰.
_HALF_PI = (1.57079632673412561417e0, 6.07710050630396597660e-11, 2.02226624879595063154e-21)
# Minimax polynomials on |r| ≤ π/4 (Cephes sin.c, cos.c coefficients; error below 1 ulp).
_SIN = (
    -1.66666666666666307295e-1,
    8.33333333332211858878e-3,
    -1.98412698295895385996e-4,
    2.75573136213857245213e-6,
    -2.50507477628578072866e-8,
    1.58962301576546568060e-10,
)
_COS = (
    4.16666666666665929218e-2,
    -1.38888888888730564116e-3,
    2.48015872888517045348e-5,
    -2.75573141792967388112e-7,
    2.08757008419747316778e-9,
    -1.13585365213876817300e-11,
)

_ARITHMETIC = {"add": "fadd", "sub": "fsub", "mul": "fmul", "div": "fdiv"}
_INTRINSIC = {"sqrt": "sqrt", "abs": "fabs", "exp": "exp"}
# Functions without an LLVM intrinsic in all supported versions are called from libm, lane by lane.
_LIBM = {"tanh": "tanh", "atan": "atan"}


class _Formulas(Vectors):
    """Operations of graphs on vectors of lanes."""

    def __init__(self, width: int) -> None:
        super().__init__(width)
        self.mask = f"<{width} x i1>" if width > 1 else "i1"

    def number(self, value: float) -> str:
        if self.width == 1:
            return double(value)
        return "<" + ", ".join([f"double {double(value)}"] * self.width) + ">"

    def op(self, name: str, a: str, b: str, kind: str = "") -> str:
        return super().op(f"{name} contract", a, b, kind)

    def select(self, condition: str, a: str, b: str) -> str:
        return self.let(f"select {self.mask} {condition}, {self.kind} {a}, {self.kind} {b}")

    def compare(self, how: str, a: str, b: str) -> str:
        return self.let(f"fcmp {how} {self.kind} {a}, {b}")

    def polynomial(self, z: str, coefficients: Sequence[float]) -> str:
        value = self.number(coefficients[-1])
        for c in reversed(coefficients[:-1]):
            value = self.fma(value, z, self.number(c))
        return value

    def sincos(self, x: str) -> tuple[str, str]:
        turns = self.op("fmul", x, self.number(0.6366197723675814))
        k = self.intrinsic("floor", self.op("fadd", turns, self.number(0.5)))
        r = x
        minus_k = self.op("fsub", self.number(-0.0), k)
        for part in _HALF_PI:
            r = self.fma(minus_k, self.number(part), r)
        z = self.op("fmul", r, r)
        s = self.fma(self.op("fmul", r, z), self.polynomial(z, _SIN), r)
        c = self.fma(self.op("fmul", z, z), self.polynomial(z, _COS), self.fma(z, self.number(-0.5), self.number(1.0)))
        quarter = self.intrinsic("floor", self.op("fmul", k, self.number(0.25)))
        quadrant = self.fma(quarter, self.number(-4.0), k)  # 0, 1, 2 or 3
        half = self.intrinsic("floor", self.op("fmul", k, self.number(0.5)))
        odd = self.compare("oeq", self.fma(half, self.number(-2.0), k), self.number(1.0))
        a, b = self.select(odd, c, s), self.select(odd, s, c)
        sine = self.select(self.compare("oge", quadrant, self.number(2.0)), self.op("fsub", self.number(-0.0), a), a)
        # The cosine is negative in quadrants 1 and 2, that is if |quadrant − 1.5| < 1.
        middle = self.intrinsic("fabs", self.op("fsub", quadrant, self.number(1.5)))
        cosine = self.select(self.compare("olt", middle, self.number(1.0)), self.op("fsub", self.number(-0.0), b), b)
        return sine, cosine

    def libm(self, name: str, x: str) -> str:
        self.declarations.add(f"declare double @{name}(double)")
        if self.width == 1:
            return self.let(f"call double @{name}(double {x})")
        out = "undef"
        for lane in range(self.width):
            part = self.let(f"extractelement {self.kind} {x}, i32 {lane}")
            value = self.let(f"call double @{name}(double {part})")
            out = self.let(f"insertelement {self.kind} {out}, double {value}, i32 {lane}")
        return out

    def sign(self, x: str) -> str:
        """Compute −1, 0, 1 or NaN, as NumPy does."""
        zero = self.number(0.0)
        negative = self.select(self.compare("olt", x, zero), self.number(-1.0), x)
        return self.select(self.compare("ogt", x, zero), self.number(1.0), negative)

    def unary(self, kind: str, x: str) -> str:
        if kind == "neg":
            return self.negative(x)
        if kind in _INTRINSIC:
            return self.intrinsic(_INTRINSIC[kind], x)
        if kind in _LIBM:
            return self.libm(_LIBM[kind], x)
        if kind == "sign":
            return self.sign(x)
        if kind == "step":
            return self.select(self.compare("ogt", x, self.number(0.0)), self.number(1.0), self.number(0.0))
        raise ValueError(f"operation {kind} has no native code")

    def binary(self, kind: str, a: str, b: str) -> str:
        if kind in _ARITHMETIC:
            return self.op(_ARITHMETIC[kind], a, b)
        return self.select(self.compare("olt" if kind == "min" else "ogt", a, b), a, b)


def emit(graph: Graph, outputs: Sequence[Any], input_rows: dict[str, int], name: str, width: int) -> str:
    """Write a function and its declarations.

    Args:
        graph: Graph.
        outputs: Nodes or numbers.
        input_rows: Row of position 0 of each input.
        name: Name of the function.
        width: Lanes per vector.
    """
    w = _Formulas(width)
    with w.loop(0, "%vectors") as k:
        lane = w.mul(k, width)
        _body(w, graph, outputs, input_rows, w.at("%in", lane), w.at("%out", lane))
    text = w.function(name, "ptr noalias readonly %in, ptr noalias %out, i64 %vectors")
    return "\n".join([*sorted(w.declarations), text])


def _body(
    w: _Formulas, graph: Graph, outputs: Sequence[Any], input_rows: dict[str, int], source: str, target: str
) -> None:
    values: dict[int, str] = {}
    circle: dict[int, tuple[str, str]] = {}
    # Store results as soon as they are computed; otherwise they would be spilled.
    rows_of: dict[int, list[int]] = {}
    for row, output in enumerate(outputs):
        if isinstance(output, Node):
            rows_of.setdefault(output.index, []).append(row)
        else:
            w.store(w.number(float(output)), w.at(target, row * STRIDE), w.kind)
    for index in live(graph, outputs):
        op = graph.operations[index]
        kind, args = op[0], [values[k] for k in arguments(op)]
        if kind == "const":
            values[index] = w.number(op[1])
        elif kind == "in":
            values[index] = w.load(w.at(source, (input_rows[op[1]] + op[2]) * STRIDE), w.kind)
        elif kind in ("sin", "cos"):
            if op[1] not in circle:
                circle[op[1]] = w.sincos(args[0])
            values[index] = circle[op[1]][0 if kind == "sin" else 1]
        elif len(args) == 1:
            values[index] = w.unary(kind, args[0])
        else:
            values[index] = w.binary(kind, *args)
        for row in rows_of.get(index, ()):
            w.store(values[index], w.at(target, row * STRIDE), w.kind)

"""A writer of LLVM assembly: names, loops, loads and stores, so that the code that uses it reads like a program."""

from __future__ import annotations

import struct
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from steelyard.dynamics.native._code import vector_width

DOUBLE = "double"


def double(value: float) -> str:
    """Write a double for LLVM exactly."""
    return "0x" + struct.pack(">d", value).hex().upper()


class Text:
    """The body of one function. Values are names (`%12`) or literals, stored as strings."""

    def __init__(self) -> None:
        self.lines: list[str] = []
        self.declarations: set[str] = set()
        self.block = "entry"
        self._count = 0
        self._stack: list[str] = []

    def fresh(self, prefix: str = "v") -> str:
        self._count += 1
        return f"{prefix}{self._count}"

    def let(self, text: str) -> str:
        name = "%" + self.fresh()
        self.lines.append(f"  {name} = {text}")
        return name

    def do(self, text: str) -> None:
        self.lines.append(f"  {text}")

    def label(self, name: str) -> None:
        self.lines.append(f"{name}:")
        self.block = name

    # ---------------------------------------------------------------- whole numbers and memory

    def add(self, a: str | int, b: str | int) -> str:
        return self.let(f"add i64 {a}, {b}")

    def sub(self, a: str | int, b: str | int) -> str:
        return self.let(f"sub i64 {a}, {b}")

    def mul(self, a: str | int, b: str | int) -> str:
        return self.let(f"mul i64 {a}, {b}")

    def minimum(self, a: str | int, b: str | int) -> str:
        return self.let(f"select i1 {self.let(f'icmp slt i64 {a}, {b}')}, i64 {a}, i64 {b}")

    def at(self, base: str, index: str | int, kind: str = "double") -> str:
        return self.let(f"getelementptr inbounds {kind}, ptr {base}, i64 {index}")

    def load(self, place: str, kind: str = "double") -> str:
        return self.let(f"load {kind}, ptr {place}, align 8")

    def store(self, value: str, place: str, kind: str = "double") -> None:
        self.do(f"store {kind} {value}, ptr {place}, align 8")

    def element(self, base: str, index: str | int, kind: str = "i64") -> str:
        """base[index]."""
        return self.load(self.at(base, index, kind), kind)

    def variable(self, kind: str = "i64") -> str:
        """Allocate a stack variable, at the function's start: inside a loop it would grow the stack."""
        name = "%" + self.fresh("var")
        self._stack.append(f"  {name} = alloca {kind}, align 8")
        return name

    # ---------------------------------------------------------------- control

    @contextmanager
    def when(self, condition: str) -> Iterator[None]:
        with self.loop(0, self.let(f"zext i1 {condition} to i64")):
            yield

    @contextmanager
    def loop(self, start: str | int, stop: str | int, step: int = 1) -> Iterator[str]:
        """for index in range(start, stop, step)."""
        head, body, after = self.fresh("head"), self.fresh("body"), self.fresh("after")
        before, index, following = self.block, "%" + self.fresh("i"), "%" + self.fresh("j")
        self.do(f"br label %{head}")
        self.label(head)
        place = len(self.lines)
        go_on = self.let(f"icmp slt i64 {index}, {stop}")
        self.do(f"br i1 {go_on}, label %{body}, label %{after}")
        self.label(body)
        yield index
        self.do(f"{following} = add i64 {index}, {step}")
        self.do(f"br label %{head}")
        phi = f"  {index} = phi i64 [ {start}, %{before} ], [ {following}, %{self.block} ]"
        self.lines.insert(place, phi)
        self.label(after)

    @contextmanager
    def repeat(
        self, stop: int, step: int, kind: str, values: Sequence[str]
    ) -> Iterator[tuple[str, list[str], list[str]]]:
        """Write a loop that runs at least once and carries values: yields index, values, and a list for the next ones.

        After the loop that list holds the results.
        """
        body, after = self.fresh("body"), self.fresh("after")
        before, index, following = self.block, "%" + self.fresh("i"), "%" + self.fresh("j")
        carried = ["%" + self.fresh("c") for _ in values]
        grown: list[str] = []
        self.do(f"br label %{body}")
        self.label(body)
        place = len(self.lines)
        yield index, carried, grown
        self.do(f"{following} = add i64 {index}, {step}")
        go_on = self.let(f"icmp slt i64 {following}, {stop}")
        self.do(f"br i1 {go_on}, label %{body}, label %{after}")
        back = self.block
        phis = [f"  {index} = phi i64 [ 0, %{before} ], [ {following}, %{back} ]"]
        for name, first, last in zip(carried, values, grown, strict=True):
            phis.append(f"  {name} = phi {kind} [ {first}, %{before} ], [ {last}, %{back} ]")
        self.lines[place:place] = phis
        self.label(after)

    def function(self, name: str, parameters: str) -> str:
        """Write the whole function; call last.

        The stack is aligned to cache lines; otherwise spilled vectors may straddle two of them, depending on the
        caller's stack (measured: up to 1.3× slower).
        """
        return "\n".join(
            [
                f"define void @{name}({parameters}) alignstack(64) {{",
                "entry:",
                *self._stack,
                *self.lines,
                "  ret void",
                "}",
            ]
        )


class Vectors(Text):
    """Arithmetic on vectors of `width` doubles (default: a register of this processor), or on single ones by `kind`."""

    def __init__(self, width: int | None = None) -> None:
        super().__init__()
        self.width = width or vector_width()
        self.kind = f"<{self.width} x double>" if self.width > 1 else DOUBLE

    def op(self, name: str, a: str, b: str, kind: str = "") -> str:
        return self.let(f"{name} {kind or self.kind} {a}, {b}")

    def negative(self, a: str, kind: str = "") -> str:
        return self.let(f"fneg {kind or self.kind} {a}")

    def intrinsic(self, name: str, *args: str, kind: str = "") -> str:
        kind = kind or self.kind
        full = f"@llvm.{name}.{'f64' if kind == DOUBLE else f'v{self.width}f64'}"
        self.declarations.add(f"declare {kind} {full}({', '.join([kind] * len(args))})")
        return self.let(f"call {kind} {full}({', '.join(f'{kind} {a}' for a in args)})")

    def fma(self, a: str, b: str, c: str, kind: str = "") -> str:
        """a·b + c, rounded once."""
        return self.intrinsic("fma", a, b, c, kind=kind)

    def broadcast(self, value: str) -> str:
        """Copy a number to every element of a vector."""
        if self.width == 1:
            return value
        one = self.let(f"insertelement {self.kind} poison, double {value}, i32 0")
        return self.let(f"shufflevector {self.kind} {one}, {self.kind} poison, <{self.width} x i32> zeroinitializer")

    def add_up(self, vector: str) -> str:
        """Sum the elements of a vector."""
        name = f"@llvm.vector.reduce.fadd.v{self.width}f64"
        self.declarations.add(f"declare double {name}(double, {self.kind})")
        return self.let(f"call reassoc double {name}(double 0.0, {self.kind} {vector})")

    def chains(self, products: Sequence[tuple[str, str]], count: int, kind: str = "") -> str:
        """Compute Σ a·b in `count` independent sums, which hide the latency of the additions."""
        sums = [self.op("fmul", a, b, kind) for a, b in products[:count]]
        for k, (a, b) in enumerate(products[count:]):
            sums[k % count] = self.fma(a, b, sums[k % count], kind)
        while len(sums) > 1:
            pairs = [self.op("fadd", a, b, kind) for a, b in zip(sums[::2], sums[1::2], strict=False)]
            sums = pairs + sums[2 * len(pairs) :]
        return sums[0]

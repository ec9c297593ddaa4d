"""Numbers with operators that write LLVM text, so that loops with decisions read like ordinary programs."""

from __future__ import annotations

from steelyard.dynamics.native._text import DOUBLE, Text, double


class Number:
    """A double of a program in construction; `name` is its name in LLVM."""

    def __init__(self, text: Numbers, name: str) -> None:
        self.text, self.name = text, name

    def _binary(self, operation: str, other: Number | float, swapped: bool = False) -> Number:
        a, b = self.name, self.text.number(other).name
        if swapped:
            a, b = b, a
        return Number(self.text, self.text.let(f"{operation} double {a}, {b}"))

    def __add__(self, other: Number | float) -> Number:
        return self._binary("fadd", other)

    def __radd__(self, other: float) -> Number:
        return self._binary("fadd", other, True)

    def __sub__(self, other: Number | float) -> Number:
        return self._binary("fsub", other)

    def __rsub__(self, other: float) -> Number:
        return self._binary("fsub", other, True)

    def __mul__(self, other: Number | float) -> Number:
        return self._binary("fmul", other)

    def __rmul__(self, other: float) -> Number:
        return self._binary("fmul", other, True)

    def __truediv__(self, other: Number | float) -> Number:
        return self._binary("fdiv", other)

    def __rtruediv__(self, other: float) -> Number:
        return self._binary("fdiv", other, True)

    def __neg__(self) -> Number:
        return Number(self.text, self.text.let(f"fneg double {self.name}"))

    def __gt__(self, other: Number | float) -> str:
        return self._compare("ogt", other)

    def __lt__(self, other: Number | float) -> str:
        return self._compare("olt", other)

    def __le__(self, other: Number | float) -> str:
        return self._compare("ole", other)

    def __ge__(self, other: Number | float) -> str:
        return self._compare("oge", other)

    def _compare(self, how: str, other: Number | float) -> str:
        return self.text.let(f"fcmp {how} double {self.name}, {self.text.number(other).name}")


class Cell:
    """A variable of the program, or a location in memory."""

    def __init__(self, text: Numbers, place: str) -> None:
        self._text, self.place = text, place

    def get(self) -> Number:
        return Number(self._text, self._text.load(self.place))

    def set(self, value: Number | float) -> None:
        self._text.store(self._text.number(value).name, self.place)

    def raise_to(self, value: Number) -> None:
        """Set to the larger of both values."""
        self.set(self._text.larger(self.get(), value))


class Numbers(Text):
    """A program over single numbers. Conditions are one-bit values of LLVM."""

    def number(self, value: Number | float) -> Number:
        return value if isinstance(value, Number) else Number(self, double(float(value)))

    def cell(self, start: Number | float = 0.0) -> Cell:
        made = Cell(self, self.variable(DOUBLE))
        made.set(start)
        return made

    def item(self, base: str, *index: str | int) -> Cell:
        """Return the location at `base` plus the sum of all indices."""
        where: str | int = index[0]
        for more in index[1:]:
            where = self.add(where, more)
        return Cell(self, self.at(base, where))

    def choose(self, condition: str, yes: Number | float, no: Number | float) -> Number:
        a, b = self.number(yes), self.number(no)
        return Number(self, self.let(f"select i1 {condition}, double {a.name}, double {b.name}"))

    def larger(self, a: Number, b: Number | float) -> Number:
        return self.choose(a > b, a, b)

    def smaller(self, a: Number, b: Number | float) -> Number:
        return self.choose(a < b, a, b)

    def both(self, a: str, b: str) -> str:
        return self.let(f"and i1 {a}, {b}")

    def either(self, a: str, b: str) -> str:
        return self.let(f"or i1 {a}, {b}")

    def function_of(self, name: str, x: Number) -> Number:
        """Apply LLVM's function `name` (sqrt, fabs, floor), a machine instruction, to x."""
        self.declarations.add(f"declare double @llvm.{name}.f64(double)")
        return Number(self, self.let(f"call double @llvm.{name}.f64(double {x.name})"))

    def cube_root(self, x: Number) -> Number:
        """Compute ∛x for x ≥ 0: start from a third of the exponent, then Halley's rule triples the digits per step."""
        bits = self.let(f"bitcast double {x.name} to i64")
        third = self.add(self.let(f"udiv i64 {bits}, 3"), 0x2A9F7893782DA1CE)
        y = Number(self, self.let(f"bitcast i64 {third} to double"))
        for _ in range(4):
            cube = y * y * y
            y = y * (cube + 2.0 * x) / (2.0 * cube + x)
        return self.choose(x > 0.0, y, 0.0)

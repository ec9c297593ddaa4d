"""Moves of one program as LLVM text: S-curves, fly-by, and ramps softened until all limits are satisfied."""

from __future__ import annotations

from steelyard.dynamics.native._numbers import Cell, Number, Numbers

# Breaks of an S-curve (seven phases), and its stored numbers: breaks, four powers per phase, lengths of its ramps.
BREAKS = 8
_SPEEDING, _SLOWING, _PROFILE = 36, 37, 40
# Scratch per move: the profile, six single numbers, and three lists as long as all breaks.
WHOLE, FIRST, LAST, _START, _OVERLAP, FLY, _TIMES, _QUICK, _ROUGH = 40, 41, 42, 43, 44, 45, 46, 54, 62
SCRATCH = 70
# As in excitation/interpolator/_compose.py; its tests check that both agree.
ROUNDS, SLOWEST, _HAIR, _SAME, _QUICKER = 100, 200.0, 1e-9, 1e-12, 1e-6
# Parts of a piece for the hull of its Bernstein coefficients, as in trajectories/_pieces.py.
_PARTS = 64
_ROUNDING = 1e-9


def _time(t: Numbers, v: Number, acceleration: Number, jerk: Number) -> tuple[Number, Number]:
    """Compute the time from rest to a velocity and its derivative, whether or not full acceleration is reached."""
    short = v * jerk < acceleration * acceleration
    root = t.function_of("sqrt", v / jerk)
    full = v / acceleration + acceleration / jerk
    return t.choose(short, 2.0 * root, full), t.choose(short, root / v, 1.0 / acceleration)


def profile() -> Numbers:
    """Write the fastest S-curve over the distance 1 (interpolator/profile.py); empty phases stay, with length 0."""
    t = Numbers()
    velocity, *ramps = (Number(t, f"%{x}") for x in ("velocity", "up", "up_jerk", "down", "down_jerk"))
    up, down = ramps[:2], ramps[2:]
    peak, going = t.cell(velocity), t.variable("i1")
    t.store("true", going, "i1")
    # Newton's method from above: the distance is convex in the velocity, so it descends to the root and stops.
    with t.loop(0, 100), t.when(t.load(going, "i1")):
        v = peak.get()
        (one, rise), (other, fall) = _time(t, v, *up), _time(t, v, *down)
        covered = v * (one + other) * 0.5 - 1.0
        better = v - covered / ((one + other) * 0.5 + v * (rise + fall) * 0.5)
        less = t.both(covered > 0.0, better < v)
        peak.set(t.choose(less, better, v))
        t.store(less, going, "i1")
    v = peak.get()
    lengths = [_time(t, v, *ramp)[0] for ramp in (up, down)]
    tiny = (lengths[0] + lengths[1]) * 1e-12
    phases: list[tuple[Number, Number, Number]] = []
    for (acceleration, jerk), time, sign in ((up, lengths[0], 1.0), (down, lengths[1], -1.0)):
        rise = t.smaller(acceleration / jerk, time * 0.5)
        top = v / (time - rise) * sign
        grows = t.choose(rise > 0.0, top / rise, 0.0)
        zero = t.number(0.0)
        phases += [(rise, zero, grows), (time - 2.0 * rise, top, zero), (rise, top, -grows)]
    cruise = 1.0 / v - (lengths[0] + lengths[1]) * 0.5
    phases.insert(3, (cruise, t.number(0.0), t.number(0.0)))
    s, speed, b = t.number(0.0), t.number(0.0), t.number(0.0)
    rows = []
    t.item("%out", 0).set(0.0)
    for k, (length, a, j) in enumerate(phases):
        h = t.choose(length > tiny, length, 0.0)
        row = [s, speed * h, a * h * h * 0.5, j * h * h * h / 6.0]
        s = row[0] + row[1] + row[2] + row[3]
        speed = speed + a * h + j * h * h * 0.5
        b = b + h
        t.item("%out", k + 1).set(b)
        rows += row
    for k, value in enumerate(rows):
        t.item("%out", BREAKS + k).set(value / s)
    t.item("%out", _SPEEDING).set(lengths[0])
    t.item("%out", _SLOWING).set(lengths[1])
    return t


class ProgramWriter:
    """One program: its moves are at `steps` and `paces`, its pieces go to `breaks` and `table`."""

    def __init__(self, t: Numbers, program: str) -> None:
        self.t, self.moves, self.joints = t, "%moves", "%joints"
        self.last = t.sub("%moves", 1)
        self.room = t.mul("%moves", BREAKS)
        self.width = t.mul("%joints", 4)
        self.paces = t.at("%paces", t.mul(t.mul(program, "%moves"), 3))
        self.steps = t.at("%steps", t.mul(t.mul(program, "%moves"), "%joints"))
        self.breaks = t.at("%breaks", t.mul(program, self.room))
        self.table = t.at("%tables", t.mul(t.mul(program, self.room), self.width))
        self.count = t.at("%pieces", program, "i64")

    def value(self, which: int, move: str | int) -> Cell:
        """Return a number of a move, or of its profile."""
        return self.t.item("%scratch", self.t.mul(self.moves, which), move)

    def list_item(self, which: int, index: str) -> Cell:
        return self.t.item("%scratch", self.t.mul(self.moves, which), index)

    def profile(self, move: str) -> str:
        return self.t.at("%scratch", self.t.mul(move, _PROFILE))

    def shape(self, move: str, first: Number | float, last: Number | float) -> None:
        """Compute the move's profile at its overall pace, with its ramps softened by these factors."""
        t = self.t
        v, a, j = (t.item(self.paces, t.mul(move, 3), k).get() for k in range(3))
        whole = self.value(WHOLE, move).get()
        ramps = []
        for factor in (whole * first, whole * last):
            square = factor * factor
            ramps += [a / square, j / (square * factor)]
        given = ", ".join(f"double {x.name}" for x in (v / whole, *ramps))
        t.do(f"call void @profile({given}, ptr {self.profile(move)})")

    def duration(self, move: str) -> Number:
        return self.t.item(self.profile(move), BREAKS - 1).get()

    # ---------------------------------------------------------------- moves in a row

    def lay_out(self) -> None:
        """Compute the start of every move, and its overlap with the next."""
        t, begin = self.t, self.t.cell(0.0)
        with t.loop(0, self.moves) as k:
            self.shape(k, self.value(FIRST, k).get(), self.value(LAST, k).get())
        with t.loop(0, self.moves) as k:
            self.value(_START, k).set(begin.get())
            self.value(_OVERLAP, k).set(0.0)
            with t.when(t.let(f"icmp slt i64 {k}, {self.last}")):
                slowing = t.item(self.profile(k), _SLOWING).get()
                speeding = t.item(self.profile(t.add(k, 1)), _SPEEDING).get()
                self.value(_OVERLAP, k).set(self.value(FLY, k).get() * t.smaller(slowing, speeding))
            begin.set(begin.get() + self.duration(k) - self.value(_OVERLAP, k).get())

    def sort_breaks(self) -> None:
        """Sort the breaks of all moves (which are almost sorted); merge those that differ only by rounding."""
        t = self.t
        with t.loop(0, self.room) as n:
            k, i = t.let(f"sdiv i64 {n}, {BREAKS}"), t.let(f"srem i64 {n}, {BREAKS}")
            new = self.value(_START, k).get() + t.item(self.profile(k), i).get()
            place = t.variable()
            t.store(n, place, "i64")
            with t.loop(0, n) as back:
                other = self.list_item(_TIMES, t.sub(t.sub(n, 1), back))
                at = t.load(place, "i64")
                here = t.let(f"icmp eq i64 {at}, {t.sub(n, back)}")
                with t.when(t.both(here, other.get() > new)):
                    self.list_item(_TIMES, at).set(other.get())
                    t.store(t.sub(at, 1), place, "i64")
            self.list_item(_TIMES, t.load(place, "i64")).set(new)
        end = self.list_item(_TIMES, t.sub(self.room, 1)).get()
        hair = t.larger(end, 1.0) * _SAME
        count = t.variable()
        t.store("1", count, "i64")
        t.item(self.breaks, 0).set(self.list_item(_TIMES, "0").get())
        with t.loop(1, self.room) as n:
            time = self.list_item(_TIMES, n).get()
            with t.when(time - self.list_item(_TIMES, t.sub(n, 1)).get() > hair):
                t.item(self.breaks, t.load(count, "i64")).set(time)
                t.store(t.add(t.load(count, "i64"), 1), count, "i64")
        t.store(t.sub(t.load(count, "i64"), 1), self.count, "i64")

    def sum_pieces(self) -> None:
        """Sum the pieces of all moves, as powers of each piece's own time from 0 to 1."""
        t = self.t
        with t.loop(0, t.load(self.count, "i64")) as p:
            low, high = t.item(self.breaks, p).get(), t.item(self.breaks, t.add(p, 1)).get()
            middle = (low + high) * 0.5
            table = t.at(self.table, t.mul(p, self.width))
            with t.loop(0, self.joints) as j:
                t.item(table, j).set(t.item("%home", j).get())
                for m in (1, 2, 3):
                    t.item(table, t.mul(self.joints, m), j).set(0.0)
            with t.loop(0, self.moves) as k:
                begin = self.value(_START, k).get()
                end = begin + self.duration(k)
                with t.when(middle >= end):
                    self._add(table, k, [t.number(1.0)])
                with t.when(t.both(middle >= begin, middle < end)), t.loop(0, BREAKS - 1) as i:
                    first = begin + t.item(self.profile(k), i).get()
                    then = begin + t.item(self.profile(k), t.add(i, 1)).get()
                    with t.when(t.both(middle >= first, middle < then)):
                        x, y = (low - first) / (then - first), (high - low) / (then - first)
                        c = [t.item(self.profile(k), BREAKS + m, t.mul(i, 4)).get() for m in range(4)]
                        self._add(table, k, [
                            c[0] + x * (c[1] + x * (c[2] + x * c[3])),
                            y * (c[1] + x * (2.0 * c[2] + x * 3.0 * c[3])),
                            y * y * (c[2] + 3.0 * x * c[3]),
                            y * y * y * c[3],
                        ])  # fmt: skip

    def _add(self, table: str, move: str, powers: list[Number]) -> None:
        t = self.t
        with t.loop(0, self.joints) as j:
            step = t.item(self.steps, t.mul(move, self.joints), j).get()
            for m, value in enumerate(powers):
                cell = t.item(table, t.mul(self.joints, m), j)
                cell.set(cell.get() + step * value)

    # ---------------------------------------------------------------- limits

    def excess(self) -> Number:
        """Compute the largest factor by which any piece must be slower."""
        t, worst = self.t, self.t.cell(0.0)
        with t.loop(0, t.load(self.count, "i64")) as p:
            length = t.item(self.breaks, t.add(p, 1)).get() - t.item(self.breaks, p).get()
            table = t.at(self.table, t.mul(p, self.width))
            speed, push, jerk = t.cell(0.0), t.cell(0.0), t.cell(0.0)
            with t.loop(0, self.joints) as j:
                one, two, three = (t.item(table, t.mul(self.joints, m), j).get() for m in (1, 2, 3))
                bounds = [t.item("%bounds", t.mul(self.joints, m), j).get() for m in range(3)]
                values = self._velocities(one, 2.0 * two, 3.0 * three)
                for cell, sizes, bound, unit in (
                    (speed, values, bounds[0], length),
                    (push, [2.0 * two, 2.0 * two + 6.0 * three], bounds[1], length * length),
                    (jerk, [6.0 * three], bounds[2], length * length * length),
                ):
                    for size in sizes:
                        cell.raise_to(t.function_of("fabs", size) / unit / bound)
            rough = t.larger(t.function_of("sqrt", push.get()), t.cube_root(jerk.get()))
            self.list_item(_QUICK, p).set(speed.get())
            self.list_item(_ROUGH, p).set(rough)
            worst.raise_to(t.larger(speed.get(), rough))
        return worst.get()

    def _velocities(self, a: Number, b: Number, c: Number) -> list[Number]:
        """Return the ends of a + b·u + c·u², and the extreme Bernstein coefficients of its parts: the two at the
        vertex.
        """
        t = self.t
        vertex = t.function_of("floor", (-float(_PARTS) * b / c - 1.0) * 0.5)
        out = [a, a + b + c]
        for k in (vertex, vertex + 1.0):
            part = t.smaller(t.larger(k, 0.0), _PARTS - 1.0)  # without curvature, any part is correct
            out.append(a + b * (2.0 * part + 1.0) * (0.5 / _PARTS) + c * part * (part + 1.0) * (1.0 / _PARTS**2))
        return out

    def worst_factor(self, begin: Number, end: Number, which: tuple[int, ...]) -> Number:
        """Compute the factor by which the motion from `begin` to `end` must be slower, at least 1."""
        t, most = self.t, self.t.cell(0.0)
        with t.loop(0, t.load(self.count, "i64")) as p:
            middle = (t.item(self.breaks, p).get() + t.item(self.breaks, t.add(p, 1)).get()) / 2.0
            with t.when(t.both(middle > begin, middle < end)):
                for one in which:
                    most.raise_to(self.list_item(one, p).get())
        return t.choose(most.get() > 1.0, most.get() * (1.0 + _HAIR), 1.0)

    def soften(self) -> Number:
        """Make every move slower by its worst factor (one iteration of `_paced`); return the largest factor."""
        t, slowest = self.t, self.t.cell(0.0)
        with t.loop(0, self.moves) as k:
            begin = self.value(_START, k).get()
            end, shared = begin + self.duration(k), self.value(_OVERLAP, k).get()
            before = t.cell(0.0)
            with t.when(t.let(f"icmp sgt i64 {k}, 0")):
                before.set(self.value(_OVERLAP, t.sub(k, 1)).get())
            alone = self.worst_factor(begin + before.get(), end - shared, (_QUICK, _ROUGH))
            whole = self.value(WHOLE, k)
            whole.set(whole.get() * t.larger(alone, self.worst_factor(begin, end, (_QUICK,))))
            slowest.raise_to(whole.get())
            with t.when(shared > 0.0):
                softer = self.worst_factor(end - shared, end, (_ROUGH,))
                for cell in (self.value(LAST, k), self.value(FIRST, t.add(k, 1))):
                    cell.set(cell.get() * softer)
        return slowest.get()

    def stops(self) -> str:
        """Stop between moves wherever that is faster than fly-by; returns whether there was such a place."""
        t, any_stop = self.t, self.t.variable("i1")
        t.store("false", any_stop, "i1")
        with t.loop(0, self.last) as k:
            after, fly = t.add(k, 1), self.value(FLY, k)
            with t.when(fly.get() > 0.0):
                self.shape(k, self.value(FIRST, k).get(), self.value(LAST, k).get())
                self.shape(after, self.value(FIRST, after).get(), self.value(LAST, after).get())
                flying = self.duration(k) + self.duration(after) - self.value(_OVERLAP, k).get()
                self.shape(k, self.value(FIRST, k).get(), 1.0)
                self.shape(after, 1.0, self.value(LAST, after).get())
                stop = self.duration(k) + self.duration(after) < flying * (1.0 - _QUICKER)
                fly.set(t.choose(stop, 0.0, fly.get()))
                t.store(t.either(t.load(any_stop, "i1"), stop), any_stop, "i1")
        return t.load(any_stop, "i1")

    def leaves_range(self) -> str:
        """Return whether a joint leaves its range, by the hull of its pieces' Bernstein coefficients."""
        t, bad = self.t, self.t.variable("i1")
        t.store("false", bad, "i1")
        with t.loop(0, t.load(self.count, "i64")) as p, t.loop(0, self.joints) as j:
            table = t.at(self.table, t.mul(p, self.width))
            c = [t.item(table, t.mul(self.joints, m), j).get() for m in range(4)]
            low = t.item("%bounds", t.mul(self.joints, 3), j).get() - _ROUNDING
            high = t.item("%bounds", t.mul(self.joints, 4), j).get() + _ROUNDING
            # Test the whole piece first, which suffices for most.
            with t.when(self._outside(c, t.number(0.0), 1.0, low, high)), t.loop(0, _PARTS) as part:
                start = Number(t, t.let(f"sitofp i64 {part} to double")) * (1.0 / _PARTS)
                out = self._outside(c, start, 1.0 / _PARTS, low, high)
                t.store(t.either(t.load(bad, "i1"), out), bad, "i1")
        return t.load(bad, "i1")

    def _outside(self, c: list[Number], start: Number, length: float, low: Number, high: Number) -> str:
        t, end = self.t, start + length
        value = [c[0] + u * (c[1] + u * (c[2] + u * c[3])) for u in (start, end)]
        slope = [c[1] + u * (2.0 * c[2] + u * 3.0 * c[3]) for u in (start, end)]
        hull = [value[0], value[0] + slope[0] * (length / 3.0), value[1] - slope[1] * (length / 3.0), value[1]]
        out = "false"
        for x in hull:
            out = t.either(out, t.either(x < low, x > high))
        return out

"""The laboratory of Kozłowski & Dutkiewicz 1996: the IRp-6, its motors one at a time, and what is measured on them."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

import steelyard as sy
from steelyard.excitation import Acceleration, SearchSettings
from steelyard.ground import Array
from steelyard.papers.own_parameters import OwnParameters

PERIOD = 5e-4  # s, of the joint unit
WINDOW = 0.005  # s, of the short integrals
# The integral model over consecutive windows, over windows that all begin at the start, and the differential model.
SHORT = f"energy:window={WINDOW},consecutive=yes,work=trapezoid"
LONG = f"energy:window={WINDOW},consecutive=yes,growing=yes,work=trapezoid"
PAPER_SCHEMES = {"short integral": SHORT, "long integral": LONG, "differential": "dynamic"}
# The paper gives no noise; these are usual for its sensors.
TORQUE_NOISE, VELOCITY_NOISE, POSITION_NOISE = 1.0, 1e-3, 1e-5
QUICK = SearchSettings(starts=1, survivors=(1,), sharpness=(4.0, 16.0), repeats=1, iterations=40)
FULL = SearchSettings(starts=4, survivors=(1, 1), sharpness=(4.0, 8.0, 32.0))
# X1 … X13 of section 5.1 (errata corrected) in our parameters; J2 is what moving motor 2 alone shows of X3.
X = {
    "X1": "Izz1 + Ia_motor1 + Ixx2 + Iyy3",
    "X2": "Iyy2 - Ixx2 + l2**2*m3 - Iyy3 + Ixx3",
    "X3": "Izz2 + Ia_motor2 + Izz3 + Ia_motor3 + l2**2*m3",
    "X4": "Izz3 + Ia_motor3",
    "X5": "Iyy3 - Ixx3",
    "X6": "mx3",
    "X7": "mx2 + l2*m3",
    **{f"X{7 + k}": f"Fc_motor{k}" for k in (1, 2, 3)},
    **{f"X{10 + k}": f"Fv_motor{k}" for k in (1, 2, 3)},
    "J2": "Izz2 + Ia_motor2 + l2**2*m3",
}
SampledMotion = tuple[Array, Array, Array]


@dataclass(frozen=True, eq=False)
class Motor:
    """The IRp-6 with one motor moving and the others at rest, and what such a motion `shows`: inertia, viscous and
    Coulomb friction and, with gravity, the first moment. With motor 2 the forearm keeps its direction: q3 = −q2."""

    lab: Lab
    name: str
    shows: tuple[str, ...]

    @cached_property
    def own(self) -> OwnParameters:
        return OwnParameters.of({name: X[name] for name in self.shows}, self.lab.base)

    @cached_property
    def values(self) -> Array:
        return self.own.values(self.lab.truth.theta)

    def path(self, x: Array) -> Array:
        """Joint positions, velocities or accelerations, `(samples, joints)`, of the motor's `(samples, 1)`."""
        return sy.Movement.path(self.lab.robot, {self.name: x[:, 0]})

    @cached_property
    def arm(self) -> sy.Robot:
        """The same as an arm of one joint, whatever that is: the others are locked, or (q3 with motor 2) follow it."""
        robot = self.lab.robot
        if self.name != "motor2":
            return robot.with_joints([f"q{self.name[-1]}"])
        drives = robot.transmission
        assert drives is not None
        first, second, third = robot.links
        follows = replace(third, coordinate=second.coordinate, ratio=-1.0)
        motors = replace(drives, matrix=drives.matrix[:2, :2], motors=drives.motors[:2], ratios=drives.ratios[:2])
        terms = tuple(replace(t, values=tuple(v[:2] for v in t.values)) for t in robot.nominal_terms)
        two = replace(robot, joints=robot.joints[:2], links=(first, second, follows), transmission=motors,
                      torque_used=robot.torque_used[:2], nominal_terms=terms)  # fmt: skip
        return two.with_joints(["q2"])

    @cached_property
    def alone(self) -> sy.Model:
        """The truth of that arm."""
        return sy.Model.nominal(self.arm)

    def log(self, motion: SampledMotion, seed: int | None = None, period: float = PERIOD) -> sy.Log:
        """What is measured on the arm along a motion of the motor; without seed, without noise. Resolvers and
        tachometers sit on the motors, and what rests, rests."""
        t: Array = np.asarray(period * np.arange(len(motion[0])))
        q, dq, ddq = (self.path(x) for x in motion)
        clean = sy.Log(self.lab.robot.joint_names, t, q, dq=dq, ddq=ddq, tau=self.lab.truth.torque(q, dq, ddq))
        if seed is None:
            return clean
        noise = np.random.default_rng(seed).normal(size=(3, len(t), 1))
        off, slips, pulls = (s * x for s, x in zip((POSITION_NOISE, VELOCITY_NOISE, TORQUE_NOISE), noise, strict=True))
        felt = pulls * self._turns  # the motor's current; those of the others do no work
        return replace(
            clean, q=q + self.path(off), dq=dq + self.path(slips), ddq=None, tau=np.asarray(clean.tau) + felt
        )

    @property
    def _turns(self) -> Array:
        """How the motor turns with the joints."""
        drives = self.lab.robot.transmission
        assert drives is not None
        return np.asarray(drives.matrix[drives.motors.index(self.name)])

    def history(self, log: sy.Log, scheme: str = SHORT) -> tuple[Array, Array]:
        """Times, and the values by recursive least squares, (17)–(18), `(moments, values)`. The recursion has all base
        parameters of the arm; what the motion does not show of them stays at zero."""
        run = sy.recursive(self.lab.robot, log, base=self.lab.base, scheme=scheme, moments=4000)
        for _ in run:
            pass
        return run.history.t, self.own.from_base(run.history.beta)

    def information(self, motion: SampledMotion, period: float = WINDOW) -> Array:
        """hᵀh of the integral model (19) over windows of one sample: what the arm's energy and friction are per unit of
        each value."""
        q, dq, _ = (self.path(x) for x in motion)
        of = self.lab.truth.dynamics
        energy = of.kinetic_energy_regressor(q, dq) + of.potential_energy_regressor(q)
        lost = of.dissipation_regressor(q, dq)
        work = np.diff(energy, axis=0) + period * (lost[1:] + lost[:-1]) / 2.0
        h = work @ np.linalg.pinv(self.own.matrix)
        return np.asarray(h.T @ h)

    @cached_property
    def exciting(self) -> sy.Plan:
        """The best motion for the integral model, ±40° and 1.5 rad/s, 4 s: Armstrong's samples."""
        first = self.arm.joint_names[0]
        return sy.excite(
            self.arm, terms=self.alone.terms, parameters=self._named, scheme="energy", window=WINDOW,
            criterion="information", rate=1.0 / WINDOW, duration=4.0, search=self.lab.search,
            limits={"q": np.deg2rad(40.0), "dq": 1.5, "ddq": 4.5}, family=self.lab.samples(4.0), joints=[first],
        )  # fmt: skip

    @property
    def _named(self) -> tuple[str, ...]:
        """The values as base parameters of the arm of one joint. Its link is symmetric, and no side moment is looked
        for (my1)."""
        names = sy.base_parameters(self.arm, self.alone.terms).names
        return tuple(name for name in names if name != "my1")


def splines(degrees: Iterable[float], seconds: float = 0.5, period: float = PERIOD) -> SampledMotion:
    """Quintics from knot to knot, from rest to rest, each `(samples, 1)`."""
    knots = np.deg2rad(list(degrees))
    return via(knots[:, None], seconds, period)


def via(knots: Array, seconds: float, period: float) -> SampledMotion:
    """Quintics of several joints from row to row of `knots`, from rest to rest."""
    s = np.arange(0.0, seconds - 0.5 * period, period)[:, None, None] / seconds
    steps = np.diff(knots, axis=0)
    q = knots[:-1] + steps * (10 * s**3 - 15 * s**4 + 6 * s**5)
    dq = steps * (30 * s**2 - 60 * s**3 + 30 * s**4) / seconds
    ddq = steps * (60 * s - 180 * s**2 + 120 * s**3) / seconds**2
    q, dq, ddq = (x.swapaxes(0, 1).reshape(-1, knots.shape[1]) for x in (q, dq, ddq))
    return q, dq, ddq


def settled(t: Array, values: Array, truth: Array | float, share: float) -> float:
    """The last time at which an estimate is farther than a share from the truth (not a number: not known yet)."""
    near = np.abs(values / truth - 1.0) <= share
    outside = np.flatnonzero(~(near if near.ndim == 1 else near.all(axis=1)))
    return float(t[outside[-1]]) if len(outside) else 0.0


class Lab:
    """The arm and its axes; `fast` repeats less and searches less."""

    def __init__(self, fast: bool) -> None:
        self.fast = fast
        self.runs = 3 if fast else 30
        self.search = QUICK if fast else FULL
        self.robot = sy.load_robot("irp6")
        self.truth = sy.Model.nominal(self.robot)
        self.motors = (
            Motor(self, "motor1", ("X1", "X11", "X8")),
            Motor(self, "motor2", ("J2", "X12", "X9", "X7")),
            Motor(self, "motor3", ("X4", "X13", "X10", "X6")),
        )

    @cached_property
    def base(self) -> sy.BaseParameters:
        return sy.base_parameters(self.robot, self.truth.terms)

    def samples(self, seconds: float) -> Acceleration:
        """Armstrong's motions, as in the paper: accelerations at even times are free, and the motion begins and ends
        at rest."""
        return Acceleration(seconds, samples=17 if self.fast else 61, rest=False)


def cosine(t: Array, seconds: float = 4.0, size: float = 0.3) -> SampledMotion:
    """The motion that the searches of section 5.4 start from: one swing there and back."""
    w = 2.0 * np.pi / seconds
    q, dq, ddq = size * (1.0 - np.cos(w * t)), size * w * np.sin(w * t), size * w**2 * np.cos(w * t)
    return q[:, None], dq[:, None], ddq[:, None]

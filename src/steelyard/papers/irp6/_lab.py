"""The laboratory of Kozłowski & Dutkiewicz 1996: the IRp-6, its motors one at a time, and their measurements."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

import steelyard as sy
from steelyard.excitation import Acceleration, SearchSettings
from steelyard.ground import Array
from steelyard.papers.paper_parameters import PaperParameters

PERIOD = 5e-4  # s, of the joint unit
WINDOW = 0.005  # s, of the short integrals
# The integral model over consecutive windows and over windows from the start, and the differential model.
SHORT = f"energy:window={WINDOW},consecutive=yes,work=trapezoid"
LONG = f"energy:window={WINDOW},consecutive=yes,growing=yes,work=trapezoid"
PAPER_SCHEMES = {"short integral": SHORT, "long integral": LONG, "differential": "dynamic"}
# The paper states no noise; these values are usual for its sensors.
TORQUE_NOISE, VELOCITY_NOISE, POSITION_NOISE = 1.0, 1e-3, 1e-5
QUICK = SearchSettings(starts=1, survivors=(1,), sharpness=(4.0, 16.0), repeats=1, iterations=40)
FULL = SearchSettings(starts=4, survivors=(1, 1), sharpness=(4.0, 8.0, 32.0))
# X1 … X13 of section 5.1 (errata corrected) in our parameters; J2 is the part of X3 that motor 2 alone identifies.
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
    """The IRp-6 with one motor moving and the others at rest. With motor 2 the forearm keeps its direction: q3 = −q2.

    Attributes:
        lab: The laboratory.
        name: Name of the motor.
        shows: Identifiable parameters: inertia, viscous and Coulomb friction and, with gravity, the first moment.
    """

    lab: Lab
    name: str
    shows: tuple[str, ...]

    @cached_property
    def own(self) -> PaperParameters:
        return PaperParameters.of({name: X[name] for name in self.shows}, self.lab.base)

    @cached_property
    def values(self) -> Array:
        return self.own.values(self.lab.truth.theta)

    def path(self, x: Array) -> Array:
        """Return joint positions, velocities or accelerations (samples, joints) for the motor's `x` (samples, 1)."""
        return sy.Movement.path(self.lab.robot, {self.name: x[:, 0]})

    @cached_property
    def arm(self) -> sy.Robot:
        """The same as an arm of one joint: the others are locked, or (q3 with motor 2) follow it."""
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
        """True model of that arm."""
        return sy.Model.nominal(self.arm)

    def log(self, motion: SampledMotion, seed: int | None = None, period: float = PERIOD) -> sy.Log:
        """Simulate a log of a motion; resolvers and tachometers are on the motors.

        Args:
            motion: Position, velocity and acceleration of the motor.
            seed: Seed of the noise; None: no noise.
            period: Sampling period [s].
        """
        t: Array = np.asarray(period * np.arange(len(motion[0])))
        q, dq, ddq = (self.path(x) for x in motion)
        clean = sy.Log(self.lab.robot.joint_names, t, q, dq=dq, ddq=ddq, tau=self.lab.truth.torque(q, dq, ddq))
        if seed is None:
            return clean
        noise = np.random.default_rng(seed).normal(size=(3, len(t), 1))
        scales = (POSITION_NOISE, VELOCITY_NOISE, TORQUE_NOISE)
        q_noise, dq_noise, tau_noise = (s * x for s, x in zip(scales, noise, strict=True))
        tau = np.asarray(clean.tau) + tau_noise * self._turns  # noise of the other motors' currents does no work
        return replace(clean, q=q + self.path(q_noise), dq=dq + self.path(dq_noise), ddq=None, tau=tau)

    @property
    def _turns(self) -> Array:
        """Rotation of the motor per rotation of each joint."""
        drives = self.lab.robot.transmission
        assert drives is not None
        return np.asarray(drives.matrix[drives.motors.index(self.name)])

    def history(self, log: sy.Log, scheme: str = SHORT) -> tuple[Array, Array]:
        """Return times and values by recursive least squares, (17)–(18), shape (moments, values).

        The recursion has all base parameters of the arm; parameters without excitation stay at zero.

        Args:
            log: The log.
            scheme: Regression scheme.
        """
        run = sy.recursive(self.lab.robot, log, base=self.lab.base, scheme=scheme, moments=4000)
        for _ in run:
            pass
        return run.history.t, self.own.from_base(run.history.beta)

    def information(self, motion: SampledMotion, period: float = WINDOW) -> Array:
        """Return hᵀh of the integral model (19) over windows of one sample.

        Args:
            motion: Position, velocity and acceleration of the motor.
            period: Sampling period [s].
        """
        q, dq, _ = (self.path(x) for x in motion)
        dynamics = self.lab.truth.dynamics
        energy = dynamics.kinetic_energy_regressor(q, dq) + dynamics.potential_energy_regressor(q)
        lost = dynamics.dissipation_regressor(q, dq)
        work = np.diff(energy, axis=0) + period * (lost[1:] + lost[:-1]) / 2.0
        h = work @ np.linalg.pinv(self.own.matrix)
        return np.asarray(h.T @ h)

    @cached_property
    def exciting(self) -> sy.Plan:
        """The best motion for the integral model, ±40° and 1.5 rad/s, 4 s, with Armstrong's samples."""
        first = self.arm.joint_names[0]
        return sy.excite(
            self.arm, terms=self.alone.terms, parameters=self._base_names, scheme="energy", window=WINDOW,
            criterion="information", rate=1.0 / WINDOW, duration=4.0, search=self.lab.search,
            limits={"q": np.deg2rad(40.0), "dq": 1.5, "ddq": 4.5}, family=self.lab.samples(4.0), joints=[first],
        )  # fmt: skip

    @property
    def _base_names(self) -> tuple[str, ...]:
        """Names of the values as base parameters of the one-joint arm, without my1: its link is symmetric."""
        names = sy.base_parameters(self.arm, self.alone.terms).names
        return tuple(name for name in names if name != "my1")


def splines(degrees: Iterable[float], seconds: float = 0.5, period: float = PERIOD) -> SampledMotion:
    """Return quintics from knot to knot, from rest to rest, each of shape (samples, 1).

    Args:
        degrees: Knots [°].
        seconds: Duration between knots [s].
        period: Sampling period [s].
    """
    knots = np.deg2rad(list(degrees))
    return via(knots[:, None], seconds, period)


def via(knots: Array, seconds: float, period: float) -> SampledMotion:
    """Return quintics of several joints from row to row, from rest to rest.

    Args:
        knots: Positions [rad], shape (knots, joints).
        seconds: Duration between knots [s].
        period: Sampling period [s].
    """
    s = np.arange(0.0, seconds - 0.5 * period, period)[:, None, None] / seconds
    steps = np.diff(knots, axis=0)
    q = knots[:-1] + steps * (10 * s**3 - 15 * s**4 + 6 * s**5)
    dq = steps * (30 * s**2 - 60 * s**3 + 30 * s**4) / seconds
    ddq = steps * (60 * s - 180 * s**2 + 120 * s**3) / seconds**2
    q, dq, ddq = (x.swapaxes(0, 1).reshape(-1, knots.shape[1]) for x in (q, dq, ddq))
    return q, dq, ddq


def settling_time(t: Array, values: Array, truth: Array | float, share: float) -> float:
    """Return the last time at which an estimate deviates from the truth by more than a share, or is NaN.

    Args:
        t: Times [s].
        values: Estimates over time.
        truth: True values.
        share: Relative tolerance.
    """
    near = np.abs(values / truth - 1.0) <= share
    outside = np.flatnonzero(~(near if near.ndim == 1 else near.all(axis=1)))
    return float(t[outside[-1]]) if len(outside) else 0.0


class Lab:
    """The arm and its motors; `fast` reduces repetitions and searches."""

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
        """Return Armstrong's motions, as in the paper: free accelerations at even times, at rest at both ends."""
        return Acceleration(seconds, samples=17 if self.fast else 61, rest=False)


def cosine(t: Array, seconds: float = 4.0, size: float = 0.3) -> SampledMotion:
    """Return the start motion of the searches in section 5.4: one swing there and back.

    Args:
        t: Times [s].
        seconds: Duration [s].
        size: Half of the swing [rad].
    """
    w = 2.0 * np.pi / seconds
    q, dq, ddq = size * (1.0 - np.cos(w * t)), size * w * np.sin(w * t), size * w**2 * np.cos(w * t)
    return q[:, None], dq[:, None], ddq[:, None]

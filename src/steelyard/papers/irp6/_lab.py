"""The laboratory of Kozłowski & Dutkiewicz 1996: the IRp-6, its motors one at a time, and what is measured on them."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

import steelyard as sy
from steelyard.excitation import Acceleration, SearchSettings
from steelyard.ground import Array

GRAVITY = 9.81
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
class Axis:
    """One motor alone. What is left of the arm is one link, whose `direction` at zero is "up" or "forward" ("" where it
    turns about the vertical); `values` are inertia, viscous and Coulomb friction and, with gravity, the first moment.
    """

    name: str
    direction: str
    values: Array

    @cached_property
    def truth(self) -> sy.Model:
        link = np.zeros(10)
        turning, moment = ("Iyy1", self.values[3]) if self.direction else ("Izz1", 0.0)
        link[[0, 1, 6 if turning == "Iyy1" else 9]] = 20.0, moment, self.values[0]
        upright = np.array([[0.0, 0.0, -1.0], [0.0, 1.0, 0.0], [1.0, 0.0, 0.0]])
        rotation = upright if self.direction == "up" else np.eye(3)
        # A forearm that points forward rises with its angle.
        axis = np.array([0.0, -1.0, 0.0] if self.direction else [0.0, 0.0, 1.0])
        body = sy.Link("arm", "q", "revolute", -1, rotation, np.zeros(3), axis, 0, inertia=link)
        robot = sy.Robot(
            self.name, (sy.Joint("q", "revolute"),), (body,), gravity=np.array([0.0, 0.0, -GRAVITY])
        )  # fmt: skip
        return sy.Model(robot, sy.terms(robot, "viscous", "coulomb"), np.concatenate([link, self.values[1:3]]))

    @cached_property
    def base(self) -> sy.BaseParameters:
        return sy.base_parameters(self.truth.robot, self.truth.terms)

    @property
    def parameters(self) -> tuple[str, ...]:
        """Our names of the values."""
        return ("Iyy1", "Fv1", "Fc1", "mx1") if self.direction else ("Izz1", "Fv1", "Fc1")

    def of(self, beta: Array) -> Array:
        """The values among base parameters, `(…, values)`."""
        return np.asarray(beta[..., [self.base.names.index(name) for name in self.parameters]])

    def log(self, motion: SampledMotion, seed: int | None = None, period: float = PERIOD) -> sy.Log:
        """What is measured along a motion; without seed, without noise."""
        t: Array = np.asarray(period * np.arange(len(motion[0])))
        q, dq, ddq = motion
        clean = sy.Log(("q",), t, q, dq=dq, ddq=ddq, tau=self.truth.torque(q, dq, ddq))
        if seed is None:
            return clean
        noise = np.random.default_rng(seed).normal(size=(3, *q.shape))
        noise *= np.array([POSITION_NOISE, VELOCITY_NOISE, TORQUE_NOISE])[:, None, None]
        return replace(clean, q=q + noise[0], dq=dq + noise[1], ddq=None, tau=np.asarray(clean.tau) + noise[2])

    def history(self, log: sy.Log, scheme: str = SHORT) -> tuple[Array, Array]:
        """Times, and the values by recursive least squares, (17)–(18), `(moments, values)`."""
        run = sy.recursive(self.truth.robot, log, base=self.base, scheme=scheme, moments=4000)
        for _ in run:
            pass
        return run.history.t, self.of(run.history.beta)

    def information(self, q: Array, dq: Array, period: float = WINDOW) -> Array:
        """hᵀh of the integral model over windows of one sample, from the functions that the paper prints."""
        v = dq[:, 0]
        columns = [np.diff(v**2 / 2.0), period * _middle(v**2), period * _middle(np.abs(v))]
        if self.direction:
            height = np.cos(q[:, 0]) if self.direction == "up" else np.sin(q[:, 0])
            columns.append(GRAVITY * np.diff(height))
        h = np.stack(columns, axis=1)
        return np.asarray(h.T @ h)


def _middle(x: Array) -> Array:
    return (x[1:] + x[:-1]) / 2.0


# Printed for motor 2; documented choices for the others.
AXES = (
    Axis("joint 1", "", np.array([3.340927, 20.0, 12.0])),
    Axis("motor 2", "up", np.array([5.5, 26.0, 28.75, 8.125])),
    Axis("joint 3", "forward", np.array([3.082848, 18.0, 15.0, 0.4])),
)


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
        self.first, self.second, self.third = AXES

    @cached_property
    def base(self) -> sy.BaseParameters:
        return sy.base_parameters(self.robot, self.truth.terms)

    def samples(self, seconds: float) -> Acceleration:
        """Armstrong's motions, as in the paper: accelerations at even times are free, and the motion begins and ends
        at rest."""
        return Acceleration(seconds, samples=17 if self.fast else 61, rest=False)

    @cached_property
    def exciting(self) -> tuple[sy.Plan, ...]:
        """The best motions of the three axes for the integral model, ±40° and 1.5 rad/s, 4 s: Armstrong's samples."""
        return tuple(
            sy.excite(
                axis.truth.robot, terms=axis.truth.terms, parameters=axis.parameters, scheme="energy", window=WINDOW,
                criterion="information", rate=1.0 / WINDOW, duration=4.0,
                limits={"q": np.deg2rad(40.0), "dq": 1.5}, search=self.search, family=self.samples(4.0),
            )
            for axis in AXES
        )  # fmt: skip


def cosine(t: Array, seconds: float = 4.0, size: float = 0.3) -> SampledMotion:
    """The motion that the searches of section 5.4 start from: one swing there and back."""
    w = 2.0 * np.pi / seconds
    q, dq, ddq = size * (1.0 - np.cos(w * t)), size * w * np.sin(w * t), size * w**2 * np.cos(w * t)
    return q[:, None], dq[:, None], ddq[:, None]

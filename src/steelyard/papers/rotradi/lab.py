"""The laboratory of Chávez-Olivares et al. 2012: the simulated arm, its torques, encoders and filters."""

from __future__ import annotations

from functools import cached_property
from typing import Any, Literal

import numpy as np
from scipy.signal import lfilter

import steelyard as sy
from steelyard.ground import Array
from steelyard.papers.own_parameters import OwnParameters
from steelyard.papers.paper import printed
from steelyard.parameters import Coulomb, Term

PERIOD = 2.5e-3  # s
CUTOFF = 9.11  # rad/s, λ of the filtered schemes
TABLE1 = printed("rotradi", "table1")
LIMITS = tuple(TABLE1.numbers("max_torque_Nm").tolist())  # N m
_ENCODER = 2.0 * np.pi / float(TABLE1.numbers("resolution_cpr")[0])  # rad per count
# Not printed: how long the experiment lasts. Dry friction is spread over a few mrad/s in the simulated arm.
_DURATION, SMOOTHING = 10.0, 5e-3

CUTOFF_HZ = CUTOFF / (2.0 * np.pi)
# The five schemes with the paper's filters and rules of integration, under the names of its tables' columns.
PAPER_SCHEMES = {
    "dynamic": "dynamic",
    "filtered_dynamic": f"filtered-dynamic:cutoff_hz={CUTOFF_HZ},torque=paper,still=0",
    "supplied_energy": "energy:samples=1,growing=yes,work=trapezoid",
    "power": "power",
    "filtered_power": f"filtered-power:cutoff_hz={CUTOFF_HZ},work=paper",
}
# The same with the work of a torque that is held between samples, which is exact.
HELD = {
    "supplied_energy": "energy:samples=1,growing=yes",
    "filtered_power": f"filtered-power:cutoff_hz={CUTOFF_HZ}",
}
# Friction that plant and regressor agree on, so that formulas are compared and nothing else.
AGREED = Coulomb(smooth=0.02)

Draw = Literal["run", "sample"]
Reading = Literal["corrected", "printed", "outside"]


def _wave(joint: int, amplitude: float, rate: float, low: float = 0.0, high: float = 0.0, **more: float) -> sy.Wave:
    """A cosine of `rate`·π rad/s whose phase lies between two angles in degrees."""
    scaled = {key: value * np.pi if key == "other_rate" else value for key, value in more.items()}
    phase = (float(np.deg2rad(low)), float(np.deg2rad(high)))
    return sy.Wave(joint=joint, amplitude=amplitude, rate=rate * np.pi, phase=phase, **scaled)


def identification_torque(seed: int = 0, draw: Draw = "run") -> sy.TorqueSignal:
    """(30)–(32); sines are cosines 90° late. `seed` draws phases, for each `draw`: a "run" or a "sample"."""
    waves = (
        _wave(0, 34.0, 1.26, -5.0, 45.0, other_rate=0.9),
        _wave(0, 15.0, 2.306, -35.0, 35.0),
        _wave(1, -28.0, 0.0, decay=1.8),
        _wave(1, 30.0, 1.2, other_rate=1.0),
        _wave(1, 10.0, 3.12, -140.0, -90.0),
        _wave(1, 7.5, 5.8, -50.0, 10.0),
        _wave(1, 15.0, 2.4, -85.0, -55.0),
        _wave(2, -2.0, 1.2, other_rate=1.0),
        _wave(2, -1.65, 2.58, -120.0, -60.0),
    )
    return sy.TorqueSignal(joints=3, waves=waves, limits=LIMITS, draw=draw, seed=seed)


def validation_torque() -> sy.TorqueSignal:
    """(40)–(42)."""
    waves = (_wave(0, 30.0, 2.4, -90.0, -90.0), _wave(0, -6.0, 0.4), _wave(1, -29.0, 2.1), _wave(2, 3.0, 1.8))
    return sy.TorqueSignal(joints=3, waves=waves, limits=LIMITS)


def clock(seconds: float = _DURATION, period: float = PERIOD) -> Array:
    """Times (s) from 0 to `seconds`, one every `period` s."""
    return np.asarray(period * np.arange(round(seconds / period) + 1.0))


def played(model: sy.Model, signal: sy.TorqueSignal, t: Array, **options: Any) -> sy.Simulation:
    """`model` from rest at q = 0 under the torque of `signal`, held from each of the times `t` (s) to the next.
    `options` are those of `simulate`."""
    return sy.simulate(model, signal.table(t), times=t, step=float(t[1] - t[0]) / 4, **options)


def encoded(sim: sy.Simulation) -> sy.Log:
    """The encoders' counts of `sim`, and backward differences of them."""
    return sim.log(sensors=sy.Sensors(position_resolution=_ENCODER, velocity="backward", acceleration="backward"))


def _f1(x: Array, period: float) -> Array:
    """λs/(s + λ), held inputs."""
    return np.asarray(lfilter([CUTOFF, -CUTOFF], [1.0, -np.exp(-period * CUTOFF)], x, axis=0))


def _f2(x: Array, period: float) -> Array:
    """λ/(s + λ), held inputs."""
    a = np.exp(-period * CUTOFF)
    return np.asarray(lfilter([0.0, 1.0 - a], [1.0, -a], x, axis=0))


class Arm:
    """The Rotradi with `friction` of one's choice (terms; none: viscous and Coulomb), and the paper's θ1…θ21, `theta`.
    Each `log` is one of this arm."""

    def __init__(self, *friction: str | Term) -> None:
        self.robot = sy.load_robot("rotradi")
        terms = sy.terms(self.robot, *(friction or ("viscous", "coulomb")))
        self.truth = sy.Model(self.robot, terms, sy.Model.nominal(self.robot).theta)
        self.base = sy.base_parameters(self.robot, terms)
        table = printed("rotradi", "parameters")
        self.units = table.words("unit")
        self.own = OwnParameters.of(dict(zip(table.words("parameter"), table.words("formula"), strict=True)), self.base)
        self.theta = self.own.values(self.truth.theta)

    def model(self, theta: Array) -> sy.Model:
        """A model with the paper's parameters, near the truth."""
        return self.own.model(theta, self.truth)

    def percent(self, theta: Array) -> Array:
        """Error of each of θ1…θ21."""
        return np.asarray(100.0 * np.abs(theta - self.theta) / np.abs(self.theta))

    def fitted(self, log: sy.Log, scheme: str) -> Array:
        """θ1…θ21 by least squares over the whole log, rows by `scheme`."""
        return self.own.from_base(sy.fit_log(self.base, log, scheme=scheme, estimator="ols").beta)

    def fitted_by_34(self, log: sy.Log, reading: Reading) -> Array:
        """θ1…θ21 by the filtered-dynamic regressor (34), in a `reading` of it.

        "corrected": f1 of the momentum, f2 of the remainder. As "printed" the remainder is the torque without
        accelerations, whose velocity products f1 has counted already. "outside" is the other way to read what is
        printed: f1 acts on the velocities alone, and the cosines and sines stand outside of it.
        """
        dynamics, h = self.truth.dynamics, float(log.t[1] - log.t[0])
        q, dq, tau = log.q, np.asarray(log.dq), np.asarray(log.tau)
        still = np.zeros_like(q)
        momentum = _f1(dynamics.momentum_regressor(q, dq), h)
        if reading == "outside":
            momentum = dynamics.torque_regressor(q, still, _f1(dq, h)) - dynamics.torque_regressor(q, still, still)
        corrected = reading == "corrected"
        rest = dynamics.remainder_regressor(q, dq) if corrected else dynamics.torque_regressor(q, dq, still)
        A = self.base.regressor_columns(momentum + _f2(rest, h)).reshape(-1, self.base.rank)
        return self.own.from_base(np.linalg.lstsq(A, _f2(tau, h).ravel(), rcond=None)[0])

    def rank_of_37(self, log: sy.Log, *, as_printed: bool) -> int:
        """Rank of the filtered-power regressor (37), its friction columns under f2, or under f1 `as_printed`."""
        dynamics, h = self.truth.dynamics, float(log.t[1] - log.t[0])
        q, dq = log.q, np.asarray(log.dq)
        energy = dynamics.kinetic_energy_regressor(q, dq) + dynamics.potential_energy_regressor(q)
        lost = dynamics.dissipation_regressor(q, dq)
        W = self.base.regressor_columns(_f1(energy - energy[0], h) + (_f1 if as_printed else _f2)(lost, h))
        return int(np.linalg.matrix_rank(W / np.linalg.norm(W, axis=0), tol=1e-9))


def scheme_words(name: str) -> str:
    """The `name` of a scheme as one reads it."""
    return name.replace("_", "-")


class Lab(Arm):
    """What the tables and figures share (`fast`: with fewer repetitions): one run of the experiment, identified by the
    five schemes.
    """

    def __init__(self, fast: bool) -> None:
        super().__init__()
        self.fast = fast
        # The text calls the phase noisy: drawn anew for every sample.
        self.log = encoded(self.played(identification_torque(1, "sample")))
        self.judge = self.played(validation_torque()).log()

    def played(self, signal: sy.TorqueSignal) -> sy.Simulation:
        """The arm under the torque of `signal`."""
        return played(self.truth, signal, clock(), smoothing=SMOOTHING)

    def replayed(self, theta: Array, log: sy.Log) -> sy.Replay:
        """The model with parameters `theta` under the torques of a `log`, open loop."""
        return sy.replay(self.model(theta), log, method="rk4", smoothing=SMOOTHING, q0=np.zeros(3), dq0=np.zeros(3))

    @cached_property
    def recursions(self) -> dict[str, Any]:
        """Recursive least squares by every scheme, run to the end; P0 = 1e6·I and θ0 = 0 are not printed."""
        out = {}
        for name, scheme in PAPER_SCHEMES.items():
            out[name] = sy.recursive(self.robot, self.log, scheme=scheme, base=self.base, P0=1e6, every=10**9)
            for _ in out[name]:
                pass
        return out

    @cached_property
    def estimates(self) -> dict[str, Array]:
        """θ1…θ21 by scheme."""
        return {name: self.own.from_base(run.information.theta()) for name, run in self.recursions.items()}

"""The laboratory of Chávez-Olivares et al. 2012: the simulated arm, its torques, encoders and filters."""

from __future__ import annotations

from functools import cached_property
from typing import Any, Literal

import numpy as np
from scipy.signal import lfilter

import steelyard as sy
from steelyard.ground import Array
from steelyard.papers.paper import printed_table
from steelyard.papers.paper_parameters import PaperParameters
from steelyard.parameters import Coulomb, Term

PERIOD = 2.5e-3  # s
CUTOFF = 9.11  # rad/s, λ of the filtered schemes
TABLE1 = printed_table("rotradi", "table1")
LIMITS = tuple(TABLE1.numbers("max_torque_Nm").tolist())  # N m
_ENCODER = 2.0 * np.pi / float(TABLE1.numbers("resolution_cpr")[0])  # rad per count
# The duration of the experiment is not printed. The simulated dry friction has a ramp of a few mrad/s.
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
# The same with the exact work of a torque with zero-order hold.
ZERO_ORDER_HOLD = {
    "supplied_energy": "energy:samples=1,growing=yes",
    "filtered_power": f"filtered-power:cutoff_hz={CUTOFF_HZ}",
}
# The same friction in plant and regressor, so that only the formulas differ.
AGREED = Coulomb(smooth=0.02)

Draw = Literal["run", "sample"]
Reading = Literal["corrected", "printed", "outside"]


def _wave(joint: int, amplitude: float, rate: float, low: float = 0.0, high: float = 0.0, **more: float) -> sy.Wave:
    """Return a cosine of `rate`·π rad/s with a phase between two angles [°]."""
    scaled = {key: value * np.pi if key == "other_rate" else value for key, value in more.items()}
    phase = (float(np.deg2rad(low)), float(np.deg2rad(high)))
    return sy.Wave(joint=joint, amplitude=amplitude, rate=rate * np.pi, phase=phase, **scaled)


def identification_torque(seed: int = 0, draw: Draw = "run") -> sy.TorqueSignal:
    """Return (30)–(32); sines are cosines with a phase of −90°.

    Args:
        seed: Seed of the phases.
        draw: Draw phases for each "run" or each "sample".
    """
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
    """Return (40)–(42)."""
    waves = (_wave(0, 30.0, 2.4, -90.0, -90.0), _wave(0, -6.0, 0.4), _wave(1, -29.0, 2.1), _wave(2, 3.0, 1.8))
    return sy.TorqueSignal(joints=3, waves=waves, limits=LIMITS)


def clock(seconds: float = _DURATION, period: float = PERIOD) -> Array:
    """Return times from 0 [s].

    Args:
        seconds: Duration [s].
        period: Sampling period [s].
    """
    return np.asarray(period * np.arange(round(seconds / period) + 1.0))


def play_torque(model: sy.Model, signal: sy.TorqueSignal, t: Array, **options: Any) -> sy.Simulation:
    """Simulate a model from rest at q = 0 under a torque with zero-order hold.

    Args:
        model: The model.
        signal: The torque.
        t: Times of the samples [s].
        options: Options of `simulate`.
    """
    return sy.simulate(model, signal.table(t), times=t, step=float(t[1] - t[0]) / 4, **options)


def encode(sim: sy.Simulation) -> sy.Log:
    """Return the encoders' counts of `sim`, and backward differences of them."""
    return sim.log(sensors=sy.Sensors(position_resolution=_ENCODER, velocity="backward", acceleration="backward"))


def _f1(x: Array, period: float) -> Array:
    """Apply λs/(s + λ) with zero-order hold."""
    return np.asarray(lfilter([CUTOFF, -CUTOFF], [1.0, -np.exp(-period * CUTOFF)], x, axis=0))


def _f2(x: Array, period: float) -> Array:
    """Apply λ/(s + λ) with zero-order hold."""
    a = np.exp(-period * CUTOFF)
    return np.asarray(lfilter([0.0, 1.0 - a], [1.0, -a], x, axis=0))


class Arm:
    """The Rotradi with the paper's θ1…θ21, `theta`.

    Args:
        friction: Friction terms; default: viscous and Coulomb.
    """

    def __init__(self, *friction: str | Term) -> None:
        self.robot = sy.load_robot("rotradi")
        terms = sy.terms(self.robot, *(friction or ("viscous", "coulomb")))
        self.truth = sy.Model(self.robot, terms, sy.Model.nominal(self.robot).theta)
        self.base = sy.base_parameters(self.robot, terms)
        table = printed_table("rotradi", "parameters")
        self.units = table.words("unit")
        self.own = PaperParameters.of(
            dict(zip(table.words("parameter"), table.words("formula"), strict=True)), self.base
        )
        self.theta = self.own.values(self.truth.theta)

    def model(self, theta: Array) -> sy.Model:
        """Return a model with the paper's parameters `theta`, near the truth."""
        return self.own.model(theta, self.truth)

    def percent(self, theta: Array) -> Array:
        """Return the error of each of θ1…θ21 in `theta` [%]."""
        return np.asarray(100.0 * np.abs(theta - self.theta) / np.abs(self.theta))

    def fit(self, log: sy.Log, scheme: str) -> Array:
        """Estimate θ1…θ21 by least squares over the whole log.

        Args:
            log: Log of this arm.
            scheme: Regression scheme.
        """
        return self.own.from_base(sy.fit_log(self.base, log, scheme=scheme, estimator="ols").beta)

    def fit_by_34(self, log: sy.Log, reading: Reading) -> Array:
        """Estimate θ1…θ21 with the filtered-dynamic regressor (34).

        Args:
            log: Log of this arm.
            reading: "corrected": f1 of the momentum, f2 of the remainder. "printed": the remainder is the torque
                without accelerations, whose velocity products are already in f1. "outside": another interpretation of
                the printed formula, with f1 on the velocities alone, without cosines and sines.
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
        """Return the rank of the filtered-power regressor (37).

        Args:
            log: Log of this arm.
            as_printed: Filter the friction columns by f1 as printed, instead of f2.
        """
        dynamics, h = self.truth.dynamics, float(log.t[1] - log.t[0])
        q, dq = log.q, np.asarray(log.dq)
        energy = dynamics.kinetic_energy_regressor(q, dq) + dynamics.potential_energy_regressor(q)
        lost = dynamics.dissipation_regressor(q, dq)
        W = self.base.regressor_columns(_f1(energy - energy[0], h) + (_f1 if as_printed else _f2)(lost, h))
        return int(np.linalg.matrix_rank(W / np.linalg.norm(W, axis=0), tol=1e-9))


def scheme_words(name: str) -> str:
    """Return the display `name` of a scheme."""
    return name.replace("_", "-")


class Lab(Arm):
    """Objects that the tables and figures share: one run of the experiment, identified by the five schemes.

    Args:
        fast: Reduce the number of repetitions.
    """

    def __init__(self, fast: bool) -> None:
        super().__init__()
        self.fast = fast
        # The text calls the phase noisy: one draw per sample.
        self.log = encode(self.play(identification_torque(1, "sample")))
        self.judge = self.play(validation_torque()).log()

    def play(self, signal: sy.TorqueSignal) -> sy.Simulation:
        """Simulate the arm under the torque of `signal`."""
        return play_torque(self.truth, signal, clock(), smoothing=SMOOTHING)

    def replay(self, theta: Array, log: sy.Log) -> sy.Replay:
        """Simulate a model in open loop under the torques of a log.

        Args:
            theta: Parameters of the model.
            log: The log.
        """
        return sy.replay(self.model(theta), log, method="rk4", smoothing=SMOOTHING, q0=np.zeros(3), dq0=np.zeros(3))

    @cached_property
    def recursions(self) -> dict[str, Any]:
        """Recursive least squares by every scheme; P0 = 1e6·I and θ0 = 0 are not printed."""
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

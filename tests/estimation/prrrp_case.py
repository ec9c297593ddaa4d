"""The experiment of Urrea & Pascal 2017 on the built-in `prrrp`: sinusoids and quintics, 50 Hz, no friction."""

from __future__ import annotations

import numpy as np

from steelyard.estimation import Experiment
from steelyard.parameters.terms import Terms
from steelyard.regression.data import RegressionData
from steelyard.regression.unknowns import Unknowns
from steelyard.robot.library import builtin
from steelyard.signals.log import Log
from steelyard.signals.prepare import Preparation

ROBOT = builtin("prrrp")
G, LENGTH = 9.81, 0.2
LAMBDA = np.array([4.297, 0.108632, 0.067712, 0.066061, 0.026792, 0.025141, 0.025141, 0.5114])  # Table 3 from Table 2
NAMES = Unknowns(tuple(f"lambda{k}" for k in range(1, 9)))
_KNOTS = (
    (0, 1.2, -0.8, 0.9, -1.1, 0.6, -0.4, 1.0, -0.7, 0.5, 0),
    (0, -1.0, 1.3, -0.6, 0.8, -1.2, 1.1, -0.5, 0.9, -0.8, 0),
    (0, 0.8, 0.9, -1.3, 0.5, 1.2, -1.0, 0.7, -1.2, 0.6, 0),
)


def _sine(t, amplitude, frequency):
    w = 2 * np.pi * frequency
    return amplitude * np.sin(w * t), amplitude * w * np.cos(w * t), -amplitude * w**2 * np.sin(w * t)


def _quintics(t, knots, segment):
    k = np.array(knots)
    i = np.minimum((t // segment).astype(int), len(k) - 2)
    s, d = (t - i * segment) / segment, k[i + 1] - k[i]
    q = k[i] + d * (10 * s**3 - 15 * s**4 + 6 * s**5)
    return q, d * (30 * s**2 - 60 * s**3 + 30 * s**4) / segment, d * (60 * s - 180 * s**2 + 120 * s**3) / segment**2


def reference(t, segment: float = 1.0):
    """q, dq, ddq: quintics of `segment` seconds on the rotary joints."""
    joints = [_sine(t, 0.1, 0.3), *(_quintics(t, k, segment) for k in _KNOTS), _sine(t, 0.06, 0.5)]
    return tuple(np.column_stack([joint[k] for joint in joints]) for k in range(3))


def regressor(q, dq, ddq):
    """Annex B of the paper, (B.9) corrected: torques are this times the eight λ."""
    _, _, q3, q4, _ = q.T
    _, v2, v3, v4, _ = dq.T
    d1, a2, a3, a4, d5 = ddq.T
    c3, s3, c4, s4, c34, s34 = np.cos(q3), np.sin(q3), np.cos(q4), np.sin(q4), np.cos(q3 + q4), np.sin(q3 + q4)
    v23, v234, a234 = v2 + v3, v2 + v3 + v4, a2 + a3 + a4
    wrist = (2 * a2 + 2 * a3 + a4) * c4 - (2 * v23 * v4 + v4**2) * s4
    Y = np.zeros((len(q), 5, 8))
    Y[:, 0, 0], Y[:, 0, 7], Y[:, 4, 7] = d1 + G, d1 - d5 + G, d5 - d1 - G
    Y[:, 1, 1], Y[:, 1, 2], Y[:, 1, 4], Y[:, 1, 6] = a2, a2 + a3, a234, wrist
    Y[:, 1, 3] = (2 * a2 + a3) * c3 - (2 * v2 * v3 + v3**2) * s3
    Y[:, 1, 5] = (2 * a2 + a3 + a4) * c34 - (v234**2 - v2**2) * s34
    Y[:, 2, 2], Y[:, 2, 3], Y[:, 2, 4] = a2 + a3, a2 * c3 + v2**2 * s3, a234
    Y[:, 2, 5], Y[:, 2, 6] = a2 * c34 + v2**2 * s34, wrist
    Y[:, 3, 4], Y[:, 3, 5], Y[:, 3, 6] = a234, a2 * c34 + v2**2 * s34, (a2 + a3) * c4 + v23**2 * s4
    return Y


def signals(segment: float = 1.0, noise: float = 0.0):
    """t, q (noisy), dq, ddq (exact) and the exact torque."""
    t = np.arange(0.0, 10.0 * segment, 0.02)
    q, dq, ddq = reference(t, segment)
    tau = regressor(q, dq, ddq) @ LAMBDA
    return t, q + noise * np.random.default_rng(0).normal(size=q.shape), dq, ddq, tau


def rows(Y, tau) -> RegressionData:
    columns = range(8)
    return RegressionData.from_arrays(ROBOT.joint_names, columns, list(Y.transpose(1, 0, 2)), list(tau.T), 8, 0.02)


def clean_rows() -> RegressionData:
    _, q, dq, ddq, tau = signals()
    return rows(regressor(q, dq, ddq), tau)


def experiment(segment: float = 1.0, noise: float = 1e-4, seconds: float = 100.0) -> Experiment:
    """The experiment from the first `seconds` of the log."""
    t, q, _, _, tau = signals(segment, noise)
    part = t < seconds
    log = Log(joints=ROBOT.joint_names, t=t[part], q=q[part], tau=tau[part])
    return Experiment.from_logs(ROBOT, Terms(ROBOT, ()), log, preparation=Preparation(cutoff_hz=8.0))


def lambdas(theta):
    """The paper's eight numbers from full parameters (link frames at the far end of each link)."""
    m, mx, inertia = (theta.reshape(5, 10)[:, k] for k in (0, 1, 9))
    about, first = inertia + 2 * LENGTH * mx + m * LENGTH**2, mx + m * LENGTH
    elbow, tip = first[2] + (m[3] + m[4]) * LENGTH, first[3] + m[4] * LENGTH + mx[4]
    last = about[3] + inertia[4] + 2 * LENGTH * mx[4] + m[4] * LENGTH**2
    two, three = about[1] + m[2:].sum() * LENGTH**2, about[2] + m[3:].sum() * LENGTH**2
    return np.array([m[:4].sum(), two, three, LENGTH * elbow, last, LENGTH * tip, LENGTH * tip, m[4]])


def percent(values) -> float:
    """Mean relative error of the eight, in percent."""
    return float(np.mean(100.0 * np.abs(values - LAMBDA) / LAMBDA))

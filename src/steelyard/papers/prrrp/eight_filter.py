"""The paper's filter as it is written, (21)–(29) and (41)–(43): positions, velocities and all eight λ in one state.

`ExtendedKalman` estimates what a robot can have, its base parameters. The eight λ are one more, so the paper's own
filter is written out here.
"""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass
from typing import Literal

import numpy as np

import steelyard as sy
from steelyard.papers.prrrp.annexes import inertia, regressor
from steelyard.robot.spatial import Array

Method = Literal["euler", "rk4"]
# (44), which should state these variances, is empty in print.
FIRST = np.r_[np.full(5, 1e-6), np.full(5, 1e-4), 1.0, 0.01, 0.01, 0.01, 0.001, 0.001, 0.001, 0.1]
R = 1e-6 * np.eye(5)
ONE, H = np.eye(18), np.eye(5, 18)


@dataclass(frozen=True)
class EightFilter:
    """A joint extended Kalman filter with derivatives by differences; `velocity` is the variance added per step."""

    velocity: float = 1e-8
    method: Method = "euler"

    def run(self, log: sy.Log, state: Array, start: Array) -> Array:
        """λ after every sample, from a first `state` (q, q̇) and λ; missing (NaN) from where the filter lost itself."""
        noise = np.diag(np.r_[np.full(5, 1e-8), np.full(5, self.velocity), np.full(8, 1e-9)])
        tau, h = np.asarray(log.tau), float(log.t[1] - log.t[0])
        x, P = np.r_[state, start], np.diag(FIRST)
        out = np.full((len(log.t), 8), np.nan)
        out[0] = start
        with np.errstate(all="ignore"), suppress(np.linalg.LinAlgError):  # inertia or covariance lost: the end
            for k in range(1, len(log.t)):
                ahead, F = self._ahead(x, tau[k - 1], tau[k], h)
                P = F @ P @ F.T + noise
                K = np.linalg.solve(P[:5, :5] + R, P[:5]).T
                x = ahead + K @ (log.q[k] - ahead[:5])
                P = (ONE - K @ H) @ P
                P = 0.5 * (P + P.T)
                if not np.all(np.isfinite(P)):
                    break
                out[k] = x[10:]
        return out

    def _ahead(self, x: Array, tau: Array, next_tau: Array, h: float) -> tuple[Array, Array]:
        """The next state, and its derivatives."""
        size = 1e-6 * np.maximum(1.0, np.abs(x))
        states = np.vstack([x, x + np.diag(size), x - np.diag(size)])
        made = self._step(states, tau, next_tau, h)
        return made[0], ((made[1:19] - made[19:]) / (2.0 * size[:, None])).T

    def _step(self, x: Array, tau: Array, next_tau: Array, h: float) -> Array:
        if self.method == "euler":
            return x + h * _rate(x, tau)
        middle = 0.5 * (tau + next_tau)
        k1 = _rate(x, tau)
        k2 = _rate(x + 0.5 * h * k1, middle)
        k3 = _rate(x + 0.5 * h * k2, middle)
        return np.asarray(x + h / 6.0 * (k1 + 2.0 * k2 + 2.0 * k3 + _rate(x + h * k3, next_tau)))


def _rate(x: Array, tau: Array) -> Array:
    """d/dt of states `(n, 18)`."""
    q, dq, values = x[:, :5], x[:, 5:10], x[:, 10:]
    rest = (regressor(q, dq, np.zeros_like(q)) @ values[:, :, None])[:, :, 0]
    ddq = np.linalg.solve(inertia(q, values), (tau - rest)[:, :, None])[:, :, 0]
    return np.hstack([dq, ddq, np.zeros_like(values)])

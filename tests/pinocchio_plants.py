"""Robots that Pinocchio moves: logs whose torque comes late, or is held, sampled or averaged between samples."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache

import numpy as np
from oracles import PinocchioOracle

from steelyard.robot.load import load_robot
from steelyard.robot.robot import Robot
from steelyard.signals.log import Log

# rad/s; friction of the plants is τ = Fv q̇ + Fc tanh(q̇/_SHARP).
_SHARP = 0.01
# Parts of a sampling interval over which torque is averaged, and steps of the integration in it.
_PARTS = 4


@dataclass(frozen=True)
class Plant:
    """The built-in three-joint robot `rotradi`, with the friction of its description.

    Attributes:
        rate_hz: Sampling rate.
        seed: Of the motion and of the noise.
        position_noise: Standard deviation [rad].
        torque_noise: Standard deviation [N m].
        duration: Length of the log [s].
    """

    rate_hz: float
    seed: int = 0
    position_noise: float = 1e-5
    torque_noise: float = 0.05
    duration: float = 10.0

    @property
    def robot(self) -> Robot:
        return _robot()

    @property
    def friction(self) -> np.ndarray:
        """Viscous and Coulomb friction, a row each."""
        return np.array([term.values[0] for term in self.robot.nominal_terms])

    def motion(self, t: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """q, q̇ and q̈ of a sum of sines at the times `t` [s]."""
        rng = np.random.default_rng([self.seed, 1])
        w = 2.0 * np.pi * np.array([0.1, 0.3, 0.5, 0.8, 1.3])
        size = rng.uniform(0.5, 1.0, (5, 3)) * np.array([0.9, 0.5, 0.3, 0.2, 0.1])[:, None]
        phase = rng.uniform(0.0, 2.0 * np.pi, (5, 3))
        angle = w[:, None] * np.asarray(t)[:, None, None] + phase
        q = (size * np.sin(angle)).sum(axis=1)
        dq = (size * w[:, None] * np.cos(angle)).sum(axis=1)
        return q, dq, -(size * w[:, None] ** 2 * np.sin(angle)).sum(axis=1)

    def torque(self, t: np.ndarray) -> np.ndarray:
        """What the motion needs at the times `t` [s], by Pinocchio."""
        q, dq, ddq = self.motion(t)
        return _oracle().over("torque", q, dq, ddq) + self._friction_torque(dq)

    def sampled(self, delay: float = 0.0) -> Log:
        """A log whose torque is that of `delay` (s) before its stamp."""
        t = self.clock
        return self._log(t, self.motion(t)[0], self.torque(t - delay))

    def averaged(self) -> Log:
        """A log whose torque is the mean over the sampling interval that ends at its stamp."""
        t, h = self.clock, 1.0 / self.rate_hz
        parts = [self.torque(t - h * (k + 0.5) / _PARTS) for k in range(_PARTS)]
        return self._log(t, self.motion(t)[0], np.mean(parts, axis=0))

    def held(self) -> Log:
        """A log of a robot under computed torque whose commands are held until the next sample, by Runge and Kutta."""
        t, h = self.clock, 1.0 / self.rate_hz
        wanted = self.motion(t)
        oracle, step = _oracle(), h / _PARTS
        q, dq = wanted[0][0].copy(), wanted[1][0].copy()
        logged, commands = np.empty_like(wanted[0]), np.empty_like(wanted[0])

        def rate(q: np.ndarray, dq: np.ndarray, tau: np.ndarray) -> np.ndarray:
            return np.asarray(oracle.pin.aba(oracle.model, oracle.data, q, dq, tau - self._friction_torque(dq)))

        for k in range(len(t)):
            logged[k] = q
            pull = wanted[2][k] + 20.0 * (wanted[1][k] - dq) + 100.0 * (wanted[0][k] - q)
            commands[k] = oracle.torque(q, dq, pull) + self._friction_torque(wanted[1][k])
            for _ in range(_PARTS):
                a = rate(q, dq, commands[k])
                b = rate(q + 0.5 * step * dq, dq + 0.5 * step * a, commands[k])
                c = rate(q + 0.5 * step * dq + 0.25 * step**2 * a, dq + 0.5 * step * b, commands[k])
                d = rate(q + step * dq + 0.5 * step**2 * b, dq + step * c, commands[k])
                q = q + step * dq + step**2 / 6.0 * (a + b + c)
                dq = dq + step / 6.0 * (a + 2.0 * b + 2.0 * c + d)
        return self._log(t, logged, commands)

    @property
    def clock(self) -> np.ndarray:
        return np.arange(round(self.duration * self.rate_hz)) / self.rate_hz

    def _friction_torque(self, dq: np.ndarray) -> np.ndarray:
        viscous, dry = self.friction
        return np.asarray(viscous * dq + dry * np.tanh(dq / _SHARP))

    def _log(self, t: np.ndarray, q: np.ndarray, tau: np.ndarray) -> Log:
        rng = np.random.default_rng([self.seed, 2])
        q = q + self.position_noise * rng.normal(size=q.shape)
        return Log(self.robot.joint_names, t, q, tau=tau + self.torque_noise * rng.normal(size=q.shape))


@cache
def _robot() -> Robot:
    return load_robot("rotradi")


@cache
def _oracle() -> PinocchioOracle:
    return PinocchioOracle(_robot())

"""Robots that Pinocchio or MuJoCo moves: logs whose torque comes late, or is held, sampled or averaged between samples.

Nothing here is simulated by the library. Friction is τ = Fv q̇ + Fc tanh(q̇/0.01 rad/s); MuJoCo's own friction loss,
which is softer, is there as well.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache, cached_property
from typing import Any, Literal
from xml.etree import ElementTree

import numpy as np
from oracles import pinocchio_of, public_robot_path

from steelyard.robot.load import load_robot
from steelyard.robot.robot import Robot
from steelyard.signals.log import Log

# rad/s; over this speed the dry friction of Pinocchio's plants turns.
_SHARP = 0.01
# s; steps of the integration at most. Friction of _SHARP on the lightest axis here has a rate of some 1e3 1/s.
_STEP = 2.5e-4
# Parts of a sampling interval over which torque is averaged, at least.
_PARTS = 4
# Of the reference of the controller: stiffness [1/s^2] and damping [1/s].
_KP, _KD = 100.0, 20.0
# Dry and viscous friction of arms that come without, each as a share of the torque that their motion needs.
_FRICTION_SHARE = 0.15

Engine = Literal["pinocchio", "mujoco"]


@dataclass(frozen=True)
class Plant:
    """A robot under computed torque, and the logs of it.

    Attributes:
        rate_hz: Sampling rate.
        seed: Of the motion and of the noise.
        position_noise: Standard deviation [rad].
        torque_noise: Standard deviation, as a share of each joint's torque (rms).
        duration: Length of the log [s].
        name: "rotradi" (built in, three joints, with the friction of its description), or a public arm ("ur10",
            "panda"), which gets rotors and friction.
        engine: What moves it.
        soft: Dry friction is MuJoCo's friction loss. It is a soft constraint that turns before the joint does, by some
            10 ms: friction that no term of the library has.
    """

    rate_hz: float
    seed: int = 0
    position_noise: float = 1e-5
    torque_noise: float = 0.002
    duration: float = 10.0
    name: str = "rotradi"
    engine: Engine = "pinocchio"
    soft: bool = False

    @property
    def robot(self) -> Robot:
        return _arm(self.name).robot

    @property
    def terms(self) -> tuple[str, ...]:
        """Joint terms that the robot has, by name."""
        return _arm(self.name).terms

    @property
    def truth(self) -> np.ndarray:
        """Full parameters of links and terms."""
        return _arm(self.name).truth

    def motion(self, t: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """q, q̇ and q̈ of a sum of sines at the times `t` [s]."""
        return _sines(self.robot.dof, self.seed, t)

    def torque(self, t: np.ndarray) -> np.ndarray:
        """Torques of the motion at the times `t` [s], by Pinocchio."""
        return _arm(self.name).torque(*self.motion(t))

    def sampled(self, delay: float = 0.0) -> Log:
        """A log whose torque is that of `delay` (s) before its stamp."""
        if self.engine == "mujoco":
            grid, q, tau = self._driven(hold=False)
            return self._log(self.clock, q, _between(grid, tau, self.clock - delay))
        t = self.clock
        return self._log(t, self.motion(t)[0], self.torque(t - delay))

    def averaged(self) -> Log:
        """A log whose torque is the mean over the sampling interval that ends at its stamp."""
        t, h = self.clock, 1.0 / self.rate_hz
        ends = [t - h * (k + 0.5) / _PARTS for k in range(_PARTS)]
        if self.engine == "mujoco":
            grid, q, tau = self._driven(hold=False)
            return self._log(t, q, np.mean([_between(grid, tau, end) for end in ends], axis=0))
        return self._log(t, self.motion(t)[0], np.mean([self.torque(end) for end in ends], axis=0))

    def held(self, delay: float = 0.0) -> Log:
        """A log whose torque is held until the next sample, and written `delay` (s, whole samples) late."""
        _, q, tau = self._driven(hold=True)
        late = round(delay * self.rate_hz)
        return self._log(self.clock, q, tau[:: self._substeps][np.maximum(np.arange(len(q)) - late, 0)])

    @property
    def clock(self) -> np.ndarray:
        return np.arange(round(self.duration * self.rate_hz)) / self.rate_hz

    @property
    def _substeps(self) -> int:
        """Steps of the integration in a sampling interval."""
        return max(_PARTS, round(1.0 / (self.rate_hz * _STEP)))

    def _driven(self, hold: bool) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Times of the steps, positions at the samples, and torques at the steps, as the engine integrates them.

        Args:
            hold: The torque is held over a sampling interval; else it is that of the middle of each step, which a
                smooth torque differs from by the square of the step alone.
        """
        each, step = self._substeps, 1.0 / (self.rate_hz * self._substeps)
        # Some intervals before the log, so that means and late torques are known from its first sample on.
        before = 0 if hold else each * max(1, round(4e-3 * self.rate_hz))
        grid = np.arange(-before, each * len(self.clock)) * step
        arm, wanted = _arm(self.name), self.motion(grid)
        plant = _ByPinocchio(arm, step) if self.engine == "pinocchio" else _ByMujoco(arm, step, self.soft)
        if hold:
            logged = applied = np.repeat(arm.torque(*(x[::each] for x in wanted)), each, axis=0)
        else:
            logged, applied = arm.torque(*wanted), arm.torque(*self.motion(grid + 0.5 * step))
        plant.start(wanted[0][0], wanted[1][0])
        q, tau, pull = np.empty_like(logged), np.empty_like(logged), np.zeros(self.robot.dof)
        for k in range(len(grid)):
            q[k] = plant.q
            if not hold or k % each == 0:
                pull = arm.inertia * (_KP * (wanted[0][k] - plant.q) + _KD * (wanted[1][k] - plant.dq))
            tau[k] = logged[k] + pull
            plant.step(applied[k] + pull)
        return grid, q[before::each], tau

    def _log(self, t: np.ndarray, q: np.ndarray, tau: np.ndarray) -> Log:
        rng = np.random.default_rng([self.seed, 2])
        q = q + self.position_noise * rng.normal(size=q.shape)
        noise = self.torque_noise * np.sqrt(np.mean(tau**2, axis=0))
        return Log(self.robot.joint_names, t, q, tau=tau + noise * rng.normal(size=q.shape))


def _sines(joints: int, seed: int, t: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    rng = np.random.default_rng([seed, 1])
    w = 2.0 * np.pi * np.array([0.1, 0.3, 0.5, 0.8, 1.3])
    size = rng.uniform(0.5, 1.0, (5, joints)) * np.array([0.9, 0.5, 0.3, 0.2, 0.1])[:, None]
    phase = rng.uniform(0.0, 2.0 * np.pi, (5, joints))
    angle = w[:, None] * np.asarray(t)[:, None, None] + phase
    q = (size * np.sin(angle)).sum(axis=1)
    dq = (size * w[:, None] * np.cos(angle)).sum(axis=1)
    return q, dq, -(size * w[:, None] ** 2 * np.sin(angle)).sum(axis=1)


def _between(grid: np.ndarray, tau: np.ndarray, t: np.ndarray) -> np.ndarray:
    """The torque at `t` [s], by straight lines between steps of a quarter of a millisecond."""
    return np.column_stack([np.interp(t, grid, column) for column in tau.T])


class _Arm:
    """A robot with its rotors and friction, and its Pinocchio model."""

    def __init__(self, name: str) -> None:
        import pinocchio as pin

        self.pin, self.name = pin, name
        if name == "rotradi":
            self.robot = load_robot(name)
            self.model = pinocchio_of(self.robot)
            self.viscous, self.dry = (np.array(term.values[0]) for term in self.robot.nominal_terms)
            self.armature = np.zeros(self.robot.dof)
        else:
            self.path = public_robot_path(name)
            self.robot, self.model = load_robot(self.path), pin.buildModelFromUrdf(str(self.path))
            fingers = [n for n in self.model.names if "finger" in n]
            if fingers:
                ids = [self.model.getJointId(n) for n in fingers]
                self.model = pin.buildReducedModel(self.model, ids, pin.neutral(self.model))
                self.robot = self.robot.with_joints([n for n in self.robot.joint_names if "finger" not in n])
            self.viscous = self.dry = self.armature = np.zeros(self.robot.dof)
        self.data = self.model.createData()
        if name != "rotradi":
            self._equip()

    def _equip(self) -> None:
        """Rotors: a fifth of each joint's inertia and a hundredth of the largest; friction by the torques."""
        q, dq, ddq = _sines(self.robot.dof, 999, np.arange(0.0, 10.0, 0.05))
        mass = np.mean([np.diag(self.pin.crba(self.model, self.data, x)) for x in q], axis=0)
        self.armature = 0.2 * mass + 0.01 * mass.max()
        self.model.armature = self.armature
        size = np.sqrt(np.mean(self.torque(q, dq, ddq) ** 2, axis=0))
        self.dry = _FRICTION_SHARE * size
        self.viscous = _FRICTION_SHARE * size / np.sqrt(np.mean(dq**2, axis=0))

    @property
    def terms(self) -> tuple[str, ...]:
        return ("viscous", "coulomb") if self.name == "rotradi" else ("rotor", "viscous", "coulomb")

    @property
    def truth(self) -> np.ndarray:
        values = {"rotor": self.armature, "viscous": self.viscous, "coulomb": self.dry}
        return np.concatenate([self.robot.inertial_parameters, *(values[term] for term in self.terms)])

    @cached_property
    def inertia(self) -> np.ndarray:
        """The inertia of each joint [kg m^2], which scales the gains of the controller."""
        mass = np.array(self.pin.crba(self.model, self.data, self.pin.neutral(self.model)))
        return np.asarray(np.diag(mass))

    def friction(self, dq: np.ndarray) -> np.ndarray:
        return np.asarray(self.viscous * dq + self.dry * np.tanh(dq / _SHARP))

    def torque(self, q: np.ndarray, dq: np.ndarray, ddq: np.ndarray) -> np.ndarray:
        rows = zip(q, dq, ddq, strict=True)
        bodies = np.array([self.pin.rnea(self.model, self.data, *row) for row in rows])
        # Whether rnea has the armature differs between versions of Pinocchio.
        return bodies + (self.armature * ddq if not self._has_armature else 0.0) + self.friction(dq)

    @cached_property
    def _has_armature(self) -> bool:
        zero, one = np.zeros(self.robot.dof), np.ones(self.robot.dof)
        with_it, mass = (
            self.pin.rnea(self.model, self.data, zero, zero, one),
            self.pin.crba(self.model, self.data, zero),
        )
        mass = np.triu(mass) + np.triu(mass, 1).T
        still = self.pin.rnea(self.model, self.data, zero, zero, zero)
        return bool(np.allclose(with_it - still, mass @ one, rtol=1e-6))


class _ByPinocchio:
    """Runge and Kutta's fourth order over Pinocchio's forward dynamics."""

    def __init__(self, arm: _Arm, step: float) -> None:
        self.arm, self.h = arm, step

    def start(self, q: np.ndarray, dq: np.ndarray) -> None:
        self.q, self.dq = q.copy(), dq.copy()

    def rate(self, q: np.ndarray, dq: np.ndarray, tau: np.ndarray) -> np.ndarray:
        arm = self.arm
        return np.asarray(arm.pin.aba(arm.model, arm.data, q, dq, tau - arm.friction(dq)))

    def step(self, tau: np.ndarray) -> None:
        q, dq, h = self.q, self.dq, self.h
        a = self.rate(q, dq, tau)
        b = self.rate(q + 0.5 * h * dq, dq + 0.5 * h * a, tau)
        c = self.rate(q + 0.5 * h * dq + 0.25 * h**2 * a, dq + 0.5 * h * b, tau)
        d = self.rate(q + h * dq + 0.5 * h**2 * b, dq + h * c, tau)
        self.q = q + h * dq + h**2 / 6.0 * (a + b + c)
        self.dq = dq + h / 6.0 * (a + 2.0 * b + 2.0 * c + d)


class _ByMujoco:
    """MuJoCo's own integration and damping, of the arm's URDF as MuJoCo reads it."""

    def __init__(self, arm: _Arm, step: float, soft: bool) -> None:
        import mujoco

        tree = ElementTree.parse(arm.path)
        for link in tree.iter("link"):  # shapes touch nothing here
            for part in [*link.findall("visual"), *link.findall("collision")]:
                link.remove(part)
        self.mujoco = mujoco
        self.model = mujoco.MjModel.from_xml_string(ElementTree.tostring(tree.getroot(), "unicode"))
        self.order = [int(self.model.joint(name).qposadr[0]) for name in arm.robot.joint_names]
        options = self.model.opt
        options.timestep, options.integrator = step, mujoco.mjtIntegrator.mjINT_RK4
        options.disableflags |= mujoco.mjtDisableBit.mjDSBL_CONTACT | mujoco.mjtDisableBit.mjDSBL_LIMIT
        self.model.dof_armature[self.order] = arm.armature
        self.model.dof_damping[self.order] = arm.viscous
        self.dry = np.zeros(self.model.nv) if soft else arm.dry[np.argsort(self.order)]
        self.model.dof_frictionloss[self.order] = arm.dry if soft else 0.0
        self.data = mujoco.MjData(self.model)

    def start(self, q: np.ndarray, dq: np.ndarray) -> None:
        self.data.qpos[self.order], self.data.qvel[self.order] = q, dq

    @property
    def q(self) -> np.ndarray:
        return np.asarray(self.data.qpos[self.order])

    @property
    def dq(self) -> np.ndarray:
        return np.asarray(self.data.qvel[self.order])

    def step(self, tau: np.ndarray) -> None:
        self.data.qfrc_applied[self.order] = tau
        self.mujoco.set_mjcb_passive(self._rub if self.dry.any() else None)
        self.mujoco.mj_step(self.model, self.data)
        self.mujoco.set_mjcb_passive(None)

    def _rub(self, _: object, data: Any) -> None:
        """Dry friction, at every stage of a step."""
        data.qfrc_passive[:] -= self.dry * np.tanh(data.qvel / _SHARP)


@cache
def _arm(name: str) -> _Arm:
    return _Arm(name)

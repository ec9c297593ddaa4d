"""Simulates the true robot of a comparison and its experiments."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property, lru_cache

import numpy as np

from steelyard.compare.protocol import PINION, Cell, Protocol, cutoff_hz
from steelyard.dynamics.engine import Dynamics
from steelyard.dynamics.model import Model
from steelyard.errors import SteelyardError
from steelyard.estimation.estimate import Prior
from steelyard.estimation.simulation_error.experiment import Experiment
from steelyard.excitation.constraints.limits import default_limits
from steelyard.excitation.trajectories import Fourier, Trajectory
from steelyard.ground.arrays import Array, one_blas_thread
from steelyard.parameters.inertial import smallest_pseudo_eigenvalues
from steelyard.parameters.terms import Terms
from steelyard.regression.base_parameters import BaseParameters, base_parameters
from steelyard.robot.robot import Robot
from steelyard.signals.log import Log
from steelyard.signals.prepare import Preparation
from steelyard.simulation import Controller, Sensors, Simulation
from steelyard.simulation.controllers import CONTROLLERS
from steelyard.simulation.dry_friction import smooth_terms
from steelyard.simulation.play import play

# Share of the limits that motions use, because the control loop overshoots.
_SHARE = 0.8
# Largest distance from the middle position [rad, m], for robots with wide limits.
_REACH = {"revolute": 2.0, "prismatic": 0.5}
_SAMPLES = 400


def random_motion(robot: Robot, harmonics: int, duration: float, rng: np.random.Generator) -> Trajectory:
    """Draw a Fourier series that starts and ends at rest, as large as position, velocity and acceleration limits
    allow."""
    family = Fourier(max(harmonics, 2), duration)
    limits = default_limits(robot)
    t = np.linspace(0.0, duration, _SAMPLES, endpoint=False)
    velocities, _ = family.basis(t, 1)
    parts = []
    for k, joint in enumerate(robot.joints):
        middle = float(limits.middle[k])
        reach = min(float(limits.upper[k]) - middle, _REACH[joint.kind])
        velocity = _velocity(t, family, rng)
        # The offset does not affect the velocity: the shortest solution leaves it zero.
        x = np.asarray(np.linalg.lstsq(velocities, velocity, rcond=None)[0], dtype=np.float64)
        peaks = [max(abs(end) for end in family.extent(x, order)) for order in range(3)]
        allowed = (reach, float(limits.dq[k]), float(limits.ddq[k]))
        scale = _SHARE * min(limit / peak for limit, peak in zip(allowed, peaks, strict=True))
        parts.append(family.hold(middle) + scale * x)
    return Trajectory((family,) * robot.dof, np.concatenate(parts))


def _velocity(t: Array, family: Fourier, rng: np.random.Generator) -> Array:
    """Random harmonics with less power at higher frequencies."""
    size = rng.normal(size=(2, family.harmonics)) / np.sqrt(np.arange(1, family.harmonics + 1))
    angle = t[:, None] * family.omega
    return np.asarray(np.cos(angle) @ size[0] + np.sin(angle) @ size[1])


def exciting_motion(
    dynamics: Dynamics, base: BaseParameters, harmonics: int, duration: float, seed: list[int], trials: int = 12
) -> Trajectory:
    """Return the best of several random motions, by the condition number of the scaled base columns."""
    rng = np.random.default_rng(seed)
    motions = [random_motion(dynamics.robot, harmonics, duration, rng) for _ in range(trials)]
    with one_blas_thread():
        return min(motions, key=lambda motion: _condition(dynamics, base, motion))


def _condition(dynamics: Dynamics, base: BaseParameters, motion: Trajectory) -> float:
    t = np.linspace(0.0, motion.duration, _SAMPLES, endpoint=False)
    W = base.regressor_columns(dynamics.torque_regressor(*motion.sample(t))).reshape(-1, base.rank)
    lengths = np.linalg.norm(W, axis=0)
    return float(np.linalg.cond(W / np.where(lengths > 0.0, lengths, 1.0)))


# Samples that BIRDy removes at both ends.
_BORDER = 50
# Time for the controller to settle under gravity before the log begins [s].
_SETTLING = 1.0
# Tries to draw a valid initial estimate of a link; slender bodies rarely succeed.
_DRAWS = 200
# Purposes of random numbers: each has a separate generator.
_EXCITING, _JUDGING, _NOISE, _START = range(4)


@dataclass(frozen=True, eq=False)
class Truth:
    """The true robot, in a form that can be sent to other processes."""

    robot: Robot
    terms: Terms
    theta: Array

    @classmethod
    def of(cls, robot: Robot, smoothing: float) -> Truth:
        """Create it from the description; dry friction is smoothed so that plant and model agree."""
        if not robot.has_inertia:
            raise SteelyardError(
                f"Robot '{robot.name}' has no inertias. A Monte-Carlo comparison simulates the robot of the "
                "description: add inertias to it, or compare on a log instead."
            )
        fresh = replace(robot)  # without compiled code, which cannot be sent to other processes
        model = Model.nominal(fresh)
        return cls(fresh, smooth_terms(model.terms, smoothing), model.theta)


class Bench:
    """Simulates the experiments of a protocol; the same cell gives the same numbers in every process."""

    def __init__(self, truth: Truth, protocol: Protocol) -> None:
        self.protocol = protocol
        self.truth = Model(truth.robot, truth.terms, truth.theta)
        self.base: BaseParameters = base_parameters(truth.robot, truth.terms)
        self.beta = self.base.values(truth.theta)
        # Cells that differ only in noise, rate and filter share a run.
        self._run = lru_cache(maxsize=4)(self._simulated)
        self.motion = lru_cache(maxsize=None)(self._motion)

    def experiment(self, cell: Cell) -> Experiment:
        """Simulate the log of a cell. Estimators know the controller and the reference, but not the noise."""
        p = self.protocol
        noise = p.noise(cell.noise)
        radians = np.deg2rad(noise.position_deg)
        kinds = [joint.kind for joint in self.truth.robot.joints]
        sensors = Sensors(
            position_noise=tuple(radians * (1.0 if kind == "revolute" else PINION) for kind in kinds),
            torque_noise=noise.torque,
            sample_period=1.0 / cell.rate,
            seed=int(np.random.SeedSequence([p.seed, _NOISE, cell.trajectory, cell.start]).generate_state(1)[0]),
        )
        log = _cut_start(_SETTLING, self._run(cell.trajectory, cell.controller).log(sensors=sensors))
        preparation = Preparation(cutoff_hz=cutoff_hz(cell.cutoff, cell.rate), trim=_BORDER / cell.rate)
        return Experiment.from_logs(
            self.truth.robot, self.truth.terms, log, preparation=preparation,
            controller=self._controller(cell.controller), references=self.motion(cell.trajectory),
            control_period=1.0 / p.control_rate,
        )  # fmt: skip

    def initial(self, cell: Cell) -> Prior:
        """Draw a possible initial estimate; it is the same for all noise levels and filters."""
        rng = np.random.default_rng([self.protocol.seed, _START, cell.trajectory, cell.start])
        theta, relative_std = self.truth.theta.copy(), self.protocol.start_relative_std
        links = self.truth.robot.inertial_count
        for first in range(0, links, 10):
            theta[first : first + 10] = _perturbed_link(theta[first : first + 10], relative_std, rng)
        theta[links:] *= np.maximum(1.0 + relative_std * rng.normal(size=len(theta) - links), 0.0)
        return Prior(theta)

    @cached_property
    def evaluation_motions(self) -> tuple[Trajectory, ...]:
        """Motions for the evaluation, different from those of the fits."""
        p = self.protocol
        return tuple(
            random_motion(self.truth.robot, p.harmonics, p.duration, np.random.default_rng([p.seed, _JUDGING, k]))
            for k in range(p.evaluation_motions)
        )

    def _motion(self, number: int) -> Trajectory:
        p = self.protocol
        return exciting_motion(self.truth.dynamics, self.base, p.harmonics, p.duration, [p.seed, _EXCITING, number])

    def _controller(self, name: str) -> Controller:
        controller: Controller = CONTROLLERS[name].for_model(self.truth, bandwidth_rad_s=self.protocol.bandwidth_rad_s)
        return controller

    def _simulated(self, trajectory: int, controller: str) -> Simulation:
        loop = self._controller(controller)
        motion = _DelayedMotion(self.motion(trajectory))
        # dq0=None: the first velocity is zero except for rounding.
        return play(self.truth, motion, self.protocol.control_rate, controller=loop, loops=1, settle=True, dq0=None)


@dataclass(frozen=True)
class _DelayedMotion:
    """A motion with a pause before it, in which the control loop settles."""

    motion: Trajectory

    @property
    def duration(self) -> float:
        return self.motion.duration + _SETTLING

    def sample(self, t: Array) -> tuple[Array, Array, Array]:
        return self.motion.sample(np.maximum(np.asarray(t) - _SETTLING, 0.0))


def _cut_start(start: float, log: Log) -> Log:
    """Remove the beginning of a log and keep only positions and torques; time starts at zero again."""
    first = int(np.searchsorted(log.t, start - 1e-9))
    assert log.tau is not None
    return Log(log.joints, log.t[first:] - log.t[first], log.q[first:], tau=log.tau[first:])


def _perturbed_link(link: Array, relative_std: float, rng: np.random.Generator) -> Array:
    """A link whose ten parameters differ by `relative_std`; impossible draws are repeated."""
    for _ in range(_DRAWS):
        drawn = link * (1.0 + relative_std * rng.normal(size=10))
        if smallest_pseudo_eigenvalues(drawn).min() > 0.0:
            return drawn
    return link * max(1.0 + relative_std * float(rng.normal()), 0.1)  # scaled mass, same shape

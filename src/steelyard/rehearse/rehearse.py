"""`rehearse`: play a designed motion on a simulated robot with planted parameters, and see whether they come back."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from functools import cached_property
from typing import Any

import numpy as np

from steelyard.dynamics.engine import Dynamics
from steelyard.dynamics.model import Model
from steelyard.errors import UnknownNameError
from steelyard.estimation.possible.reference import default_bodies
from steelyard.excitation.constraints import Limits, default_limits
from steelyard.excitation.constraints.limits import limits_from
from steelyard.excitation.designed import expected_noise
from steelyard.excitation.problem import comparison_motion
from steelyard.excitation.trajectories import Fourier, Trajectory
from steelyard.ground.arrays import Array
from steelyard.ground.numbers import percent as as_percent
from steelyard.ground.outcome import Content, Presentation, Viewed
from steelyard.ground.reasons import explained
from steelyard.ground.renamed import renamed
from steelyard.identification.identification import Identification
from steelyard.identification.identify import identify
from steelyard.parameters.inertial import LogCholesky
from steelyard.parameters.terms import Terms, TermsLike, identification_terms
from steelyard.robot.load import RobotLike, as_robot
from steelyard.robot.robot import Robot
from steelyard.signals.log import Log
from steelyard.signals.prepare import Preparation
from steelyard.simulation.play import good_sensors, play
from steelyard.simulation.simulation import Simulation

# `planted`: a robot whose every parameter is known, because we chose it.


_KINDS = ("nominal", "perturbed")
# Where a description states no inertia: rods of this mass per joint (kg), as small arms have them.
_KILOGRAMS = 3.0
# Where it states no friction or rotor: each takes this share of what the drive can do, or of gravity's load, as they do
# in real arms.
_SHARE = 0.05


def planted(robot: Robot, terms: Terms, kind: str = "nominal", relative_std: float = 0.2, seed: int = 0) -> Model:
    """The nominal model of `robot` with values for all `terms`, or a possible robot around it, drawn by `seed`: `kind`.

    "perturbed" moves every log-Cholesky coordinate of every link by a normal deviate of `relative_std` (masses and
    inertias by about twice that share) and every positive term by a factor of about 1 ± relative_std.
    """
    if kind not in _KINDS:
        raise UnknownNameError("kind of truth", kind, _KINDS)
    theta = _nominal(robot, terms)
    if kind == "perturbed":
        theta = _perturbed(robot, terms, theta, relative_std, np.random.default_rng([seed, 7]))
    return Model(robot, terms, theta)


def _nominal(robot: Robot, terms: Terms) -> Array:
    links, known = (_KILOGRAMS * robot.dof * default_bodies(robot)).ravel(), {}
    if robot.has_inertia:
        links = robot.inertial_parameters
        nominal = Model.nominal(robot)
        known = dict(zip((p.name for p in nominal.dynamics.parameters), nominal.theta.tolist(), strict=True))
    sizes = _sizes(robot, links)
    values = []
    for k, p in enumerate(terms.parameters):
        joint, lever = _where(robot, terms, k)
        # Offsets and the like stay zero; what must be positive makes its share of the torque at full speed.
        made = sizes[joint] / lever if p.lower == 0.0 and lever > 0.0 else 0.0
        values.append(known.get(p.name, made))
    return np.concatenate([links, values])


def _sizes(robot: Robot, links: Array) -> Array:
    """Torque of an unknown friction or rotor, joint by joint (N m, N)."""
    low, high = np.array([[max(j.lower, -np.pi), min(j.upper, np.pi)] for j in robot.joints]).T
    postures = np.random.default_rng(0).uniform(low, high, (200, robot.dof))
    load = np.max(np.abs(Model(robot, Terms(robot, ()), links).gravity_torque(postures)), axis=0)
    effort = np.array([j.effort for j in robot.joints])
    return np.where(np.isfinite(effort) & (effort > 0.0), _SHARE * effort, _SHARE * max(float(np.median(load)), 1.0))


def _where(robot: Robot, terms: Terms, k: int) -> tuple[int, float]:
    """The joint that a term's parameter loads most at full speed and acceleration, and by how much per unit."""
    limits = default_limits(robot)
    still = np.zeros(robot.dof)
    Y = Dynamics(robot, terms).torque_regressor(still, limits.dq, limits.ddq)
    column = np.abs(Y[:, robot.inertial_count + k])
    return int(np.argmax(column)), float(column.max())


def _perturbed(robot: Robot, terms: Terms, theta: Array, relative_std: float, rng: np.random.Generator) -> Array:
    parameters = Model(robot, terms, theta).dynamics.parameters
    count = len(robot.links)
    body = default_bodies(robot)
    full = theta.copy()
    for k in range(count):  # what is no possible body, or a flat one, has no coordinates: round it out a little
        part = slice(10 * k, 10 * k + 10)
        full[part] += 1e-3 * max(float(full[part][0]), 1e-3) / body[k, 0] * body[k]
    chart = LogCholesky.of(parameters, count)
    x = chart.coordinates(full)
    step = rng.normal(0.0, relative_std, len(x))
    for k in range(count):  # logarithms move by the deviate, the entries below the diagonal by a share of the diagonal
        below = slice(10 * k + 4, 10 * k + 10)
        rows = (1, 2, 2, 3, 3, 3)
        step[below] *= np.exp(x[10 * k : 10 * k + 4])[list(rows)] * 0.5
    kept = np.array([p.lower != 0.0 for p in parameters[10 * count :]], dtype=bool)
    step[10 * count :][kept] = 0.0
    zero = np.concatenate([np.zeros(10 * count, dtype=bool), (theta[10 * count :] == 0.0)])
    out, _ = chart.parameters(x + step)
    return np.where(zero, 0.0, out)


# Designed motions go to their limits, and a controller that knows its robot badly overshoots: this share is allowed.
_OVERSHOOT = 0.05
# Of honest 95 % intervals as many hold the truth with all but this share of bad luck (binomial: 19 of 25, 49 of 58).
_LUCK = 1e-3
# Filters, clocks and held torques leave errors that no noise explains, and long logs have narrow error bars. An error
# shows if it moves some joint's torque by more than this share of its noise (RMS along the motion).
_SHOWS = 0.1
# What a good identification of a real arm reaches on data that it has not seen, as a share of the torque's std.
_GOOD = 0.05


@dataclass(frozen=True)
class Judgement:
    """One thing that was looked at: its name, whether it went well, and why; what does not decide is said beside."""

    name: str
    passed: bool
    text: str
    decides: bool = True


def _judge_motion(robot: Robot, runs: Sequence[Simulation], played: Sequence[Trajectory], limits: Limits) -> Judgement:
    """Whether the simulated robot kept near its limits while it followed."""
    worst, what = -np.inf, ""
    half, middle = 0.5 * (limits.upper - limits.lower), 0.5 * (limits.upper + limits.lower)
    for run in runs:
        with np.errstate(invalid="ignore"):
            shares = {
                "position": np.max(np.abs(run.q - middle), axis=0) / half,
                "velocity": np.max(np.abs(run.dq), axis=0) / limits.dq,
                "torque": np.max(np.abs(run.tau), axis=0) / limits.tau,
            }
        for name, share in shares.items():
            filled = np.nan_to_num(share, nan=0.0)
            k = int(np.argmax(filled))
            if filled[k] > worst:
                worst, what = float(filled[k]), f"{name} of joint '{robot.joint_names[k]}'"
    off = max(float(np.max(np.abs(r.q - m.derivative(r.t, 0)))) for r, m in zip(runs, played, strict=True))
    text = f"The {what} reached {100.0 * worst:.1f} % of its limit; the tracking error stayed below {off:.2g} rad (m)."
    return Judgement("the motion keeps to its limits", worst <= 1.0 + _OVERSHOOT, text)


def _judge_parameters(
    found: Identification, truth: Model, motions: Sequence[Trajectory], noise: Array
) -> tuple[Judgement, Judgement]:
    """Whether the planted base parameters lie where the error bars of the free fit say, and, counted apart, of how many
    that do not the error shows."""
    from scipy.stats import binom  # slow to import

    estimate, base = found.free, found.base
    error = np.abs(estimate.beta - base.values(truth.theta))
    off = error / estimate.standard_errors
    outside, least = off > 1.96, int(binom.ppf(_LUCK, len(off), 0.95))
    inside, k = int(np.sum(~outside)), int(np.argmax(off))
    text = (
        f"{inside} of {len(off)} base parameters lie within their 95 % intervals (expected: about "
        f"{round(0.95 * len(off))}; {least} are asked for). The farthest off is {base.names[k]}, by {off[k]:.1f} "
        "standard errors."
    )
    bars = Judgement("the error bars hold what was planted", inside >= least, text, decides=False)
    sampled = [m.sample(m.times(50.0)) for m in motions]
    q, dq, ddq = (np.concatenate([s[i] for s in sampled]) for i in range(3))
    W = base.regressor_columns(truth.dynamics.torque_regressor(q, dq, ddq))
    moved = np.max(np.sqrt(np.mean(W**2, axis=0)) * error / noise[:, None], axis=0)
    shows = int(np.sum(outside & (moved > _SHOWS)))
    text = (
        f"Of {int(np.sum(outside))} base parameters outside their intervals, {shows} have errors that move some torque "
        f"by more than a tenth of its noise; {len(off) - least} may."
    )
    return bars, Judgement("the planted parameters are found", shows <= len(off) - least, text)


def _judge_prediction(found: Identification, truth: Model, motion: Trajectory) -> Judgement:
    """Whether the delivered model predicts the true torque of a motion that it has not seen."""
    signals = motion.sample(motion.times(100.0))
    true, predicted = truth.torque(*signals), found.model.torque(*signals)
    rmse = np.sqrt(np.mean((predicted - true) ** 2, axis=0))
    std = np.std(true, axis=0)
    allowed = _GOOD * std
    used = np.array(found.robot.torque_used, dtype=bool)
    share = np.where(used, rmse / np.maximum(allowed, 1e-12), 0.0)
    k = int(np.argmax(share))
    percent = 100.0 * rmse[k] / max(float(std[k]), 1e-12)
    text = (
        f"On a motion that was not played the torque of joint '{found.robot.joint_names[k]}', the worst, is predicted "
        f"to {rmse[k]:.3g} {found.robot.joints[k].effort_unit} ({as_percent(percent)} of "
        f"its standard deviation); {allowed[k]:.3g} is asked for."
    )
    good = bool(share[k] <= 1.0)
    text += "" if good else " Quieter sensors, more passes or a motion that shows more would help."
    return Judgement("the found model predicts another motion", good, text)


@dataclass(frozen=True, eq=False)
class Rehearsal(Viewed):
    """What was planted, what was found, and whether the motion may be trusted to find it on the real robot."""

    robot: Robot
    truth: Model
    found: Identification
    runs: tuple[Simulation, ...]
    logs: tuple[Log, ...]
    noise: Array
    judgements: tuple[Judgement, ...]

    @property
    def passed(self) -> bool:
        return all(j.passed for j in self.judgements if j.decides)

    @property
    def sentence(self) -> str:
        if self.passed:
            beside = "".join(f" It does not hold that {j.name}." for j in self.judgements if not j.passed)
            return f"Passed: the planted parameters were found again; the motion may be played.{beside}"
        return "Failed: " + "; ".join(j.name for j in self.judgements if not j.passed) + "."

    @cached_property
    def rows(self) -> list[dict[str, Any]]:
        """Base parameters, planted and found (free fit), with standard errors."""
        base, estimate = self.found.base, self.found.free
        true = base.values(self.truth.theta)
        return [
            {"name": n, "unit": u, "true": float(t), "found": float(b), "standard_error": float(e)}
            for n, u, t, b, e in zip(base.names, base.units, true, estimate.beta, estimate.standard_errors, strict=True)
        ]

    def to_json(self) -> dict[str, Any]:
        return explained(
            {
                "robot": self.robot.name,
                "passed": self.passed,
                "verdict": self.sentence,
                "reasons": [asdict(j) for j in self.judgements],
                "torque_noise": self.noise.tolist(),
                "base_parameters": {"count": len(self.rows), "list": self.rows},
                "physically_consistent": bool(self.found.possible),
            }
        )

    def files(self) -> dict[str, Content]:
        return {"log.npz" if k == 0 else f"log-{k + 1}.npz": log.save for k, log in enumerate(self.logs)}

    def view(self) -> Presentation:
        from steelyard.rehearse.page import print_rehearsal, rehearsal_report

        return rehearsal_report, print_rehearsal


@renamed(spread="relative_std")
def rehearse(
    robot: RobotLike,
    trajectory: Trajectory | Sequence[Trajectory],
    *,
    terms: TermsLike | None = None,
    truth: str | Model = "perturbed",
    relative_std: float = 0.2,
    limits: Limits | None = None,
    noise: float | Sequence[float] | None = None,
    rate: float = 1000.0,
    passes: int = 1,
    seed: int = 0,
) -> Rehearsal:
    """Play motions on a simulated robot, log them with real-life sensors, identify, and judge.

    Args:
        robot: as described; its nominal model is all that the controller knows.
        trajectory: the designed motion, or several.
        terms: the joint terms that the robot has and that are fitted (default: rotor, viscous, Coulomb, offset).
        truth: "nominal", "perturbed" (a possible robot around the nominal one), or a `Model` with the same terms.
        relative_std: how far a perturbed robot is off, a share.
        limits: those the motion was designed for (default: the robot's).
        noise: of torque, N m (N), one number or one per joint; default: half a percent of the effort limits.
        rate: of the log, Hz.
        passes: how often each motion is played.
        seed: of the planted robot and of the noise.
    """
    robot = as_robot(robot)
    bound = identification_terms(robot, terms)
    model = truth if isinstance(truth, Model) else planted(robot, bound, truth, relative_std, seed)
    guess = planted(robot, bound)
    own = limits if limits is not None else limits_from(robot, None)
    sigma = expected_noise(robot, noise)
    motions = [trajectory] if isinstance(trajectory, Trajectory) else list(trajectory)
    played = [m for m in motions for _ in range(passes)]
    # The robot's own controller follows by what it believes the robot to be.
    runs = tuple(play(model, m, rate, believed=guess, bandwidth_rad_s=30.0) for m in played)
    logs = tuple(run.log(sensors=good_sensors(sigma, seed + k)) for k, run in enumerate(runs))
    # No prior on what the motion shows, and the cut-off far above the motion, as a user would have it by default.
    found = identify(
        robot, logs, terms=bound, preparation=Preparation(), names=[f"motion {k + 1}" for k in range(len(logs))]
    )
    other = comparison_motion((Fourier(5, 10.0),) * robot.dof, own, seed)
    judgements = (
        _judge_motion(robot, runs, played, own),
        *_judge_parameters(found, model, motions, sigma),
        _judge_prediction(found, model, other),
    )
    return Rehearsal(robot, model, found, runs, logs, sigma, judgements)

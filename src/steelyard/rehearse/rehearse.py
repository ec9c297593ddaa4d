"""`rehearse`: play a designed motion on a simulated robot with planted parameters, and see whether they come back."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import cached_property
from typing import Any

import numpy as np

from steelyard.dynamics.engine import Dynamics
from steelyard.dynamics.model import Model
from steelyard.errors import SteelyardError, UnknownNameError
from steelyard.estimation.possible.reference import default_bodies
from steelyard.excitation.constraints import Limits, default_limits
from steelyard.excitation.constraints.limits import limits_from
from steelyard.excitation.designed import expected_noise
from steelyard.excitation.problem import comparison_motion
from steelyard.excitation.trajectories import Fourier, Trajectory
from steelyard.ground.arrays import Array
from steelyard.ground.displayed import Displayed, Glance, NamedColumns
from steelyard.ground.field import Field
from steelyard.ground.files import plain
from steelyard.ground.outcome import Content, Presentation, Viewed
from steelyard.ground.progress import Watch, part, steps, tell_progress, watched
from steelyard.ground.reasons import explained
from steelyard.ground.renamed import renamed
from steelyard.identification.identification import Identification
from steelyard.identification.identify import identify
from steelyard.parameters.inertial import LogCholesky
from steelyard.parameters.terms import Terms, TermsLike, identification_terms
from steelyard.rehearse._judge import Judgement, Trial, found_again, judged, limits_kept, torque_predicted
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


@dataclass(frozen=True, eq=False, repr=False)
class Rehearsal(Viewed, Displayed):
    """What was planted, what was found, and whether the motion may be trusted to find it on the real robot.

    `truth`, `found`, `runs` and `logs` are those of the first robot that was planted; `trials` tell of all of them.
    """

    robot: Robot
    truth: Model
    found: Identification
    runs: tuple[Simulation, ...]
    logs: tuple[Log, ...]
    noise: Array
    judgements: tuple[Judgement, ...]
    trials: tuple[Trial, ...]

    @property
    def passed(self) -> bool:
        return all(j.passed for j in self.judgements if j.decides)

    @property
    def sentence(self) -> str:
        if self.passed:
            beside = "".join(f" It does not hold that {j.name}." for j in self.judgements if not j.passed)
            whose = "" if len(self.trials) == 1 else f" of {len(self.trials)} robots"
            return f"Passed: the planted parameters{whose} were found again; the motion may be played.{beside}"
        return "Failed: " + "; ".join(j.name for j in self.judgements if not j.passed) + "."

    @cached_property
    def rows(self) -> list[dict[str, Any]]:
        """Base parameters of the first robot, planted and found (free fit), with standard errors; z-scores of all."""
        base, estimate = self.found.base, self.found.free
        true = base.values(self.truth.theta)
        z = np.array([t.z_scores for t in self.trials]).T.tolist()
        columns = base.names, base.units, true.tolist(), estimate.beta.tolist(), estimate.standard_errors.tolist(), z
        keys = "name", "unit", "true", "found", "standard_error", "z_scores"
        return [dict(zip(keys, row, strict=True)) for row in zip(*columns, strict=True)]

    def glance(self) -> Glance:
        return Glance("good" if self.passed else "bad", self.sentence, tuple(j.text for j in self.judgements))

    def tables(self) -> Mapping[str, Callable[[], NamedColumns]]:
        def parameters() -> NamedColumns:
            plain = {key: [row[key] for row in self.rows] for key in self.rows[0] if key != "z_scores"}
            z = np.array([trial.z_scores for trial in self.trials])
            return {**plain, **{f"z, robot {k + 1}": scores for k, scores in enumerate(z)}}

        return {"parameters": parameters}

    def to_json(self) -> dict[str, Any]:
        return explained(
            {
                "robot": self.robot.name,
                "passed": self.passed,
                "verdict": self.sentence,
                "reasons": [asdict(j) for j in self.judgements],
                "torque_noise": self.noise.tolist(),
                "trials": [trial.to_json() for trial in self.trials],
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
@watched
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
    seeds: int = 5,
    progress: Watch | None = None,
) -> Rehearsal:
    """Play motions on simulated robots, log them with real-life sensors, identify, and judge by all of them.

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
        seed: of the first planted robot and of its noise.
        seeds: how many robots are planted, each with noise of its own; one may be lucky, or unlucky.
        progress: told how far it is (`steelyard.ground.progress`); None: nobody.
    """
    robot = as_robot(robot)
    Field(seeds, "seeds", error=SteelyardError).whole(1, 1000)
    bound = identification_terms(robot, terms)
    guess = planted(robot, bound)
    own = limits if limits is not None else limits_from(robot, None)
    sigma = expected_noise(robot, noise)
    motions = [trajectory] if isinstance(trajectory, Trajectory) else list(trajectory)
    played = [m for m in motions for _ in range(passes)]
    other = comparison_motion((Fourier(5, 10.0),) * robot.dof, own, seed)
    trials: list[Trial] = []
    first: tuple[Model, Identification, tuple[Simulation, ...], tuple[Log, ...]] | None = None
    for number in steps(range(seeds), "Rehearsing", lambda k: f"robot {k + 1} of {seeds}"):
        model = truth if isinstance(truth, Model) else planted(robot, bound, truth, relative_std, seed + number)
        # The robot's own controller follows by what it believes the robot to be.
        runs = tuple(play(model, m, rate, believed=guess, bandwidth_rad_s=30.0) for m in played)
        noises = (seed + number * len(played) + k for k in range(len(played)))
        logs = tuple(run.log(sensors=good_sensors(sigma, n)) for run, n in zip(runs, noises, strict=True))
        # No prior on what the motion shows, and the cut-off far above the motion, as a user would have it by default.
        with part(0.4, 1.0):
            found = identify(
                robot, logs, terms=bound, preparation=Preparation(), check=first is None,
                names=[f"motion {k + 1}" for k in range(len(logs))],
            )  # fmt: skip
        seen = *found_again(found, model, motions, sigma), *limits_kept(robot, runs, played, own)
        trials.append(Trial(seed + number, *seen, *torque_predicted(found, model, other)))
        said = {"of": "rehearsal", "robot": number + 1, "robots": seeds, **plain(trials[-1].to_json())}
        tell_progress("Judged", 1.0, trials[-1].error_text, said)
        first = first or (model, found, runs, logs)
    assert first is not None
    judgements = judged(trials, first[1].base.names)
    return Rehearsal(robot, *first, sigma, judgements, tuple(trials))

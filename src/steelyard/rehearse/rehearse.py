"""`rehearse`: play a designed motion on a simulated robot with planted parameters, and see whether they come back."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import cached_property
from typing import Any

import numpy as np

from steelyard.dynamics.model import Model
from steelyard.errors import SteelyardError
from steelyard.excitation.constraints import Limits
from steelyard.excitation.constraints.limits import limits_from
from steelyard.excitation.motion_design import expected_noise
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
from steelyard.parameters.terms import TermsLike, identification_terms
from steelyard.regression.base_parameters import base_parameters
from steelyard.rehearse._judge import Judge, Judgement, Trial, judged
from steelyard.rehearse.plants import planted
from steelyard.rehearse.trials import Trials, helpers, judged_by, workers_for
from steelyard.robot.load import RobotLike, as_robot
from steelyard.robot.robot import Robot
from steelyard.signals.log import Log
from steelyard.simulation.simulation import Simulation
from steelyard.study import Study

# Robots that can be planted at once; what is told of each would fill a disk else.
MOST_ROBOTS = 100_000


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
    workers: int | None = 1,
    gpu: bool = False,
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
        workers: processes that share the work on many robots; None: one for each core, where there are enough robots.
        gpu: let an NVIDIA GPU move all robots at once, and make their rows (extra `gpu`).
        progress: told how far it is (`steelyard.ground.progress`); None: nobody.
    """
    robot = as_robot(robot)
    Field(seeds, "seeds", error=SteelyardError).whole(1, MOST_ROBOTS)
    device = _gpu() if gpu else None
    trials = trials_of(robot, trajectory, terms, truth, relative_std, limits, noise, rate, passes, seed)
    found: list[Trial] = []
    shown: list[_Shown] = []
    coming = _all_trials(trials, range(seeds), workers, device, shown)
    for number in steps(range(seeds), "Rehearsing", lambda k: f"robot {k + 1} of {seeds}"):
        found.append(next(coming))
        said = {"of": "rehearsal", "robot": number + 1, "robots": seeds, **plain(found[-1].to_json())}
        tell_progress("Judged", 1.0, found[-1].error_text, said)
    judgements = judged(found, trials.base.names)
    return Rehearsal(robot, *shown[0], trials.judge.noise, judgements, tuple(found))


def trials_of(
    robot: Robot,
    trajectory: Trajectory | Sequence[Trajectory],
    terms: TermsLike | None = None,
    truth: str | Model = "perturbed",
    relative_std: float = 0.2,
    limits: Limits | None = None,
    noise: float | Sequence[float] | None = None,
    rate: float = 1000.0,
    passes: int = 1,
    seed: int = 0,
) -> Trials:
    """The robots of a rehearsal, and what they are judged by.

    Args:
        robot, trajectory, terms, truth, relative_std, limits, noise, rate, passes, seed: as for `rehearse`.
    """
    bound = identification_terms(robot, terms)
    own = limits if limits is not None else limits_from(robot, None)
    motions = [trajectory] if isinstance(trajectory, Trajectory) else list(trajectory)
    base, other = base_parameters(robot, bound), comparison_motion((Fourier(5, 10.0),) * robot.dof, own, seed)
    judge = Judge(robot, base, motions, other, own, expected_noise(robot, noise))
    return Trials(planted(robot, bound), base, judge, truth, relative_std, rate, passes, seed)


# Of the first robot: as it is, what was found of it, its runs and its logs.
_Shown = tuple[Model, Identification, tuple[Simulation, ...], tuple[Log, ...]]


def _all_trials(
    trials: Trials, numbers: range, workers: int | None, device: Any, shown: list[_Shown]
) -> Iterator[Trial]:  # fmt: skip
    """One after the other; the first robot is `shown`, of the others there is only what they are judged by."""
    if len(numbers) == 1:
        yield _first(trials, shown)[0]
        return
    helping, own = workers_for(len(numbers) - 1, workers), trials if device is None else _fitter(trials)
    with helpers(own, helping) as pool:
        trial, study = _first(trials, shown)
        yield trial
        if device is None:
            yield from judged_by(trials, numbers[1:], pool, helping)
        else:
            from steelyard.rehearse.on_gpu import judged_on_gpu

            yield from judged_on_gpu(trials, numbers[1:], study, pool, device)


def _first(trials: Trials, shown: list[_Shown]) -> tuple[Trial, Study]:
    number, model, played = next(trials.played([0]))
    logs, judge = trials.logs(number, played), trials.judge
    study = trials.study(logs)
    with part(0.4, 1.0):
        names = [f"motion {k + 1}" for k in range(len(logs))]
        found = identify(judge.robot, study, terms=study.terms, names=names, files=False)
    shown.append((model, found, trials.runs(played), logs))
    return judge.trial(trials.seed, found.free, found.model, model, judge.reached(played)), study


def _fitter(trials: Trials) -> Any:
    from steelyard.rehearse.on_gpu import Fitter

    return Fitter(trials)


def _gpu() -> Any:
    """The first GPU; what speaks to it is imported by who asks for it alone."""
    from steelyard.dynamics.cuda import device

    return device.gpu()

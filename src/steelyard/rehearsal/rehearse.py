"""`rehearse`: plays a designed motion on simulated robots and checks whether it identifies their parameters."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import cached_property
from typing import Any

import numpy as np

from steelyard.dynamics.model import Model
from steelyard.errors import SteelyardError
from steelyard.excitation.constraints.limits import limits_from
from steelyard.excitation.motion_design import expected_noise
from steelyard.excitation.search_problem import comparison_motion
from steelyard.excitation.trajectories import Fourier, Trajectory
from steelyard.ground.arrays import Array
from steelyard.ground.display import DisplayMixin, Headline, NamedColumns
from steelyard.ground.field import Field
from steelyard.ground.files import plain
from steelyard.ground.outcome import Content, OutcomeWithPage, Presentation
from steelyard.ground.progress import ProgressCallback, part, report_progress, reports_progress, steps
from steelyard.ground.reasons import explained
from steelyard.ground.verb_options import with_changes, with_signature
from steelyard.identification.identification import Identification
from steelyard.identification.identify import identify
from steelyard.parameters.terms import identification_terms
from steelyard.regression.base_parameters import base_parameters
from steelyard.rehearsal._judge import Judge, Judgement, Trial, judge_trials
from steelyard.rehearsal.plants import true_model
from steelyard.rehearsal.rehearse_options import RehearseOptions
from steelyard.rehearsal.trials import Trials, run_trials, worker_count, worker_pool
from steelyard.robot.load import RobotLike, as_robot
from steelyard.robot.robot import Robot
from steelyard.signals.log import Log
from steelyard.simulation.simulation import Simulation
from steelyard.study import Study

# Largest number of robots; their results would otherwise fill a disk.
MOST_ROBOTS = 100_000


@dataclass(frozen=True, eq=False, repr=False)
class Rehearsal(OutcomeWithPage, DisplayMixin):
    """Result of a rehearsal.

    Attributes:
        robot: Robot as described.
        truth: True model of the first robot.
        identification: Identification of the first robot.
        runs: Simulations of the first robot.
        logs: Logs of the first robot.
        noise: Standard deviation of the torque noise of each joint [N m or N].
        judgements: Results of the checks.
        trials: Results of all robots.
    """

    robot: Robot
    truth: Model
    identification: Identification
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
            notes = "".join(f" Not satisfied: {j.name}." for j in self.judgements if not j.passed)
            whose = "" if len(self.trials) == 1 else f" of {len(self.trials)} robots"
            return f"Passed: the true parameters{whose} were identified; the motion may be played.{notes}"
        return "Failed: " + "; ".join(j.name for j in self.judgements if not j.passed) + "."

    @cached_property
    def rows(self) -> list[dict[str, Any]]:
        """True and identified (free fit) base parameters of the first robot, and z-scores of all robots."""
        base, estimate = self.identification.base, self.identification.free
        true = base.values(self.truth.theta)
        z = np.array([t.z_scores for t in self.trials]).T.tolist()
        columns = base.names, base.units, true.tolist(), estimate.beta.tolist(), estimate.standard_errors.tolist(), z
        keys = "name", "unit", "true", "found", "standard_error", "z_scores"
        return [dict(zip(keys, row, strict=True)) for row in zip(*columns, strict=True)]

    def headline(self) -> Headline:
        return Headline("good" if self.passed else "bad", self.sentence, tuple(j.text for j in self.judgements))

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
                "physically_consistent": bool(self.identification.possible),
            }
        )

    def files(self) -> dict[str, Content]:
        return {"log.npz" if k == 0 else f"log-{k + 1}.npz": log.save for k, log in enumerate(self.logs)}

    def view(self) -> Presentation:
        from steelyard.rehearsal.page import print_rehearsal, rehearsal_report

        return rehearsal_report, print_rehearsal


@with_signature(RehearseOptions)
@reports_progress
def rehearse(
    robot: RobotLike,
    trajectory: Trajectory | Sequence[Trajectory],
    options: RehearseOptions | None = None,
    *,
    progress: ProgressCallback | None = None,
    **changes: Any,
) -> Rehearsal:
    """Play motions on simulated robots, log them with realistic sensors, identify each robot, and check the results.

    Args:
        robot: Robot as described; the controller uses its nominal model.
        trajectory: Designed motion, or several.
        options: Options of the rehearsal; None: the defaults.
        progress: Callback for the progress (`steelyard.ground.progress`).
        **changes: Fields of `RehearseOptions` that replace those of `options`, such as `seeds=20`.
    """
    o = with_changes(options or RehearseOptions(), changes, "rehearse")
    robot = as_robot(robot)
    Field(o.seeds, "seeds", error=SteelyardError).whole(1, MOST_ROBOTS)
    device = _gpu() if o.gpu else None
    trials = make_trials(robot, trajectory, o)
    results: list[Trial] = []
    details: list[_Details] = []
    stream = _all_trials(trials, range(o.seeds), o.workers, device, details)
    for number in steps(range(o.seeds), "Rehearsing", lambda k: f"robot {k + 1} of {o.seeds}"):
        results.append(next(stream))
        event = {"of": "rehearsal", "robot": number + 1, "robots": o.seeds, **plain(results[-1].to_json())}
        report_progress("Judged", 1.0, results[-1].error_text, event)
    judgements = judge_trials(results, trials.base.names)
    return Rehearsal(robot, *details[0], trials.judge.noise, judgements, tuple(results))


def make_trials(robot: Robot, trajectory: Trajectory | Sequence[Trajectory], options: RehearseOptions) -> Trials:
    """Create the trials of a rehearsal.

    Args:
        robot: Robot as described.
        trajectory: Designed motion, or several.
        options: Options of the rehearsal.
    """
    o, bound = options, identification_terms(robot, options.terms)
    own = o.limits if o.limits is not None else limits_from(robot, None)
    motions = [trajectory] if isinstance(trajectory, Trajectory) else list(trajectory)
    base, other = base_parameters(robot, bound), comparison_motion((Fourier(5, 10.0),) * robot.dof, own, o.seed)
    judge = Judge(robot, base, motions, other, own, expected_noise(robot, o.noise))
    return Trials(true_model(robot, bound), base, judge, o.truth, o.relative_std, o.rate, o.passes, o.seed)


# True model, identification, runs and logs of the first robot.
_Details = tuple[Model, Identification, tuple[Simulation, ...], tuple[Log, ...]]


def _all_trials(
    trials: Trials, numbers: range, workers: int | None, device: Any, details: list[_Details]
) -> Iterator[Trial]:  # fmt: skip
    """Yield the trials in order; append the details of the first robot to `details`."""
    if len(numbers) == 1:
        yield _first(trials, details)[0]
        return
    count, shared = worker_count(len(numbers) - 1, workers), trials if device is None else _fitter(trials)
    with worker_pool(shared, count) as pool:
        trial, study = _first(trials, details)
        yield trial
        if device is None:
            yield from run_trials(trials, numbers[1:], pool, count)
        else:
            from steelyard.rehearsal.on_gpu import run_trials_on_gpu

            yield from run_trials_on_gpu(trials, numbers[1:], study, pool, device)


def _first(trials: Trials, details: list[_Details]) -> tuple[Trial, Study]:
    number, truth, simulations = next(trials.simulate([0]))
    logs, judge = trials.logs(number, simulations), trials.judge
    study = trials.study(logs)
    with part(0.4, 1.0):
        names = [f"motion {k + 1}" for k in range(len(logs))]
        result = identify(judge.robot, study, terms=study.terms, names=names, files=False)
    details.append((truth, result, trials.runs(simulations), logs))
    return judge.trial(trials.seed, result.free, result.model, truth, judge.extremes(simulations)), study


def _fitter(trials: Trials) -> Any:
    from steelyard.rehearsal.on_gpu import RowFitter

    return RowFitter(trials)


def _gpu() -> Any:
    """Return the first GPU; its modules are only imported here."""
    from steelyard.dynamics.cuda import device

    return device.gpu()

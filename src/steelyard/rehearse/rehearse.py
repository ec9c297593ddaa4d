"""`rehearse`: play a designed motion on a simulated robot with planted parameters, and see whether they come back."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np

from steelyard.dynamics.model import Model
from steelyard.errors import SteelyardError
from steelyard.excitation.constraints import Limits
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
from steelyard.identification.identify import fit_study, identify
from steelyard.parameters.terms import TermsLike, identification_terms
from steelyard.regression.base_parameters import base_parameters
from steelyard.rehearse._judge import Judge, Judgement, Trial, judged
from steelyard.rehearse.plants import planted, planted_around, played_together
from steelyard.robot.load import RobotLike, as_robot
from steelyard.robot.robot import Robot
from steelyard.signals.log import Log
from steelyard.signals.prepare import Preparation
from steelyard.simulation.play import good_sensors
from steelyard.simulation.simulation import Simulation
from steelyard.study import Study


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
    base = base_parameters(robot, bound)
    judge = Judge(robot, base, motions, comparison_motion((Fourier(5, 10.0),) * robot.dof, own, seed), own, sigma)
    models = [
        truth if isinstance(truth, Model) else planted_around(guess, truth, relative_std, seed + k)
        for k in range(seeds)
    ]  # fmt: skip
    plays = played_together(models, motions, rate, guess)
    names = [f"motion {k + 1}" for k in range(len(motions) * passes)]
    trials: list[Trial] = []
    first: tuple[Model, Identification, tuple[Simulation, ...], tuple[Log, ...]] | None = None
    for number in steps(range(seeds), "Rehearsing", lambda k: f"robot {k + 1} of {seeds}"):
        model, played = models[number], next(plays)
        # Every pass of a motion is the same but for the sensors.
        runs = tuple(run for run in played for _ in range(passes))
        noises = (seed + number * len(runs) + k for k in range(len(runs)))
        logs = tuple(run.log(sensors=good_sensors(sigma, n)) for run, n in zip(runs, noises, strict=True))
        # No prior on what the motion shows, and the cut-off far above the motion, as a user would have it by default.
        study = replace(Study.of(robot, logs, bound, Preparation()), known_base=base)
        if first is None:
            with part(0.4, 1.0):
                found = identify(robot, study, terms=bound, names=names)
            first = model, found, runs, logs
            fit = found.free, found.model
        else:  # of the others only what they are judged by
            fit = fit_study(study)
        trials.append(judge.trial(seed + number, *fit, model, played))
        said = {"of": "rehearsal", "robot": number + 1, "robots": seeds, **plain(trials[-1].to_json())}
        tell_progress("Judged", 1.0, trials[-1].error_text, said)
    assert first is not None
    judgements = judged(trials, first[1].base.names)
    return Rehearsal(robot, *first, sigma, judgements, tuple(trials))

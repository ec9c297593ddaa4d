"""`ModelValidation`: validation of a model's motion, against a plant (another model) or against logs."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from steelyard.assessment.columns import signal_columns
from steelyard.assessment.replay import HORIZON, Possibility, possibility, replay_rmse
from steelyard.assessment.score import Score, score_models
from steelyard.assessment.sensitivity import Sensitivity, agreement_index, sweep
from steelyard.assessment.validation_ways import Validation, Way, concerns, validate
from steelyard.dynamics.model import Model
from steelyard.errors import SteelyardError
from steelyard.export.coerce import ModelLike, as_model
from steelyard.ground.display import DisplayMixin, Headline, NamedColumns, by_columns
from steelyard.ground.files import csv_text
from steelyard.ground.outcome import Content, OutcomeWithPage, Presentation
from steelyard.ground.progress import steps
from steelyard.ground.reasons import explained
from steelyard.ground.short_repr import short_repr
from steelyard.signals.as_logs import LogsLike, as_logs
from steelyard.signals.between import TorqueBetween
from steelyard.signals.log import Log
from steelyard.signals.prepare import Preparation
from steelyard.signals.read import AnyMapping
from steelyard.simulation.controllers import PD, FeedForward
from steelyard.simulation.play import PlayableMotion, refine_steps
from steelyard.study import Study

# Values per parameter: below, unchanged, above.
_SWEEP_VALUES = 3
# Step of control and integration [s]; a sweep records every _EVERY-th step.
_STEP, _EVERY = 1e-3, 5


@short_repr
@dataclass(frozen=True, eq=False)
class Trial:
    """Tests of a model with one motion or log.

    Attributes:
        name: Name of the motion or log.
        ways: The tests.
        score: Torque score of a log.
    """

    name: str
    ways: tuple[Way, ...]
    score: Score | None = None

    def to_json(self) -> dict[str, Any]:
        ways = [
            {
                "way": w.name,
                "unit": w.unit,
                "rms": w.errors,
                "rsd": w.rsd,
                "agreement_index": w.agreement_index,
                "reason": w.reason,
            }
            for w in self.ways
        ]
        return {"name": self.name, "ways": ways} | ({} if self.score is None else {"score": self.score.to_json()})


@short_repr
@dataclass(frozen=True, eq=False)
class Swept:
    """Sensitivity of a motion to relative changes of the parameters.

    Attributes:
        share: Relative change of a parameter.
        loop: Closed-loop sensitivity.
        free: Open-loop sensitivity; None if the simulation of the unchanged model diverges.
        horizon: Duration of the open-loop simulation [s].
    """

    share: float
    loop: Sensitivity
    free: Sensitivity | None
    horizon: float

    @property
    def rows(self) -> list[dict[str, Any]]:
        """Parameters in order of closed-loop influence: change of the worst joint [% of its RMS position]."""
        results = {"closed_loop_percent": self.loop} | ({} if self.free is None else {"open_loop_percent": self.free})
        worst = {key: _worst(one) for key, one in results.items()}
        return [{"name": name} | {key: x[name] for key, x in worst.items()} for name in self.loop.ranking()]


def _worst(sensitivity: Sensitivity) -> dict[str, float | None]:
    """Largest change of any joint [%], by parameter; None if a simulation diverged or the robot is impossible."""
    out: dict[str, float | None] = {}
    for k, name in enumerate(sensitivity.names):
        changes = np.nan_to_num(sensitivity.residual_standard_deviation[k])
        out[name] = 100.0 * float(changes.max()) if sensitivity.completed[k].all() else None
    return out


@dataclass(frozen=True, eq=False, repr=False)
class ModelValidation(OutcomeWithPage, DisplayMixin):
    """The validation of a model.

    Attributes:
        model: The model.
        against: Description of the plant or logs.
        trials: Results by motion or log.
        possibility: Physical consistency of the parameters.
        warnings: Problems to read before the errors.
        swept: Sensitivity to the parameters, if requested.
    """

    model: Model
    against: str
    trials: tuple[Trial, ...]
    possibility: Possibility
    warnings: tuple[str, ...]
    swept: Swept | None = None

    def headline(self) -> Headline:
        failed = [f"{trial.name}: {way.name}" for trial in self.trials for way in trial.ways if not way.passed]
        outcome = "all tests passed" if not failed else f"{len(failed)} tests failed"
        kind: Any = "bad" if failed else "warning" if self.warnings else "good"
        trials = f"{len(self.trials)} trial{'s' * (len(self.trials) != 1)}"
        sentence = f"{self.model.robot.name} against {self.against}: {trials}, {outcome}"
        return Headline(kind, sentence, (*failed, *self.warnings))

    def tables(self) -> Mapping[str, Callable[[], NamedColumns]]:
        """Return RMS errors ("errors"), RSD and agreement index ("relative"), and the torques of logs ("signals")."""
        joints = self.model.robot.joint_names
        rows = [
            [trial.name, way.name, way.unit, *(way.errors or [None] * len(joints)), way.reason]
            for trial in self.trials
            for way in trial.ways
        ]
        scores = [trial.score for trial in self.trials if trial.score is not None]
        out: dict[str, Callable[[], NamedColumns]] = {
            "errors": lambda: by_columns(("trial", "way", "unit", *joints, "reason"), rows),
            "relative": lambda: by_columns(("trial", "way", "measure", *joints), self.relative_rows()),
        }
        return out | ({"signals": lambda: signal_columns(scores, joints)} if scores else {})

    def relative_rows(self) -> list[list[Any]]:
        """Return rows of trial, test, measure ("RSD", "agreement index") and its values by joint."""
        ways = [(trial.name, way) for trial in self.trials for way in trial.ways]
        measures = [(name, way.name, measure, x) for name, way in ways
                    for measure, x in (("RSD", way.rsd), ("agreement index", way.agreement_index))]  # fmt: skip
        return [[name, way, measure, *x] for name, way, measure, x in measures if x is not None]

    def figures(self) -> Mapping[str, Callable[..., Any]]:
        """Return the figure of measured and predicted torque ("torque") for logs."""
        from steelyard.assessment._validation_page import torque_figure

        return {"torque": partial(torque_figure, self)} if any(t.score is not None for t in self.trials) else {}

    def to_json(self) -> dict[str, Any]:
        swept, sensitivity = self.swept, {}
        if swept is not None:
            results = {"share": swept.share, "open_loop_horizon": swept.horizon, "parameters": swept.rows}
            sensitivity = {"sensitivity": results}
        return explained(
            {
                "robot": self.model.robot.name,
                "joints": list(self.model.robot.joint_names),
                "against": self.against,
                "mass_matrix_positive_definite": self.possibility.simulable,
                "possible": self.possibility.possible,
                "warnings": list(self.warnings),
                "trials": [trial.to_json() for trial in self.trials],
                **sensitivity,
            },
            {
                "trials/*/ways/*/rms": "The test failed; see reason.",
                "trials/*/ways/*/rms/*": "The torque of this joint is not used.",
                "trials/*/ways/*/rsd": "This test compares no signals; see rms.",
                "trials/*/ways/*/rsd/*": "The torque of this joint is not used, or the signal is zero.",
                "trials/*/ways/*/agreement_index": "This test compares no signals; see rms.",
                "trials/*/ways/*/agreement_index/*": "The torque of this joint is not used, or it is constant.",
                "sensitivity/parameters/*/*": "With this parameter changed the simulation diverges, or the robot is "
                "physically impossible.",
            },
        )

    def files(self) -> dict[str, Content]:
        """Return the tables of errors and of the sweep."""
        joints = self.model.robot.joint_names
        rows = [
            [trial.name, way.name, way.unit, *(way.errors or [""] * len(joints)), way.reason]
            for trial in self.trials
            for way in trial.ways
        ]
        out: dict[str, Content] = {}
        if rows:
            out["errors.csv"] = csv_text([["trial", "way", "unit", *joints, "reason"], *rows])
        if relative := self.relative_rows():
            plain = [["" if isinstance(x, float) and np.isnan(x) else x for x in row] for row in relative]
            out["relative.csv"] = csv_text([["trial", "way", "measure", *joints], *plain])
        if self.swept is not None:
            swept = self.swept.rows
            out["sensitivity.csv"] = csv_text([swept[0], *(row.values() for row in swept)])
        return out

    def view(self) -> Presentation:
        from steelyard.assessment._validation_page import print_validation, validation_report

        return validation_report, print_validation


def validate_on_plant(
    model: ModelLike,
    plant: ModelLike | None,
    motions: Sequence[PlayableMotion],
    *,
    horizon: float = HORIZON,
    bandwidth_rad_s: float = 20.0,
    sweep_share: float = 0.0,
) -> ModelValidation:
    """Validate a model with four tests (`assessment.validate`) against a plant.

    Args:
        model: Model to validate, as in `as_model`.
        plant: Model that represents the robot, with the same joints; None: only the sweep.
        motions: Motions with `sample(t)` and `duration` [s].
        horizon: Duration of open-loop simulations [s].
        bandwidth_rad_s: Bandwidth of the controllers [rad/s].
        sweep_share: Relative change of each base parameter for the sweep along the first motion, 0 to 1; 0: no sweep.
    """
    model, plant = as_model(model), None if plant is None else as_model(plant)
    if plant is not None and model.robot.joint_names != plant.robot.joint_names:
        raise SteelyardError(
            f"The model has the joints {', '.join(model.robot.joint_names)}, the plant "
            f"{', '.join(plant.robot.joint_names)}; both must be of the same robot (--joints)."
        )
    _check_horizon(horizon)
    trials = []
    numbered = enumerate(motions if plant is not None else ())
    for k, motion in steps(numbered, "Playing motions", lambda x: str(x[0] + 1), 0.0, 0.5 if sweep_share else 1.0):

        def run(parts: int, motion: PlayableMotion = motion) -> Validation:
            assert plant is not None
            return validate(
                model, plant, motion, duration=_whole(motion.duration), horizon=horizon,
                bandwidth_rad_s=bandwidth_rad_s, step=_STEP / parts,
            )  # fmt: skip

        ways = refine_steps(run).ways
        trials.append(Trial(f"motion {k + 1}" if len(motions) > 1 else "the motion", ways))
    swept = _sweep(model, motions[0], sweep_share, horizon, bandwidth_rad_s) if sweep_share else None
    against = "itself only" if plant is None else f"the plant '{plant.robot.name}'"
    return _validated(model, against, trials, swept)


def validate_on_logs(
    model: ModelLike, logs: LogsLike, horizon: float = HORIZON, mapping: AnyMapping = None,
    *, torque_between: TorqueBetween = "auto", delay: float = 0.0,
) -> ModelValidation:  # fmt: skip
    """Validate a model against logs: torque prediction, and open-loop replay of the logged torques.

    Args:
        model: Model to validate, as in `as_model`.
        logs: Logs of its robot as paths, `Log`s, frames or dicts of arrays.
        horizon: Duration of an open-loop replay [s]. Up to twenty replays start from measured states along each log.
        mapping: Mapping of the columns of files and frames, as in `read_log`.
        torque_between: Torque between samples; "auto": estimated from each log, else held.
        delay: Delay of the logged torques behind the positions [s].
    """
    _check_horizon(horizon)
    model = as_model(model)
    preparation = Preparation(delay=delay, torque_between=torque_between)
    simulable = possibility(model).simulable
    return _validated(
        model,
        "the logs",
        [
            _on_log(model, log, horizon, simulable, preparation)
            for log in steps(as_logs(logs, model.robot, mapping), "Validating on logs", lambda _: "")
        ],
    )


def _check_horizon(horizon: float) -> None:
    if not horizon > 0.0:
        raise SteelyardError(f"The horizon is {horizon:g} s; it must be positive.")


def _validated(model: Model, against: str, trials: Sequence[Trial], swept: Swept | None = None) -> ModelValidation:
    possible = possibility(model)
    failed = {way.name: way for trial in trials for way in trial.ways if not way.passed}
    return ModelValidation(model, against, tuple(trials), possible, concerns(possible, failed.values()), swept)


def _on_log(model: Model, log: Log, horizon: float, simulable: bool, preparation: Preparation) -> Trial:
    study = Study.of(model.robot, log, model.terms, preparation).with_torque_between()
    preparation = study.preparation
    reduced = Model(study.robot, study.terms, model.theta)
    name = str(log.meta.get("source", "the log"))
    score = score_models([reduced], study.motions_of(study.logs[0]), study.cutoff_hz, name)[0]
    has_prismatic = any(joint.kind == "prismatic" for joint in model.robot.joints)
    rms = {joint.joint: joint.rmse for joint in score.joints}
    torque = tuple(rms.get(joint, float("nan")) for joint in model.robot.joint_names)
    between, delay = preparation.torque_between, preparation.delay or 0.0
    errors = replay_rmse(reduced, [log], horizon, between, delay) if simulable else None
    reason = "" if errors is not None else "The simulation diverged, or the log is shorter than the horizon."
    replay = Way(
        f"open loop, {horizon:g} s", "rad, m" if has_prismatic else "rad",
        None if errors is None else tuple(errors.tolist()), reason,
    )  # fmt: skip
    joints = [model.robot.joint_index(joint.joint) for joint in score.joints]
    rsd, agreement = np.full((2, model.robot.dof), np.nan)
    rsd[joints] = [0.01 * joint.relative_error_percent for joint in score.joints]
    # From the samples in the figure: for a long log only its beginning.
    agreement[joints] = agreement_index(score.measured, score.predicted)
    unit = "N m, N" if has_prismatic else "N m"
    predicted = Way("torque prediction", unit, torque, "", tuple(rsd.tolist()), tuple(agreement.tolist()))
    return Trial(name, (predicted, replay), score)


def _sweep(model: Model, motion: PlayableMotion, share: float, horizon: float, bandwidth_rad_s: float) -> Swept:
    """Sweep the parameters in a PD loop with the unchanged model as feed-forward, and open loop."""
    q, dq, _ = motion.sample(np.zeros(1))
    start: dict[str, Any] = {"half_width": share, "steps": _SWEEP_VALUES, "q0": q[0], "dq0": dq[0]}
    loop = FeedForward.from_gains(PD.for_model(model, bandwidth_rad_s=bandwidth_rad_s), model)
    seconds = _whole(motion.duration)

    def closed_loop(parts: int) -> Sensitivity:
        fine: dict[str, Any] = {"step": _STEP / parts, "control_period": _STEP, "record_every": _EVERY * parts}
        return sweep(model, loop, reference=motion, duration=seconds, **fine, **start)

    free_s = min(seconds, horizon)
    t = np.asarray(np.arange(max(2, round(free_s / _STEP))) * _STEP, dtype=np.float64)

    def open_loop(parts: int) -> Sensitivity:
        return sweep(model, model.torque(*motion.sample(t)), times=t, step=_STEP / parts, **start)

    try:
        free = refine_steps(open_loop)
    except SteelyardError:
        free = None
    return Swept(share, refine_steps(closed_loop), free, free_s)


def _whole(duration: float) -> float:
    """The duration of a motion, rounded down to whole steps [s]."""
    return max(int(duration / _STEP + 1e-9), 2 * _EVERY) // _EVERY * _EVERY * _STEP

"""`Validated`: a model judged by how it moves: on another one that stands for the robot, or on logs."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from steelyard.assessment.columns import signal_columns
from steelyard.assessment.replay import HORIZON, Possibility, possibility, replayed
from steelyard.assessment.score import Score, score_models
from steelyard.assessment.sensitivity import Sensitivity, agreement_index, sweep
from steelyard.assessment.validation_ways import Validation, Way, concerns, validate
from steelyard.dynamics.model import Model
from steelyard.errors import SteelyardError
from steelyard.export.given import ModelLike, as_model
from steelyard.ground.displayed import Displayed, Glance, NamedColumns, by_columns
from steelyard.ground.files import csv_text
from steelyard.ground.outcome import Content, Presentation, Viewed
from steelyard.ground.progress import steps
from steelyard.ground.reasons import explained
from steelyard.signals.between import TorqueBetween
from steelyard.signals.given import LogsLike, as_logs
from steelyard.signals.log import Log
from steelyard.signals.prepare import Preparation
from steelyard.signals.read import AnyMapping
from steelyard.simulation.controllers import PD, FeedForward
from steelyard.simulation.play import PlayableMotion, refine_steps
from steelyard.study import Study

# A parameter below and above itself; the middle one is the model as it is.
_SWEPT = 3
# Steps of control and integration, s; one in so many is looked at for a sweep.
_STEP, _EVERY = 1e-3, 5


@dataclass(frozen=True, eq=False)
class Trial:
    """A model on one motion or one log: `ways` to look at it, and of a log the torques behind them (`score`)."""

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


@dataclass(frozen=True, eq=False)
class Swept:
    """What becomes of a motion when a parameter changes by a `share` of itself: in the loop, and open loop for
    `horizon` s (s; None where the model itself does not come through that)."""

    share: float
    loop: Sensitivity
    free: Sensitivity | None
    horizon: float

    @property
    def rows(self) -> list[dict[str, Any]]:
        """Parameters by how far they move the robot in the loop: percent of the positions' RMS, of the worst joint."""
        found = {"closed_loop_percent": self.loop} | ({} if self.free is None else {"open_loop_percent": self.free})
        figures = {key: _worst(one) for key, one in found.items()}
        return [{"name": name} | {key: x[name] for key, x in figures.items()} for name in self.loop.ranking()]


def _worst(found: Sensitivity) -> dict[str, float | None]:
    """The largest change of any joint by parameter, percent; None where a changed robot ran away or cannot exist."""
    out: dict[str, float | None] = {}
    for k, name in enumerate(found.names):
        figures = np.nan_to_num(found.residual_standard_deviation[k])
        out[name] = 100.0 * float(figures.max()) if found.completed[k].all() else None
    return out


@dataclass(frozen=True, eq=False, repr=False)
class Validated(Viewed, Displayed):
    """A model, how it did, and what must be said of its numbers before any error is read.

    Attributes:
        model: what is judged.
        against: on what, in words.
        trials: motion by motion or log by log.
        possibility: whether the numbers can belong to a robot.
        swept: what its parameters do to the motion, where that was asked for.
    """

    model: Model
    against: str
    trials: tuple[Trial, ...]
    possibility: Possibility
    warnings: tuple[str, ...]
    swept: Swept | None = None

    def glance(self) -> Glance:
        lost = [f"{trial.name}: {way.name}" for trial in self.trials for way in trial.ways if not way.passed]
        came = "every way comes through" if not lost else f"{len(lost)} do not come through"
        kind: Any = "bad" if lost else "warning" if self.warnings else "good"
        trials = f"{len(self.trials)} trial{'s' * (len(self.trials) != 1)}"
        sentence = f"{self.model.robot.name} against {self.against}: {trials}, {came}"
        return Glance(kind, sentence, (*lost, *self.warnings))

    def tables(self) -> Mapping[str, Callable[[], NamedColumns]]:
        """Root mean square errors of every way to look at it ("errors"), RSD and index of agreement ("relative"); of
        logs also the torques ("signals")."""
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
        """Trial, way, measure ("RSD", "agreement index") and its figure for every joint, where they are known."""
        known = [(trial.name, way) for trial in self.trials for way in trial.ways]
        measures = [(name, way.name, what, x) for name, way in known
                    for what, x in (("RSD", way.rsd), ("agreement index", way.agreement_index))]  # fmt: skip
        return [[name, way, what, *x] for name, way, what, x in measures if x is not None]

    def figures(self) -> Mapping[str, Callable[..., Any]]:
        """Of logs: torque measured and predicted ("torque")."""
        from steelyard.use._validated_page import torque_figure

        return {"torque": partial(torque_figure, self)} if any(t.score is not None for t in self.trials) else {}

    def to_json(self) -> dict[str, Any]:
        swept, sensitivity = self.swept, {}
        if swept is not None:
            said = {"share": swept.share, "open_loop_horizon": swept.horizon, "parameters": swept.rows}
            sensitivity = {"sensitivity": said}
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
                "trials/*/ways/*/rms": "The model did not come through; see reason.",
                "trials/*/ways/*/rms/*": "The torque of this joint is not used.",
                "trials/*/ways/*/rsd": "The way has no signals of its own that could be compared; see rms.",
                "trials/*/ways/*/rsd/*": "The torque of this joint is not used, or the signal is zero.",
                "trials/*/ways/*/agreement_index": "The way has no signals of its own that could be compared; see rms.",
                "trials/*/ways/*/agreement_index/*": "The torque of this joint is not used, or it does not vary.",
                "sensitivity/parameters/*/*": "A robot with this parameter changed ran away, or cannot exist.",
            },
        )

    def files(self) -> dict[str, Content]:
        """Tables of the errors and of the sweep, where there are such."""
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
        from steelyard.use._validated_page import print_validated, validated_report

        return validated_report, print_validated


def validate_on_plant(
    model: ModelLike,
    plant: ModelLike | None,
    motions: Sequence[PlayableMotion],
    *,
    horizon: float = HORIZON,
    bandwidth_rad_s: float = 20.0,
    sweep_share: float = 0.0,
) -> Validated:
    """Judge a model in four ways (`assessment.validate`) along motions that a `plant` plays.

    Args:
        model: what is judged, as `as_model` takes it.
        plant: the model that stands for the robot; of the same joints. None: there is none, and the sweep is all.
        motions: with `sample(t)` and `duration` (s).
        horizon: of what happens open loop, s.
        bandwidth_rad_s: of the controllers, rad/s.
        sweep_share: along the first motion change each base parameter by this share (0 to 1) of itself, too; 0: do not.
    """
    model, plant = as_model(model), None if plant is None else as_model(plant)
    if plant is not None and model.robot.joint_names != plant.robot.joint_names:
        raise SteelyardError(
            f"The model has the joints {', '.join(model.robot.joint_names)}, the plant "
            f"{', '.join(plant.robot.joint_names)}; both must be of the same robot (--joints)."
        )
    _check_horizon(horizon)
    trials = []
    played = enumerate(motions if plant is not None else ())
    for k, motion in steps(played, "Playing motions", lambda one: str(one[0] + 1), 0.0, 0.5 if sweep_share else 1.0):

        def judged(parts: int, motion: PlayableMotion = motion) -> Validation:
            assert plant is not None
            return validate(
                model, plant, motion, duration=_whole(motion.duration), horizon=horizon,
                bandwidth_rad_s=bandwidth_rad_s, step=_STEP / parts,
            )  # fmt: skip

        ways = refine_steps(judged).ways
        trials.append(Trial(f"motion {k + 1}" if len(motions) > 1 else "the motion", ways))
    swept = _sweep(model, motions[0], sweep_share, horizon, bandwidth_rad_s) if sweep_share else None
    against = "nothing but itself" if plant is None else f"a plant, '{plant.robot.name}'"
    return _validated(model, against, trials, swept)


def validate_on_logs(
    model: ModelLike, logs: LogsLike, horizon: float = HORIZON, mapping: AnyMapping = None,
    *, torque_between: TorqueBetween = "auto", delay: float = 0.0,
) -> Validated:  # fmt: skip
    """Judge a model on logs: its torque along the logged motion, and how far it strays under the logged torques.

    Args:
        model: what is judged, as `as_model` takes it.
        logs: of its robot, as paths, `Log`s, frames or dicts of arrays.
        horizon: length of the open-loop replays, s, from measured states on; up to twenty, all along the logs.
        mapping: what the columns of files and frames mean, as in `read_log`.
        torque_between: how the logged torque runs between samples; "auto": each log tells, else it counts as held in
            the replay.
        delay: how far the logged torques lag behind the positions, s.
    """
    _check_horizon(horizon)
    model = as_model(model)
    how = Preparation(delay=delay, torque_between=torque_between)
    simulable = possibility(model).simulable
    return _validated(
        model,
        "what was logged",
        [
            _on_log(model, log, horizon, simulable, how)
            for log in steps(as_logs(logs, model.robot, mapping), "Judging on logs", lambda _: "")
        ],
    )


def _check_horizon(horizon: float) -> None:
    if not horizon > 0.0:
        raise SteelyardError(f"The horizon is {horizon:g} s; it must be positive.")


def _validated(model: Model, against: str, trials: Sequence[Trial], swept: Swept | None = None) -> Validated:
    seen = possibility(model)
    lost = {way.name: way for trial in trials for way in trial.ways if not way.passed}
    return Validated(model, against, tuple(trials), seen, concerns(seen, lost.values()), swept)


def _on_log(model: Model, log: Log, horizon: float, simulable: bool, how: Preparation) -> Trial:
    study = Study.of(model.robot, log, model.terms, how).with_torque_between()
    how = study.preparation
    judged = Model(study.robot, study.terms, model.theta)
    name = str(log.meta.get("source", "the log"))
    score = score_models([judged], study.motions_of(study.logs[0]), study.cutoff_hz, name)[0]
    slides = any(joint.kind == "prismatic" for joint in model.robot.joints)
    rms = {joint.joint: joint.rmse for joint in score.joints}
    torque = tuple(rms.get(joint, float("nan")) for joint in model.robot.joint_names)
    moved = replayed(judged, [log], horizon, how.torque_between, how.delay or 0.0) if simulable else None
    reason = "" if moved is not None else "The model ran away, or the log is shorter than the horizon."
    replay = Way(
        f"open loop, {horizon:g} s", "rad, m" if slides else "rad",
        None if moved is None else tuple(moved.tolist()), reason,
    )  # fmt: skip
    places = [model.robot.joint_index(joint.joint) for joint in score.joints]
    rsd, agreement = np.full((2, model.robot.dof), np.nan)
    rsd[places] = [0.01 * joint.relative_error_percent for joint in score.joints]
    # Over the samples that are drawn: of a long log those of its beginning.
    agreement[places] = agreement_index(score.measured, score.predicted)
    unit = "N m, N" if slides else "N m"
    predicted = Way("torque prediction", unit, torque, "", tuple(rsd.tolist()), tuple(agreement.tolist()))
    return Trial(name, (predicted, replay), score)


def _sweep(model: Model, motion: PlayableMotion, share: float, horizon: float, bandwidth_rad_s: float) -> Swept:
    """In the loop: PD with the model's own feed-forward, which stays as it is while the robot changes."""
    q, dq, _ = motion.sample(np.zeros(1))
    start: dict[str, Any] = {"half_width": share, "steps": _SWEPT, "q0": q[0], "dq0": dq[0]}
    loop = FeedForward.from_gains(PD.for_model(model, bandwidth_rad_s=bandwidth_rad_s), model)
    seconds = _whole(motion.duration)

    def in_the_loop(parts: int) -> Sensitivity:
        fine: dict[str, Any] = {"step": _STEP / parts, "control_period": _STEP, "record_every": _EVERY * parts}
        return sweep(model, loop, reference=motion, duration=seconds, **fine, **start)

    free_for = min(seconds, horizon)
    t = np.asarray(np.arange(max(2, round(free_for / _STEP))) * _STEP, dtype=np.float64)

    def by_torques_alone(parts: int) -> Sensitivity:
        return sweep(model, model.torque(*motion.sample(t)), times=t, step=_STEP / parts, **start)

    try:
        free = refine_steps(by_torques_alone)
    except SteelyardError:
        free = None
    return Swept(share, refine_steps(in_the_loop), free, free_for)


def _whole(duration: float) -> float:
    """The whole steps of a motion, s."""
    return max(int(duration / _STEP + 1e-9), 2 * _EVERY) // _EVERY * _EVERY * _STEP

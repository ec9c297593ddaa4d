"""Compares all estimators that can run on a log by their errors on hold-out data."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from steelyard.assessment.holdout import split_last
from steelyard.assessment.replay import possibility, replay_rmse
from steelyard.assessment.score import score_models
from steelyard.compare.methods import NOT_CONVERGED, Method, MethodRun, select_methods, try_fit
from steelyard.compare.scheme_comparison import named_values
from steelyard.dynamics.model import Model
from steelyard.errors import LogError, SteelyardError
from steelyard.estimation.estimate import Estimate
from steelyard.estimation.possible.reference import nominal_prior
from steelyard.estimation.simulation_error.control_loop import ControlLoop, as_control_loop, experiment_of
from steelyard.ground.arrays import Array
from steelyard.ground.display import DisplayMixin, Headline, NamedColumns, by_columns
from steelyard.ground.numbers import number
from steelyard.ground.outcome import OutcomeWithPage, Presentation
from steelyard.ground.progress import ProgressCallback, report_progress, reports_progress, steps
from steelyard.ground.reasons import explained
from steelyard.parameters.terms import TermsLike
from steelyard.robot.load import RobotLike, as_robot
from steelyard.robot.robot import Robot
from steelyard.signals.as_logs import LogLike, LogsLike, as_log, as_logs
from steelyard.signals.log import Log
from steelyard.signals.prepare import Preparation
from steelyard.signals.read import AnyMapping
from steelyard.study import Study

_LOOP = "It simulates the closed loop, but the log does not contain the controller: give --controller FILE."

_JUDGED = ("hold_out_nrmse_percent", "mass_matrix_positive_definite", "physically_consistent")
_WHY_NULL = {"position_rmse": "A replay failed, or none was possible because the model cannot be simulated."}


@dataclass(frozen=True, eq=False)
class LogResult:
    """Result of one estimator on the log.

    Attributes:
        method: The estimator.
        run: How the fit ended.
        estimate: Estimate of this estimator.
        nrmse_percent: Torque error on hold-out data, mean over joints and logs, percent of the standard deviation.
        position_rmse: Position errors of replays by joint [rad, m].
    """

    method: Method
    run: MethodRun
    estimate: Estimate | None = None
    nrmse_percent: float | None = None
    position_rmse: Array | None = None

    @property
    def position(self) -> float | None:
        """Root mean square over joints of the replays' position errors [rad, m]."""
        return None if self.position_rmse is None else float(np.sqrt(np.mean(self.position_rmse**2)))

    def to_json(self) -> dict[str, Any]:
        run = self.run
        out = {
            "estimator": run.estimator,
            "result": run.result,
            "reason": run.reason,
            "seconds": run.seconds,
            "hold_out_nrmse_percent": self.nrmse_percent,
            "position_rmse": None if self.position_rmse is None else self.position_rmse.tolist(),
            "mass_matrix_positive_definite": run.simulable,
            "physically_consistent": run.possible,
        }
        if self.estimate is not None:
            out["base_parameters"] = named_values(self.estimate)
        why = run.reason or "It has no finite numbers."
        return explained(out, dict.fromkeys(_JUDGED, why) | _WHY_NULL)


@dataclass(frozen=True, eq=False, repr=False)
class LogComparison(OutcomeWithPage, DisplayMixin):
    """All estimators on the same log.

    Attributes:
        robot: The robot.
        results: Results by estimator.
        horizon: Length of the open-loop replays [s].
        cutoff_hz: Cut-off of the filter.
    """

    robot: Robot
    results: tuple[LogResult, ...]
    horizon: float
    cutoff_hz: float

    @property
    def ranking(self) -> tuple[LogResult, ...]:
        """Results by the torque error on hold-out data; those without numbers last."""
        return tuple(sorted(self.results, key=lambda r: np.inf if r.nrmse_percent is None else r.nrmse_percent))

    @property
    def best(self) -> LogResult | None:
        """The result with the smallest error among converged ones with a positive definite mass matrix."""
        good = [r for r in self.ranking if r.nrmse_percent is not None and r.run.simulable]
        converged = [r for r in good if r.run.result not in NOT_CONVERGED]
        return next(iter(converged or good), None)

    def headline(self) -> Headline:
        best, name, tried = self.best, self.robot.name, len(self.results)
        if best is None:
            return Headline("bad", f"{name}: none of {tried} estimators gives a model that can be simulated")
        percents = number(best.nrmse_percent, 3)
        return Headline("good", f"{name}: of {tried} estimators {best.run.estimator} predicts best, {percents} % of σ")

    def tables(self) -> Mapping[str, Callable[[], NamedColumns]]:
        """Return the tables "estimators", by their error on hold-out data, and "parameters" with each estimate."""
        heads = ("estimator", "result", "nrmse_percent", "position_rmse", "simulable", "possible", "seconds", "reason")
        rows = [
            [r.run.estimator, r.run.result, r.nrmse_percent, r.position, r.run.simulable, r.run.possible,
             r.run.seconds, r.run.reason]
            for r in self.ranking
        ]  # fmt: skip
        parameters = [
            [r.run.estimator, *entry] for r in self.ranking if r.estimate is not None
            for entry in zip(r.estimate.base.names, r.estimate.beta, r.estimate.standard_errors, strict=True)
        ]  # fmt: skip
        return {
            "estimators": lambda: by_columns(heads, rows),
            "parameters": lambda: by_columns(("estimator", "name", "value", "standard_error"), parameters),
        }

    def to_json(self) -> dict[str, Any]:
        best = self.best
        document = {
            "robot": self.robot.name,
            "horizon_s": self.horizon,
            "cutoff_hz": self.cutoff_hz,
            "best": best.run.estimator if best else None,
            "estimators": [r.to_json() for r in self.ranking],
        }
        return explained(document, {"best": "No estimate can be simulated."})

    def view(self) -> Presentation:
        from steelyard.compare._on_log_page import log_report, print_log_estimators

        return log_report, print_log_estimators


@reports_progress
def compare_on_log(
    robot: RobotLike,
    log: LogLike,
    validate: LogsLike = (),
    *,
    estimators: Sequence[str] = ("all",),
    holdout: float = 0.3,
    horizon: float = 0.5,
    terms: TermsLike | None = None,
    preparation: Preparation | None = None,
    controller: str | os.PathLike[str] | ControlLoop | None = None,
    limit: float = 120.0,
    progress: ProgressCallback | None = None,
    mapping: AnyMapping = None,
) -> LogComparison:
    """Identify by every estimator from the same log and compare their errors on other logs (default: its last 30 %).

    Estimators that simulate the closed loop are refused without a controller.

    Args:
        robot: Robot of the log, as `load_robot` takes it.
        log: Log for the fits: a path, `Log`, frame or dict.
        validate: Logs for the evaluation; none: the share `holdout` at the end of `log`.
        estimators: Names of estimators or of groups.
        holdout: Share of the log for the evaluation, 0 to 1.
        horizon: Length of the open-loop replays [s].
        terms: Joint terms, as in `identify`.
        preparation: Filter and derivatives, as in `identify`.
        controller: File or `ControlLoop` with the robot's controller.
        limit: Limit of processor time for one fit [s].
        progress: Callback for progress (`steelyard.ground.progress`).
        mapping: Columns of files and frames, as in `identify`.
    """
    if not (horizon > 0.0 and limit > 0.0):
        raise SteelyardError(f"horizon is {horizon:g} s and limit is {limit:g} s; both must be positive.")
    methods = select_methods(estimators)
    robot = as_robot(robot)
    fit_log, evaluation_logs = as_log(log, robot, mapping), as_logs(validate, robot, mapping)
    if not evaluation_logs:
        fit_log, last = split_last(fit_log, holdout)
        evaluation_logs = [last]
    if fit_log.tau is None:
        raise LogError("The log has no torque; add torques, or currents with torque constants.")
    study = Study.of(robot, fit_log, terms, preparation).with_torque_between()
    robot, base, prior = study.robot, study.base, nominal_prior(study.robot, study.terms)
    loop = as_control_loop(controller, robot)
    experiment = experiment_of(study, loop)
    experiment.regression(base)  # raises the log's errors here, so that they do not count as failures of estimators
    results: list[LogResult] = []
    for method in steps(methods, "Estimator", lambda m: m.name, 0.0, 0.9):
        if method.needs_controller and loop is None:
            results.append(LogResult(method, MethodRun("log", method.name, "refused", _LOOP)))
            continue
        run, estimate = try_fit("log", method, lambda m=method: m.fit(experiment, base, prior, True), limit)  # type: ignore[misc]
        results.append(LogResult(method, run, estimate))
    return LogComparison(robot, _evaluate(results, study, evaluation_logs, horizon), horizon, study.cutoff_hz)


def _evaluate(
    results: Sequence[LogResult], study: Study, logs: Sequence[Log], horizon: float
) -> tuple[LogResult, ...]:  # fmt: skip
    """Evaluate all estimates in one pass over the hold-out data."""
    report_progress("Judging", 0.9)
    estimated = [r for r in results if r.estimate is not None]
    models = [Model(study.robot, study.terms, r.estimate.theta) for r in estimated if r.estimate is not None]
    if not models:
        return tuple(results)
    scores = [score_models(models, study.motions_of(log), study.cutoff_hz) for log in logs]
    out = {r.method.name: r for r in results}
    for k, (r, model) in enumerate(zip(estimated, models, strict=True)):
        check = possibility(model)
        run = replace(r.run, simulable=check.simulable, possible=check.possible)
        error = float(np.mean([s[k].mean_nrmse_percent for s in scores]))
        p, position_rmse = study.preparation, None
        if check.simulable:
            position_rmse = replay_rmse(model, logs, horizon, p.torque_between, p.delay or 0.0)
        out[r.method.name] = replace(
            r, run=run, nrmse_percent=error if np.isfinite(error) else None, position_rmse=position_rmse
        )
    return tuple(out.values())

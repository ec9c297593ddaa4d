"""`compare_on_log`: all estimators that can run on a log, judged on data that was held out."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from steelyard.assessment.holdout import split_last
from steelyard.assessment.replay import possibility, replay_rmse
from steelyard.assessment.score import score_models
from steelyard.compare.methods import UNSETTLED, Method, MethodRun, chosen_methods, try_fit
from steelyard.compare.schemes import named_values
from steelyard.dynamics.model import Model
from steelyard.errors import LogError, SteelyardError
from steelyard.estimation.estimate import Estimate
from steelyard.estimation.possible.reference import nominal_prior
from steelyard.estimation.simulated.control_loop import ControlLoop, as_control_loop, experiment_of
from steelyard.ground.arrays import Array
from steelyard.ground.displayed import Displayed, Glance, NamedColumns, by_columns
from steelyard.ground.numbers import number
from steelyard.ground.outcome import Presentation, Viewed
from steelyard.ground.progress import ProgressCallback, reports_progress, steps, tell_progress
from steelyard.ground.reasons import explained
from steelyard.ground.renamed import renamed
from steelyard.parameters.terms import TermsLike
from steelyard.robot.load import RobotLike, as_robot
from steelyard.robot.robot import Robot
from steelyard.signals.given import LogLike, LogsLike, as_log, as_logs
from steelyard.signals.log import Log
from steelyard.signals.prepare import Preparation
from steelyard.signals.read import AnyMapping
from steelyard.study import Study

_LOOP = "It simulates the closed loop, and a log does not say which controller the robot had: give --controller FILE."

_JUDGED = ("hold_out_nrmse_percent", "mass_matrix_positive_definite", "physically_consistent")
_WHY_NULL = {"position_rmse": "A replay did not come through, or there was none: it needs a model that can move."}


@dataclass(frozen=True, eq=False)
class LogResult:
    """What one estimator made of the log; `nrmse_percent` is on held-out data, a mean over joints and logs."""

    method: Method
    run: MethodRun
    estimate: Estimate | None = None
    nrmse_percent: float | None = None
    position_rmse: Array | None = None

    @property
    def position(self) -> float | None:
        """Root mean square over joints of the replays' position errors, rad (m)."""
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
        why = run.reason or "It gave no numbers that could be judged."
        return explained(out, dict.fromkeys(_JUDGED, why) | _WHY_NULL)


@renamed(cutoff="cutoff_hz")
@dataclass(frozen=True, eq=False, repr=False)
class LogComparison(Viewed, Displayed):
    """All estimators on the same log."""

    robot: Robot
    results: tuple[LogResult, ...]
    horizon: float
    cutoff_hz: float

    @property
    def ranking(self) -> tuple[LogResult, ...]:
        """By the torque error on held-out data; those without numbers last."""
        return tuple(sorted(self.results, key=lambda r: np.inf if r.nrmse_percent is None else r.nrmse_percent))

    @property
    def best(self) -> LogResult | None:
        """The smallest error among those that converged to a robot whose mass matrix is positive definite."""
        good = [r for r in self.ranking if r.nrmse_percent is not None and r.run.simulable]
        settled = [r for r in good if r.run.result not in UNSETTLED]
        return next(iter(settled or good), None)

    def glance(self) -> Glance:
        best, name, tried = self.best, self.robot.name, len(self.results)
        if best is None:
            return Glance("bad", f"{name}: none of {tried} estimators found a robot that can be simulated")
        percents = number(best.nrmse_percent, 3)
        return Glance("good", f"{name}: of {tried} estimators {best.run.estimator} predicts best, {percents} % of σ")

    def tables(self) -> Mapping[str, Callable[[], NamedColumns]]:
        """The "estimators" by their error on held-out data, and the base "parameters" that each found."""
        heads = ("estimator", "result", "nrmse_percent", "position_rmse", "simulable", "possible", "seconds", "reason")
        rows = [
            [r.run.estimator, r.run.result, r.nrmse_percent, r.position, r.run.simulable, r.run.possible,
             r.run.seconds, r.run.reason]
            for r in self.ranking
        ]  # fmt: skip
        found = [
            [r.run.estimator, *entry] for r in self.ranking if r.estimate is not None
            for entry in zip(r.estimate.base.names, r.estimate.beta, r.estimate.standard_errors, strict=True)
        ]  # fmt: skip
        return {
            "estimators": lambda: by_columns(heads, rows),
            "parameters": lambda: by_columns(("estimator", "name", "value", "standard_error"), found),
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
        return explained(document, {"best": "None found a robot that can be simulated."})

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
    """Identify by every estimator from the same log, and judge all on the same others (default: its last 30 %).

    Estimators that simulate the closed loop need its `controller` (a file, or a `ControlLoop`), which a log does not
    hold; without, they are listed with that reason. `limit`: seconds of processor time for one fit. `horizon`: length
    (s) of the open-loop replays.

    Args:
        robot, log: as it was logged; to identify from: as `load_robot` takes it, and a path, `Log`, frame or dict.
        validate: logs to judge by; none: the share `holdout` (0 to 1) at the end of `log`.
        estimators: names, or groups of names.
        progress: told how far it is (`steelyard.ground.progress`); None: nobody.
        terms, preparation, mapping: as in `identify`; None: its own.
    """
    if not (horizon > 0.0 and limit > 0.0):
        raise SteelyardError("horizon and limit are times in seconds; both must be positive.")
    methods = chosen_methods(estimators)
    robot = as_robot(robot)
    used, judged = as_log(log, robot, mapping), as_logs(validate, robot, mapping)
    if not judged:
        used, last = split_last(used, holdout)
        judged = [last]
    if used.tau is None:
        raise LogError("The log has no torque; identification needs it (or a current with its constants).")
    study = Study.of(robot, used, terms, preparation).with_torque_between()
    robot, base, prior = study.robot, study.base, nominal_prior(study.robot, study.terms)
    loop = as_control_loop(controller, robot)
    experiment = experiment_of(study, loop)
    experiment.regression(base)  # a log that gives no rows is the user's, not an estimator that failed
    results: list[LogResult] = []
    for method in steps(methods, "Estimator", lambda m: m.name, 0.0, 0.9):
        if method.needs_controller and loop is None:
            results.append(LogResult(method, MethodRun("log", method.name, "refused", _LOOP)))
            continue
        run, found = try_fit("log", method, lambda m=method: m.fit(experiment, base, prior, True), limit)  # type: ignore[misc]
        results.append(LogResult(method, run, found))
    return LogComparison(robot, _judged(results, study, judged, horizon), horizon, study.cutoff_hz)


def _judged(
    results: Sequence[LogResult], study: Study, logs: Sequence[Log], horizon: float
) -> tuple[LogResult, ...]:  # fmt: skip
    """One pass over the held-out data for all."""
    tell_progress("Judging", 0.9)
    found = [r for r in results if r.estimate is not None]
    models = [Model(study.robot, study.terms, r.estimate.theta) for r in found if r.estimate is not None]
    if not models:
        return tuple(results)
    scores = [score_models(models, study.motions_of(log), study.cutoff_hz) for log in logs]
    out = {r.method.name: r for r in results}
    for k, (r, model) in enumerate(zip(found, models, strict=True)):
        seen = possibility(model)
        run = replace(r.run, simulable=seen.simulable, possible=seen.possible)
        error = float(np.mean([s[k].mean_nrmse_percent for s in scores]))
        how = study.preparation
        moved = replay_rmse(model, logs, horizon, how.torque_between, how.delay or 0.0) if seen.simulable else None
        out[r.method.name] = replace(
            r, run=run, nrmse_percent=error if np.isfinite(error) else None, position_rmse=moved
        )
    return tuple(out.values())

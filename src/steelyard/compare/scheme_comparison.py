"""Compares all schemes of the regression on one log."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from steelyard.assessment.holdout import split_last
from steelyard.assessment.replay import HORIZON, replay_rmse
from steelyard.errors import SteelyardError
from steelyard.estimation.estimate import Estimate
from steelyard.ground.arrays import Array
from steelyard.ground.display import DisplayMixin, Headline, NamedColumns, by_columns
from steelyard.ground.numbers import number
from steelyard.ground.outcome import OutcomeWithPage, Presentation
from steelyard.ground.progress import ProgressCallback, reports_progress, steps
from steelyard.ground.reasons import explained
from steelyard.identification.identification import Identification
from steelyard.identification.identify import identify
from steelyard.regression.schemes import SCHEMES, make_scheme
from steelyard.robot.load import RobotLike, as_robot
from steelyard.robot.robot import Robot
from steelyard.signals.as_logs import LogLike, LogsLike, as_log, as_logs
from steelyard.signals.read import AnyMapping
from steelyard.study import Study

_WHY_NULL = {
    "hold_out_nrmse_percent": "There is no hold-out data.",
    "position_rmse": "A replay diverged, or the log is too short for a replay.",
}


@dataclass(frozen=True, eq=False)
class SchemeResult:
    """Result of one scheme.

    Attributes:
        scheme: Name of the scheme.
        seconds: Wall-clock time [s].
        identification: The identification; None if it failed.
        position_rmse: Position errors of replays by joint [rad, m].
        reason: Why it failed.
    """

    scheme: str
    seconds: float
    identification: Identification | None = None
    position_rmse: Array | None = None
    reason: str = ""

    @property
    def nrmse_percent(self) -> float | None:
        """Torque error on hold-out data, mean over joints, percent of the torque's standard deviation."""
        if self.identification is None or not self.identification.validation:
            return None
        return float(np.mean([s.mean_nrmse_percent for s in self.identification.validation]))

    def to_json(self) -> dict[str, Any]:
        out: dict[str, Any] = {"scheme": self.scheme, "seconds": self.seconds, "reason": self.reason}
        if self.identification is None:
            return out
        out |= {
            "hold_out_nrmse_percent": self.nrmse_percent,
            "position_rmse": None if self.position_rmse is None else self.position_rmse.tolist(),
            "physically_consistent": self.identification.possible,
            "condition_number": self.identification.condition_number,
            "base_parameters": named_values(self.identification.estimate),
        }
        return explained(out, _WHY_NULL)


def named_values(estimate: Estimate) -> list[dict[str, Any]]:
    """Return the base parameters of an `estimate` as plain data."""
    signs = estimate.base.impossible_signs(estimate.beta).tolist()
    rows = zip(estimate.base.names, estimate.beta.tolist(), estimate.standard_errors.tolist(), signs, strict=True)
    return [{"name": n, "value": b, "standard_error": e, "impossible_sign": s} for n, b, e, s in rows]


@dataclass(frozen=True, eq=False, repr=False)
class SchemeComparison(OutcomeWithPage, DisplayMixin):
    """All schemes on the same data.

    Attributes:
        robot: The robot.
        results: Results by scheme.
        horizon: Length of the open-loop replays [s].
    """

    robot: Robot
    results: tuple[SchemeResult, ...]
    horizon: float

    @property
    def best(self) -> SchemeResult | None:
        results = [r for r in self.results if r.nrmse_percent is not None]
        return min(results, key=lambda r: r.nrmse_percent or np.inf) if results else None

    def to_json(self) -> dict[str, Any]:
        best = self.best
        document = {
            "robot": self.robot.name,
            "horizon_s": self.horizon,
            "best": best.scheme if best else None,
            "schemes": [r.to_json() for r in self.results],
        }
        return explained(document, {"best": "No scheme gives a result."})

    def headline(self) -> Headline:
        best = self.best
        if best is None:
            return Headline("bad", f"{self.robot.name}: no scheme gives a result")
        return Headline(
            "good", f"{self.robot.name}: {best.scheme} predicts best, {number(best.nrmse_percent, 3)} % of σ"
        )

    def tables(self) -> Mapping[str, Callable[[], NamedColumns]]:
        """Return the table "schemes" with errors on hold-out data."""
        rows = [
            [
                r.scheme,
                r.nrmse_percent,
                None if r.identification is None else r.identification.possible,
                r.seconds,
                r.reason,
            ]
            for r in self.results
        ]
        return {"schemes": lambda: by_columns(("scheme", "nrmse_percent", "possible", "seconds", "reason"), rows)}

    def view(self) -> Presentation:
        from steelyard.compare._on_log_page import print_schemes, schemes_report

        return schemes_report, print_schemes


@reports_progress
def compare_schemes(
    robot: RobotLike,
    log: LogLike,
    validate: LogsLike = (),
    *,
    schemes: Sequence[str] = tuple(SCHEMES),
    holdout: float = 0.3,
    horizon: float = HORIZON,
    progress: ProgressCallback | None = None,
    mapping: AnyMapping = None,
    **options: Any,
) -> SchemeComparison:
    """Identify by every scheme from the same log and compare the errors on other logs (default: its last 30 %).

    Args:
        robot: Robot of the log, as `load_robot` takes it.
        log: Log for the fits: a path, `Log`, frame or dict.
        validate: Logs for the evaluation; none: the share `holdout` at the end of `log`.
        schemes: Names of schemes.
        holdout: Share of the log for the evaluation, 0 to 1.
        horizon: Length of the open-loop replays from measured states [s].
        progress: Callback for progress (`steelyard.ground.progress`).
        mapping: Columns of files and frames, as in `read_log`.
        options: Arguments of `identify`.
    """
    if not horizon > 0.0:
        raise SteelyardError(f"horizon is {horizon:g} s; it must be positive.")
    for scheme in schemes:
        make_scheme(scheme)  # raises an error for unknown names, so that they do not count as failed schemes
    robot = as_robot(robot)
    fit_log, evaluation_logs = as_log(log, robot, mapping), as_logs(validate, robot, mapping)
    if not evaluation_logs:
        fit_log, last = split_last(fit_log, holdout)
        evaluation_logs = [last]
    # The data is filtered once for all schemes.
    study = Study.of(robot, fit_log, (), options.pop("preparation", None))
    results = []
    for scheme in steps(schemes, "Scheme"):
        start = time.perf_counter()
        try:
            # All schemes use the same terms; otherwise their results would not be comparable.
            identification = identify(
                robot, study, evaluation_logs, scheme=scheme, files=False, **{"plain": True} | options
            )
        except SteelyardError as error:
            results.append(SchemeResult(scheme, time.perf_counter() - start, reason=str(error)))
            continue
        seconds = time.perf_counter() - start
        preparation = identification.settings.preparation
        moved = replay_rmse(
            identification.model, evaluation_logs, horizon, preparation.torque_between, preparation.delay or 0.0
        )
        results.append(SchemeResult(scheme, seconds, identification, moved))
    return SchemeComparison(robot, tuple(results), horizon)

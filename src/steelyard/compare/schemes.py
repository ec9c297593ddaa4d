"""`compare_schemes`: one log, all ways to write the physics, side by side."""

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
from steelyard.ground.displayed import Displayed, Glance, NamedColumns, by_columns
from steelyard.ground.numbers import number
from steelyard.ground.outcome import Presentation, Viewed
from steelyard.ground.progress import ProgressCallback, reports_progress, steps
from steelyard.ground.reasons import explained
from steelyard.identification.identification import Identification
from steelyard.identification.identify import identify
from steelyard.regression.schemes import SCHEMES, make_scheme
from steelyard.robot.load import RobotLike, as_robot
from steelyard.robot.robot import Robot
from steelyard.signals.given import LogLike, LogsLike, as_log, as_logs
from steelyard.signals.read import AnyMapping
from steelyard.study import Study

_WHY_NULL = {
    "hold_out_nrmse_percent": "Nothing was held out.",
    "position_rmse": "A replay diverged, or the log is too short for one.",
}


@dataclass(frozen=True, eq=False)
class SchemeResult:
    """What one scheme found; `reason` says why there is nothing, where it failed."""

    scheme: str
    seconds: float
    found: Identification | None = None
    position_rmse: Array | None = None
    reason: str = ""

    @property
    def nrmse_percent(self) -> float | None:
        """Mean over joints of the torque error on held-out data, percent of the torque's standard deviation."""
        if self.found is None or not self.found.validation:
            return None
        return float(np.mean([s.mean_nrmse_percent for s in self.found.validation]))

    def to_json(self) -> dict[str, Any]:
        out: dict[str, Any] = {"scheme": self.scheme, "seconds": self.seconds, "reason": self.reason}
        if self.found is None:
            return out
        out |= {
            "hold_out_nrmse_percent": self.nrmse_percent,
            "position_rmse": None if self.position_rmse is None else self.position_rmse.tolist(),
            "physically_consistent": self.found.possible,
            "condition_number": self.found.condition_number,
            "base_parameters": named_values(self.found.estimate),
        }
        return explained(out, _WHY_NULL)


def named_values(found: Estimate) -> list[dict[str, Any]]:
    """The base parameters that were `found`, for machines."""
    signs = found.base.impossible_signs(found.beta).tolist()
    rows = zip(found.base.names, found.beta.tolist(), found.standard_errors.tolist(), signs, strict=True)
    return [{"name": n, "value": b, "standard_error": e, "impossible_sign": s} for n, b, e, s in rows]


@dataclass(frozen=True, eq=False, repr=False)
class SchemeComparison(Viewed, Displayed):
    """All schemes on the same data; the best is the one with the smallest torque error on what was held out."""

    robot: Robot
    results: tuple[SchemeResult, ...]
    horizon: float

    @property
    def best(self) -> SchemeResult | None:
        judged = [r for r in self.results if r.nrmse_percent is not None]
        return min(judged, key=lambda r: r.nrmse_percent or np.inf) if judged else None

    def to_json(self) -> dict[str, Any]:
        best = self.best
        document = {
            "robot": self.robot.name,
            "horizon_s": self.horizon,
            "best": best.scheme if best else None,
            "schemes": [r.to_json() for r in self.results],
        }
        return explained(document, {"best": "No scheme was judged."})

    def glance(self) -> Glance:
        best = self.best
        if best is None:
            return Glance("bad", f"{self.robot.name}: no scheme was judged")
        return Glance("good", f"{self.robot.name}: {best.scheme} predicts best, {number(best.nrmse_percent, 3)} % of σ")

    def tables(self) -> Mapping[str, Callable[[], NamedColumns]]:
        """The "schemes", with their error on held-out data."""
        rows = [
            [r.scheme, r.nrmse_percent, None if r.found is None else r.found.possible, r.seconds, r.reason]
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
    """Identify by every scheme from the same log, and judge all on the same others (default: its last 30 %).

    `horizon` (s): torques are replayed to each model, open loop, in stretches of this length from measured states.

    Args:
        robot, log: as it was logged; to identify from: as `load_robot` takes it, and a path, `Log`, frame or dict.
        validate: logs to judge by; none: the share `holdout` (0 to 1) at the end of `log`.
        schemes: names.
        progress: told how far it is (`steelyard.ground.progress`); None: nobody.
        mapping: what the columns of files and frames mean, as in `read_log`.
        options: of `identify`.
    """
    if not horizon > 0.0:
        raise SteelyardError(f"A horizon of {horizon:g} s has no length; give a positive time.")
    for scheme in schemes:
        make_scheme(scheme)  # a misspelt name is the user's, not a scheme that failed
    robot = as_robot(robot)
    used, judged = as_log(log, robot, mapping), as_logs(validate, robot, mapping)
    if not judged:
        used, last = split_last(used, holdout)
        judged = [last]
    # Filtered once for all schemes.
    study = Study.of(robot, used, (), options.pop("preparation", None))
    results = []
    for scheme in steps(schemes, "Scheme"):
        begun = time.perf_counter()
        try:
            # All by the same terms, or there would be nothing to compare.
            found = identify(robot, study, judged, scheme=scheme, files=False, **{"plain": True} | options)
        except SteelyardError as error:
            results.append(SchemeResult(scheme, time.perf_counter() - begun, reason=str(error)))
            continue
        taken = time.perf_counter() - begun
        how = found.settings.preparation
        moved = replay_rmse(found.model, judged, horizon, how.torque_between, how.delay or 0.0)
        results.append(SchemeResult(scheme, taken, found, moved))
    return SchemeComparison(robot, tuple(results), horizon)

"""`fit_log`: base parameters from a log whose signals are taken as they stand."""

from __future__ import annotations

from steelyard.estimation.estimate import Estimate
from steelyard.estimation.registry import make_estimator
from steelyard.regression.base_parameters import BaseParameters
from steelyard.regression.schemes import Scheme, make_scheme, paper_motion
from steelyard.signals.log import Log


def fit_log(
    base: BaseParameters, log: Log, *, scheme: str | Scheme = "dynamic", estimator: str = "wls"
) -> Estimate:  # fmt: skip
    """Estimate base parameters from the samples of a log, all of them, without filter or mask.

    For simulated logs and for signals that are smooth already; what the log lacks of dq and ddq is the backward
    difference. `identify` is for logs of real sensors: it filters, masks, scores and keeps to what is physically
    possible, and this does not.
    """
    motions = paper_motion(log)
    data = make_scheme(scheme).data(base.structure.dynamics, base, lambda: motions)
    return make_estimator(estimator).fit(data, base)

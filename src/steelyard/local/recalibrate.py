"""Recalibration: a region's motion played again later, and what has drifted since."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from steelyard.errors import LocalError
from steelyard.ground.arrays import Array
from steelyard.ground.reasons import explained
from steelyard.local.bank import Bank, LocalModel
from steelyard.local.identify import fit_region
from steelyard.local.motions import looks
from steelyard.signals.log import Log
from steelyard.signals.prepare import prepare

# The chance of calling noise a drift, over all joints (or all parameters) together, if the covariances were exact. They
# are estimates: of 100 pairs of logs of one unchanged robot, 6 were called a drift (docs/theory/local-models.md).
LEVEL = 0.01
_MOST_ROWS = 2000
# Options of `identify` that a new model has from the old one.
_AS_THEN = ("scheme", "estimator", "physical", "prior", "preparation", "significant")


@dataclass(frozen=True)
class ParameterDrift:
    """How one base parameter changed; `p` is the chance of a change like this by noise alone."""

    name: str
    unit: str
    before: float
    after: float
    standard_error: float
    t: float
    p: float
    significant: bool


@dataclass(frozen=True)
class JointDrift:
    """How much the predicted torque of the region's motion changed (root mean square, N m or N; and in percent of the
    torque that the robot states to have), what noise alone would make of it, and the chance that it did."""

    why_null: ClassVar = {"percent_of_nominal": "The description gives no torque limit."}
    joint: str
    change: float
    percent_of_nominal: float | None
    by_noise: float
    p: float
    significant: bool


@dataclass(frozen=True)
class ModelDrift:
    """What recalibrating a region showed."""

    region: str
    parameters: tuple[ParameterDrift, ...]
    joints: tuple[JointDrift, ...]

    @property
    def significant(self) -> bool:
        """Whether the robot predicts otherwise than it did: a joint's torque changed by more than noise does."""
        return any(j.significant for j in self.joints)

    def to_json(self) -> dict[str, Any]:
        return explained(
            {
                "region": self.region,
                "significant": self.significant,
                "level": LEVEL,
                "joints": self.joints,
                "parameters": self.parameters,
            }
        )


def recalibrate(bank: Bank, region: str, logs: Log | Sequence[Log]) -> tuple[Bank, ModelDrift]:
    """`bank` with a new model for one `region` from `logs`, and how it differs from the old one. The new model is made
    as the old one was: same terms, estimator, filter."""
    old = bank.local(region)
    given = [logs] if isinstance(logs, Log) else list(logs)
    if not given:
        raise LocalError(f"There is no log to recalibrate region '{region}' from.")
    as_then = {name: getattr(old.settings, name) for name in _AS_THEN}
    new = fit_region(bank.robot, old.region, given, old.base.terms, old.motion, **as_then)
    return bank.with_model(new), drift(old, new, *_motion(old, given[0]))


def drift(old: LocalModel, new: LocalModel, q: Array, dq: Array, ddq: Array) -> ModelDrift:
    """The change from the `old` model of a region to the `new` one, along a motion; both logs' noise counts. `q` (rad,
    m), `dq` and `ddq` are `(samples, joints)`."""
    change = new.beta - old.beta
    joint = old.covariance + new.covariance
    return ModelDrift(old.name, _parameters(old, new, joint), _joints(old, change, joint, (q, dq, ddq)))


def _parameters(old: LocalModel, new: LocalModel, joint: Array) -> tuple[ParameterDrift, ...]:
    from scipy.stats import norm

    error = np.sqrt(np.maximum(np.diag(joint), 0.0))
    t = (new.beta - old.beta) / np.maximum(error, 1e-300)
    p = 2.0 * norm.sf(np.abs(t))
    real = _holm(p)
    numbers = np.column_stack([old.beta, new.beta, error, t, p]).tolist()
    rows = zip(old.base.names, old.base.units, numbers, real.tolist(), strict=True)
    return tuple(ParameterDrift(n, u, b, a, e, t_, p_, r) for n, u, (b, a, e, t_, p_), r in rows)


def _joints(old: LocalModel, change: Array, joint: Array, motion: tuple[Array, Array, Array]) -> tuple[JointDrift, ...]:
    """Mean squares Δβᵀ G Δβ, G = YᵀY/N. Under noise alone that is a sum of squares with the eigenvalues of G·S as
    weights; its distribution is taken as a scaled χ² with the same mean and variance (Satterthwaite 1946)."""
    from scipy.stats import chi2

    Y = old.columns(*motion)
    robot = old.model.robot
    found = []
    for k in range(robot.dof):
        G = Y[:, k].T @ Y[:, k] / len(Y)
        GS = G @ joint
        mean, twice = float(np.trace(GS)), 2.0 * float(np.sum(GS * GS.T))
        square = float(change @ G @ change)
        degrees = 2.0 * mean**2 / twice if twice > 0.0 else 1.0
        chance = float(chi2.sf(square * degrees / mean, degrees)) if mean > 0.0 else 1.0
        size, effort = float(np.sqrt(square)), robot.joints[k].effort
        percent = 100.0 * size / effort if 0.0 < effort < np.inf else None
        found.append(JointDrift(robot.joint_names[k], size, percent, float(np.sqrt(mean)), chance, False))
    real = _holm(np.array([x.p for x in found])).tolist()
    rows = zip(found, real, robot.torque_used, strict=True)
    return tuple(replace(x, significant=holds) for x, holds, used in rows if used)


def _holm(p: Array) -> NDArray[np.bool_]:
    """Which of several tests hold at `LEVEL` together (Holm 1979)."""
    order = np.argsort(p)
    bars = LEVEL / np.arange(len(p), 0, -1)
    passed = np.cumprod(p[order] <= bars).astype(bool)
    out = np.zeros(len(p), dtype=bool)
    out[order] = passed
    return out


def _motion(old: LocalModel, log: Log) -> tuple[Array, Array, Array]:
    """What the prediction is compared along: the region's own motion, or the log's."""
    if old.motion is not None:
        t = looks(old.motion)
        return old.motion.sample(t[:: max(1, len(t) // _MOST_ROWS)])
    m = next(prepare(log, old.settings.preparation, old.cutoff_hz))
    rows = slice(m.keep.start, m.keep.stop, max(1, m.rows * (m.keep.step or 1) // _MOST_ROWS))
    return m.q[rows], m.dq[rows], m.ddq[rows]

"""Identifies a region again from a later log and tests whether the robot has changed.

Model errors (friction of another shape) bias the parameters differently for every motion. The covariance of both fits
contains this scatter, estimated from the blocks of their logs. A few blocks dominate it, so the tests use effective
degrees of freedom.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from steelyard.errors import LocalError
from steelyard.ground.arrays import Array
from steelyard.ground.reasons import explained
from steelyard.ground.short_repr import short_repr
from steelyard.local.bank import Bank, LocalModel
from steelyard.local.identify import fit_region
from steelyard.local.motions import sample_times
from steelyard.signals.log import Log
from steelyard.signals.prepare import prepare

# False-alarm probability over all joints (or all parameters) together. docs/theory/local-models.md has its validation
# on simulated robots with unmodelled friction.
LEVEL = 0.01
_MOST_ROWS = 2000
# Degrees of freedom of a variance that counts as known exactly.
_EXACT = 1e9
# Settings of `identify` that the new model takes from the old one.
_COPIED_SETTINGS = ("scheme", "estimator", "physical", "prior", "preparation", "significant")


@dataclass(frozen=True)
class ParameterDrift:
    """Change of one base parameter.

    Attributes:
        name: Name of the base parameter.
        unit: Unit of the parameter.
        before: Old value.
        after: New value.
        standard_error: Standard error of the difference.
        t: Difference over standard error.
        p: Probability of such a change without a drift.
        significant: Whether the change is significant.
    """

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
    """Change of the predicted torque along the region's motion.

    Attributes:
        joint: Name of the joint.
        change: Root mean square of the change [N m, N].
        percent_of_nominal: The same in percent of the joint's torque limit.
        by_noise: Expected size of the change for an unchanged robot, from noise and model errors [N m, N].
        degrees: Degrees of freedom of `by_noise`.
        p: Probability of such a change without a drift.
        significant: Whether the change is significant.
    """

    why_null: ClassVar = {"percent_of_nominal": "The description gives no torque limit."}
    joint: str
    change: float
    percent_of_nominal: float | None
    by_noise: float
    degrees: float
    p: float
    significant: bool


@short_repr
@dataclass(frozen=True)
class ModelDrift:
    """Result of the recalibration of a region."""

    region: str
    parameters: tuple[ParameterDrift, ...]
    joints: tuple[JointDrift, ...]

    @property
    def significant(self) -> bool:
        """Whether the torque of a joint changed by more than noise and model errors explain."""
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
    """Identify a region again with the settings of the old model: same terms, estimator, filter.

    Args:
        bank: The bank.
        region: Name of the region.
        logs: New logs of the region.

    Returns:
        The bank with the new model, and the difference to the old one.
    """
    old = bank.local(region)
    several = [logs] if isinstance(logs, Log) else list(logs)
    if not several:
        raise LocalError(f"No log for region '{region}'; give at least one log for the recalibration.")
    copied = {name: getattr(old.settings, name) for name in _COPIED_SETTINGS}
    new = fit_region(bank.robot, old.region, several, old.base.terms, old.motion, **copied)
    return bank.with_model(new), drift(old, new, *_motions(old, several[0]))


def drift(old: LocalModel, new: LocalModel, *motions: tuple[Array, Array, Array]) -> ModelDrift:
    """Test the change from the old model of a region to the new one.

    The test includes the noise of both logs and the scatter of both fits with the motion.

    Args:
        old: Old model.
        new: Model of the same region from another log.
        motions: Motions along which torques are compared: positions [rad, m], velocities and accelerations, each shape
            (samples, joints). A drift must be significant along all of them; a change along one motion only can be a
            combination of parameters that the other fit did not identify.
    """
    change = new.beta - old.beta
    joint = old.covariance + new.covariance
    deviations = np.concatenate([x.deviations for x in (old, new) if x.deviations.size] or [np.zeros((0, len(change)))])
    along = [_along(old, change, joint, deviations, motion) for motion in motions]
    least = [max(same, key=lambda x: x.p) for same in zip(*along, strict=True)]
    significant = _holm(np.array([x.p for x in least])).tolist()
    rows = zip(least, significant, old.model.robot.torque_used, strict=True)
    joints = tuple(replace(x, significant=changed) for x, changed, used in rows if used)
    return ModelDrift(old.name, _parameters(old, new, joint, deviations), joints)


def effective_blocks(shares: ArrayLike) -> float:
    """Count the degrees of freedom of a sum of squares over blocks: (Σ s)² / Σ s².

    A sum that one block dominates is as uncertain as that block (Satterthwaite 1946; Bell & McCaffrey 2002 for
    clusters).

    Args:
        shares: Contribution of each block to the sum.
    """
    each = np.asarray(shares, dtype=float)
    total = float(each.sum())
    return total**2 / float(np.sum(each**2)) if total > 0.0 else float(len(each))


def _degrees(shares: Array) -> float:
    """Degrees of freedom of a variance with contributions `shares` of the blocks; practically infinite without
    blocks."""
    return effective_blocks(shares) if len(shares) else _EXACT


def _parameters(old: LocalModel, new: LocalModel, joint: Array, deviations: Array) -> tuple[ParameterDrift, ...]:
    from scipy.stats import t as student

    error = np.sqrt(np.maximum(np.diag(joint), 0.0))
    t = (new.beta - old.beta) / np.maximum(error, 1e-300)
    degrees = np.array([_degrees(column) for column in (deviations**2).T])
    p = 2.0 * student.sf(np.abs(t), degrees)
    significant = _holm(p)
    numbers = np.column_stack([old.beta, new.beta, error, t, p]).tolist()
    rows = zip(old.base.names, old.base.units, numbers, significant.tolist(), strict=True)
    return tuple(ParameterDrift(n, u, b, a, e, t_, p_, r) for n, u, (b, a, e, t_, p_), r in rows)


def _along(
    old: LocalModel, change: Array, joint: Array, deviations: Array, motion: tuple[Array, Array, Array]
) -> list[JointDrift]:
    """Test the mean squares Δβᵀ G Δβ, G = YᵀY/N, of each joint.

    Without a drift that is a weighted sum of squares, with the eigenvalues of G·S as weights; it is approximated by a
    scaled χ² with the same mean and variance (Satterthwaite 1946). Its mean is estimated from the blocks of both logs,
    so the ratio has an F distribution.
    """
    from scipy.stats import f as fisher

    Y = old.columns(*motion)
    robot = old.model.robot
    changes = []
    for k in range(robot.dof):
        G = Y[:, k].T @ Y[:, k] / len(Y)
        GS = G @ joint
        mean, twice = float(np.trace(GS)), 2.0 * float(np.sum(GS * GS.T))
        square = float(change @ G @ change)
        degrees = 2.0 * mean**2 / twice if twice > 0.0 else 1.0
        known = _degrees(np.einsum("bp,pq,bq->b", deviations, G, deviations))
        chance = float(fisher.sf(square / mean, degrees, known)) if mean > 0.0 else 1.0
        size, effort = float(np.sqrt(square)), robot.joints[k].effort
        percent = 100.0 * size / effort if 0.0 < effort < np.inf else None
        changes.append(JointDrift(robot.joint_names[k], size, percent, float(np.sqrt(mean)), known, chance, False))
    return changes


def _holm(p: Array) -> NDArray[np.bool_]:
    """Which of several tests are significant at `LEVEL` together (Holm 1979)."""
    order = np.argsort(p)
    bars = LEVEL / np.arange(len(p), 0, -1)
    passed = np.cumprod(p[order] <= bars).astype(bool)
    out = np.zeros(len(p), dtype=bool)
    out[order] = passed
    return out


def _motions(old: LocalModel, log: Log) -> list[tuple[Array, Array, Array]]:
    """Motions along which predictions are compared: the region's own motion, if known, and that of the log."""
    m = next(prepare(log, old.settings.preparation, old.cutoff_hz))
    rows = slice(m.keep.start, m.keep.stop, max(1, m.rows * (m.keep.step or 1) // _MOST_ROWS))
    logged = m.q[rows], m.dq[rows], m.ddq[rows]
    if old.motion is None:
        return [logged]
    t = sample_times(old.motion)
    return [old.motion.sample(t[:: max(1, len(t) // _MOST_ROWS)]), logged]

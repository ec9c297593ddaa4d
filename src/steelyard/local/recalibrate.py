"""Recalibration: a motion of a region logged again later, and what has drifted since.

Another motion leans on the parameters in another way: what the model lacks (friction of another shape) is taken up by
its parameters as the motion shows it. Both fits' covariances hold that spread, from block to block of their logs; but
it is known from a few blocks only, some of which weigh most. The tests allow for that by their degrees of freedom.
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
from steelyard.local.bank import Bank, LocalModel
from steelyard.local.identify import fit_region
from steelyard.local.motions import looks
from steelyard.signals.log import Log
from steelyard.signals.prepare import prepare

# The chance of calling noise or another motion a drift, over all joints (or all parameters) together. What came of it
# on plants with friction that no term has: docs/theory/local-models.md.
LEVEL = 0.01
_MOST_ROWS = 2000
# Degrees of freedom of an error that is taken for exact.
_EXACT = 1e9
# Options of `identify` that a new model has from the old one.
_AS_THEN = ("scheme", "estimator", "physical", "prior", "preparation", "significant")


@dataclass(frozen=True)
class ParameterDrift:
    """How one base parameter changed; `p` is the chance of a change like this without a drift."""

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
    """How much the predicted torque of the region's motion changed.

    Attributes:
        joint: Name of the joint.
        change: Root mean square of the change, N m or N.
        percent_of_nominal: The same in percent of the torque that the robot states to have.
        by_noise: What noise and the spread from motion to motion make of an unchanged robot, N m or N.
        degrees: Degrees of freedom of `by_noise`.
        p: The chance of a change like this without a drift.
        significant: Whether it is a drift.
    """

    why_null: ClassVar = {"percent_of_nominal": "The description gives no torque limit."}
    joint: str
    change: float
    percent_of_nominal: float | None
    by_noise: float
    degrees: float
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
        """Whether the robot predicts otherwise than it did: a joint's torque changed by more than noise and another
        motion make of it."""
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
    return bank.with_model(new), drift(old, new, *_motions(old, given[0]))


def drift(old: LocalModel, new: LocalModel, *motions: tuple[Array, Array, Array]) -> ModelDrift:
    """The change from the `old` model of a region to the `new` one; both logs' noise counts, and how far both fits hang
    on their motions.

    Args:
        old: Model that was.
        new: Model of the same region from another log.
        motions: Along which torques are compared: q (rad, m), q̇ and q̈, each `(samples, joints)`. A drift shows along
            all of them; what shows along one alone is what the other fit has not seen.
    """
    change = new.beta - old.beta
    joint = old.covariance + new.covariance
    deviations = np.concatenate([x.deviations for x in (old, new) if x.deviations.size] or [np.zeros((0, len(change)))])
    along = [_along(old, change, joint, deviations, motion) for motion in motions]
    found = [max(same, key=lambda x: x.p) for same in zip(*along, strict=True)]
    real = _holm(np.array([x.p for x in found])).tolist()
    rows = zip(found, real, old.model.robot.torque_used, strict=True)
    joints = tuple(replace(x, significant=holds) for x, holds, used in rows if used)
    return ModelDrift(old.name, _parameters(old, new, joint, deviations), joints)


def effective_blocks(shares: ArrayLike) -> float:
    """Count the degrees of freedom of a sum of squares over blocks: (Σ s)² / Σ s².

    A sum that one block rules is known no better than that block (Satterthwaite 1946; Bell & McCaffrey 2002 for
    clusters).

    Args:
        shares: What each block adds to the sum.
    """
    each = np.asarray(shares, dtype=float)
    total = float(each.sum())
    return total**2 / float(np.sum(each**2)) if total > 0.0 else float(len(each))


def _degrees(shares: Array) -> float:
    """Of freedom that a variance has which blocks make up in `shares`; as good as exact where nobody knows them."""
    return effective_blocks(shares) if len(shares) else _EXACT


def _parameters(old: LocalModel, new: LocalModel, joint: Array, deviations: Array) -> tuple[ParameterDrift, ...]:
    from scipy.stats import t as student

    error = np.sqrt(np.maximum(np.diag(joint), 0.0))
    t = (new.beta - old.beta) / np.maximum(error, 1e-300)
    degrees = np.array([_degrees(column) for column in (deviations**2).T])
    p = 2.0 * student.sf(np.abs(t), degrees)
    real = _holm(p)
    numbers = np.column_stack([old.beta, new.beta, error, t, p]).tolist()
    rows = zip(old.base.names, old.base.units, numbers, real.tolist(), strict=True)
    return tuple(ParameterDrift(n, u, b, a, e, t_, p_, r) for n, u, (b, a, e, t_, p_), r in rows)


def _along(
    old: LocalModel, change: Array, joint: Array, deviations: Array, motion: tuple[Array, Array, Array]
) -> list[JointDrift]:
    """Mean squares Δβᵀ G Δβ, G = YᵀY/N. Without a drift that is a sum of squares with the eigenvalues of G·S as
    weights, taken as a scaled χ² with the same mean and variance (Satterthwaite 1946). Its mean is an estimate, with
    the degrees of freedom that the blocks of both logs give it; the ratio of the two has an F distribution."""
    from scipy.stats import f as fisher

    Y = old.columns(*motion)
    robot = old.model.robot
    found = []
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
        found.append(JointDrift(robot.joint_names[k], size, percent, float(np.sqrt(mean)), known, chance, False))
    return found


def _holm(p: Array) -> NDArray[np.bool_]:
    """Which of several tests hold at `LEVEL` together (Holm 1979)."""
    order = np.argsort(p)
    bars = LEVEL / np.arange(len(p), 0, -1)
    passed = np.cumprod(p[order] <= bars).astype(bool)
    out = np.zeros(len(p), dtype=bool)
    out[order] = passed
    return out


def _motions(old: LocalModel, log: Log) -> list[tuple[Array, Array, Array]]:
    """What predictions are compared along: the region's own motion, if it is known, and the log's."""
    m = next(prepare(log, old.settings.preparation, old.cutoff_hz))
    rows = slice(m.keep.start, m.keep.stop, max(1, m.rows * (m.keep.step or 1) // _MOST_ROWS))
    logged = m.q[rows], m.dq[rows], m.ddq[rows]
    if old.motion is None:
        return [logged]
    t = looks(old.motion)
    return [old.motion.sample(t[:: max(1, len(t) // _MOST_ROWS)]), logged]

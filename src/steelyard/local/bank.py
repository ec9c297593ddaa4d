"""`Bank`: the local models of a robot, blended into one that knows where it holds."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from steelyard.errors import ShapeError, UnknownNameError
from steelyard.local.error import LocalError, OutsideError
from steelyard.local.local_model import LocalModel
from steelyard.local.regions import checked_regions
from steelyard.robot.robot import Robot
from steelyard.robot.spatial import Array

# m or rad: over this distance on both sides of a border one model fades into the next.
BLEND = 0.05
Outside = Literal["error", "flag"]


@dataclass(frozen=True, eq=False)
class Prediction:
    """Torques `(samples, joints)` with the ±1σ band of a measurement, each region's weight `(samples, regions)`, and
    the samples that lie `outside` all regions: there the nearest region answers, and nothing vouches for it."""

    torque: Array
    band: Array
    weights: Array
    outside: NDArray[np.bool_]


@dataclass(frozen=True, eq=False)
class Bank:
    """Local models of one robot.

    Inside a region (further than `blend` from its border) its model predicts alone; across borders and in overlaps
    the models are blended with weights that are continuously differentiable in the posture. Beyond `blend` outside
    of every region nothing is known: an error, or a flag.
    """

    robot: Robot
    models: tuple[LocalModel, ...]
    blend: float = BLEND

    def __post_init__(self) -> None:
        object.__setattr__(self, "models", tuple(self.models))
        checked_regions(self.robot, [local.region for local in self.models])
        if not (np.isfinite(self.blend) and self.blend >= 0.0):
            raise LocalError(f"blend is {self.blend}; give a distance in m (rad) from 0 on.")
        for local in self.models:
            other = local.model.robot
            if (other.fingerprint, other.joint_names) != (self.robot.fingerprint, self.robot.joint_names):
                raise LocalError(
                    f"The model of region '{local.name}' is that of robot '{other.name}' "
                    f"({', '.join(other.joint_names)}), not of '{self.robot.name}'; a bank is for one robot."
                )

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(local.name for local in self.models)

    def local(self, name: str) -> LocalModel:
        """The model of a region."""
        if name not in self.names:
            raise UnknownNameError("region", name, self.names)
        return self.models[self.names.index(name)]

    def with_model(self, local: LocalModel) -> Bank:
        """The same bank with another model for that region."""
        self.local(local.name)
        return replace(self, models=tuple(local if x.name == local.name else x for x in self.models))

    @cached_property
    def possible(self) -> bool:
        """Whether every model is physically possible."""
        return all(local.possible for local in self.models)

    # ---------------------------------------------------------------- where postures belong

    def depths(self, q: ArrayLike) -> Array:
        """Signed distance to each region's border (positive inside), `(samples, regions)`."""
        return np.stack([local.region.depth(self.robot, q) for local in self.models], axis=-1)

    def weights(self, q: ArrayLike) -> tuple[Array, NDArray[np.bool_]]:
        """Each model's share `(samples, regions)`, and which samples are outside all regions (their nearest has 1)."""
        postures = self._rows("q", q)
        member = np.stack([x.region.membership(self.robot, postures, self.blend) for x in self.models], axis=-1)
        total = member.sum(axis=-1)
        outside = total <= 0.0
        weights = member / np.where(outside, 1.0, total)[:, None]
        if outside.any():
            nearest = np.argmax(self.depths(postures[outside]), axis=-1)
            weights[outside] = np.eye(len(self.models))[nearest]
        return weights, outside

    # ---------------------------------------------------------------- what it predicts

    def predict(self, q: ArrayLike, dq: ArrayLike, ddq: ArrayLike, outside: Outside = "error") -> Array:
        """Joint torques of a motion, `(samples, joints)`; a posture outside all regions is an error, or the nearest
        region answers for it (`outside="flag"`; `prediction` tells where)."""
        motion = self._motion(q, dq, ddq)
        weights, _ = self._placed(motion[0], outside)
        return self._blended(weights, motion)

    def prediction(self, q: ArrayLike, dq: ArrayLike, ddq: ArrayLike, outside: Outside = "flag") -> Prediction:
        """Torques with their bands, the models' shares, and where no region is responsible."""
        motion = self._motion(q, dq, ddq)
        weights, away = self._placed(motion[0], outside)
        variance = np.zeros_like(motion[0])
        for k, local in enumerate(self.models):
            rows = weights[:, k] > 0.0
            if rows.any():
                band = local.band(*(x[rows] for x in motion))
                variance[rows] += (weights[rows, k, None] * band) ** 2
        return Prediction(self._blended(weights, motion), np.sqrt(variance), weights, away)

    def _blended(self, weights: Array, motion: tuple[Array, Array, Array]) -> Array:
        torque = np.zeros_like(motion[0])
        for k, local in enumerate(self.models):
            rows = weights[:, k] > 0.0
            if rows.any():
                torque[rows] += weights[rows, k, None] * local.model.torque(*(x[rows] for x in motion))
        return torque

    def _placed(self, q: Array, outside: Outside) -> tuple[Array, NDArray[np.bool_]]:
        if outside not in ("error", "flag"):
            raise UnknownNameError("answer to what is outside", outside, ("error", "flag"))
        weights, away = self.weights(q)
        if outside == "error" and away.any():
            k = int(np.argmax(away))
            depths = self.depths(q[k])
            near = self.models[int(np.argmax(depths))]
            raise OutsideError(
                f"Sample {k + 1} is outside all regions: the nearest, '{near.name}', is {-depths.max():.3g} "
                f"{near.region.unit} away ({int(away.sum())} of {len(away)} samples are outside); identify a region "
                'there, or ask with outside="flag".'
            )
        return weights, away

    def _motion(self, q: ArrayLike, dq: ArrayLike, ddq: ArrayLike) -> tuple[Array, Array, Array]:
        rows = self._rows("q", q), self._rows("dq", dq), self._rows("ddq", ddq)
        if not rows[0].shape == rows[1].shape == rows[2].shape:
            raise ShapeError(f"q, dq and ddq have shapes {', '.join(str(x.shape) for x in rows)}; give equal ones.")
        return rows

    def _rows(self, name: str, values: ArrayLike) -> Array:
        array = np.atleast_2d(np.asarray(values, dtype=float))
        if array.ndim != 2 or array.shape[1] != self.robot.dof:
            raise ShapeError(f"{name} has shape {array.shape}; expected (samples, {self.robot.dof}).")
        return array

"""Local models and the bank that blends them."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from steelyard.dynamics.model import Model
from steelyard.errors import LocalError, OutsideError, ShapeError, UnknownNameError
from steelyard.ground.arrays import Array, frozen
from steelyard.ground.short_repr import short_repr
from steelyard.identification.identification import Identification, IdentificationSettings
from steelyard.local.motions import MotionLike
from steelyard.local.region import Region
from steelyard.local.regions import check_regions
from steelyard.parameters.inertial import smallest_pseudo_eigenvalues
from steelyard.regression.base_parameters import BaseParameters
from steelyard.robot.robot import Robot


@short_repr
@dataclass(frozen=True, eq=False)
class LocalModel:
    """The model of one region.

    Attributes:
        region: Where the model is valid.
        model: Model that predicts torques.
        base: Base parameters of the robot and its terms.
        beta: Base parameters of the free fit. Drift tests use them.
        covariance: Covariance of `beta`.
        residual_std: Standard deviation of the residuals per joint [N m, N].
        settings: Settings of the identification.
        cutoff_hz: Cut-off of the fit's filter.
        seconds: Length of the logs.
        inside: Share of the samples inside the region, 0 to 1.
        motion: Motion that was played, if known.
        deviations: Contribution of each block of time to `beta`, shape (blocks, base parameters): how much `beta`
            depends on the motion. No rows if the estimator does not provide them.
    """

    region: Region
    model: Model
    base: BaseParameters
    beta: Array
    covariance: Array
    residual_std: Array
    settings: IdentificationSettings
    cutoff_hz: float
    seconds: float
    inside: float
    motion: MotionLike | None = field(default=None)
    deviations: Array = field(default_factory=lambda: np.zeros((0, 0)))

    def __post_init__(self) -> None:
        for name in ("beta", "covariance", "residual_std", "deviations"):
            object.__setattr__(self, name, frozen(getattr(self, name)))

    @staticmethod
    def of(
        region: Region, identification: Identification, seconds: float, inside: float, motion: MotionLike | None = None
    ) -> LocalModel:
        """Create the local model from an identification.

        Args:
            region: Where the model is valid.
            identification: Identification from logs of the region.
            seconds: Length of the logs.
            inside: Share of the samples inside the region, 0 to 1.
            motion: Motion that was played.
        """
        used = [k for k, used in enumerate(identification.robot.torque_used) if used]
        residual_std = np.full(identification.robot.dof, np.nan)
        residual_std[used] = identification.estimate.residual_std
        return LocalModel(
            region=region,
            model=identification.model,
            base=identification.base,
            beta=identification.free.beta,
            covariance=identification.free.covariance,
            residual_std=residual_std,
            settings=identification.settings,
            cutoff_hz=identification.cutoff_hz,
            seconds=seconds,
            inside=inside,
            motion=motion,
            deviations=identification.free.details.get("block_deviations", np.zeros((0, identification.base.rank))),
        )

    @property
    def name(self) -> str:
        return self.region.name

    @property
    def values(self) -> Array:
        """Base parameters of the delivered model; they differ from `beta` if the fit was constrained to be physical."""
        return self.base.values(self.model.theta)

    @property
    def standard_errors(self) -> Array:
        return np.sqrt(np.maximum(np.diag(self.covariance), 0.0))

    @property
    def possible(self) -> bool:
        """Whether all links are physically possible."""
        links = self.model.robot.inertial_count
        return bool(np.all(smallest_pseudo_eigenvalues(self.model.theta[:links]) > 0.0))

    def columns(self, q: Array, dq: Array, ddq: Array) -> Array:
        """Compute the base columns of the torque regressor, shape (samples, joints, base parameters).

        Args:
            q: Positions [rad, m], shape (samples, joints).
            dq: Velocities [rad/s, m/s].
            ddq: Accelerations [rad/s^2, m/s^2].
        """
        return self.base.regressor_columns(self.base.structure.dynamics.torque_regressor(q, dq, ddq))

    def standard_error(self, q: Array, dq: Array, ddq: Array) -> Array:
        """Compute the standard error of the predicted torque that the covariance of the parameters causes.

        Args:
            q: Positions [rad, m], shape (samples, joints).
            dq: Velocities [rad/s, m/s].
            ddq: Accelerations [rad/s^2, m/s^2].

        Returns:
            Standard errors [N m, N], shape (samples, joints).
        """
        Y = self.columns(q, dq, ddq)
        variance = np.einsum("sjp,pr,sjr->sj", Y, self.covariance, Y, optimize=True)
        return np.asarray(np.sqrt(np.maximum(variance, 0.0)))

    def band(self, q: Array, dq: Array, ddq: Array) -> Array:
        """Compute the standard deviation of a measured torque about the predicted one, from parameters and residuals.

        Args:
            q: Positions [rad, m], shape (samples, joints).
            dq: Velocities [rad/s, m/s].
            ddq: Accelerations [rad/s^2, m/s^2].

        Returns:
            Standard deviations [N m, N], shape (samples, joints).
        """
        return np.hypot(self.standard_error(q, dq, ddq), np.nan_to_num(self.residual_std))


# Distance from a border, on both sides, over which models are blended [m or rad].
BLEND = 0.05
Outside = Literal["error", "flag"]


@short_repr
@dataclass(frozen=True, eq=False)
class Prediction:
    """Torques that a bank predicts.

    Attributes:
        torque: Torques [N m, N], shape (samples, joints).
        band: Standard deviation of a measurement about `torque`.
        weights: Weight of each region's model, shape (samples, regions).
        outside: Samples outside all regions; the nearest model predicts them without a validated error.
    """

    torque: Array
    band: Array
    weights: Array
    outside: NDArray[np.bool_]


@short_repr
@dataclass(frozen=True, eq=False)
class Bank:
    """Local models of one robot.

    Inside a region (further than `blend` from its border) its model predicts alone. Across borders and in overlaps the
    models are blended with weights that are continuously differentiable in the posture. Further than `blend` outside of
    every region there is no valid model: `outside="error"` raises, `outside="flag"` uses the nearest model.

    Attributes:
        robot: Robot of all models.
        models: One model per region.
        blend: Models are blended over this distance on both sides of a border [m, rad].
    """

    robot: Robot
    models: tuple[LocalModel, ...]
    blend: float = BLEND

    def __post_init__(self) -> None:
        object.__setattr__(self, "models", tuple(self.models))
        check_regions(self.robot, [local.region for local in self.models])
        if not (np.isfinite(self.blend) and self.blend >= 0.0):
            raise LocalError(f"blend is {self.blend}; give a distance in m (rad) from 0 on.")
        for local in self.models:
            other = local.model.robot
            if (other.fingerprint, other.joint_names) != (self.robot.fingerprint, self.robot.joint_names):
                raise LocalError(
                    f"The model of region '{local.name}' belongs to robot '{other.name}' "
                    f"({', '.join(other.joint_names)}), not to '{self.robot.name}'; a bank is for one robot."
                )

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(local.name for local in self.models)

    def local(self, name: str) -> LocalModel:
        """Return the model of the region `name`."""
        if name not in self.names:
            raise UnknownNameError("region", name, self.names)
        return self.models[self.names.index(name)]

    def with_model(self, local: LocalModel) -> Bank:
        """Return a copy of the bank with `local` as the model of its region."""
        self.local(local.name)
        return replace(self, models=tuple(local if x.name == local.name else x for x in self.models))

    @cached_property
    def possible(self) -> bool:
        """Whether every model is physically possible."""
        return all(local.possible for local in self.models)

    # ---------------------------------------------------------------- weights

    def depths(self, q: ArrayLike) -> Array:
        """Compute the signed distance of postures `q` to each region's border (positive inside), (samples, regions)."""
        return np.stack([local.region.depth(self.robot, q) for local in self.models], axis=-1)

    def weights(self, q: ArrayLike) -> tuple[Array, NDArray[np.bool_]]:
        """Compute each model's weight (samples, regions) for postures `q`, and which samples are outside all regions.

        The nearest region has weight 1 there.
        """
        postures = self._rows("q", q)
        member = np.stack([x.region.membership(self.robot, postures, self.blend) for x in self.models], axis=-1)
        total = member.sum(axis=-1)
        outside = total <= 0.0
        weights = member / np.where(outside, 1.0, total)[:, None]
        if outside.any():
            nearest = np.argmax(self.depths(postures[outside]), axis=-1)
            weights[outside] = np.eye(len(self.models))[nearest]
        return weights, outside

    # ---------------------------------------------------------------- prediction

    def predict(self, q: ArrayLike, dq: ArrayLike, ddq: ArrayLike, outside: Outside = "error") -> Array:
        """Predict the joint torques of a motion.

        Args:
            q: Positions [rad, m], shape (samples, joints).
            dq: Velocities [rad/s, m/s].
            ddq: Accelerations [rad/s^2, m/s^2].
            outside: For a posture outside all regions: "error" raises, "flag" uses the nearest model.

        Returns:
            Torques [N m, N], shape (samples, joints).
        """
        motion = self._motion(q, dq, ddq)
        weights, _ = self._checked_weights(motion[0], outside)
        return self._blended(weights, motion)

    def prediction(self, q: ArrayLike, dq: ArrayLike, ddq: ArrayLike, outside: Outside = "flag") -> Prediction:
        """Predict torques with their bands, the models' weights and a flag for samples outside all regions.

        Args:
            q: Positions [rad, m], shape (samples, joints).
            dq: Velocities [rad/s, m/s].
            ddq: Accelerations [rad/s^2, m/s^2].
            outside: For a posture outside all regions: "error" raises, "flag" uses the nearest model.
        """
        motion = self._motion(q, dq, ddq)
        weights, away = self._checked_weights(motion[0], outside)
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
                # A model with memory needs the whole motion.
                chosen = np.ones_like(rows) if local.model.has_memory else rows
                q, dq, ddq = (x[chosen] for x in motion)
                torque[rows] += weights[rows, k, None] * local.model.torque(q, dq, ddq)[rows[chosen]]
        return torque

    def _checked_weights(self, q: Array, outside: Outside) -> tuple[Array, NDArray[np.bool_]]:
        if outside not in ("error", "flag"):
            raise UnknownNameError("value of `outside`", outside, ("error", "flag"))
        weights, away = self.weights(q)
        if outside == "error" and away.any():
            k = int(np.argmax(away))
            depths = self.depths(q[k])
            near = self.models[int(np.argmax(depths))]
            raise OutsideError(
                f"Sample {k + 1} is outside all regions: the nearest, '{near.name}', is {-depths.max():.3g} "
                f"{near.region.unit} away ({int(away.sum())} of {len(away)} samples are outside); identify a region "
                "there, or use the nearest model (in Python: outside='flag')."
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

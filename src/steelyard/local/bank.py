"""`Bank`: the local models of a robot, blended into one that knows where it holds."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from steelyard.dynamics.model import Model
from steelyard.errors import LocalError, OutsideError, ShapeError, UnknownNameError
from steelyard.ground.arrays import Array, frozen
from steelyard.ground.renamed import renamed
from steelyard.identification.identification import Identification, IdentificationSettings
from steelyard.local.motions import MotionLike
from steelyard.local.region import Region
from steelyard.local.regions import checked_regions
from steelyard.parameters.inertial import smallest_pseudo_eigenvalues
from steelyard.regression.base_parameters import BaseParameters
from steelyard.robot.robot import Robot


@renamed(cutoff="cutoff_hz", spread="residual_std")
@dataclass(frozen=True, eq=False)
class LocalModel:
    """The model of one region.

    `model` is what predicts. `beta` are the base parameters of the free fit with their `covariance`, which drift is
    judged by; `residual_std` the residuals' standard deviation per joint (N m, N); `seconds` of log went into it, of
    which `inside` (0 to 1) lay in the region. `cutoff_hz` is that of the fit, `motion` what was played, if
    known. `deviations` (blocks of time × base parameters) say what each block adds to `beta`: how far it hangs on the
    motion; without rows where the estimator does not tell. Motions are `(samples, joints)`: `q` in rad (m), its rates
    `dq` and `ddq`.
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
        region: Region, found: Identification, seconds: float, inside: float, motion: MotionLike | None = None
    ) -> LocalModel:
        """From what was `found` for a `region`, with `seconds` of log, of which the share `inside` lay in it."""
        used = [k for k, used in enumerate(found.robot.torque_used) if used]
        residual_std = np.full(found.robot.dof, np.nan)
        residual_std[used] = found.estimate.residual_std
        return LocalModel(
            region=region,
            model=found.model,
            base=found.base,
            beta=found.free.beta,
            covariance=found.free.covariance,
            residual_std=residual_std,
            settings=found.settings,
            cutoff_hz=found.cutoff_hz,
            seconds=seconds,
            inside=inside,
            motion=motion,
            deviations=found.free.details.get("block_deviations", np.zeros((0, found.base.rank))),
        )

    @property
    def name(self) -> str:
        return self.region.name

    @property
    def values(self) -> Array:
        """The base parameters of the delivered model (those of the free fit, unless it had to be possible)."""
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
        """The base columns of the torque regressor, `(samples, joints, base parameters)`."""
        return self.base.regressor_columns(self.base.structure.dynamics.torque_regressor(q, dq, ddq))

    def standard_error(self, q: Array, dq: Array, ddq: Array) -> Array:
        """How uncertain the predicted torque is by the parameters' uncertainty, `(samples, joints)`."""
        Y = self.columns(q, dq, ddq)
        variance = np.einsum("sjp,pr,sjr->sj", Y, self.covariance, Y, optimize=True)
        return np.asarray(np.sqrt(np.maximum(variance, 0.0)))

    def band(self, q: Array, dq: Array, ddq: Array) -> Array:
        """±σ of a measured torque about the predicted one: parameters and residuals together, `(samples, joints)`."""
        return np.hypot(self.standard_error(q, dq, ddq), np.nan_to_num(self.residual_std))


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

    Inside a region (further than `blend` from its border) its model predicts alone; across borders and in overlaps the
    models are blended with weights that are continuously differentiable in the posture. Beyond `blend` outside of every
    region nothing is known: an error, or a flag. Motions are `(samples, joints)`: `q` in rad (m), its rates `dq` and
    `ddq`. `outside` all regions, "error" refuses and "flag" lets the nearest answer.
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
        """The model of the region called `name`."""
        if name not in self.names:
            raise UnknownNameError("region", name, self.names)
        return self.models[self.names.index(name)]

    def with_model(self, local: LocalModel) -> Bank:
        """The same bank with `local` as the model of its region."""
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
                # What remembers must see the whole motion.
                chosen = np.ones_like(rows) if local.model.has_memory else rows
                q, dq, ddq = (x[chosen] for x in motion)
                torque[rows] += weights[rows, k, None] * local.model.torque(q, dq, ddq)[rows[chosen]]
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
                "there, or ask for the nearest one's answer (in Python: outside='flag')."
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

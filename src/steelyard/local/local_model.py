"""`LocalModel`: what was found in one region, and from what."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from steelyard.dynamics.model import Model
from steelyard.identification import Identification, Settings
from steelyard.local.motions import MotionLike
from steelyard.local.region import Region
from steelyard.parameters.inertial import smallest_pseudo_eigenvalues
from steelyard.regression.base_parameters import BaseParameters
from steelyard.robot.spatial import Array, frozen


@dataclass(frozen=True, eq=False)
class LocalModel:
    """The model of one region.

    `model` is what predicts. `beta` are the base parameters of the free fit with their `covariance`, which drift is
    judged by; `spread` the residuals' standard deviation per joint (N m, N); `seconds` of log went into it, of which
    `inside` (0 to 1) lay in the region. `cutoff` (Hz) is that of the fit, `motion` what was played, where it is known.
    """

    region: Region
    model: Model
    base: BaseParameters
    beta: Array
    covariance: Array
    spread: Array
    settings: Settings
    cutoff: float
    seconds: float
    inside: float
    motion: MotionLike | None = field(default=None)

    def __post_init__(self) -> None:
        for name in ("beta", "covariance", "spread"):
            object.__setattr__(self, name, frozen(getattr(self, name)))

    @staticmethod
    def of(
        region: Region, found: Identification, seconds: float, inside: float, motion: MotionLike | None = None
    ) -> LocalModel:
        used = [k for k, used in enumerate(found.robot.torque_used) if used]
        spread = np.full(found.robot.dof, np.nan)
        spread[used] = found.estimate.spread
        return LocalModel(
            region=region,
            model=found.model,
            base=found.base,
            beta=found.free.beta,
            covariance=found.free.covariance,
            spread=spread,
            settings=found.settings,
            cutoff=found.cutoff,
            seconds=seconds,
            inside=inside,
            motion=motion,
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
        links = 10 * len(self.model.robot.links)
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
        return np.hypot(self.standard_error(q, dq, ddq), np.nan_to_num(self.spread))

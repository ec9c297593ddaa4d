"""`UncertainModel`: a model with the covariance of its base parameters."""

from __future__ import annotations

import os
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import numpy as np

from steelyard.dynamics.bodies import inverse_dynamics
from steelyard.dynamics.function import trace
from steelyard.dynamics.model import Model
from steelyard.dynamics.native.scan import Scan
from steelyard.export.coerce import ModelLike, as_model
from steelyard.export.parameter_tables import read_covariance
from steelyard.ground.arrays import Array
from steelyard.ground.scalars import Scalar, Vector
from steelyard.ground.short_repr import short_repr
from steelyard.regression.base_parameters import BaseParameters, base_parameters
from steelyard.robot.free import refuse_free


@short_repr
@dataclass(frozen=True, eq=False)
class UncertainModel:
    """A model with the covariance of its base parameters.

    Args:
        model: Robot, terms and parameters.
        base: Base parameters of the model.
        covariance: Covariance of the base parameters [SI units]; None if unknown.
        run: Folder or file of the model; None if it was made in Python.
    """

    model: Model
    base: BaseParameters
    covariance: Array | None = None
    run: Path | None = None

    def torque_variance(self, q: Array, dq: Array) -> Array:
        """Compute the variance of the torque [N² m², N²] due to the parameter covariance; zero if that is unknown.

        The acceleration is zero, and friction is that of a steady motion.

        Args:
            q: Positions [rad, m], shape (samples, joints).
            dq: Velocities [rad/s, m/s], shape (samples, joints).
        """
        if self.covariance is None:
            return np.zeros_like(q)
        rows = self._rows(np.concatenate([q, dq], axis=1)).reshape(len(q), q.shape[1], self.base.rank)
        return np.asarray(np.sum((rows @ self._root) ** 2, axis=-1))

    @cached_property
    def _root(self) -> Array:
        """L with L Lᵀ = covariance."""
        assert self.covariance is not None
        values, vectors = np.linalg.eigh(self.covariance)
        return np.asarray(vectors * np.sqrt(np.maximum(values, 0.0)))

    @cached_property
    def _rows(self) -> Scan:
        """Base columns of the torque regressor at q and dq, without acceleration, in a steady motion."""
        robot, terms, dynamics = self.model.robot, self.model.terms, self.model.dynamics
        n, still = robot.dof, [0.0] * robot.dof
        column = {k: place for place, k in enumerate(self.base.independent)}

        def rows(sample: Vector) -> dict[tuple[int, int], Scalar]:
            q, dq = sample[:n], sample[n:]
            rigid = inverse_dynamics(robot, q, dq, still, [float(x) for x in self.model.theta[: robot.inertial_count]])
            inputs = {"q": q, "dq": dq, "ddq": still, "history": terms.steady(q, dq, rigid)}
            entries = dynamics.over_scalars("torque_regressor", inputs)
            return {(j, column[k]): x for (j, k), x in entries.items() if k in column}

        return Scan(trace("parameter_rows", {"sample": 2 * n}, rows, (n, self.base.rank)))


def load_uncertain_model(source: ModelLike) -> UncertainModel:
    """Read a model with its covariance, if `source` has one.

    `source` is a run folder or a result of `identify`, an exported description with its sidecar, a `Model`, or a robot
    with inertias.
    """
    model = as_model(source)
    refuse_free(model.robot, "the live monitor does not support it", "use a model with a fixed base.")
    base = base_parameters(model.robot, model.terms)
    estimate = getattr(source, "estimate", None)
    if estimate is not None:
        return UncertainModel(model, base, np.array(estimate.covariance))
    if not isinstance(source, str | os.PathLike) or not os.path.exists(source):
        return UncertainModel(model, base)
    path = Path(source)
    file = path / "covariance.csv"
    if not file.is_file():
        return UncertainModel(model, base, run=path)
    names, covariance = read_covariance(file)
    # If friction was fixed in the fit, the fit had fewer parameters than the model, and its covariance is incomplete.
    complete = names == base.names and bool(np.all(np.isfinite(covariance)))
    return UncertainModel(model, base, covariance if complete else None, path)

"""`WatchedModel`: the model that a robot is watched by, with what is known of its errors."""

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
from steelyard.export.table import read_covariance
from steelyard.ground.arrays import Array
from steelyard.ground.scalars import Scalar, Vector
from steelyard.regression.base_parameters import BaseParameters, base_parameters


@dataclass(frozen=True, eq=False)
class WatchedModel:
    """A model and the errors of its base parameters.

    Args:
        model: robot, terms and numbers.
        base: its base parameters.
        covariance: of the base parameters (SI units); None where nothing tells.
        run: the folder or file that it was read from; None where it was made in Python.
    """

    model: Model
    base: BaseParameters
    covariance: Array | None = None
    run: Path | None = None

    def torque_variance(self, q: Array, dq: Array) -> Array:
        """What the errors of the parameters make of the torque: its variance, (samples, joints), N² m² (N²).

        At positions `q` (rad, m) and velocities `dq`, without acceleration, friction as in a steady motion. Zero where
        nothing is known of the errors.
        """
        if self.covariance is None:
            return np.zeros_like(q)
        rows = self._rows(np.concatenate([q, dq], axis=1)).reshape(len(q), q.shape[1], self.base.rank)
        return np.asarray(np.sum((rows @ self._root) ** 2, axis=-1))

    @cached_property
    def _root(self) -> Array:
        """L with L Lᵀ the covariance."""
        assert self.covariance is not None
        values, vectors = np.linalg.eigh(self.covariance)
        return np.asarray(vectors * np.sqrt(np.maximum(values, 0.0)))

    @cached_property
    def _rows(self) -> Scan:
        """The base columns of the torque regressor at q, dq, without acceleration, in a steady motion."""
        robot, terms, dynamics = self.model.robot, self.model.terms, self.model.dynamics
        n, still = robot.dof, [0.0] * robot.dof
        column = {k: place for place, k in enumerate(self.base.independent)}

        def rows(sample: Vector) -> dict[tuple[int, int], Scalar]:
            q, dq = sample[:n], sample[n:]
            rigid = inverse_dynamics(robot, q, dq, still, [float(x) for x in self.model.theta[: robot.inertial_count]])
            given = {"q": q, "dq": dq, "ddq": still, "history": terms.steady(q, dq, rigid)}
            entries = dynamics.over_scalars("torque_regressor", given)
            return {(j, column[k]): x for (j, k), x in entries.items() if k in column}

        return Scan(trace("parameter_rows", {"sample": 2 * n}, rows, (n, self.base.rank)))


def watched_model(given: ModelLike) -> WatchedModel:
    """The model that `given` means: a run folder of `identify` (with the covariance it holds), an exported description
    with its sidecar, a `Model`, what `identify` found, or a robot with inertias."""
    model = as_model(given)
    base = base_parameters(model.robot, model.terms)
    estimate = getattr(given, "estimate", None)
    if estimate is not None:
        return WatchedModel(model, base, np.array(estimate.covariance))
    if not isinstance(given, str | os.PathLike) or not os.path.exists(given):
        return WatchedModel(model, base)
    path = Path(given)
    file = path / "covariance.csv"
    if not file.is_file():
        return WatchedModel(model, base, run=path)
    names, covariance = read_covariance(file)
    # Where friction was known before, the fit had fewer parameters than the model, and these errors are not all.
    known = names == base.names and bool(np.all(np.isfinite(covariance)))
    return WatchedModel(model, base, covariance if known else None, path)

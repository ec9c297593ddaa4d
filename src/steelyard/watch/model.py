"""`WatchedModel`: the model that a robot is watched by, with what is known of its errors."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from steelyard.dynamics.model import Model
from steelyard.export.given import ModelLike, as_model
from steelyard.export.table import read_covariance
from steelyard.ground.arrays import Array
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
        still, terms = np.zeros_like(q), self.model.terms
        history = None
        if terms.history:
            rigid = self.model.rigid_torque(q, dq, still)
            signals = terms.steady(list(q.T), list(dq.T), list(rigid.T))
            history = np.stack([np.broadcast_to(x, len(q)) for x in signals], axis=1)
        rows = self.model.dynamics.torque_regressor(q, dq, still, threads=1, history=history)
        rows = rows[..., list(self.base.independent)]
        return np.asarray(np.sum((rows @ self.covariance) * rows, axis=-1))


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

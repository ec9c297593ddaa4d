"""Scores of an identified legged plant, and the classical projection on the same rows."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
from legged_plants import Plant


def composite(result: Any, truth: np.ndarray) -> dict[str, float]:
    """Errors of what a floating tree shows of its trunk: mass and centre of the composite body of the root.

    A hinge lets the mass of a leg move along to the trunk, so the mass of the trunk alone follows from the description.
    """
    estimate = result.fit.estimate
    own = dict(zip(estimate.base.names, estimate.beta - estimate.base.matrix @ truth, strict=True))
    whole = float(truth[: result.robot.inertial_count : 10].sum())
    ten = result.bodies[0]
    lead = _leading(estimate.base)
    centre = np.array([own[n] for n in lead]) / whole
    errors = dict(zip(estimate.base.names, estimate.standard_errors, strict=True))
    bars = 1.96 * np.array([errors[n] for n in lead]) / whole
    return {
        "mass_percent": 100.0 * (float(result.bodies[:, 0].sum()) / whole - 1.0),
        "centre_mm": 1e3 * float(np.abs(centre).max()),
        "centre_interval_mm": 1e3 * float(bars[np.argmax(np.abs(centre))]),
        "trunk_percent": 100.0 * (ten[0] / truth[0] - 1.0),
        "trunk_centre_mm": 1e3 * float(np.abs(ten[1:4] / ten[0] - truth[1:4] / truth[0]).max()),
    }


def _leading(base: Any) -> list[str]:
    """Names of the base parameters that begin with the first moments of the root."""
    return [n for n, k in zip(base.names, base.independent, strict=True) if k in (1, 2, 3)]


def judged(result: Any, truth: np.ndarray) -> dict[str, float]:
    """Shares of truths inside 95 % intervals, of the free fit and of the possible bodies."""
    out = {}
    for name, estimate in (("free", result.fit.free), ("possible", result.fit.estimate)):
        if estimate is not None:
            z = (estimate.beta - estimate.base.matrix @ truth) / estimate.standard_errors
            out[f"{name}_inside_percent"] = 100.0 * float(np.mean(np.abs(z) < 1.96))
            out[f"{name}_z"] = float(np.sqrt(np.mean(z**2)))
    return out


def classical_fit(
    plant: Plant, paths: list[Path], mapping: dict[str, Any], result: Any, truth: np.ndarray
) -> dict[str, float]:
    """Least squares on rows of the classical projection I − J⁺J, with and without the corrections of our result.

    The ratio is that of held-out projected torques: error of a model relative to that of the planted parameters.
    """
    out = {}
    for name, errors in (("", result.errors), ("raw_", None)):
        used, held, maker = _projected(plant, paths, mapping, result.cutoff_hz, errors)
        columns = list(maker.base.independent)
        truths, ours = maker.base.matrix @ truth, maker.base.matrix @ result.model.theta
        gram, right = np.zeros((len(columns), len(columns))), np.zeros(len(columns))
        for A, y in _classical_rows(maker, used):
            gram, right = gram + A.T @ A, right + A.T @ y
        size = 1.0 / np.sqrt(np.maximum(np.diag(gram), 1e-300))
        beta = size * np.linalg.lstsq(gram * size * size[:, None], size * right, rcond=1e-13)[0]
        lead = [columns.index(k) for k in (1, 2, 3) if k in columns]
        whole = float(truth[: plant.robot.inertial_count : 10].sum())
        if not name:
            sums = np.zeros(3)
            for A, y in _classical_rows(maker, held):
                sums += [np.sum((y - A @ b) ** 2) for b in (truths, ours, beta)]
            out["held_out_ratio"] = float(np.sqrt(sums[1] / sums[0]))
            out["classical_ratio"] = float(np.sqrt(sums[2] / sums[0]))
        out |= {
            f"classical_{name}mass_percent": 100.0 * float(beta[columns.index(0)] / truths[columns.index(0)] - 1.0),
            f"classical_{name}centre_mm": 1e3 * float(np.abs(beta[lead] - truths[lead]).max()) / whole,
        }
    return out


def _projected(plant: Plant, paths: list[Path], mapping: dict[str, Any], cutoff_hz: float, errors: Any) -> tuple:
    """Stretches of fit and hold-out, and their rows, all equations weighted alike."""
    from steelyard.floating.identify import bound_terms
    from steelyard.floating.mechanism_logs import MechanismLogs
    from steelyard.floating.motion import Preparer
    from steelyard.floating.sensor_errors import SensorErrors
    from steelyard.floating.setup import FloatingMapping
    from steelyard.regression.base_parameters import base_parameters

    stated = FloatingMapping.of(mapping, plant.robot)
    preparer = Preparer(plant.robot, stated, errors or SensorErrors())
    task = MechanismLogs(preparer, base_parameters(plant.robot, bound_terms(plant.robot, stated, None)), None)
    used, held = task.stretches([preparer.read(p) for p in paths], cutoff_hz, 0.25)
    maker = task.row_maker(used)
    maker.scale = np.ones(plant.robot.dof)
    return used, held, maker


def _classical_rows(maker: Any, stretches: list) -> Any:
    for stretch in stretches:
        for N, Y, f, own in maker.tables(stretch):
            J = maker.unknown_rows(stretch.motion.q[own], stretch.closed, stretch.motion.missing)
            P = np.eye(N.shape[1]) - np.linalg.pinv(J) @ J
            yield (P @ Y).reshape(-1, Y.shape[2]), np.einsum("tij,tj->ti", P, f).ravel()

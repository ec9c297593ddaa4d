"""Find wrong readings: outliers, exchanged reflectors, a sensor that was moved between two poses."""

from __future__ import annotations

from dataclasses import dataclass, replace
from itertools import permutations

import numpy as np

from steelyard.calibration.deviation_fit import Fit, Problem, fit_deviations
from steelyard.calibration.joint_effects import Deviations
from steelyard.calibration.measurement import Measurement, Setup
from steelyard.calibration.weights import (
    block_stds,
    distances,
    pose_means,
    row_weights,
    scales,
    shared_error,
    shown_error,
)
from steelyard.ground.arrays import Array, IndexArray

# The logarithms of residuals scatter about evenly, also those of heavy-tailed errors. A reading this many standard
# deviations above the median is wrong; a normal distribution has one in 30,000.
_FAR = 4.0
# Effects that move a tool by more than a tenth of a millimetre; without them, wrong readings do not stand out.
_EFFECTS = ("offsets", "axes", "compliance", "backlash")
# With fewer readings per unknown than this, so many effects also bend towards wrong readings; offsets alone then judge.
_READINGS_PER_UNKNOWN = 3.0
# Standard deviation of a normal distribution per median absolute deviation.
_PER_MAD = 1.4826
# Fewest poses of a session, so that its six numbers follow from several times as many readings.
_FEWEST_IN_SESSION = 8
_MOST_SESSIONS = 8
_ROWS_SHOWN = 8
_FIRST_LOOK, _POSES_FOR_CUT = 4.0, 200


@dataclass(frozen=True, eq=False)
class Faults:
    """Wrong readings of a table, and the readings without them.

    Attributes:
        measurement: Readings with sessions; exchanged points are exchanged back, wrong ones are NaN.
        setup: Setup of these sessions.
        findings: Sentences.
        outliers: Index of every pose with a wrong reading.
        swapped: Index of every pose with exchanged points.
        moved: Index of every pose before which the sensor was moved.
    """

    measurement: Measurement
    setup: Setup
    findings: tuple[str, ...]
    outliers: tuple[int, ...] = ()
    swapped: tuple[int, ...] = ()
    moved: tuple[int, ...] = ()


def find_faults(problem: Problem, setup: Setup, row_numbers: IndexArray) -> Faults:
    """Find wrong readings with a model of offsets and axes.

    Args:
        problem: Poses and readings.
        setup: First setup.
        row_numbers: Row of every pose in the file, for messages.
    """
    findings: list[str] = []
    swaps: tuple[int, ...] = ()
    own = problem.measurement
    geometry = _with_geometry(problem, setup)
    moves = _sessions(geometry, setup)
    if moves:
        cuts = np.zeros(len(own), dtype=np.intp)
        cuts[list(moves)] = 1
        sessions = np.cumsum(cuts)
        places = ", ".join(f"row {int(row_numbers[k])}" for k in moves)
        findings.append(f"The sensor or the base was moved before {places}: each part has its own place of the sensor.")
        own = own.with_sessions(sessions)
        setup = own.start(problem.tips(np.zeros(len(problem.deviations))))[0]
    geometry = replace(geometry, measurement=own)
    fit = fit_deviations(geometry, setup)
    if own.name == "points" and own.readings["points"].shape[1] > 1:
        swaps, own = _exchanged(geometry, fit)
        if swaps:
            findings.append(f"Points were exchanged in {_rows(row_numbers, swaps)}; they are exchanged back.")
            geometry = replace(geometry, measurement=own)
            fit = fit_deviations(geometry, fit.setup, fit.values)
    size = distances(own, geometry.residuals(fit.setup, fit.values))
    far = far_readings(size / block_stds(own, fit.stds))
    outliers = tuple(int(k) for k in np.flatnonzero(far.any(axis=1)))
    if outliers:
        rest = "they hardly count" if own.name in ("plane", "sphere", "contact") else "they are left out"
        findings.append(
            f"Readings are wrong in {_rows(row_numbers, outliers)}, by up to {_largest(own, size, far)}; {rest}."
        )
        own = _without(own, far)
    return Faults(own, fit.setup, tuple(findings), outliers, swaps, moves)


def _with_geometry(problem: Problem, setup: Setup) -> Problem:
    chain, measurement = problem.deviations.chain, problem.measurement
    deviations = Deviations.of(chain, _EFFECTS)
    # Points of one pose share the error of the robot: they count as one.
    readings = len(measurement) * sum({c: rows.stop - rows.start for rows, c in measurement.blocks}.values())
    if readings < _READINGS_PER_UNKNOWN * (len(deviations) + len(measurement.setup_names(setup))):
        deviations = Deviations.of(chain, ("offsets",))
    return Problem.of(deviations, problem.postures, measurement)


def far_readings(sizes: Array) -> Array:
    """Return which residuals are too large to be of the same kind as the others.

    Args:
        sizes: Size of every residual, shape (poses, blocks); NaN: not measured.
    """
    logs = np.log(np.maximum(sizes, 1e-300))
    out = np.zeros(sizes.shape, dtype=bool)
    for k in range(sizes.shape[1]):
        finite = np.isfinite(sizes[:, k])
        if not finite.any():
            continue
        middle = float(np.median(logs[finite, k]))
        # The upper half alone: a few residuals are near zero by chance, which is far in logarithms.
        above = logs[finite, k][logs[finite, k] > middle]
        scatter = _PER_MAD * float(np.median(above - middle)) if len(above) else 0.0
        out[finite, k] = logs[finite, k] > middle + _FAR * max(scatter, 1e-9)
    return out


def _largest(measurement: Measurement, sizes: Array, far: Array) -> str:
    """The largest error among wrong readings, in mm or °."""
    k = int(np.argmax(np.where(far, sizes, 0.0).max(axis=0)))
    return shown_error(float(sizes[far[:, k], k].max()), measurement.blocks[k][1])


def _rows(numbers: IndexArray, chosen: tuple[int, ...]) -> str:
    listing = ", ".join(str(int(numbers[k])) for k in chosen[:_ROWS_SHOWN])
    more = f" and {len(chosen) - _ROWS_SHOWN} more" if len(chosen) > _ROWS_SHOWN else ""
    return f"row{'s' if len(chosen) > 1 else ''} {listing}{more}"


def _without(measurement: Measurement, far: Array) -> Measurement:
    """Replace wrong readings by NaN."""
    readings = {name: np.array(value, dtype=float) for name, value in measurement.readings.items()}
    if measurement.name == "points":
        readings["points"][far] = np.nan
    elif measurement.name == "distances":
        readings["distances"][far] = np.nan
    elif measurement.name == "pose":
        wrong = far.any(axis=1)
        readings["position"][wrong] = np.nan
        readings["rotation"][wrong] = np.nan
    else:
        return measurement  # contacts: their small weights suffice
    return replace(measurement, readings=readings)


def _exchanged(problem: Problem, fit: Fit) -> tuple[tuple[int, ...], Measurement]:
    """Poses whose points fit far better in another order."""
    measurement = problem.measurement
    tips = problem.tips(fit.values)
    count = measurement.readings["points"].shape[1]
    orders = list(permutations(range(count))) if count <= 4 else [
        tuple(j if k == i else i if k == j else k for k in range(count)) for i in range(count) for j in range(i, count)
    ]  # fmt: skip
    costs = []
    for order in orders:
        readings = {**measurement.readings, "points": measurement.readings["points"][:, list(order)]}
        other = replace(measurement, readings=readings)
        costs.append(pose_means(distances(other, other.residuals(fit.setup, tips))))
    cost = np.array(costs)
    first = next(k for k, order in enumerate(orders) if order == tuple(range(count)))
    best = np.argmin(np.where(np.isfinite(cost), cost, np.inf), axis=0)
    # An exchanged pose is far off in its own order, and like the others in the right one.
    usual = float(np.nanmedian(cost[first]))
    wrong = far_readings(cost[first][:, None])[:, 0] & (cost[best, np.arange(len(best))] < 3.0 * usual)
    points = measurement.readings["points"].copy()
    for k in np.flatnonzero(wrong):
        points[k] = points[k, list(orders[best[k]])]
    return tuple(int(k) for k in np.flatnonzero(wrong)), replace(
        measurement, readings={**measurement.readings, "points": points}
    )


def _sessions(problem: Problem, setup: Setup) -> tuple[int, ...]:
    """Poses before which the place of the sensor changed; () if the table has sessions, or needs no sensor."""
    measurement = problem.measurement
    if measurement.session_count > 1 or measurement.name not in ("points", "pose"):
        return ()
    cuts: list[int] = []
    bounds = [(0, len(measurement))]
    while bounds and len(cuts) < _MOST_SESSIONS:
        low, high = bounds.pop()
        cut = _best_cut(problem, setup, low, high)
        if cut is not None:
            cuts.append(cut)
            bounds += [(low, cut), (cut, high)]
    return tuple(sorted(cuts))


def _best_cut(problem: Problem, setup: Setup, low: int, high: int) -> int | None:
    """The pose that divides a range best into two places of the sensor; None if one place explains it as well."""
    if high - low < 2 * _FEWEST_IN_SESSION:
        return None
    rows = np.arange(low, high)
    part = problem.rows(rows)
    fit = fit_deviations(part, setup)
    tips = part.tips(fit.values)
    residuals = part.measurement.residuals(fit.setup, tips)
    J = part.measurement.linear(fit.setup, tips).by_setup[:, :, :6]
    stds, weights = scales(part.measurement, residuals, fit.freedom)
    w = row_weights(part.measurement, stds, weights)
    clean = np.nan_to_num(residuals)
    gram = np.cumsum(np.einsum("nmp,nm,nmq->npq", J, w, J), axis=0)
    slope = np.cumsum(np.einsum("nmp,nm->np", J, w * clean), axis=0)
    gains, ridge = np.zeros(len(rows)), 1e-9 * np.diag(np.diag(gram[-1]))
    for k in range(_FEWEST_IN_SESSION, len(rows) - _FEWEST_IN_SESSION):
        halves = ((gram[k - 1], slope[k - 1]), (gram[-1] - gram[k - 1], slope[-1] - slope[k - 1]))
        gains[k] = sum(float(s @ np.linalg.solve(g + ridge, s)) for g, s in halves)
    best = int(np.argmax(gains))
    # A first test: six numbers gain about six by chance, and the points of a pose count as one.
    if gains[best] < _FIRST_LOOK * 6.0 * shared_error(part.measurement, residuals, weights):
        return None
    return low + best if _really_moved(part, best) else None


def _really_moved(part: Problem, cut: int) -> bool:
    """Whether poses on both sides of a cut are better predicted with two places, by interleaved halves of the poses."""
    if cut == 0:
        return False
    # Some hundred poses show a moved sensor.
    thin = np.arange(0, len(part.postures), max(1, len(part.postures) // _POSES_FOR_CUT))
    part, cut = part.rows(thin), int(np.searchsorted(thin, cut))
    n = len(part.postures)
    sessions = (np.arange(n) >= cut).astype(np.intp)
    wins = []
    for parity in (0, 1):
        rows, rest = np.flatnonzero(np.arange(n) % 2 == parity), np.flatnonzero(np.arange(n) % 2 != parity)
        errors = []
        for labels in (np.zeros(n, dtype=np.intp), sessions):
            marked = replace(part, measurement=part.measurement.with_sessions(labels))
            fitted, judged = marked.rows(rows), marked.rows(rest)
            tips = fitted.tips(np.zeros(len(part.deviations)))
            if labels.any() and min(np.bincount(labels[rows])) < 4:
                return False
            fit = fit_deviations(fitted, fitted.measurement.start(tips)[0])
            errors.append(pose_means(distances(judged.measurement, judged.residuals(fit.setup, fit.values))))
        wins.append(errors[0] - errors[1])
    change = np.concatenate(wins)
    change = change[np.isfinite(change)]
    # Five standard errors: the cut was chosen among all poses.
    return bool(np.mean(change) > 5.0 * np.std(change) / np.sqrt(len(change)))

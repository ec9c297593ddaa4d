"""`identify_gravity`: identifies the gravity torque of a robot from poses at rest.

At rest τ = Y_g(q) θ + offset + friction: only masses, first moments, offsets and springs act. Dry friction is between
−F and F at every pose. Left-out poses choose its model for each joint: noise, Coulomb friction against the last motion,
or any value in a tube.
"""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from steelyard.dynamics.model import Model
from steelyard.errors import LogError
from steelyard.estimation.linear.block_jackknife import jackknife
from steelyard.estimation.linear.widening import motion_variance
from steelyard.gravity.columns import GravityColumns
from steelyard.gravity.friction_at_rest import FrictionKind
from steelyard.gravity.gravity_model import GravityModel, GravityScore
from steelyard.gravity.link_bounds import nearest_links
from steelyard.gravity.static_fit import StaticFit, StaticRows, fit_static
from steelyard.ground.arrays import Array, one_blas_thread
from steelyard.ground.progress import ProgressCallback, report_progress, reports_progress
from steelyard.ground.student import quantile
from steelyard.parameters.terms import TermsLike
from steelyard.robot.load import RobotLike, as_robot
from steelyard.signals.as_logs import LogsLike
from steelyard.signals.held_poses import HeldPoses, held_poses, logs_or_poses
from steelyard.signals.read import AnyMapping

# Left-out parts: ten leave nine tenths of the poses for every fit.
_PARTS = 10
# An outlier is a pose whose residual is so large that heavy-tailed noise (Student's t with `_TAILS` degrees of freedom)
# would produce less than 0.5 such poses in the whole log. The search allows for noise that outliers have increased up
# to `_INFLATED` times. If the share of outliers exceeds `_MOST_OUTLYING`, the model is wrong, and all poses are used.
_TAILS, _INFLATED, _MOST_OUTLYING = 3, 5.0, 0.1
_KINDS: tuple[FrictionKind, ...] = ("noise", "side", "tube")


@reports_progress
def identify_gravity(
    robot: RobotLike,
    log: LogsLike,
    validate: LogsLike = (),
    *,
    terms: TermsLike | None = ("offset",),
    rows: bool | None = None,
    mapping: AnyMapping = None,
    progress: ProgressCallback | None = None,
) -> GravityModel:
    """Identify the gravity torque of a robot from poses at rest.

    Args:
        robot: Robot, in any form that `load_robot` accepts; its masses are the prior.
        log: Tables with a pose in each row, or logs of motions with stops.
        validate: The same for validation; the fit does not use them.
        terms: Joint terms that act at rest: offset, spring, counterbalance.
        rows: Whether each row of the logs is a pose at rest; None: decide this from the data of each log.
        mapping: Meaning of the columns of files and frames, as in `read_log`; tables of poses need no time.
        progress: Callback for the progress (`steelyard.ground.progress`).
    """
    robot = as_robot(robot)
    poses = held_poses(robot, logs_or_poses(log, robot, mapping), rows)
    extra = logs_or_poses(validate, robot, mapping)
    validation = held_poses(robot, extra, rows) if extra else None
    if validation is not None and not len(validation):
        warnings.warn("The validation logs show no pose at rest; they are not used.", stacklevel=2)
        validation = None
    columns = GravityColumns.of(robot, terms)
    report_progress("Poses", 0.1)
    with one_blas_thread():
        return _identify(columns, poses, validation)


def _identify(
    columns: GravityColumns, poses: HeldPoses, validation: HeldPoses | None, without: tuple[tuple[int, int], ...] = ()
) -> GravityModel:
    robot = columns.robot
    _refuse_too_few(columns, poses)
    rows = StaticRows(columns.base_rows(poses.q), poses.tau, poses.side, np.array(robot.torque_used))
    middle, std = link_prior(columns, poses)
    center = columns.groups @ middle
    prior = np.asarray(np.linalg.inv((columns.groups * std**2) @ columns.groups.T), dtype=float)
    parts = left_out_parts(poses)
    kinds = choose_friction(rows, parts, center, prior)
    fit = fit_static(rows, kinds, center, prior)
    report_progress("Left-out poses", 0.7)
    fits = [fit_static(rows.select(~out), kinds, center, prior, fit) for out in parts]
    outlying = outlying_poses(rows, parts, fits)
    if outlying.any() and not without:
        return _identify(
            columns,
            poses.select(~outlying),
            validation,
            tuple(zip(poses.log[outlying] + 1, poses.row[outlying], strict=True)),
        )

    def links(one: StaticFit) -> tuple[Array, tuple[int, ...]]:
        return nearest_links(columns.groups, one.beta, one.information, one.slope, middle, std, columns.reach)

    values, border = links(fit)
    errors, friction = np.zeros_like(rows.y), np.zeros_like(rows.y)
    for out, one in zip(parts, fits, strict=True):
        own = links(one)[0]
        errors[out] = rows.y[out] - columns.rows(poses.q[out]) @ own
        friction[out] = one.friction_torque(rows.side[out])
    theta = np.zeros(len(columns.dynamics.parameters))
    theta[list(columns.columns)] = values
    covariance = widened(fit, fits)
    scores = {"left-out poses": GravityScore.of(errors, friction, rows.y)}
    if validation is not None:
        rest = validation.tau - columns.rows(validation.q) @ values
        scores["validation"] = GravityScore.of(rest, fit.friction_torque(validation.side), validation.tau)
    return GravityModel(
        Model(robot, columns.dynamics.terms, theta), columns, poses, fit.beta, covariance, fit.degrees, fit.friction,
        prior, scores, errors, tuple(robot.link_names[k] for k in border), tuple((int(a), int(b)) for a, b in without),
    )  # fmt: skip


def outlying_poses(
    rows: StaticRows, parts: Sequence[NDArray[np.bool_]], fits: Sequence[StaticFit]
) -> NDArray[np.bool_]:
    """Find outliers, such as poses of a touched robot or wrong rows.

    Args:
        rows: Equations.
        parts: Left-out parts.
        fits: Fits without each part.
    """
    scores = np.zeros(rows.y.shape)
    for out, one in zip(parts, fits, strict=True):
        r = rows.select(out)
        error = one.residuals(r) - one.friction_torque(r.side)
        variance = np.maximum(np.sum(r.A @ one.covariance * r.A, axis=2), 0.0)
        limit = np.array([abs(f.limit) for f in one.friction])
        noise = np.array([f.noise for f in one.friction])
        # The test allows any friction in the tube, for each kind of friction.
        scores[out] = np.maximum(np.abs(error) - limit, 0.0) / np.sqrt(noise**2 + variance)
    scores = scores[:, rows.used]
    # Outliers increase the standard deviation, so the noise is estimated from the median of the scores.
    middle = np.maximum(np.median(scores, axis=0) / 0.6745, 1.0 / _INFLATED)
    outlying = np.any(scores > quantile(1.0 - 0.5 / scores.size, _TAILS) * middle, axis=1)
    return outlying if outlying.sum() <= _MOST_OUTLYING * len(outlying) else np.zeros(len(outlying), dtype=bool)


def _refuse_too_few(columns: GravityColumns, poses: HeldPoses) -> None:
    if len(poses) < 3:
        raise LogError(
            f"The logs have {len(poses)} poses at rest; at least 3 are needed. Hold each pose for half a second or "
            "longer, or give a table with a pose in each row."
        )
    if not np.any(np.ptp(poses.q, axis=0) > 0.0):
        raise LogError("All poses are equal; gravity needs different poses.")


def link_prior(columns: GravityColumns, poses: HeldPoses) -> tuple[Array, Array]:
    """Return prior values of all parameters from the description, and wide standard deviations.

    The standard deviation of a mass is the mass of a body that makes the largest torque on the shortest reach.

    Args:
        columns: Columns of the robot.
        poses: Poses with torques.
    """
    robot = columns.robot
    gravity = max(float(np.linalg.norm(robot.gravity)), 1e-9)
    revolute = np.array([j.kind == "revolute" for j in robot.joints])
    arm = np.where(revolute, float(columns.reach.min()), 1.0)
    loads = np.max(np.abs(poses.tau), axis=0, initial=0.0)
    heaviest = max(float(np.max(loads / (gravity * arm), where=robot.torque_used, initial=0.0)), 1e-6)
    middle, std = np.zeros(len(columns.columns)), np.zeros(len(columns.columns))
    for k in range(len(robot.links)):
        inertia = robot.links[k].inertia
        if inertia is not None:
            middle[4 * k : 4 * k + 4] = inertia[:4]
        std[4 * k : 4 * k + 4] = heaviest * np.array([1.0, *[columns.reach[k]] * 3])
    std[4 * len(robot.links) :] = 10.0 * max(float(loads.max()), 1e-6)
    return middle, std


def left_out_parts(poses: HeldPoses) -> list[NDArray[np.bool_]]:
    """Divide `poses` into consecutive parts, so that neighbours of a sweep are in one part."""
    count = min(_PARTS, len(poses))
    edges = np.linspace(0, len(poses), count + 1).round().astype(int)
    rows = np.arange(len(poses))
    return [(rows >= a) & (rows < b) for a, b in pairwise(edges)]


def choose_friction(
    rows: StaticRows, parts: Sequence[NDArray[np.bool_]], center: Array, prior: Array
) -> tuple[FrictionKind, ...]:
    """Choose the kind of friction of each joint by the log-density of left-out poses.

    Another kind than "noise" must be better by more than the standard error of the gain over the parts (Breiman et al.
    1984, the one-standard-error rule).

    Args:
        rows: Equations.
        parts: Poses to leave out together.
        center, prior: As for `fit_static`.
    """
    joints = rows.y.shape[1]
    scores = {}
    for kind in _KINDS:
        if kind == "side" and not np.any(rows.side):
            continue
        kinds = tuple(_possible_kind(kind, rows.side[:, j]) for j in range(joints))
        whole = fit_static(rows, kinds, center, prior)
        each = [fit_static(rows.select(~out), kinds, center, prior, whole).log_score(rows.select(out)) for out in parts]
        scores[kind] = np.array([part.sum(axis=0) for part in each])
    return tuple(_best_kind(scores, j) for j in range(joints))


def _possible_kind(kind: FrictionKind, side: Array) -> FrictionKind:
    return kind if kind != "side" or (np.any(side > 0.0) and np.any(side < 0.0)) else "noise"


def _best_kind(scores: dict[FrictionKind, Array], joint: int) -> FrictionKind:
    best, most = _KINDS[0], 0.0
    for kind, score in scores.items():
        gain = score[:, joint] - scores["noise"][:, joint]
        error = float(gain.std(ddof=1) * np.sqrt(len(gain))) if len(gain) > 1 else np.inf
        if gain.sum() > max(most, error):
            best, most = kind, float(gain.sum())
    return best


def widened(fit: StaticFit, fits: Sequence[StaticFit]) -> Array:
    """Return the covariance of the unknowns, widened by the scatter of fits without parts of the poses.

    Args:
        fit: Fit to all poses.
        fits: Jackknife fits, each without one part.
    """
    noise = np.maximum(np.diag(fit.covariance), 0.0)
    added = motion_variance(noise, jackknife([one.beta for one in fits]), len(fits))
    factor = np.sqrt(1.0 + added / np.where(noise > 0.0, noise, 1.0))
    return np.asarray(fit.covariance * np.outer(factor, factor))

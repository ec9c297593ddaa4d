"""`calibrate`: from a table of held poses to a corrected robot."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from steelyard.calibration.calibration import Calibration, StageFit
from steelyard.calibration.chain import Chain
from steelyard.calibration.choose import LADDER, EffectChoice, choose_effects
from steelyard.calibration.deviation_fit import Problem, fit_deviations
from steelyard.calibration.errors_of import uncertainty_of
from steelyard.calibration.faults import find_faults
from steelyard.calibration.joint_effects import EFFECTS, Deviations, postures_of
from steelyard.calibration.pose_table import PoseTable, as_pose_table
from steelyard.calibration.table_mistakes import refuse_mistakes
from steelyard.calibration.weights import shown_error
from steelyard.errors import LogError, SteelyardError
from steelyard.gravity.gravity_model import GravityModel
from steelyard.ground.arrays import IndexArray, one_blas_thread
from steelyard.ground.progress import report_progress
from steelyard.robot.load import RobotLike, load_robot
from steelyard.robot.robot import Robot

# Fewer poses do not determine the poses of the sensor and of the tool.
_FEWEST = 8


def calibrate(
    robot: RobotLike,
    poses: PoseTable | Any,
    *,
    frame: str = "",
    kind: str = "",
    points: Sequence[str] = (),
    only: Sequence[str] = (),
    effects: Sequence[str] | None = None,
    holdout: float | PoseTable | Any = 0.0,
    sigma: float | None = None,
    gravity: GravityModel | None = None,
    seed: int = 0,
) -> Calibration:
    """Calibrate the geometry of a robot from held poses.

    The fit always includes the base in the sensor's frame and the tool. Cross-validation over the poses selects the
    effects (offsets, axes, compliance, backlash, …).

    Args:
        robot: Robot, as `load_robot` takes it.
        poses: Table of poses: what `read_poses` takes, or its result.
        frame: Frame that carries the tool; default: the last link.
        kind: Kind of measurement; default: recognised by the columns.
        points: Prefixes of the columns to use; default: all.
        only: Columns that must be true in the rows to use.
        effects: Effects of the model; None: choose.
        holdout: Share of the poses that only evaluate the result, or a table of such poses.
        sigma: Standard deviation of the sensor [m]; default: a column sigma_m, or unknown.
        gravity: Gravity model from torques of held poses (`identify_gravity`), for compliance and bearings; default:
            the masses of the description.
        seed: Seed of the division.
    """
    described = load_robot(robot, snap=0.0)
    options = {"kind": kind, "points": points, "only": only, "sigma": sigma}
    table = as_pose_table(poses, described, **options)
    apart: PoseTable | None = None
    if isinstance(holdout, float | int):
        if not 0.0 <= holdout <= 0.9:
            raise SteelyardError(f"The hold-out is {holdout:g}; give a share of the poses from 0 to 0.9, such as 0.3.")
        if holdout > 0.0:
            table, apart = table.split(float(holdout), seed)
    else:
        apart = as_pose_table(holdout, described, **options)
    if len(table) < _FEWEST:
        raise LogError(f"{table.source}: has {len(table)} poses; {_FEWEST} are needed at least, 30 are reasonable.")
    for name in effects or ():
        EFFECTS[name]  # refuses unknown names
    with one_blas_thread():  # the matrices are small; a second thread only adds load
        chain = Chain(described, described.moving_frame(frame), _weights(described, gravity))
        report_progress("Finding the sensor and the tool", 0.1)
        refuse_mistakes(chain, table)
        start = Problem.of(Deviations.of(chain, ()), postures_of(chain, table.q, table.approach), table.measurement)
        firsts = table.measurement.start(chain.tips(table.q))
        fits = [fit_deviations(start, first) for first in firsts] if len(firsts) > 1 else []
        setup = min(fits, key=lambda fit: sum(fit.stds.values())).setup if fits else firsts[0]
        report_progress("Looking for wrong readings", 0.2)
        faults = find_faults(start, setup, table.row_numbers)
        if apart is not None and faults.moved and apart.source == table.source:
            apart = _in_sessions(apart, table.row_numbers[list(faults.moved)])
        table, setup = replace(table, measurement=faults.measurement), faults.setup
        start = replace(start, measurement=faults.measurement)
        report_progress("Choosing the model", 0.4)
        choice = choose_effects(effects, start, setup)
        report_progress("Computing error bars", 0.8)
        result = _result(chain, table, apart, choice, faults.findings, gravity)
        if effects is not None or not result.doubtful:
            return result
        stays = (*faults.findings, _why_described(result))
        return _result(chain, table, apart, choice.of_description(result.effects), stays, gravity)


def _in_sessions(apart: PoseTable, moved: IndexArray) -> PoseTable:
    """Assign poses of a hold-out to the sessions that begin at rows of the same file."""
    sessions = np.searchsorted(np.sort(moved), apart.row_numbers, side="right")
    return replace(apart, measurement=apart.measurement.with_sessions(sessions))


def _weights(robot: Robot, gravity: GravityModel | None) -> Robot | None:
    """The robot with the masses and first moments of a gravity model."""
    if gravity is None:
        return None
    if gravity.robot.joint_names != robot.joint_names or len(gravity.robot.links) != len(robot.links):
        raise SteelyardError(
            f"The gravity model is of robot '{gravity.robot.name}' with joints {', '.join(gravity.robot.joint_names)}; "
            "identify gravity with the robot to calibrate."
        )
    blocks = np.asarray(gravity.model.theta[: gravity.robot.inertial_count]).reshape(-1, 10)
    links = (replace(link, inertia=block) for link, block in zip(robot.links, blocks, strict=True))
    return replace(robot, links=tuple(links))


def _result(
    chain: Chain,
    table: PoseTable,
    apart: PoseTable | None,
    choice: EffectChoice,
    findings: tuple[str, ...],
    gravity: GravityModel | None,
) -> Calibration:
    stages = {
        "nominal": _stage(choice, "nominal", ()),
        "geometry": _stage(choice, "geometry", tuple(e for e in choice.chosen.effects if e in LADDER[-1])),
        "offsets": _stage(choice, "offsets", ("offsets",)),
        "full": StageFit("full", choice.problem, choice.fit, uncertainty_of(choice.problem, choice.fit)),
    }
    return Calibration(
        chain=chain, table=table, holdout=apart, choice=choice, stages=stages, findings=findings, gravity=gravity
    )


def _why_described(result: Calibration) -> str:
    """Sentence: why the description stays although left-out poses are better without it."""
    channel, full = next(iter(result.left_out["full"].mean.items()))
    before = result.left_out["nominal"].mean[channel]
    return (
        f"With {', '.join(result.effects)}, left-out poses have an error of {shown_error(full, channel)} instead of "
        f"{shown_error(before, channel)}, but outside of these {len(result.table)} poses the parameters alone add "
        f"about {shown_error(result.volume['outside'], channel)}. So the description stays. Measure about "
        f"{result.enough_poses} poses; or state the effects (--effects {','.join(result.effects)}) to use them."
    )


def _stage(choice: EffectChoice, name: str, effects: tuple[str, ...]) -> StageFit:
    """A smaller model than the chosen one, fitted on its own."""
    problem = choice.problem
    for own, fit in ((problem, choice.fit), *choice.steps):
        if effects == own.deviations.effects:
            return StageFit(name, own, fit, uncertainty_of(own, fit))
    smaller = Problem.of(Deviations.of(problem.deviations.chain, effects), problem.postures, problem.measurement)
    values_by_name = dict(zip(problem.deviations.names, choice.fit.values, strict=True))
    values = np.array([values_by_name.get(n, 0.0) for n in smaller.deviations.names])
    fit = fit_deviations(smaller, choice.fit.setup, values)
    return StageFit(name, smaller, fit, uncertainty_of(smaller, fit))

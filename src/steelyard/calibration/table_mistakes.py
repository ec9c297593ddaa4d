"""Refuse tables whose readings do not belong to their joint positions, and name the likely mistake.

A description is right to some per cent of the reach. If the readings are far from that, single mistakes are tried:
a joint that counts the other way, exchanged joints, a zero that is a quarter turn off, degrees, a mirrored sensor.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from dataclasses import replace
from itertools import combinations
from warnings import catch_warnings, simplefilter

import numpy as np

from steelyard.calibration.chain import Chain, Tips
from steelyard.calibration.kinds.markers import PointReadings, PoseReadings, first_base
from steelyard.calibration.pose_table import PoseTable
from steelyard.errors import LogError
from steelyard.ground.arrays import Array

# Usual error of a description, as a share of the extent of the readings. The zero positions of low-cost arms are wrong
# by some degrees, and one degree moves the tool by 2 % of the reach.
_USUAL = 0.05
# Descriptions turn the tool by less than this [rad], zeros that are wrong by some degrees included.
_USUAL_TURN = 0.2
# A mistake explains the readings if its correction leaves this part of the error.
_BETTER = 0.2


def refuse_mistakes(chain: Chain, table: PoseTable) -> None:
    """Raise an error if a single mistake in the columns explains the readings, and the table as it is does not.

    Args:
        chain: Chain with the nominal geometry.
        table: Table of poses.
    """
    measurement = table.measurement
    if isinstance(measurement, PoseReadings):
        _refuse_orientations(chain, table, measurement)
    if isinstance(measurement, PointReadings):
        places = measurement.seen
    elif isinstance(measurement, PoseReadings):
        places = measurement.readings["position"][:, None]
    else:
        return
    # One session is enough: a wrong column is wrong in all of its rows.
    own = np.flatnonzero(measurement.sessions == np.bincount(measurement.sessions).argmax())
    finite = np.asarray(np.isfinite(places[own]).all(axis=2))
    own = own[finite.any(axis=1)]
    q, places = table.q[own], places[own]
    extent = float(np.nanmax(np.ptp(np.nan_to_num(places, nan=np.nanmedian(places)), axis=0)))
    usual = _error(chain, q, places)
    if usual < _USUAL * extent:
        return
    best, remedy = usual, ""
    for other, points, own_remedy in _corrected(chain, q, places):
        with suppress(LogError):  # a rival may suggest other units than metres
            best, remedy = min((best, remedy), (_error(chain, other, points), own_remedy))
    if best < _BETTER * usual:
        raise LogError(f"{table.source}: the readings do not fit the joint positions; {remedy}.")


def _refuse_orientations(chain: Chain, table: PoseTable, measurement: PoseReadings) -> None:
    """Raise an error if another convention of the orientations explains poses that do not fit."""
    finite = np.isfinite(measurement.readings["rotation"]).all(axis=(1, 2))
    own = np.flatnonzero(finite & np.isfinite(measurement.readings["position"]).all(axis=1))
    tips, measured = chain.tips(table.q[own]), measurement.rows(own)
    if len(own) < 4 or (usual := _turn(measured, tips)) < _USUAL_TURN:
        return
    best, remedy = usual, ""
    for readings, own_remedy in _other_conventions(measured):
        with suppress(LogError):
            other = replace(measured, readings={**measured.readings, **readings})
            best, remedy = min((best, remedy), (_turn(other, tips), own_remedy))
    if best < _BETTER * usual:
        raise LogError(f"{table.source}: the orientations do not fit the joint positions; {remedy}.")


def _turn(measurement: PoseReadings, tips: Tips) -> float:
    """Median angle between measured and predicted orientations [rad]."""
    residuals = measurement.residuals(measurement.start(tips)[0], tips)
    return float(np.nanmedian(np.linalg.norm(residuals[:, 3:], axis=1)))


def _other_conventions(measurement: PoseReadings) -> Iterator[tuple[dict[str, Array], str]]:
    """Readings by other conventions, and the remedy for the user."""
    from scipy.spatial.transform import Rotation

    rotation, position = measurement.readings["rotation"], measurement.readings["position"]
    back = np.swapaxes(rotation, 1, 2)
    yield (
        {"rotation": back, "position": -np.einsum("nij,nj->ni", back, position)},
        "they are poses of the sensor in the frame of the tool: write the inverse poses",
    )
    yield {"rotation": back}, "they turn the sensor into the tool: write the inverse rotations"
    turn = Rotation.from_matrix(rotation)
    numbers = turn.as_quat()
    yield (
        {"rotation": Rotation.from_quat(np.roll(numbers, -1, axis=1)).as_matrix()},
        "the scalar of the quaternion is in the column of x: order the columns as qw, qx, qy, qz",
    )
    yield (
        {"rotation": Rotation.from_quat(np.roll(numbers, 1, axis=1)).as_matrix()},
        "the scalar of the quaternion is in the column of z: order the columns as qx, qy, qz, qw",
    )
    with catch_warnings():
        simplefilter("ignore")  # near a pitch of 90°, two of the angles are one
        angles = turn.as_euler("xyz")
    yield (
        {"rotation": Rotation.from_euler("XYZ", angles).as_matrix()},
        "roll, pitch and yaw turn about moved axes: write quaternions",
    )
    yield (
        {"rotation": Rotation.from_euler("xyz", turn.as_rotvec()).as_matrix()},
        "rx, ry, rz are roll, pitch and yaw: name the columns so",
    )
    yield (
        {"rotation": Rotation.from_rotvec(angles).as_matrix()},
        "roll, pitch and yaw are a rotation vector: name the columns rx, ry, rz",
    )


def _error(chain: Chain, q: Array, measured: Array) -> float:
    """Median distance of measured and predicted points, with the best place of sensor and tool."""
    tips = chain.tips(q)
    base, place, points = first_base(tips, measured, np.arange(len(q)))
    inside = tips.position[:, None] + np.einsum("nij,kj->nki", tips.rotation, points)
    return float(np.nanmedian(np.linalg.norm(inside @ base.T + place - measured, axis=2)))


def _corrected(chain: Chain, q: Array, measured: Array) -> Iterator[tuple[Array, Array, str]]:
    """Joint positions and readings after the correction of one mistake, and the remedy for the user."""
    moving = [link.coordinate for link in chain.links if np.ptp(q[:, link.coordinate]) > 0.0]
    names = chain.robot.joint_names
    turning = [k for k in moving if chain.robot.joints[k].kind == "revolute"]
    for k in moving:
        other = q.copy()
        other[:, k] *= -1.0
        yield other, measured, f"joint '{names[k]}' counts the other way: change the sign of its column"
    for k in turning:
        for quarters in (1, 2, 3):
            other = q.copy()
            other[:, k] += quarters * np.pi / 2.0
            turn = f"{(90 * quarters + 180) % 360 - 180:+d}"
            yield other, measured, f"the zero of joint '{names[k]}' is elsewhere: add {turn}° to its column"
    for a, b in combinations(moving, 2):
        other = q.copy()
        other[:, [a, b]] = q[:, [b, a]]
        yield other, measured, f"the columns of joints '{names[a]}' and '{names[b]}' are exchanged: exchange them back"
    other = q.copy()
    other[:, turning] = np.radians(q[:, turning])
    yield other, measured, "the angles are in degrees: name their columns with the suffix _deg"
    other = q.copy()
    other[:, turning] = np.degrees(q[:, turning])
    yield other, measured, "the angles are in rad: name their columns with the suffix _rad"
    yield (
        q,
        measured * [-1.0, 1.0, 1.0],
        ("the sensor's coordinates are mirrored: change the sign of one of them, or exchange two"),
    )
    yield q, measured[::-1], "they are in the opposite order of the rows: turn one of them around"
    for shift in (1, -1):
        cut = slice(None, -1) if shift > 0 else slice(1, None)
        late = measured[1:] if shift > 0 else measured[:-1]
        yield q[cut], late, "they are one row late: move the readings by one row"

"""Motion of a floating body from motion capture, a state estimator, or an IMU.

The rows need three signals in the axes of the body: angular velocity ω, its derivative, and the acceleration of the
origin minus gravity. An IMU measures the first and the last directly; the equations do not depend on position and
heading. Motion capture gives position and orientation; their derivatives follow after the low-pass of all signals.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from steelyard.errors import LogError
from steelyard.floating.setup import BaseColumns
from steelyard.ground.arrays import Array
from steelyard.robot.free import vector_part
from steelyard.robot.robot import Link
from steelyard.robot.spatial import rotation_from_rpy
from steelyard.signals.filters import LowPass, derivative
from steelyard.signals.log import Finding

# Tolerance of the length of a unit quaternion, for logs with three decimals.
_UNIT = 0.02
# The specific force at rest is g. A mean outside of half to twice g shows another unit or missing gravity.
_MEAN_FORCE = (0.5, 2.0)
# Larger angles between the mean specific force and the vertical [deg] are no errors of mounting or of an estimator.
_TILT = 30.0


@dataclass(frozen=True, eq=False)
class BodyMotion:
    """Motion of a floating body along a log, smooth.

    Attributes:
        q: Position in the world [m] and orientation, `(samples, 6)`, as in `robot.free`.
        dq: Velocity of the origin and angular velocity in the body's axes, `(samples, 6)`.
        ddq: Derivatives of `dq`, `(samples, 6)`.
        rotation: Orientation of the body in the world, `(samples, 3, 3)`; None: not measured.
    """

    q: Array
    dq: Array
    ddq: Array
    rotation: Array | None


def rotations_of(quaternions: Array) -> Array:
    """Convert unit `quaternions` w, x, y, z, `(samples, 4)`, to rotations, `(samples, 3, 3)`."""
    w, x, y, z = quaternions.T
    rows = [
        [1 - 2 * (y * y + z * z), 2 * (x * y - w * z), 2 * (x * z + w * y)],
        [2 * (x * y + w * z), 1 - 2 * (x * x + z * z), 2 * (y * z - w * x)],
        [2 * (x * z - w * y), 2 * (y * z + w * x), 1 - 2 * (x * x + y * y)],
    ]
    return np.moveaxis(np.array(rows), -1, 0)


def body_motion(signals: dict[str, Array], columns: BaseColumns, gravity: Array, low_pass: LowPass) -> BodyMotion:
    """Compute the motion of a floating body.

    Args:
        signals: Measured signals by name, as in `BaseColumns.columns`, `(samples, width)`.
        columns: Statement of the signals.
        gravity: Gravity in the world [m/s²].
        low_pass: Filter of all signals.
    """
    h = low_pass.period
    samples = len(next(iter(signals.values())))
    quaternion = _smooth_quaternion(signals, columns, low_pass)
    rotation = None if quaternion is None else rotations_of(quaternion)
    position = low_pass(signals["position"]) if "position" in signals else np.zeros((samples, 3))
    linear, angular = _velocities(signals, columns, low_pass, rotation, quaternion, position)
    q = np.hstack([position, np.zeros((samples, 3)) if quaternion is None else vector_part(quaternion)])
    turn = derivative(angular, h)
    if "accelerometer" in signals:
        # d/dt v = pull + g − ω × v, with v as an arbitrary reference: it cancels in the acceleration.
        pull = _pull(signals, columns, low_pass, angular, turn)
        down = gravity if rotation is None else np.einsum("tji,j->ti", rotation, gravity)
        rate = pull + down - np.cross(angular, linear)
    else:
        rate = derivative(linear, h)
    return BodyMotion(q, np.hstack([linear, angular]), np.hstack([rate, turn]), rotation)


def free_motion(
    link: Link, signals: dict[str, Array], columns: BaseColumns, low_pass: LowPass
) -> tuple[Array, Array, Array]:
    """Compute q, q̇ and q̈ of a spherical or planar joint, `(samples, 3)` each, as in `robot.free`.

    Args:
        link: Link with the joint.
        signals: Measured signals by name, in the frame of the joint.
        columns: Statement of the signals.
        low_pass: Filter of all signals.
    """
    h = low_pass.period
    if link.kind == "spherical":
        still = {**signals, "position": np.zeros((len(signals["orientation"]), 3))}
        motion = body_motion(still, columns, np.zeros(3), low_pass)
        return motion.q[:, 3:], motion.dq[:, 3:], motion.ddq[:, 3:]
    q = low_pass(np.hstack([signals["position"], np.unwrap(signals["angle"], axis=0)]))
    (x, y, spin), c, s = derivative(q, h).T, np.cos(q[:, 2]), np.sin(q[:, 2])
    dq = np.column_stack([c * x + s * y, c * y - s * x, spin])  # in the axes of the body
    return q, dq, derivative(dq, h)


def _smooth_quaternion(signals: dict[str, Array], columns: BaseColumns, low_pass: LowPass) -> Array | None:
    """Return the orientation as continuous unit quaternions w, x, y, z after the low-pass."""
    if "orientation" not in signals:
        return None
    raw = signals["orientation"]
    q = np.roll(raw, 1, axis=1) if columns.quaternion == "xyzw" else raw
    length = np.linalg.norm(q, axis=1)
    if np.any(np.abs(length - 1.0) > _UNIT):
        row = int(np.argmax(np.abs(length - 1.0) > _UNIT))
        raise LogError(
            f"The orientation of the base at sample {row + 1} has length {length[row]:.3g}, not 1; "
            "check the columns of the quaternion."
        )
    flips = np.concatenate([[1.0], np.where(np.sum(q[1:] * q[:-1], axis=1) < 0.0, -1.0, 1.0)])
    smooth = low_pass(q * np.cumprod(flips)[:, None])
    return np.asarray(smooth / np.linalg.norm(smooth, axis=1, keepdims=True))


def _velocities(
    signals: dict[str, Array], columns: BaseColumns, low_pass: LowPass, rotation: Array | None,
    quaternion: Array | None, position: Array,
) -> tuple[Array, Array]:  # fmt: skip
    """Return linear and angular velocity in the body's axes: measured if possible, else from the pose."""
    h, zero = low_pass.period, np.zeros_like(position)

    def into(x: Array) -> Array:
        return x if rotation is None else np.asarray(np.einsum("tji,tj->ti", rotation, x))

    if "gyroscope" in signals:
        angular = low_pass(signals["gyroscope"]) @ rotation_from_rpy(*columns.imu_rpy).T
    elif "angular_velocity" in signals:
        angular = low_pass(signals["angular_velocity"])
        angular = into(angular) if columns.twist == "world" else angular
    elif quaternion is not None:
        rate = derivative(quaternion, h)
        w, v, dw, dv = quaternion[:, :1], quaternion[:, 1:], rate[:, :1], rate[:, 1:]
        angular = 2.0 * (w * dv - dw * v - np.cross(v, dv))  # 2 q̄ ⊗ q̇
    else:
        raise LogError("The mapping states no rotation of the base; name its orientation, or a gyroscope.")
    if "linear_velocity" in signals:
        linear = low_pass(signals["linear_velocity"])
        linear = linear if columns.twist == "body" else into(linear)
    elif "position" in signals:
        linear = into(derivative(position, h))
    elif "accelerometer" in signals:
        linear = zero
    else:
        raise LogError("The mapping states no translation of the base; name its position, or an accelerometer.")
    if columns.twist in ("world", "mixed") and rotation is None:
        raise LogError("Velocities in world axes need the orientation of the base; name it.")
    if rotation is None and "accelerometer" not in signals:
        raise LogError("Without an accelerometer the direction of gravity follows from the orientation; name it.")
    return linear, angular


def _pull(signals: dict[str, Array], columns: BaseColumns, low_pass: LowPass, angular: Array, turn: Array) -> Array:
    """Convert the specific force at the IMU to the origin of the body."""
    force = low_pass(signals["accelerometer"]) @ rotation_from_rpy(*columns.imu_rpy).T
    lever = np.array(columns.imu_position)
    return np.asarray(force - np.cross(turn, lever) - np.cross(angular, np.cross(angular, lever)))


def look_at_base(signals: dict[str, Array], columns: BaseColumns, gravity: Array, low_pass: LowPass) -> list[Finding]:
    """Find mistakes in the statement of the base: quaternion order, axes of the twist, gravity in the accelerometer.

    Args:
        signals: Measured signals by name.
        columns: Columns of these signals as the mapping states them.
        gravity: Gravity in the world [m/s²].
        low_pass: Filter of all signals.
    """
    out: list[Finding] = []
    g = float(np.linalg.norm(gravity))
    if "accelerometer" in signals and g:
        force = signals["accelerometer"] @ rotation_from_rpy(*columns.imu_rpy).T
        quaternion = _smooth_quaternion(signals, columns, low_pass)
        if quaternion is None:
            mean = float(np.median(np.linalg.norm(force, axis=1)))
        else:  # the mean over the motion is about zero in world axes
            mean = float(np.linalg.norm(np.mean(np.einsum("tij,tj->ti", rotations_of(quaternion), force), axis=0)))
        if mean < _MEAN_FORCE[0] * g:
            out.append(
                Finding("gravity", "problem", f"The accelerometer reads {mean:.2g} m/s² on average, not about {g:.3g}: "
                        "gravity was removed from it.", "Log its raw reading, or add gravity in the axes of the IMU.")
            )  # fmt: skip
        elif mean > _MEAN_FORCE[1] * g:
            out.append(
                Finding("units", "problem", f"The accelerometer reads {mean:.3g} on average, not {g:.3g} m/s².",
                        "Convert it to m/s².")
            )  # fmt: skip
        if quaternion is not None and not out:
            out += _compare_verticals(signals, columns, gravity, low_pass, force)
    spin = next((signals[n] for n in ("gyroscope", "angular_velocity") if n in signals), None)
    named = any(f.kind == "quaternion" for f in out)
    if "orientation" in signals and spin is not None and float(np.std(spin)) > 0.0 and not named:
        out += _compare_turns(signals, columns, low_pass)
    return out


def _compare_verticals(
    signals: dict[str, Array], columns: BaseColumns, gravity: Array, low_pass: LowPass, force: Array
) -> list[Finding]:
    """Compare the mean specific force in the world with the vertical, for each order of the quaternion."""
    up = -gravity / np.linalg.norm(gravity)
    angles = {}
    for order in ("wxyz", "xyzw"):
        quaternion = _smooth_quaternion(signals, replace(columns, quaternion=order), low_pass)
        assert quaternion is not None
        mean = np.mean(np.einsum("tij,tj->ti", rotations_of(quaternion), force), axis=0)
        cosine = float(mean @ up) / max(float(np.linalg.norm(mean)), 1e-12)
        angles[order] = float(np.degrees(np.arccos(np.clip(cosine, -1.0, 1.0))))
    stated = columns.quaternion
    other = "xyzw" if stated == "wxyz" else "wxyz"
    if angles[stated] < _TILT:
        return []
    text = f"With the stated orientation the accelerometer reads gravity {angles[stated]:.0f}° from the vertical"
    if angles[other] < _TILT:
        return [Finding("quaternion", "problem", f'{text}: the order quaternion = "{stated}" is wrong.',
                        f'State quaternion = "{other}".')]  # fmt: skip
    return [Finding("gravity", "problem", f"{text}.", "Check the axes of the IMU (imu = {rpy = …}), the signs of its "
                    "columns, and that the orientation is that of the body in the world.")]  # fmt: skip


def _compare_turns(signals: dict[str, Array], columns: BaseColumns, low_pass: LowPass) -> list[Finding]:
    """Compare the measured angular velocity with the derivative of the orientation, for each order and axes."""
    gyroscope = "gyroscope" in signals
    pose = {"orientation": signals["orientation"], "position": np.zeros((len(signals["orientation"]), 3))}
    errors: dict[tuple[str, str], float] = {}
    for order in ("wxyz", "xyzw"):
        quaternion = _smooth_quaternion(pose, replace(columns, quaternion=order), low_pass)
        assert quaternion is not None
        rotation = rotations_of(quaternion)
        _, turned = _velocities(pose, columns, low_pass, rotation, quaternion, pose["position"])
        for axes in ("body",) if gyroscope else ("body", "world"):
            name = "gyroscope" if gyroscope else "angular_velocity"
            _, spin = _velocities(
                {**pose, name: signals[name]},
                replace(columns, twist=axes),
                low_pass,
                rotation,
                quaternion,
                pose["position"],
            )
            errors[order, axes] = float(np.linalg.norm(spin - turned)) / max(float(np.linalg.norm(spin)), 1e-12)
    stated = columns.quaternion, "world" if columns.twist == "world" and not gyroscope else "body"
    best = min(errors, key=lambda key: errors[key])
    # Both signals describe one motion, so a wrong statement leaves an error as large as the motion.
    if best == stated or errors[best] > 0.5 or errors[stated] < 2.0 * errors[best]:
        return []
    text = f"leaves {100 * errors[stated]:.0f} % of the angular velocity unexplained by the orientation"
    if best[0] != stated[0]:
        return [Finding("quaternion", "problem", f'The order quaternion = "{stated[0]}" {text}.',
                        f'State quaternion = "{best[0]}", which leaves {100 * errors[best]:.0f} %.')]  # fmt: skip
    return [Finding("twist", "problem", f'The axes twist = "{columns.twist}" {text}.',
                    f'State twist = "{best[1]}", which leaves {100 * errors[best]:.0f} %.')]  # fmt: skip

"""`identify_payload_by_sensor`: identifies the payload on a force–torque sensor from its motion and wrench."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np

from steelyard.dynamics.frame_motion import FrameKinematics, FrameMotion
from steelyard.errors import LogError, SteelyardError, UnknownNameError
from steelyard.estimation.estimate import EstimationError
from steelyard.estimation.linear.least_squares import WeightedLeastSquares
from steelyard.ground.arrays import Array
from steelyard.ground.short_repr import short_repr
from steelyard.parameters.inertial import INERTIAL_NAMES, nearest_possible_body
from steelyard.payload.payload import Payload
from steelyard.regression.data import Block, RegressionData
from steelyard.regression.rows import Equation
from steelyard.regression.unknowns import Unknowns
from steelyard.robot.load import RobotLike, as_robot
from steelyard.signals.as_logs import LogsLike, as_logs
from steelyard.signals.log import Log
from steelyard.signals.prepare import Motion, Preparation
from steelyard.signals.read import AnyMapping
from steelyard.study import Study

# The wrench of the sensor on the payload is linear in the ten parameters of the payload.
#
# Kozłowski & Dutkiewicz 1996, equations (8)–(13), with corrected misprints: the last block of the regressor has
# six columns, [•ω̇] + [ω×][•ω], and g is the vector of gravity (0, 0, −9.81 with z up). The parameters are about the
# origin of the sensor, in its axes, in the same order as for links.


def wrench_regressor(m: FrameMotion) -> Array:
    """Compute K of W = K θ, shape (samples, 6, 10): forces and torques about the origin of a frame of motion `m`."""
    spin, turn = _crossing(m.spin), _crossing(m.turn)
    out = np.zeros((len(m.spin), 6, 10))
    out[:, :3, 0] = m.pull
    out[:, :3, 1:4] = turn + spin @ spin
    out[:, 3:, 1:4] = -_crossing(m.pull)
    out[:, 3:, 4:] = _tensor_columns(m.turn) + spin @ _tensor_columns(m.spin)
    return out


def _integral_regressor(m: FrameMotion, period: float) -> Array:
    """Compute ∫K dt from the first sample to every sample without accelerations, shape (samples, 6, 10).

    The acceleration of the origin is v̇ + ω×v, so that ∫(a − g) = v − v₀ + ∫(ω×v − g); [ω̇×] and [•ω̇] integrate to
    differences of [ω×] and [•ω].
    """
    spin = _crossing(m.spin)
    out = np.zeros((len(m.spin), 6, 10))
    b = m.velocity - m.velocity[0] + _running(np.cross(m.spin, m.velocity) - m.gravity, period)
    out[:, :3, 0] = b
    out[:, :3, 1:4] = spin - spin[0] + _running(spin @ spin, period)
    out[:, 3:, 1:4] = -_crossing(b)
    tensor = _tensor_columns(m.spin)
    out[:, 3:, 4:] = tensor - tensor[0] + _running(spin @ tensor, period)
    return out


def _running(x: Array, period: float) -> Array:
    """Integrate from the first sample to every sample, by trapezoids."""
    from scipy.integrate import cumulative_trapezoid

    return np.asarray(cumulative_trapezoid(x, dx=period, axis=0, initial=0.0))


def _crossing(v: Array) -> Array:
    """Return [v×] of many vectors, shape (samples, 3, 3)."""
    x, y, z = v[..., 0], v[..., 1], v[..., 2]
    zero = np.zeros_like(x)
    rows = [[zero, -z, y], [z, zero, -x], [-y, x, zero]]
    return np.stack([np.stack(row, axis=-1) for row in rows], axis=-2)


def _tensor_columns(w: Array) -> Array:
    """Return [•ω] with [•ω] (Ixx, Ixy, Iyy, Ixz, Iyz, Izz) = I ω, shape (samples, 3, 6)."""
    x, y, z = w[..., 0], w[..., 1], w[..., 2]
    zero = np.zeros_like(x)
    rows = [[x, y, zero, z, zero, zero], [zero, x, y, zero, z, zero], [zero, zero, zero, x, y, z]]
    return np.stack([np.stack(row, axis=-1) for row in rows], axis=-2)


WRENCH_AXES = ("fx", "fy", "fz", "tx", "ty", "tz")
Form = Literal["differential", "integral"]


@short_repr
@dataclass(frozen=True)
class SensorModel:
    """The regression equations of a force–torque sensor.

    Attributes:
        form: "differential": W = K θ, both sides low-passed; "integral": ∫W = ∫K θ over windows, which needs no
            accelerations.
        window: Length of the consecutive windows of the integral form [s]; None for one that grows from the start.
        axes: Axes of the sensor to use.
        bias: Estimate a constant error of each axis.
    """

    form: Form = "differential"
    window: float | None = 0.1
    axes: tuple[str, ...] = WRENCH_AXES
    bias: bool = True

    def __post_init__(self) -> None:
        if self.form not in ("differential", "integral"):
            raise UnknownNameError("form", self.form, ("differential", "integral"))
        for axis in self.axes:
            if axis not in WRENCH_AXES:
                raise UnknownNameError("axis", axis, WRENCH_AXES)
        if self.window is not None and not self.window > 0.0:
            raise SteelyardError(f"The window is {self.window:g} s long; give a positive time.")


def identify_payload_by_sensor(
    robot: RobotLike,
    logs: LogsLike,
    frame: str = "",
    model: SensorModel | None = None,
    *,
    tare: Payload | None = None,
    physical: bool = True,
    preparation: Preparation | None = None,
    mapping: AnyMapping = None,
) -> Payload:
    """Identify the payload on a force–torque sensor.

    The channel "wrench" of the logs is the wrench of the sensor on the payload, in the axes of the sensor, about its
    origin.

    Args:
        robot: Robot, as `load_robot` takes it.
        logs: Logs with the channel "wrench".
        frame: Frame of the sensor; default: the last link.
        model: Regression equations; None for the default ones.
        tare: Other payload of the sensor, such as a gripper, to be subtracted.
        physical: Require a physically possible body.
        preparation: As for `identify`.
        mapping: Meaning of the columns of files and frames, as in `read_log`.
    """
    robot = as_robot(robot)
    inputs = as_logs(logs, robot, mapping)
    chosen = model or SensorModel()
    for log in inputs:
        if "wrench" not in log.channels:
            raise LogError(f"{log.meta.get('source', 'The log')}: there is no wrench; name its six columns (wrench).")
    # Joint torques are not used here, and logs of a sensor may lack them.
    complete = [log if log.tau is not None else replace(log, tau=np.zeros_like(log.q)) for log in inputs]
    study = Study.of(robot, complete, (), preparation, needs_torque=False)
    robot = study.robot
    data = _sensor_rows(FrameKinematics(robot, robot.frame(frame)), study, complete, chosen)
    names = (*INERTIAL_NAMES, *(f"bias of {axis}" for axis in chosen.axes if chosen.bias))
    unknowns = Unknowns(names)
    try:
        fit = WeightedLeastSquares().free(data, unknowns)
    except EstimationError as error:
        raise EstimationError(f"The motion of the sensor does not identify the whole payload. {error}") from None
    uncertainty = fit.covariance
    theta = fit.beta[:10] - (0.0 if tare is None else tare.in_frame(robot, frame or tare.frame).parameters)
    covariance = uncertainty.matrix[:10, :10] + (0.0 if tare is None else tare.covariance)
    boundary, notes = False, []
    if physical:
        theta, boundary = nearest_possible_body(theta, covariance)
        if boundary:
            notes.append("The free estimate is physically impossible; this is the nearest possible body.")
    degrees = max(float(np.min(uncertainty.degrees[:10])) - 2.0, 1.0)
    name = frame or robot.link_names[-1]
    return Payload(name, theta, covariance, degrees=degrees, boundary=boundary, notes=tuple(notes))


def _sensor_rows(kinematics: FrameKinematics, study: Study, logs: Sequence[Log], model: SensorModel) -> RegressionData:
    """Build the rows of all logs, one equation per axis of the sensor; biases follow the ten parameters."""
    count = len(model.axes)
    equations = tuple(
        Equation(axis, np.array([*range(10), *([10 + e] if model.bias else [])])) for e, axis in enumerate(model.axes)
    )
    pairs = [(log, motion) for log in logs for motion in study.motions(log)]
    if not pairs:
        raise LogError("Every piece of the log is too short for the filter; lower the trim or raise the cut-off.")

    def source() -> Iterable[Block]:
        for log, motion in pairs:
            yield from _blocks(kinematics, log, motion, model)

    step = pairs[0][1].row_period
    return RegressionData(equations, 10 + (count if model.bias else 0), source, step)


def _blocks(kinematics: FrameKinematics, log: Log, motion: Motion, model: SensorModel) -> Iterator[Block]:
    frame = kinematics(motion.q, motion.dq, motion.ddq)
    wrench = np.column_stack([np.interp(motion.t, log.t, column) for column in log.channels["wrench"].T])
    make = _differential if model.form == "differential" else _integral
    A, y, ones = make(frame, wrench, motion, model)
    for e, axis in enumerate(model.axes):
        row = WRENCH_AXES.index(axis)
        columns = np.column_stack([A[:, row], ones]) if model.bias else A[:, row]
        yield Block(e, columns, y[:, row])


def _differential(frame: FrameMotion, wrench: Array, motion: Motion, model: SensorModel) -> tuple[Array, Array, Array]:
    K = wrench_regressor(frame).reshape(len(wrench), 60)
    both = motion.filter(np.hstack([K, wrench]))[motion.keep]
    return both[:, :60].reshape(-1, 6, 10), both[:, 60:], np.ones(len(both))


def _integral(frame: FrameMotion, wrench: Array, motion: Motion, model: SensorModel) -> tuple[Array, Array, Array]:
    start, stop, _ = motion.keep.indices(len(wrench))
    h = motion.filter.period
    inner = FrameMotion(*(getattr(frame, n)[start:stop] for n in ("spin", "turn", "velocity", "pull", "gravity")))
    A, y = _integral_regressor(inner, h), _running(wrench[start:stop], h)
    time = h * np.arange(stop - start, dtype=np.float64)
    if model.window is None:
        ends = np.arange(1, len(time))
        return A[ends], y[ends], time[ends]
    step = max(1, round(model.window / h))
    if step >= len(time):
        raise LogError(f"A window of {model.window:g} s is longer than a piece of the log, {time[-1]:.3g} s.")
    ends = np.arange(0, len(time), step)
    # The integral over a window is the difference of two running integrals: v(t₂) − v(t₁) and the differences of ω
    # telescope in all columns.
    return np.diff(A[ends], axis=0), np.diff(y[ends], axis=0), np.diff(time[ends])

"""Elasticity from one encoder: antiresonance and resonance of one excited joint at a time."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from steelyard.elasticity.elastic_table import uniform
from steelyard.elasticity.encoder_readings import EncoderReadings
from steelyard.elasticity.joint_elasticity import Interval, JointElasticity
from steelyard.elasticity.two_masses import JointSpectra, TwoMassFit, fit_two_masses, numbers_of
from steelyard.errors import SteelyardError
from steelyard.ground.arrays import Array
from steelyard.ground.grades import HALF_WIDTH_95
from steelyard.parameters.friction import SMOOTHING_SPEED
from steelyard.robot.robot import Robot
from steelyard.signals.filters import LowPass, derivative

# Three more unknowns gain this log likelihood by chance in one of a million fits: half the chi-square quantile.
_BY_CHANCE = 15.4
# Largest relative standard error of a known stiffness: its interval excludes a factor of two.
_KNOWN = 0.25
# Resolution of a frequency in lines of the spectrum: the window and the product with s² do not commute.
_RESOLUTION = 0.25
# Largest motion of the other joints, as a share of the joint's motion (standard deviation of accelerations): their
# torques disturb the fit.
_OTHERS = 0.2
# Shortest log [samples].
_SHORTEST = 256


def resonances(
    robot: Robot, readings: Sequence[EncoderReadings], wanted: Sequence[int], stated: bool
) -> tuple[JointElasticity, ...]:
    """Identify the elasticity of joints, each from the logs that move this joint and hold the others.

    Args:
        robot: Robot.
        readings: Logs with motor positions.
        wanted: Indices of the joints.
        stated: Whether the user named the joints; a named joint without an excited log is an error.
    """
    own: dict[int, list[EncoderReadings]] = {}
    for one in readings:
        k = _excited(robot, one)
        if k in wanted:
            own.setdefault(k, []).append(one)
    missing = [k for k in wanted if k not in own]
    if (stated and missing) or not own:
        name = robot.joint_names[(missing or list(wanted))[0]]
        raise SteelyardError(f"No log excites joint '{name}' while the others hold; record such a log.")
    return tuple(_joint(robot, k, own[k]) for k in sorted(own))


def _excited(robot: Robot, one: EncoderReadings) -> int:
    """Return the joint that a log excites; refuse a log with several moving joints."""
    size = np.std(np.diff(one.theta, 2, axis=0), axis=0) / np.array([_typical(j.kind) for j in robot.joints])
    k = int(np.argmax(size))
    if not size[k] > 0.0:
        raise SteelyardError(
            f"{one.source}: no joint moves, so the log does not show a resonance; log an excited motion."
        )
    position = np.std(one.theta, axis=0)
    # The encoder noise of resting joints looks like acceleration, so the position range is tested too.
    busy = [i for i in np.flatnonzero(size > _OTHERS * size[k]) if i != k and position[i] > _OTHERS * position[k]]
    if busy:
        raise SteelyardError(
            f"{one.source}: joint '{robot.joint_names[busy[0]]}' moves along with '{robot.joint_names[k]}', and their "
            "resonances mix; excite one joint at a time while the others hold."
        )
    return k


def _typical(kind: str) -> float:
    return 1.0 if kind == "revolute" else 0.1


def _joint(robot: Robot, k: int, readings: Sequence[EncoderReadings]) -> JointElasticity:
    spectra, longest = [], 0.0
    smooth = SMOOTHING_SPEED[robot.joints[k].kind]
    for one in readings:
        assert one.log.tau is not None
        for start, stop in one.log.segments:
            if stop - start < _SHORTEST:
                continue
            period, t, (theta, tau) = uniform(one.log.t[start:stop], [one.theta[start:stop], one.log.tau[start:stop]])
            speed = derivative(LowPass(0.1 / period, period)(theta[:, k : k + 1]), period)[:, 0]
            spectrum = JointSpectra.of(theta[:, k], tau[:, k], np.tanh(speed / smooth), period)
            if len(spectrum.s) > _SHORTEST // 8:
                spectra.append(spectrum)
                longest = max(longest, float(t[-1] - t[0]))
    joint = robot.joints[k]
    if not spectra:
        raise SteelyardError(
            f"{readings[0].source}: the motion of joint '{joint.name}' exceeds the noise of its encoder too "
            "briefly; excite it more, or for longer."
        )
    return _result(joint.name, joint.unit, fit_two_masses(spectra), longest)


def _result(name: str, unit: str, fit: TwoMassFit, seconds: float) -> JointElasticity:
    # Without a resonance the estimates are arbitrary; the intervals are infinite.
    with np.errstate(all="ignore"):
        values = np.maximum(numbers_of(fit.x), 1e-300)
        variance = _variance_of_logs(fit)
        resolution = _RESOLUTION / (seconds * values[4:6])
        variance[4:6] += resolution**2
        variance[2] += (2.0 * resolution[0]) ** 2
        variance = np.where(np.isfinite(variance), np.minimum(variance, 1e100), 1e100)
    widths = HALF_WIDTH_95 * np.sqrt(variance) * values
    each = [Interval(float(v), float(w)) for v, w in zip(values, widths, strict=True)]
    c = 1.0 / values[2]
    J = float(np.exp(fit.x[0]))
    error = float(np.sqrt(variance[2]))
    return JointElasticity(
        name, unit, "resonance", Interval(c, float(c * HALF_WIDTH_95 * error)), _why_unknown(fit, values, error),
        damping=each[3], rotor=each[0], link=each[1], friction=(float(J * fit.x[5]), float(J * fit.x[4])),
        frequencies=(each[4], each[5]),
    )  # fmt: skip


def _variance_of_logs(fit: TwoMassFit) -> Array:
    """Return the variances of the logarithms of the numbers, by the chain rule."""
    step, rows = 1e-5, []
    for k in range(4):
        move = np.zeros_like(fit.x)
        move[k] = step
        rows.append((np.log(numbers_of(fit.x + move)) - np.log(numbers_of(fit.x - move))) / (2.0 * step))
    slopes = np.array(rows)
    return np.asarray(np.einsum("kn,kl,ln->n", slopes, fit.covariance[:4, :4], slopes))


def _why_unknown(fit: TwoMassFit, values: Array, error: float) -> str:
    reach = f"the excitation reaches {fit.reached_hz:.3g} Hz"
    if fit.gain < _BY_CHANCE:
        return f"{reach}, and no resonance shows below"
    if values[4] > fit.reached_hz:
        return f"{reach}, and the resonance is above"
    if not error < _KNOWN:
        return f"the excitation does not determine it ({reach})"
    return ""

"""`match_robot`: estimates the parameters of a simulator from command logs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from steelyard.errors import LogError, SteelyardError, UnknownNameError
from steelyard.ground.arrays import one_blas_thread
from steelyard.ground.progress import report_progress
from steelyard.matching.command_logs import check_clock, check_commands, command_logs
from steelyard.matching.command_stretch import CommandStretch, command_stretches
from steelyard.matching.inverse_start import linear_start
from steelyard.matching.joint_drives import Drives
from steelyard.matching.log_windows import Windows
from steelyard.matching.match_coordinates import JOINT_BLOCKS, MatchCoordinates
from steelyard.matching.match_errors import posterior_of
from steelyard.matching.match_result import Match
from steelyard.matching.rollout_score import residual_by_frequency, score_rollouts
from steelyard.matching.window_fit import WindowFit, fit_windows, steps_for
from steelyard.matching.window_rollout import Physics
from steelyard.regression.base_parameters import base_parameters
from steelyard.robot.free import refuse_free
from steelyard.robot.load import RobotLike, load_robot
from steelyard.signals.robot_setup import apply_log_setup

# Estimated by default: parameters that descriptions usually lack. The user usually knows the gains and limits.
DEFAULT_FIT = ("armature", "viscous", "dry", "bias", "delay")
# "gains" means kp and kd.
FIT_NAMES = ("armature", "viscous", "dry", "bias", "delay", "gains", "limit")
# Largest speed of a sticking joint, relative to its rms speed: the creep of the regularised friction is smaller than
# this share of the motion.
_HOLDS = 0.005
# A torque column that differs from the drives' law by less than this share of its variance is the command and not a
# measurement: friction and delays make a measured torque differ by more than 3 %.
_SAME = 1e-3
# Two forms of the delay with errors that differ less are alike: some tens of independent windows determine an error to
# some percent.
_ALIKE = 0.97
# More draws need gigabytes and describe the same Gaussian.
_MOST_DRAWS = 100_000
# Duration of a window [s]: the usual length of rollouts in comparisons of simulators, and several periods of any
# position loop.
WINDOW = 1.0


def match_robot(
    robot: RobotLike,
    logs: Any,
    *,
    kp: ArrayLike | None = None,
    kd: ArrayLike | None = None,
    limit: ArrayLike | None = None,
    fit: Sequence[str] = DEFAULT_FIT,
    goal: str = "",
    mapping: Any = None,
    delay: float = 0.0,
    delayed: str = "",
    validate: Any = (),
    holdout: float = 0.3,
    window: float = WINDOW,
    cutoff_hz: float | None = None,
    draws: int = 100,
    seed: int = 0,
) -> Match:
    """Match a simulated robot to command logs: links, armature, friction, zeros, delay, gains.

    The base is fixed. Measured torques are optional: without them, the drives' law gives the torque.

    Args:
        robot: Robot with inertias, as for `load_robot`.
        logs: Logs with goals and positions: paths, frames, dicts of arrays, or `Log`s with the channel "goal".
        kp: Stiffness of the drives, one number or one per joint [N m/rad, N/m].
        kd: Damping of the drives, one number or one per joint [N m s/rad, N s/m].
        limit: Largest torque of the drives [N m, N]; None: unlimited.
        fit: Numbers to estimate in addition to the links: some of `FIT_NAMES`.
        goal: Columns of the goals, as "goal{}" or names with commas; "" tries the common names.
        mapping: Meaning of the columns, as in `read_log`.
        delay: Delay, or its first guess [s].
        delayed: Delayed signal: "torque", the whole law, or "goal", the command alone; "": the one that fits better.
        validate: Logs for the validation, in the form of `logs`.
        holdout: Last share of each log that is left out for the validation, if `validate` is empty.
        window: Duration of the windows [s].
        cutoff_hz: Cut-off of the smooth motion, for initial states and the start [Hz]; default: chosen from the motion.
        draws: Number of posterior draws.
        seed: Seed of the draws.
    """
    described = refuse_free(
        load_robot(robot),
        "matching does not support it",
        "lock the base, or remove the joint or loop from the description.",
    )
    if not (np.isfinite(window) and window > 0.0):
        raise SteelyardError(f"The window is {window:g} s; give a positive duration, such as 1.")
    if not 0.0 <= holdout <= 0.9:
        raise SteelyardError(f"The hold-out is {holdout:g}; give a share of the logs from 0 to 0.9, such as 0.3.")
    if not 0 <= draws <= _MOST_DRAWS:
        raise SteelyardError(f"The number of draws is {draws}; give one from 0 to {_MOST_DRAWS:,}.")
    names = _blocks(fit)
    drives = Drives.of(described.joint_names, kp, kd, limit, delay, delayed or "goal")
    if "limit" in names and not np.all(np.isfinite(drives.limit)):
        raise SteelyardError("A limit can be estimated from a first guess only; state --limit for every joint.")
    read = command_logs(logs, described, mapping, goal)
    described = apply_log_setup(described, read)
    whole = command_stretches(read, cutoff_hz)
    apart = command_stretches(command_logs(validate, described, mapping, goal), cutoff_hz) if _some(validate) else []
    _one_period([*whole, *apart])
    train, test = ([_plain(s, drives) for s in x] for x in ((whole, apart) if apart else _split(whole, holdout)))
    remarks = check_commands(train, drives, described)
    with one_blas_thread():  # the matrices are small; a second thread only adds load
        report_progress("Fitting rollouts", 0.1)
        best = _fitted(_setting(described, train, drives, names), train, window)
        if not delayed and ("delay" in names or delay > 0.0):
            report_progress("Fitting rollouts with a delayed feedback", 0.4)
            best, remark = _better(best, _tried(described, train, replace(drives, delayed="torque"), names, window))
            remarks = (*remarks, remark)
        check_clock(best.fit)
        report_progress("Judging", 0.8)
        return _result(best, train, test, window, draws, seed, remarks)


@dataclass(frozen=True, eq=False)
class _Setting:
    physics: Physics
    coordinates: MatchCoordinates


@dataclass(frozen=True, eq=False)
class _Fitted:
    physics: Physics
    fit: WindowFit
    steps: int


def _fitted(setting: _Setting, train: Sequence[CommandStretch], window: float) -> _Fitted:
    start = linear_start(setting.physics, setting.coordinates, train)
    steps = steps_for(setting.physics, start.coordinates.point(start.z), train)
    windows = Windows.of(train, window, steps)
    result = fit_windows(setting.physics, start.coordinates, start.z, windows)
    finer = steps_for(setting.physics, result.point, train)
    if finer > steps:  # the inertia or the damping of the start is too large
        steps, windows = finer, Windows.of(train, window, finer)
        result = fit_windows(setting.physics, result.coordinates, result.z, windows)
    return _Fitted(setting.physics, result, steps)


def _tried(
    robot: Any, train: Sequence[CommandStretch], drives: Drives, names: tuple[str, ...], window: float
) -> _Fitted | None:
    """The fit of a form that these logs may not have: with a wrong form, all windows may diverge."""
    try:
        return _fitted(_setting(robot, train, drives, names), train, window)
    except SteelyardError:
        return None


def _better(goal: _Fitted, torque: _Fitted | None) -> tuple[_Fitted, str]:
    """The better of two forms of the delay, and a remark. Of equal ones, the delayed goal, which files can hold."""
    size = float(np.exp(np.mean(np.log(goal.fit.noise))))
    other = np.inf if torque is None else float(np.exp(np.mean(np.log(torque.fit.noise))))
    if torque is not None and other < _ALIKE * size and torque.fit.diverged[1] <= goal.fit.diverged[1]:
        return torque, f"The drives' feedback is late too; with a late goal alone, errors are {size / other:.2f} times."
    if other < size / _ALIKE:
        return goal, "A late goal and a late feedback fit alike; the goal is late here, which files can hold."
    return goal, f"The goal is late and the feedback is not; with a late feedback, errors are {other / size:.2f} times."


def _setting(robot: Any, train: Sequence[CommandStretch], drives: Drives, names: tuple[str, ...]) -> _Setting:
    """Prior scales of the joints' numbers: friction up to the whole torque, rotor inertia up to that of the links."""
    dq, q = (np.concatenate([getattr(s.motion, x) for s in train]) for x in ("dq", "q"))
    torque = np.std(np.concatenate([drives.torque(s.goal, s.q, s.motion.dq, s.feed_forward) for s in train]), axis=0)
    speed = np.maximum(np.sqrt(np.mean(dq**2, axis=0)), 1e-9)
    torque = np.maximum(torque, 1e-6 * max(float(torque.max()), 1e-12))
    physics = Physics.of(robot, _HOLDS * speed)
    some = q[:: max(1, len(q) // 50)]
    inertia = np.einsum("tii->ti", physics.mass_and_bias(some, np.zeros_like(some), robot.inertial_parameters)[0])
    scales = {"armature": np.max(inertia, axis=0), "viscous": torque / speed, "dry": torque}
    base = base_parameters(robot, ())
    return _Setting(physics, MatchCoordinates.of(robot, base, drives, names, scales))


def _result(
    best: _Fitted, train: Sequence[CommandStretch], test: Sequence[CommandStretch], window: float, draws: int,
    seed: int, remarks: tuple[str, ...],
) -> Match:  # fmt: skip
    physics, fit, steps, point = best.physics, best.fit, best.steps, best.fit.point
    posterior = posterior_of(fit)
    described = fit.coordinates.point(fit.coordinates.centre)
    judged = test or train
    return Match(
        robot=physics.robot, fit=fit, posterior=posterior, physics=physics, train=tuple(train), test=tuple(test),
        steps=steps, described=described, remarks=remarks,
        scores={
            "fit": score_rollouts(physics, point, train, window, steps),
            "hold-out": score_rollouts(physics, point, judged, window, steps),
            "description": score_rollouts(physics, described, judged, window, steps),
        },
        spectra=residual_by_frequency(physics, point, judged, steps),
        draws=posterior.draws(fit, draws, seed),
    )  # fmt: skip


def _blocks(fit: Sequence[str]) -> tuple[str, ...]:
    for name in fit:
        if name not in FIT_NAMES:
            raise UnknownNameError("estimated number", name, FIT_NAMES)
    wanted = {x for name in fit for x in (("kp", "kd") if name == "gains" else (name,))}
    return tuple(name for name in JOINT_BLOCKS if name in wanted)


def _some(logs: Any) -> bool:
    return logs is not None and not (isinstance(logs, str | list | tuple) and not logs)


def _one_period(stretches: Sequence[CommandStretch]) -> None:
    periods = np.array([s.period for s in stretches])
    if np.ptp(periods) > 1e-3 * periods[0]:
        odd = stretches[int(np.argmax(np.abs(periods - periods[0])))]
        raise LogError(
            f"{odd.name}: has a sample every {1e3 * odd.period:.3g} ms, another log every {1e3 * periods[0]:.3g} ms; "
            "match logs of one rate."
        )


def _plain(stretch: CommandStretch, drives: Drives) -> CommandStretch:
    """Remove the torque column if it is the command and not a measurement."""
    if stretch.torque is None:
        return stretch
    low = stretch.motion.filter
    law = low(drives.torque(stretch.goal, stretch.q, stretch.motion.dq, stretch.feed_forward))
    rest = np.mean((law - low(stretch.torque)) ** 2, axis=0)
    same = rest < _SAME * np.maximum(np.var(law, axis=0), 1e-300)
    return replace(stretch, torque=None) if bool(np.all(same)) or not stretch.torque.any() else stretch


def _split(stretches: Sequence[CommandStretch], holdout: float) -> tuple[list[CommandStretch], list[CommandStretch]]:
    """Divide each stretch into a part for the fit and the last part for the validation."""
    if holdout == 0.0:
        return list(stretches), []
    cuts = [int(len(s) * (1.0 - holdout)) for s in stretches]
    return (
        [s.part(0, c) for s, c in zip(stretches, cuts, strict=True)],
        [s.part(c, len(s)) for s, c in zip(stretches, cuts, strict=True)],
    )

"""`let_move`: a model that follows a motion, is driven by torques or falls, and the log a logger would have written."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from steelyard.assessment.replay import on_even_clock
from steelyard.dynamics.model import Model
from steelyard.errors import LogError, SimulationError
from steelyard.excitation.motion_design import expected_noise
from steelyard.ground.arrays import Array
from steelyard.ground.outcome import Content, Presentation, Viewed
from steelyard.ground.progress import steps
from steelyard.ground.reasons import explained
from steelyard.signals.between import TorqueBetween, interval_means
from steelyard.signals.log import Log
from steelyard.simulation.friction import Friction
from steelyard.simulation.play import LOOPS_PER_SAMPLE, PlayableMotion, good_sensors, play, with_steps_that_hold
from steelyard.simulation.simulate import simulate
from steelyard.simulation.simulation import Ending, Simulation
from steelyard.simulation.torque_signal import TorqueSignal

# Samples of one run, at most: a table of them for six joints takes two gigabytes.
_MOST_SAMPLES = 10**7


@dataclass(frozen=True, eq=False)
class Simulated(Viewed):
    """How a model moved, run by run.

    Attributes:
        model: what was simulated.
        driven: by what, in words.
        runs: the true motions.
        logs: what the sensors saw of them.
        wanted: the positions that were to be followed, run by run; empty where nothing was.
        noise: of the torques in the logs, N m (N); None: the logs are true.
    """

    model: Model
    driven: str
    runs: tuple[Simulation, ...]
    logs: tuple[Log, ...]
    wanted: tuple[Array, ...] = ()
    noise: Array | None = None

    def joints(self, run: int) -> list[dict[str, Any]]:
        """Where each joint went in the `run` of this number (from 0), how fast, and by which torque."""
        made = self.runs[run]
        error = np.sqrt(np.mean((made.q - self.wanted[run]) ** 2, axis=0)) if self.wanted else None
        return [
            {
                "joint": joint.name,
                "unit": "rad" if joint.kind == "revolute" else "m",
                "torque_unit": joint.effort_unit,
                "lowest": float(made.q[:, k].min()),
                "highest": float(made.q[:, k].max()),
                "velocity": float(np.abs(made.dq[:, k]).max()),
                "torque": float(np.abs(made.tau[:, k]).max()),
                "torque_rms": float(np.sqrt(np.mean(made.tau[:, k] ** 2))),
                **({} if error is None else {"tracking_rms": float(error[k])}),
            }
            for k, joint in enumerate(self.model.robot.joints)
        ]

    def to_json(self) -> dict[str, Any]:
        return explained(
            {
                "robot": self.model.robot.name,
                "driven": self.driven,
                "torque_noise": None if self.noise is None else self.noise.tolist(),
                "runs": [
                    {"duration": float(run.t[-1] - run.t[0]), "samples": len(run.t), "joints": self.joints(k)}
                    for k, run in enumerate(self.runs)
                ],
            },
            {"torque_noise": "None was asked for: the log is true."},
        )

    def files(self) -> dict[str, Content]:
        return {"log.csv" if k == 0 else f"log-{k + 1}.csv": log.save for k, log in enumerate(self.logs)}

    def view(self) -> Presentation:
        from steelyard.use._simulated_page import print_simulated, simulated_report

        return simulated_report, print_simulated


def let_move(
    model: Model,
    *,
    motions: Sequence[PlayableMotion] = (),
    controller: Any = None,
    control_period: float | None = None,
    torque: TorqueSignal | Log | None = None,
    duration: float | None = None,
    start: ArrayLike | None = None,
    rate: float | None = None,
    noise: float | Sequence[float] | None = None,
    friction: Friction = "smooth",
    seed: int = 0,
    torque_between: TorqueBetween = "auto",
    delay: float = 0.0,
) -> Simulated:
    """Let a model follow `motions`, be driven by a `torque`, or, with neither, fall for `duration` seconds.

    Args:
        model: the robot with its numbers.
        motions: to be followed one after the other, each from its first posture on.
        controller: what follows them; None: computed torque by the model itself.
        control_period: of the controller, s; None: a quarter of a sample.
        torque: a signal, or a log whose torques are played again from its first state on.
        duration: s; not with motions or a log, which have their own.
        start: the posture to start from at rest, rad (m); None: all zero, or the first of the motion or the log.
        rate: samples of the log per second, Hz; None: 1000, or that of the log that is played.
        noise: of the logged torques, N m (N), one number or one per joint, with positions of a 19-bit encoder; None:
            the log is true.
        friction: "smooth", or "stick", with which joints truly stand still.
        seed: of the noise.
        torque_between: how the torque of a log ran between its samples; "auto": it was held.
        delay: how far the torque of a log lags behind its positions, s.
    """
    if (delay or torque_between != "auto") and not isinstance(torque, Log):
        raise SimulationError("delay and torque_between are about the torque of a log; leave them out.")
    if sum((bool(motions), torque is not None, duration is not None and not isinstance(torque, TorqueSignal))) != 1:
        raise SimulationError(
            "Say by what the model is driven: motions to follow, a torque, or nothing for a duration (s); one of them."
        )
    robot = model.robot
    options: dict[str, Any] = {"friction": friction, "throw": False}
    if start is not None:
        options |= {"q0": start, "dq0": np.zeros(robot.dof)}
    frequency = 1000.0 if rate is None else rate
    wanted: tuple[Array, ...] = ()
    if motions:
        loops = LOOPS_PER_SAMPLE if control_period is None else round(1.0 / (control_period * frequency))
        if loops < 1 or (control_period and abs(loops * control_period * frequency - 1.0) > 1e-6):
            raise SimulationError(
                f"The controller's rate of {1.0 / (control_period or 1.0):g} Hz is no multiple of the log's "
                f"{frequency:g} Hz; change one of them."
            )
        runs = []
        for motion in steps(motions, "Playing motions", lambda _: ""):
            _check_length(motion.duration, frequency)
            runs.append(play(model, motion, frequency, controller=controller, loops=loops, settle=True, **options))
        driven = f"follows {_counted(len(runs), 'motion')} by {_name(controller)}"
        wanted = tuple(motion.sample(run.t)[0] for motion, run in zip(motions, runs, strict=True))
    elif isinstance(torque, Log):
        if rate is not None:
            raise SimulationError("The torques of a log are played at its own rate; leave the rate out.")
        driven = f"driven by the torques of {_source(torque)}"
        runs = [_replayed(model, torque, torque_between, delay, options)]
    else:
        assert duration is not None
        _check_length(duration, frequency)
        count = round(duration * frequency)
        table = None if torque is None else torque.table(np.arange(count + 1) / frequency)
        runs = [_held(model, table, np.arange(count + 1) / frequency, options)]
        driven = "driven by a torque signal" if torque is not None else "falls without torque"
    for run in runs:
        _check_came_through(model, run)
    level = None if noise is None else expected_noise(robot, noise)
    sensors = None if level is None else good_sensors(level, seed)
    return Simulated(model, driven, tuple(runs), tuple(run.log(sensors=sensors) for run in runs), wanted, level)


def _replayed(model: Model, log: Log, between: TorqueBetween, delay: float, options: dict[str, Any]) -> Simulation:
    if log.tau is None:
        raise LogError(f"{_source(log)} has no torque to play.")
    if len(log.segments) > 1:
        raise LogError(f"{_source(log)} has gaps; play its pieces one by one.")
    even = on_even_clock(log)
    assert even.tau is not None
    assert even.dq is not None
    tau = interval_means(even.t, even.tau, between, delay)
    return _held(model, tau, even.t, {"q0": even.q[0], "dq0": even.dq[0], **options})


def _held(model: Model, table: Array | None, times: Array, options: dict[str, Any]) -> Simulation:
    """Torques held from sample to sample, in steps that friction allows."""
    period = float(times[-1] - times[0]) / (len(times) - 1)
    return with_steps_that_hold(lambda parts: simulate(model, table, times=times, step=period / parts, **options))


def _check_length(duration: float, rate: float) -> None:
    if not (np.isfinite(duration) and duration > 0.0):
        raise SimulationError(f"The duration is {duration:g} s; it must be positive.")
    if duration * rate < 2.0:
        raise SimulationError(
            f"{duration:g} s at {rate:g} Hz are less than two samples; lengthen it or raise the rate."
        )
    if duration * rate > _MOST_SAMPLES:
        raise SimulationError(
            f"{duration:g} s at {rate:g} Hz are more than {_MOST_SAMPLES:.0e} samples; shorten it or lower the rate."
        )


def _check_came_through(model: Model, run: Simulation) -> None:
    """Refuse a run that went wrong, with the time, the reason and the joint that was the first."""
    if run.ok:
        return
    when = f"at t = {run.stopped[0]:.4g} s"
    if run.outcome[0] == Ending.IMPOSSIBLE:
        raise SimulationError(
            f"The run ended {when}: the mass matrix is not positive definite there, which no robot has; "
            "take a physical model (`steelyard identify --physical`)."
        )
    good = int(np.sum(np.all(np.isfinite(run.q), axis=1)))
    last = run.dq[good - 1] if good else np.zeros(model.robot.dof)
    k = int(np.argmax(np.abs(last)))
    joint = model.robot.joints[k]
    speed = f"{abs(last[k]):.3g} {'rad/s' if joint.kind == 'revolute' else 'm/s'}"
    raise SimulationError(
        f"The run diverged {when}: joint '{joint.name}', the fastest, was at {speed} just before; lower the torques or "
        "gains, or raise the rate."
    )


def _name(controller: Any) -> str:
    return "computed torque" if controller is None else f"the controller {type(controller).__name__}"


def _counted(count: int, what: str) -> str:
    return f"a {what}" if count == 1 else f"{count} {what}s"


def _source(log: Log) -> str:
    return str(log.meta.get("source", "the log"))

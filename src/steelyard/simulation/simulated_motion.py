"""`simulate_model`: simulates a model that follows a motion, receives torques or falls freely, and its log."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from steelyard.dynamics.model import Model
from steelyard.errors import LogError, SimulationError
from steelyard.excitation.motion_design import expected_noise
from steelyard.ground.arrays import Array
from steelyard.ground.outcome import Content, OutcomeWithPage, Presentation
from steelyard.ground.progress import steps
from steelyard.ground.reasons import explained
from steelyard.ground.short_repr import short_repr
from steelyard.signals.between import TorqueBetween, interval_means
from steelyard.signals.excerpt import on_even_clock
from steelyard.signals.log import Log
from steelyard.simulation.dry_friction import Friction
from steelyard.simulation.play import LOOPS_PER_SAMPLE, PlayableMotion, good_sensors, play, refine_steps
from steelyard.simulation.simulate import simulate
from steelyard.simulation.simulation import Ending, Simulation
from steelyard.simulation.torque_signal import TorqueSignal

# Largest number of samples of a run; with six joints its table takes two gigabytes.
_MOST_SAMPLES = 10**7


@short_repr
@dataclass(frozen=True, eq=False)
class SimulatedMotion(OutcomeWithPage):
    """Simulated motions of a model.

    Attributes:
        model: The model.
        driven: Description of the input.
        runs: True motions.
        logs: Sensor signals of the motions.
        wanted: Reference positions by run; empty without a reference.
        noise: Standard deviation of the torque noise in the logs [N m or N]; None: logs without noise.
    """

    model: Model
    driven: str
    runs: tuple[Simulation, ...]
    logs: tuple[Log, ...]
    wanted: tuple[Array, ...] = ()
    noise: Array | None = None

    def joints(self, run: int) -> list[dict[str, Any]]:
        """Return ranges, largest velocities and torques of the joints in a `run`, given by its index."""
        motion = self.runs[run]
        error = np.sqrt(np.mean((motion.q - self.wanted[run]) ** 2, axis=0)) if self.wanted else None
        return [
            {
                "joint": joint.name,
                "unit": "rad" if joint.kind == "revolute" else "m",
                "torque_unit": joint.effort_unit,
                "lowest": float(motion.q[:, k].min()),
                "highest": float(motion.q[:, k].max()),
                "velocity": float(np.abs(motion.dq[:, k]).max()),
                "torque": float(np.abs(motion.tau[:, k]).max()),
                "torque_rms": float(np.sqrt(np.mean(motion.tau[:, k] ** 2))),
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
            {"torque_noise": "The log has no noise, because none was requested."},
        )

    def files(self) -> dict[str, Content]:
        return {"log.csv" if k == 0 else f"log-{k + 1}.csv": log.save for k, log in enumerate(self.logs)}

    def view(self) -> Presentation:
        from steelyard.simulation._simulation_page import print_simulation, simulation_report

        return simulation_report, print_simulation


def simulate_model(
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
) -> SimulatedMotion:
    """Simulate a model that follows motions, receives torques, or falls freely for a duration.

    Args:
        model: Model to simulate.
        motions: References to follow one after the other, each from its first posture.
        controller: Controller for the motions; None: computed torque with the model itself.
        control_period: Period of the controller [s]; None: a quarter of the sampling period.
        torque: Torque signal, or log whose torques are replayed from its first state.
        duration: Duration [s]; not for motions or logs, which have their own.
        start: Initial posture at rest [rad or m]; None: zero, or the first posture of the motion or log.
        rate: Sampling rate of the log [Hz]; None: 1000, or that of the replayed log.
        noise: Torque noise of the log [N m or N], one number or one per joint, together with positions of a 19-bit
            encoder; None: no noise.
        friction: "smooth", or "stick", which lets joints stand still.
        seed: Random seed of the noise.
        torque_between: Torque of a log between its samples; "auto": held.
        delay: Delay of a log's torques behind its positions [s].
    """
    if (delay or torque_between != "auto") and not isinstance(torque, Log):
        raise SimulationError("delay and torque_between are for the torque of a log; remove them.")
    if sum((bool(motions), torque is not None, duration is not None and not isinstance(torque, TorqueSignal))) != 1:
        raise SimulationError(
            "Give one input for the model: motions to follow, a torque, or a duration (s) alone for a free fall."
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
                f"The controller's rate of {1.0 / (control_period or 1.0):g} Hz is not a multiple of the log's "
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
            raise SimulationError("The torques of a log are played at its own rate; remove the rate.")
        driven = f"driven by the torques of {_source(torque)}"
        runs = [_replay(model, torque, torque_between, delay, options)]
    else:
        assert duration is not None
        _check_length(duration, frequency)
        count = round(duration * frequency)
        table = None if torque is None else torque.table(np.arange(count + 1) / frequency)
        runs = [_simulate(model, table, np.arange(count + 1) / frequency, options)]
        driven = "driven by a torque signal" if torque is not None else "falls without torque"
    for run in runs:
        _check_completed(model, run)
    level = None if noise is None else expected_noise(robot, noise)
    sensors = None if level is None else good_sensors(level, seed)
    return SimulatedMotion(model, driven, tuple(runs), tuple(run.log(sensors=sensors) for run in runs), wanted, level)


def _replay(model: Model, log: Log, between: TorqueBetween, delay: float, options: dict[str, Any]) -> Simulation:
    if log.tau is None:
        raise LogError(f"{_source(log)} has no torque to play.")
    if len(log.segments) > 1:
        raise LogError(f"{_source(log)} has gaps; play its segments one by one.")
    even = on_even_clock(log)
    assert even.tau is not None
    assert even.dq is not None
    tau = interval_means(even.t, even.tau, between, delay)
    return _simulate(model, tau, even.t, {"q0": even.q[0], "dq0": even.dq[0], **options})


def _simulate(model: Model, table: Array | None, times: Array, options: dict[str, Any]) -> Simulation:
    """Simulate with torques held between samples, with steps short enough for the friction."""
    period = float(times[-1] - times[0]) / (len(times) - 1)
    return refine_steps(lambda parts: simulate(model, table, times=times, step=period / parts, **options))


def _check_length(duration: float, rate: float) -> None:
    if not (np.isfinite(duration) and duration > 0.0):
        raise SimulationError(f"The duration is {duration:g} s; it must be positive.")
    if duration * rate < 2.0:
        raise SimulationError(
            f"{duration:g} s at {rate:g} Hz are less than two samples; raise the duration or the rate."
        )
    if duration * rate > _MOST_SAMPLES:
        raise SimulationError(
            f"{duration:g} s at {rate:g} Hz are more than {_MOST_SAMPLES:.0e} samples; lower the duration or the rate."
        )


def _check_completed(model: Model, run: Simulation) -> None:
    """Refuse an incomplete simulation; the error names time, reason and the fastest joint."""
    if run.ok:
        return
    when = f"at t = {run.stopped[0]:.4g} s"
    if run.outcome[0] == Ending.IMPOSSIBLE:
        raise SimulationError(
            f"The simulation stopped {when}: the mass matrix is not positive definite, which is physically impossible; "
            "use a physically consistent model (`steelyard identify --physical`)."
        )
    good = int(np.sum(np.all(np.isfinite(run.q), axis=1)))
    last = run.dq[good - 1] if good else np.zeros(model.robot.dof)
    k = int(np.argmax(np.abs(last)))
    joint = model.robot.joints[k]
    speed = f"{abs(last[k]):.3g} {'rad/s' if joint.kind == 'revolute' else 'm/s'}"
    raise SimulationError(
        f"The simulation diverged {when}: the fastest joint '{joint.name}' had {speed} just before; lower the torques "
        "or gains, or raise the rate."
    )


def _name(controller: Any) -> str:
    return "computed torque" if controller is None else f"the controller {type(controller).__name__}"


def _counted(count: int, noun: str) -> str:
    return f"a {noun}" if count == 1 else f"{count} {noun}s"


def _source(log: Log) -> str:
    return str(log.meta.get("source", "the log"))

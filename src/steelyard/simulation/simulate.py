"""`simulate`: the motion of a robot model under a drive."""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike

from steelyard.dynamics.model import Model
from steelyard.dynamics.native.kernel import Single
from steelyard.errors import ShapeError, SimulationError
from steelyard.ground.arrays import Array
from steelyard.robot.free import refuse_free
from steelyard.simulation._integrators import SimulationProblem, run_fixed_steps
from steelyard.simulation.command import Drive, command_of, schedule_of
from steelyard.simulation.dry_friction import Friction
from steelyard.simulation.plant import plant_of
from steelyard.simulation.sensitivities import Start, run_loop
from steelyard.simulation.sensors import Sensors
from steelyard.simulation.simulation import Ending, Simulation, check_start, divergence_error, find_endings

_Method = Literal["rk4", "rk45"]
# Runge–Kutta 4 damps real modes up to this rate times the step (the end of its stability region on the real axis).
_STABLE = 2.785
# Minimum number of parts per step when the adaptive method is requested for friction with memory.
_PARTS_OF_RK45 = 4


class SimulationWarning(UserWarning):
    """The step is too long for the simulated friction."""


def simulate(
    model: Model,
    drive: Drive = None,
    *,
    duration: float | None = None,
    times: ArrayLike | None = None,
    step: float = 1e-3,
    q0: ArrayLike | None = None,
    dq0: ArrayLike | None = None,
    reference: Any = None,
    theta: ArrayLike | None = None,
    friction: Friction = "smooth",
    smoothing: float = 1e-2,
    break_away: float = 1.0,
    method: _Method = "rk4",
    rtol: float = 1e-8,
    atol: float = 1e-10,
    control_period: float | None = None,
    record_every: int = 1,
    sensors: Sensors | None = None,
    bound: float = 1e4,
    threads: int | None = None,
    throw: bool = True,
    stops0: ArrayLike | None = None,
) -> Simulation:
    """Simulate a model, or a batch of robots with different parameters.

    Torque changes at control instants only. A model with friction memory (`model.has_memory`) has its own integrator,
    whatever the `method`: implicit for stiff stops, with true stiction. A measurement delay of the torque (term `lag`)
    belongs to the sensor and is ignored.

    Args:
        model: Robot model.
        drive: Source of joint torques [N m, N]: an array `(rows, joints)` (or with a leading robots axis) with a row
            per control period, a single row, a function `torque(t, q, dq)`, a controller, or None for no torque.
        duration: Duration [s]; alternatively `times`.
        times: Times of the samples, equally spaced [s].
        step: Integration step [s].
        q0: Initial positions, `(joints,)` or `(robots, joints)` [rad, m].
        dq0: Initial velocities, same shape [rad/s, m/s].
        reference: Motion for a controller: a posture, arrays `(q, dq, ddq)` with a row per control period, or an object
            with `sample(t)`.
        theta: Parameters of a batch, `(robots, parameters)`.
        friction: "smooth" spreads jumps of dry friction; "stick" simulates true stiction of joints and drives.
        smoothing: Speed range of smooth friction [rad/s, m/s].
        break_away: Ratio of static to sliding friction, at least 1, for "stick".
        method: "rk4" with fixed steps (machine code with smooth friction) or "rk45" with error control.
        rtol, atol: Relative and absolute error per step of "rk45".
        control_period: Time between changes of the torque [s]; default: every step, with `times` every sample.
        record_every: Steps between samples.
        sensors: Sensors for the logs of the result; default: true signals.
        bound: A run diverges beyond ± this position [rad, m], at a non-finite state or an indefinite mass matrix.
        threads: Number of threads; default: all processors.
        throw: Raise an error if a run diverges; otherwise mark it and set its samples to NaN from there on.
        stops0: Initial states of stops, −1 … 1 in the order of the terms; default: as after a long motion at `dq0`, 0
            at rest.

    Raises:
        SimulationError: If an argument is invalid, or a run diverges and `throw` is set.
    """
    _check_choices(friction, method, smoothing, break_away, rtol, atol, bound)
    schedule = schedule_of(duration, times, step, control_period, record_every)
    n = refuse_free(model.robot, "simulation does not support it", "lock its coordinates.").dof
    command = command_of(drive, reference, schedule, n)
    numbers = _Inputs.of(model, theta, q0, dq0, len(command.table))
    plant = plant_of(model.robot, model.terms, smoothing)
    lumped = plant.lumped(numbers.theta)
    problem = SimulationProblem(plant, command, schedule, lumped, numbers.q0, numbers.dq0)
    watched = check_start(model, numbers.theta, numbers.q0)
    if model.has_memory:
        from steelyard.simulation.memory import run_with_memory

        models = [Model(model.robot, model.terms, x) for x in numbers.theta]
        first = None if stops0 is None else np.asarray(stops0, dtype=float)
        least = 1 if method == "rk4" else _PARTS_OF_RK45
        results = run_with_memory(problem, models, friction == "stick", smoothing, bound, first, least)
    elif stops0 is not None:
        raise SimulationError("stops0 is given, but no term of the model has a stop.")
    elif friction == "smooth" and method == "rk4":
        _check_step(problem)
        results = run_fixed_steps(problem, threads) if not command.states else _run_with_states(problem, threads)
    elif command.states:
        raise SimulationError(
            "A controller with states, such as PID, needs --friction smooth (in Python: and method='rk4')."
        )
    else:
        # Imported here because SciPy's integrators take half a second to load.
        from steelyard.simulation._integrators import Tolerances, run_rk45
        from steelyard.simulation._stick_run import run_sticking

        tolerances = Tolerances(rtol, atol)
        if friction == "stick":
            results = run_sticking(problem, break_away, None if method == "rk4" else tolerances, bound)
        else:
            results = run_rk45(problem, tolerances, bound)
    outcome, bad = find_endings(model, numbers.theta, watched, results, bound)
    clock = schedule.times
    stopped = np.where(outcome == Ending.COMPLETED, np.nan, clock[np.minimum(bad, len(clock) - 1)])
    if throw and np.any(outcome != Ending.COMPLETED):
        raise divergence_error(outcome, stopped, bound)
    signals = results if numbers.batch else {name: x[0] for name, x in results.items()}
    joints = model.robot.joint_names
    return Simulation(joints, clock, **signals, outcome=outcome, stopped=stopped, sensors=sensors)


@dataclass(frozen=True, eq=False)
class _Inputs:
    """Parameters and initial states of all robots, `(robots, …)`; `batch` if any argument has a robots axis."""

    theta: Array
    q0: Array
    dq0: Array
    batch: bool

    @classmethod
    def of(cls, model: Model, theta: Any, q0: Any, dq0: Any, tables: int) -> _Inputs:
        n = model.robot.dof
        given = {
            "theta": (model.theta if theta is None else theta, len(model.theta)),
            "q0": (np.zeros(n) if q0 is None else q0, n),
            "dq0": (np.zeros(n) if dq0 is None else dq0, n),
        }
        arrays: dict[str, Array] = {}
        for name, (value, width) in given.items():
            array = np.asarray(value, dtype=float)
            if array.ndim not in (1, 2) or array.shape[-1] != width or array.size == 0:
                raise ShapeError(f"{name} has shape {array.shape}; expected ({width},) or (robots, {width}).")
            if not np.all(np.isfinite(array)):
                raise SimulationError(
                    f"{name} must be finite; entry {int(np.argmin(np.isfinite(array).ravel()))} is not."
                )
            arrays[name] = array
        counts = {name: len(a) for name, a in arrays.items() if a.ndim == 2}
        if tables > 1:
            counts["drive"] = tables
        if len({c for c in counts.values() if c != 1}) > 1:
            sizes = ", ".join(f"{k} {c}" for k, c in counts.items())
            raise ShapeError(f"The batch sizes differ: {sizes}; use one number of robots.")
        robots = max(counts.values(), default=1)
        full = {k: np.ascontiguousarray(np.broadcast_to(a, (robots, a.shape[-1]))) for k, a in arrays.items()}
        return cls(**full, batch=bool(counts))


def _run_with_states(problem: SimulationProblem, threads: int | None) -> dict[str, Array]:
    """Simulate a controller with states, which the integrator treats as joints."""
    controller = problem.command.controller
    assert controller is not None
    start = Start(problem.q0, problem.dq0, controller.first_states(problem.dq0), problem.theta)
    return run_loop(problem.plant, controller, problem.schedule, problem.command.table, start, threads=threads)


def _check_choices(
    friction: str, method: str, smoothing: float, break_away: float, rtol: float, atol: float, bound: float
) -> None:
    if friction not in ("smooth", "stick"):
        raise SimulationError(f'friction is "smooth" or "stick", not "{friction}".')
    if method not in ("rk4", "rk45"):
        raise SimulationError(f'method is "rk4" or "rk45", not "{method}".')
    if not break_away >= 1.0:
        raise SimulationError(f"break_away is static over sliding friction, at least 1; not {break_away}.")
    for name, value in {"smoothing": smoothing, "rtol": rtol, "atol": atol, "bound": bound}.items():
        if not (np.isfinite(value) and value > 0.0):
            raise SimulationError(f"{name} must be a positive number, not {value}.")


def _check_step(problem: SimulationProblem) -> None:
    """Warn if fixed steps are too long for the friction of the first robot at rest."""
    n, h = problem.plant.robot.dof, problem.schedule.step
    accelerate = Single(problem.plant.acceleration, problem.plant.widths, theta=problem.theta[0])
    q, still, nothing = problem.q0[0], np.zeros(n), np.zeros(n)
    small = 1e-6
    at_rest = accelerate(q, still, nothing)
    slopes = np.stack([(accelerate(q, small * unit, nothing) - at_rest) / small for unit in np.eye(n)], axis=1)
    fastest = float(np.max(-np.linalg.eigvals(slopes).real, initial=0.0)) if np.all(np.isfinite(slopes)) else 0.0
    if fastest * h > _STABLE:
        warnings.warn(
            f"Friction damps the robot at up to {fastest:.3g} 1/s at rest, too fast for steps of {h:g} s: shorten "
            f"them to {_STABLE / fastest:.2g} s (--rate), or use --friction stick (in Python: `step`, a wider "
            "`smoothing`, friction='stick' or method='rk45').",
            SimulationWarning,
            stacklevel=3,
        )

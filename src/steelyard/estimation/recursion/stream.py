"""Estimates base parameters while the robot moves, sample by sample, or from a log in order of time."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from math import isfinite
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from steelyard.dynamics.engine import Dynamics
from steelyard.errors import LogError, ShapeError, SteelyardError
from steelyard.estimation.estimate import EstimationError, Prior
from steelyard.estimation.history import ParameterHistory
from steelyard.estimation.linear._free import nearest_theta
from steelyard.estimation.recursion._history import ConvergenceTest, History
from steelyard.estimation.recursion._information import Information
from steelyard.estimation.recursion._stretches import EVERY, ErrorParts, Stretches
from steelyard.estimation.recursion.forgetting import Forgetting, make_forgetting
from steelyard.estimation.recursion.live_rows import live_rows
from steelyard.estimation.recursion.state import identity, read_checked, report_contradictions, rules_of, write_state
from steelyard.ground.array_rules import ArrayRule
from steelyard.ground.arrays import Array
from steelyard.parameters.terms import TermsLike
from steelyard.regression.base_parameters import BaseParameters, base_parameters
from steelyard.regression.schemes import Scheme, make_scheme, scheme_names
from steelyard.regression.schemes.still import Curves, KnownFriction
from steelyard.robot.load import RobotLike, as_robot
from steelyard.signals.as_logs import LogLike, as_log, is_one_log
from steelyard.signals.between import TorqueBetween
from steelyard.signals.log import Log


@dataclass(frozen=True, eq=False)
class _Settings:
    """Checked settings of `recursive`."""

    P0: ArrayLike
    theta0: ArrayLike | None
    noise: ArrayLike
    reset_every: int | None
    every: int
    window: int
    tolerance: float
    moments: int
    eigenvalues: bool = True

    def __post_init__(self) -> None:
        for name in ("every", "window", "reset_every"):
            value = getattr(self, name)
            if value is not None and not (value == int(value) and value >= 1):
                raise EstimationError(f"{name} is {value}; it must be an integer from 1 on.")

    def __repr__(self) -> str:  # must be equal for a resumed run
        noise = np.asarray(self.noise, dtype=float).tolist()
        reset = f"{self.reset_every} to {np.asarray(self.P0, dtype=float).tolist()}" if self.reset_every else "never"
        moments = f"{self.moments}" if self.eigenvalues else f"{self.moments} of parameters"
        return f"noise {noise} reset {reset} window {self.window} {self.tolerance} moments {moments}"

    def start(self, base: BaseParameters) -> tuple[Array, Prior | None]:
        """Initial base parameters, and full ones if they were given."""
        theta0 = self.theta0
        if theta0 is None:
            return np.zeros(base.rank), None
        values = np.asarray(theta0, dtype=float)
        if not np.all(np.isfinite(values)):
            raise EstimationError("theta0 is not finite; omit it if it is unknown.")
        if values.shape == (len(base.parameters),):
            return base.values(values), Prior(values)
        if values.shape == (base.rank,):
            return values, None
        counts = f"{base.rank} base parameters or {len(base.parameters)} full ones"
        raise ShapeError(f"theta0 has shape {values.shape}; {counts} are needed.")

    def noise_std(self, equations: int) -> Array:
        """Standard deviation of the rows for this number of `equations`."""
        values = np.asarray(self.noise, dtype=float)
        if values.shape not in ((), (equations,)) or not np.all(np.isfinite(values) & (values > 0.0)):
            raise SteelyardError(f"noise must be a positive number, or {equations} of them (one per equation).")
        return np.broadcast_to(values, (equations,)).astype(float)


_SIGNALS = ("q", "dq", "tau", "ddq")


def recursive(
    robot: RobotLike,
    stream: LogLike | Iterable[Any],
    *,
    terms: TermsLike | None = None,
    scheme: str | Scheme = "filtered-dynamic",
    forgetting: float | Forgetting = 1.0,
    P0: ArrayLike = 1e6,
    theta0: ArrayLike | None = None,
    noise: ArrayLike = 1.0,
    reset_every: int | None = None,
    every: int = 1,
    window: int = 200,
    tolerance: float = 0.05,
    moments: int = 256,
    eigenvalues: bool = True,
    base: BaseParameters | None = None,
    known_friction: Curves | None = None,
    resume: str | os.PathLike[str] | None = None,
    torque_between: TorqueBetween = "auto",
) -> Recursive:
    """Create recursive least squares over a stream of samples; iterate over it for estimates.

    Args:
        robot: The robot, as `load_robot` takes it.
        stream: A log (path, `Log`, frame or dict), or an iterable of live samples (t, q, dq, tau) or (t, q, dq, tau,
            ddq).
        terms: Joint terms to identify with the links; None: links only.
        scheme: A scheme, or its name with options ("filtered-dynamic:cutoff_hz=1.5"); filters are causal. The default
            cut-off or window suits motions of 1 Hz.
        forgetting: A factor in (0, 1], or `Constant`, `Directional`, `Variable`.
        P0: Covariance of the start in units of the noise's variance: a number, one per base parameter, or a matrix;
            inf: unknown, and estimates are NaN until the motion has determined every parameter.
        theta0: Start: base parameters, or full parameters (ten per link, then the terms'); None: zero.
        noise: Standard deviation of the rows, a number or one per equation: rows are divided by it.
        reset_every: Reset P to P0 after this number of updates (the estimate stays).
        every: Yield after this number of samples with rows.
        window: Number of updates for `converged`.
        tolerance: Largest change of the predictions in `window` updates for `converged`, over the residuals' deviation.
        moments: Largest number of steps in `history`; 0: none.
        eigenvalues: Whether the history includes eigenvalues of P; without them a state is small.
        base: Base parameters; saves computing them.
        known_friction: Friction curves over velocity, by joint or motor, that are subtracted from the torque.
        resume: State written by `save`; the run continues exactly as without interruption.
        torque_between: Torque between samples (`Identification.between.name`); "auto": that of the scheme, or held.
    """
    robot = as_robot(robot)
    samples: Any = as_log(stream, robot) if is_one_log(stream) and not isinstance(stream, np.ndarray) else stream
    known = base_parameters(robot, terms) if base is None else base
    settings = _Settings(P0, theta0, noise, reset_every, every, window, tolerance, moments, eigenvalues)
    run = Recursive(known, make_scheme(scheme).for_stream(torque_between), make_forgetting(forgetting), settings)
    if known_friction is not None:
        samples = _without_friction(KnownFriction.of(robot, known_friction), samples)
    run._samples = run._from_log(samples) if isinstance(samples, Log) else run._live(samples)
    if resume is not None:
        run.restore(resume)
    return run


def _without_friction(known: KnownFriction, stream: Log | Iterable[Any]) -> Log | Iterable[Any]:
    """Subtract known friction from the torques of the samples."""
    if not isinstance(stream, Log):
        return ((t, q, dq, tau - known.torque(np.atleast_2d(dq))[0], *more) for t, q, dq, tau, *more in stream)
    if stream.dq is None or stream.tau is None:
        raise EstimationError("known_friction needs dq and tau in the log.")
    return replace(stream, tau=stream.tau - known.torque(stream.dq))


@dataclass(frozen=True, eq=False, repr=False)
class Snapshot:
    """The estimate at one step. Error bars and eigenvalues are available only for the newest snapshot."""

    t: float
    samples: int
    updates: int
    beta: Array
    converged: bool
    source: Recursive

    @property
    def theta(self) -> Array:
        """Full parameters with these base parameters, nearest to the start."""
        return nearest_theta(self.source.base, self.beta, self.source.prior)

    @property
    def standard_errors(self) -> Array:
        """Standard errors that include correlated residuals and errors of the friction model."""
        return self.error_parts.standard_errors

    @property
    def error_parts(self) -> ErrorParts:
        """Parts of the standard errors."""
        return self.source.error_parts(self._state())

    @property
    def P(self) -> Array:
        """Covariance for rows of unit noise."""
        return self._state().covariance()

    @property
    def eigenvalues(self) -> Array:
        """Eigenvalues of P, largest first."""
        return self._state().eigenvalues()

    def _state(self) -> Information:
        if self.source.information.updates != self.updates:
            raise EstimationError("The stream has continued after this snapshot; use the newest one, or `history`.")
        return self.source.information


class Recursive:
    """A running estimation from `recursive`: an iterator of snapshots that can be saved at any time.

    Args:
        base: Base parameters to estimate.
        scheme: Scheme of the rows.
        forgetting: The forgetting.
        settings: Checked settings.
    """

    def __init__(self, base: BaseParameters, scheme: Scheme, forgetting: Forgetting, settings: _Settings) -> None:
        self.base, self.scheme, self.forgetting, self._settings = base, scheme, forgetting, settings
        robot = base.robot
        self._rows = live_rows(Dynamics(robot, base.terms), base, scheme)
        self.information = Information(base.rank, self._rows.equations)
        self._rows.out = self.information.buffer
        self._parts = self._rows.sample.reshape(-1, robot.dof)
        self._ones = np.ones(self._rows.sample.size)
        self.history = History(base.rank, settings.moments, settings.eigenvalues)
        self._convergence = ConvergenceTest(base.rank, settings.window, settings.tolerance)
        beta0, self.prior = settings.start(base)
        self.information.start(beta0, settings.P0)
        used = [int(j) for j in np.flatnonzero(robot.torque_used)]
        self._stretches = Stretches(used, self._rows.equations, robot.dof)
        self._stretches.start(self.information)
        self._inverse_noise = 1.0 / settings.noise_std(self._rows.equations)[:, None]
        self._weighted = bool(np.any(self._inverse_noise != 1.0))
        self._determined = self.information.determined
        self.samples = 0
        self._samples: Iterator[float] = iter(())
        self._owner = identity(robot, base, scheme, forgetting, settings)

    def __iter__(self) -> Recursive:
        return self

    def __next__(self) -> Snapshot:
        information, every = self.information, self._settings.every
        while True:
            t = next(self._samples)  # ends with the stream
            self._step(t, information)
            if information.updates % every == 0:
                return Snapshot(t, self.samples, information.updates, self._beta(), self._convergence.converged, self)

    def _step(self, t: float, information: Information) -> None:
        if self._weighted:
            self.information.buffer *= self._inverse_noise
        information.filled = self._rows.filled
        if not information.updates % EVERY:
            self._stretches.observe_rows(information)
        self.forgetting.absorb(information, True)
        reset_every = self._settings.reset_every
        if reset_every is not None and information.updates % reset_every == 0:
            self.reset()
        if not information.updates % self._stretches.stride:
            self._stretches.add(information)
        self.history.add(t, information)
        self._convergence.update(information)

    def _beta(self) -> Array:
        if not self._determined:
            self._determined = self.information.determined
            return self.information.theta()
        return self.information.solved.copy()

    def _live(self, stream: Iterable[Any]) -> Iterator[float]:
        """Yield the times of samples with rows in the buffer."""
        for values in stream:
            t = float(values[0])
            self._read_sample(t, values)
            if self.samples % EVERY < 3:
                self._stretches.observe_torque(self.samples, self._parts[2])
            self.samples += 1
            if self._rows.add(t):
                yield t

    def _from_log(self, log: Log) -> Iterator[float]:
        if log.joints != self.base.robot.joint_names:
            raise LogError(
                f"The log has the joints {', '.join(log.joints)}; '{self.base.robot.name}' has "
                f"{', '.join(self.base.robot.joint_names)}."
            )
        signals = {name: getattr(log, name) for name in ("q", "dq", "tau")}
        missing = [name for name, x in signals.items() if x is None]
        if missing:
            raise LogError(f"The log has no {missing[0]}; recursive least squares does not compute missing signals.")
        columns = [log.t, *signals.values()] + ([log.ddq] if log.ddq is not None else [])
        for k, (start, stop) in enumerate(log.segments):
            if k > 0:
                self._rows.reset()
            yield from self._live(zip(*(c[start:stop] for c in columns), strict=True))

    def _read_sample(self, t: float, values: Any) -> None:
        """Check a sample and copy its values to the input of the rows."""
        parts, dof = self._parts, self.base.robot.dof
        if len(values) <= len(parts) or len(values) > 5:
            self._refuse_length(len(values))
        for name, value, part in zip(_SIGNALS, values[1:], parts, strict=False):
            if np.shape(value) != (dof,):
                raise ShapeError(
                    f"{name} of sample {self.samples + 1} has shape {np.shape(value)}; ({dof},) is needed."
                )
            part[:] = value
        if not isfinite(t + self._ones @ self._rows.sample):
            self._refuse_number(t)

    def _refuse_length(self, length: int) -> None:
        if length == 4:
            raise LogError(
                f"The scheme '{self.scheme.name}' needs accelerations: give samples (t, q, dq, tau, ddq), or use a "
                f"scheme without accelerations: {scheme_names(uses_acceleration=False)}."
            )
        raise ShapeError(f"A sample must be (t, q, dq, tau) or (t, q, dq, tau, ddq), but has {length} entries.")

    def _refuse_number(self, t: float) -> None:
        where = f"sample {self.samples + 1} (t = {t:g} s)"
        if not isfinite(t):
            raise LogError(f"t is not a number at {where}; remove the sample.")
        for name, values in zip(_SIGNALS, self._parts, strict=False):
            bad = np.flatnonzero(~np.isfinite(values))
            if bad.size:
                joint = self.base.robot.joint_names[int(bad[0])]
                raise LogError(f"{name} of joint '{joint}' is not a number at {where}; remove the sample.")

    def reset(self, P0: ArrayLike | None = None) -> None:
        """Reset P to `P0` (None: that of the start) and keep the estimate, to learn a change of the robot."""
        self.information.reset(self._settings.P0 if P0 is None else P0)
        self._stretches.start(self.information)

    def error_parts(self, state: Information) -> ErrorParts:
        """Compute the parts of the standard errors of the newest estimate, that of `state`."""
        return self._stretches.parts(state, self._rows.noise_gain(), self._inverse_noise[:, 0])

    @property
    def _stateful(self) -> dict[str, Any]:
        return {
            "information": self.information,
            "rows": self._rows,
            "history": self.history,
            "settling": self._convergence,
            "stretches": self._stretches,
        }

    @property
    def parameter_history(self) -> ParameterHistory:
        """The history for plots and files: `run.parameter_history.save("folder")` writes a report."""
        base, information = self.base, self.information
        errors = self.error_parts(information).standard_errors if information.determined else None
        title = f"Base parameters of {base.robot.name}, live"
        steps = self.history.t, self.history.beta
        values = self.history.eigenvalues if self._settings.eigenvalues else None
        return ParameterHistory(title, base.names, base.units, "time [s]", *steps, errors, eigenvalues=values)

    def feed(self, samples: Iterable[Any], fresh: bool = False) -> None:
        """Process samples without snapshots.

        Args:
            samples: Samples (t, q, dq, tau).
            fresh: Whether they follow a gap.
        """
        if fresh:
            self._rows.reset()
        for t in self._live(samples):
            self._step(t, self.information)

    @property
    def estimate(self) -> Array:
        """The present base parameters."""
        return self.information.theta()

    @property
    def theta(self) -> Array:
        """Full parameters with these base parameters, nearest to the start."""
        return nearest_theta(self.base, self.estimate, self.prior)

    def state(self) -> dict[str, Array]:
        """Return the complete state as arrays by name."""
        arrays = {f"{name}.{key}": x for name, part in self._stateful.items() for key, x in part.state().items()}
        return {**arrays, "samples": np.array(self.samples)}

    @property
    def state_rules(self) -> dict[str, ArrayRule]:
        """Allowed differences of a saved state from a new stream."""
        return rules_of(self._stateful)

    def restore_arrays(self, arrays: Mapping[str, Array]) -> None:
        """Continue from the `arrays` of `state`, of the same robot, terms and scheme."""
        for name, part in self._stateful.items():
            part.restore({key.partition(".")[2]: x for key, x in arrays.items() if key.startswith(f"{name}.")})
        if "stretches.heads" not in arrays:  # state of an older version
            self._stretches.start(self.information)
        self.samples = int(arrays["samples"])
        self._determined = self.information.determined

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the complete state to `path` (.npz); `recursive(…, resume=path)` continues exactly."""
        write_state(path, self._owner, self.state())

    def restore(self, path: str | os.PathLike[str]) -> None:
        """Continue from the state at `path`; states of another robot, other terms or another scheme are refused."""
        with report_contradictions(path):
            self.restore_arrays(read_checked(path, self._owner, self.state(), self.state_rules))

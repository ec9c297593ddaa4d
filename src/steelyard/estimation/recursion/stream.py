"""`recursive`: base parameters while the robot moves, sample by sample, or from a log in its own order."""

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
from steelyard.estimation.recursion._history import History, Settling
from steelyard.estimation.recursion._information import Information
from steelyard.estimation.recursion._stretches import EVERY, ErrorParts, Stretches
from steelyard.estimation.recursion.forgetting import Forgetting, make_forgetting
from steelyard.estimation.recursion.live_rows import live_rows
from steelyard.estimation.recursion.state import contradictions_named, identity, read_checked, rules_of, write_state
from steelyard.ground.array_rules import ArrayRule
from steelyard.ground.arrays import Array
from steelyard.parameters.terms import TermsLike
from steelyard.regression.base_parameters import BaseParameters, base_parameters
from steelyard.regression.schemes import Scheme, make_scheme, scheme_names
from steelyard.regression.schemes.still import Curves, KnownFriction
from steelyard.robot.load import RobotLike, as_robot
from steelyard.signals.between import TorqueBetween
from steelyard.signals.given import LogLike, as_log, is_one_log
from steelyard.signals.log import Log


@dataclass(frozen=True, eq=False)
class _Settings:
    """What `recursive` was asked for, checked."""

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
                raise EstimationError(f"{name} is {value}; it counts samples or updates, from 1 on.")

    def __repr__(self) -> str:  # what a continued run must share
        noise = np.asarray(self.noise, dtype=float).tolist()
        reset = f"{self.reset_every} to {np.asarray(self.P0, dtype=float).tolist()}" if self.reset_every else "never"
        kept = f"{self.moments}" if self.eigenvalues else f"{self.moments} of parameters"
        return f"noise {noise} reset {reset} window {self.window} {self.tolerance} moments {kept}"

    def start(self, base: BaseParameters) -> tuple[Array, Prior | None]:
        """The parameters of `base` to begin with, and the full ones where they were given."""
        theta0 = self.theta0
        if theta0 is None:
            return np.zeros(base.rank), None
        given = np.asarray(theta0, dtype=float)
        if not np.all(np.isfinite(given)):
            raise EstimationError("theta0 is not finite; leave it out where nothing is known.")
        if given.shape == (len(base.parameters),):
            return base.values(given), Prior(given)
        if given.shape == (base.rank,):
            return given, None
        counts = f"{base.rank} base parameters or {len(base.parameters)} full ones"
        raise ShapeError(f"theta0 has shape {given.shape}; {counts} are needed.")

    def noise_std(self, equations: int) -> Array:
        """The rows' standard deviation, for so many `equations`."""
        given = np.asarray(self.noise, dtype=float)
        if given.shape not in ((), (equations,)) or not np.all(np.isfinite(given) & (given > 0.0)):
            raise SteelyardError(f"noise must be a positive number, or {equations} of them (one per equation).")
        return np.broadcast_to(given, (equations,)).astype(float)


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
    """Recursive least squares over a stream of samples; iterate over it for estimates.

    Args:
        robot: the robot, as `load_robot` takes it.
        stream: a log (a path, `Log`, frame or dict of arrays), or anything that yields samples (t, q, dq, tau) or
            (t, q, dq, tau, ddq), live.
        terms: joint terms to be identified with the links; None: links alone.
        scheme: name with options ("filtered-dynamic:cutoff_hz=1.5") or a scheme; filters are causal. Without a cut-off
            or window of its own it takes one for motions of 1 Hz.
        forgetting: a constant factor in (0, 1], or `Constant`, `Directional`, `Variable`.
        P0: how well the start is known, in units of the noise's variance: a number, one per base parameter, or a
            matrix; inf: not at all, and estimates are not numbers until the motion has shown every parameter.
        theta0: the start: base parameters, or full parameters (ten per link, then the terms'); None: zero.
        noise: standard deviation of the rows, a number or one per equation: rows are divided by it.
        reset_every: set P back to P0 after so many updates (the estimate stays).
        every: yield after every so many samples that gave rows.
        window, tolerance: `converged` says that the last `window` updates changed the predictions of all rows so far
            by less than `tolerance` of the residuals' standard deviation.
        moments: how many moments `history` keeps at most; 0: none.
        eigenvalues: whether it can tell those of P, too; without, a state is as small as its parameters.
        base: the base parameters, where they are at hand already.
        known_friction: curves over velocity (rad/s, m/s → N m, N), by joint or motor, that are taken off the torque.
        resume: a state written by `save`, to go on from exactly as if nothing had happened.
        torque_between: how the torque runs between samples, as `identify` found it (`Identification.between.name`);
            "auto": as the scheme says, or held.
    """
    robot = as_robot(robot)
    samples: Any = as_log(stream, robot) if is_one_log(stream) and not isinstance(stream, np.ndarray) else stream
    known = base_parameters(robot, terms) if base is None else base
    settings = _Settings(P0, theta0, noise, reset_every, every, window, tolerance, moments, eigenvalues)
    made = Recursive(known, make_scheme(scheme).for_stream(torque_between), make_forgetting(forgetting), settings)
    if known_friction is not None:
        samples = _without_friction(KnownFriction.of(robot, known_friction), samples)
    made._samples = made._from_log(samples) if isinstance(samples, Log) else made._live(samples)
    if resume is not None:
        made.restore(resume)
    return made


def _without_friction(known: KnownFriction, stream: Log | Iterable[Any]) -> Log | Iterable[Any]:
    """The samples with what is known of friction taken off their torque."""
    if not isinstance(stream, Log):
        return ((t, q, dq, tau - known.torque(np.atleast_2d(dq))[0], *more) for t, q, dq, tau, *more in stream)
    if stream.dq is None or stream.tau is None:
        raise EstimationError("Known friction is taken off by the velocities of the log; give it dq and tau.")
    return replace(stream, tau=stream.tau - known.torque(stream.dq))


@dataclass(frozen=True, eq=False)
class Snapshot:
    """The estimate at one moment: `beta` are the base parameters.

    Error bars and eigenvalues are worked out when asked for, and only of the newest snapshot: the triangle they come
    from goes on with the stream. `history` keeps the way.
    """

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
        """For residuals as correlated as they are, and friction that may have another form than the terms'."""
        return self.error_parts.standard_errors

    @property
    def error_parts(self) -> ErrorParts:
        """What the standard errors are made of."""
        return self.source.error_parts(self._state())

    @property
    def P(self) -> Array:
        """The covariance for rows of unit noise."""
        return self._state().covariance()

    @property
    def eigenvalues(self) -> Array:
        """Of P, largest first."""
        return self._state().eigenvalues()

    def _state(self) -> Information:
        if self.source.information.updates != self.updates:
            raise EstimationError("The stream has gone on since this snapshot; ask the newest, or see `history`.")
        return self.source.information


class Recursive:
    """An estimation on its way: an iterator of snapshots that can be saved at any moment. Made by `recursive`.

    It looks for `base` in the rows of `scheme`, forgets by `forgetting`, and keeps to the checked `settings`.
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
        self._settling = Settling(base.rank, settings.window, settings.tolerance)
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

    # ---------------------------------------------------------------- the loop

    def __iter__(self) -> Recursive:
        return self

    def __next__(self) -> Snapshot:
        information, every = self.information, self._settings.every
        while True:
            t = next(self._samples)  # ends with the stream
            self._step(t, information)
            if information.updates % every == 0:
                return Snapshot(t, self.samples, information.updates, self._beta(), self._settling.converged, self)

    def _step(self, t: float, information: Information) -> None:
        if self._weighted:
            self.information.buffer *= self._inverse_noise
        information.filled = self._rows.filled
        if not information.updates % EVERY:
            self._stretches.look(information)
        self.forgetting.absorb(information, True)
        reset_every = self._settings.reset_every
        if reset_every is not None and information.updates % reset_every == 0:
            self.reset()
        if not information.updates % self._stretches.stride:
            self._stretches.add(information)
        self.history.add(t, information)
        self._settling.look(information)

    def _beta(self) -> Array:
        if not self._determined:
            self._determined = self.information.determined
            return self.information.theta()
        return self.information.solved.copy()

    def _live(self, stream: Iterable[Any]) -> Iterator[float]:
        """The times at which there are rows in the buffer."""
        for given in stream:
            t = float(given[0])
            self._take(t, given)
            if self.samples % EVERY < 3:
                self._stretches.feel(self.samples, self._parts[2])
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
            raise LogError(f"The log has no {missing[0]}; recursive least squares takes signals as they are.")
        columns = [log.t, *signals.values()] + ([log.ddq] if log.ddq is not None else [])
        for k, (start, stop) in enumerate(log.segments):
            if k > 0:
                self._rows.reset()
            yield from self._live(zip(*(c[start:stop] for c in columns), strict=True))

    def _take(self, t: float, given: Any) -> None:
        """A sample to where the rows are made of it, if it is one."""
        parts, dof = self._parts, self.base.robot.dof
        if len(given) <= len(parts) or len(given) > 5:
            self._refuse_length(len(given))
        for name, value, part in zip(_SIGNALS, given[1:], parts, strict=False):
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
                f"The scheme '{self.scheme.name}' needs accelerations: give samples (t, q, dq, tau, ddq), or choose "
                f"{scheme_names(uses_acceleration=False)}, which need none."
            )
        raise ShapeError(f"A sample is (t, q, dq, tau) or (t, q, dq, tau, ddq), not {length} things.")

    def _refuse_number(self, t: float) -> None:
        where = f"sample {self.samples + 1} (t = {t:g} s)"
        if not isfinite(t):
            raise LogError(f"t is not a number at {where}; leave the sample out.")
        for name, values in zip(_SIGNALS, self._parts, strict=False):
            bad = np.flatnonzero(~np.isfinite(values))
            if bad.size:
                joint = self.base.robot.joint_names[int(bad[0])]
                raise LogError(f"{name} of joint '{joint}' is not a number at {where}; leave the sample out.")

    # ---------------------------------------------------------------- by hand

    def reset(self, P0: ArrayLike | None = None) -> None:
        """Set P back to `P0` (None: that of the start) and keep the estimate: something has changed, learn it anew."""
        self.information.reset(self._settings.P0 if P0 is None else P0)
        self._stretches.start(self.information)

    def error_parts(self, state: Information) -> ErrorParts:
        """What the error bars of the newest estimate, that of `state`, are made of."""
        return self._stretches.parts(state, self._rows.noise_gain(), self._inverse_noise[:, 0])

    @property
    def _stateful(self) -> dict[str, Any]:
        return {
            "information": self.information,
            "rows": self._rows,
            "history": self.history,
            "settling": self._settling,
            "stretches": self._stretches,
        }

    @property
    def parameter_history(self) -> ParameterHistory:
        """The moments of `history`, to be drawn or written: `run.parameter_history.save("folder")` makes a report."""
        base, information = self.base, self.information
        errors = self.error_parts(information).standard_errors if information.determined else None
        title = f"Base parameters of {base.robot.name}, live"
        moments = self.history.t, self.history.beta
        values = self.history.eigenvalues if self._settings.eigenvalues else None
        return ParameterHistory(title, base.names, base.units, "time [s]", *moments, errors, eigenvalues=values)

    def feed(self, samples: Iterable[Any], fresh: bool = False) -> None:
        """Take more `samples`, (t, q, dq, tau) each, without asking for estimates; `fresh`: they follow a gap."""
        if fresh:
            self._rows.reset()
        for t in self._live(samples):
            self._step(t, self.information)

    @property
    def estimate(self) -> Array:
        """The base parameters as they are known now."""
        return self.information.theta()

    @property
    def theta(self) -> Array:
        """Full parameters with these base parameters, nearest to the start."""
        return nearest_theta(self.base, self.estimate, self.prior)

    def state(self) -> dict[str, Array]:
        """All that the future depends on, as arrays by name."""
        arrays = {f"{name}.{key}": x for name, part in self._stateful.items() for key, x in part.state().items()}
        return {**arrays, "samples": np.array(self.samples)}

    @property
    def state_rules(self) -> dict[str, ArrayRule]:
        """Where a saved state may differ from that of a new stream."""
        return rules_of(self._stateful)

    def go_on_from(self, arrays: Mapping[str, Array]) -> None:
        """Go on from what `state` gave (`arrays`), of the same robot, terms and scheme."""
        for name, part in self._stateful.items():
            part.restore({key.partition(".")[2]: x for key, x in arrays.items() if key.startswith(f"{name}.")})
        if "stretches.heads" not in arrays:  # written before error bars needed them
            self._stretches.start(self.information)
        self.samples = int(arrays["samples"])
        self._determined = self.information.determined

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write all that the future depends on to `path` (.npz); `recursive(…, resume=path)` goes on just the same."""
        write_state(path, self._owner, self.state())

    def restore(self, path: str | os.PathLike[str]) -> None:
        """Go on from the state at `path`; one of another robot, of other terms or of another scheme is refused."""
        with contradictions_named(path):
            self.go_on_from(read_checked(path, self._owner, self.state(), self.state_rules))

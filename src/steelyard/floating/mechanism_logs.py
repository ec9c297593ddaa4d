"""`MechanismLogs`: logs of one mechanism as rows: cut-off, errors of sensors, stretches, noise, and fit."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np

from steelyard.dynamics.engine import Dynamics
from steelyard.errors import LogError
from steelyard.estimation.estimate import Prior
from steelyard.estimation.possible.reference import default_bodies
from steelyard.floating.motion import FloatingMotion, OpenLoopError, Preparer
from steelyard.floating.phases import base_of_phases
from steelyard.floating.precision import Precision, most_precise, precision, white_fit
from steelyard.floating.projected_rows import PhasePiece, RowMaker, divided, stretches_of
from steelyard.floating.sensor_errors import sensor_error_rows
from steelyard.floating.setup import CONTACT_ROWS
from steelyard.floating.weighted_fit import FOLDS, PossibleFit, fit_possible, left_out_errors, quick_fit
from steelyard.ground.arrays import Array
from steelyard.ground.progress import report_progress
from steelyard.regression.base_parameters import BaseParameters
from steelyard.regression.data import RegressionData
from steelyard.signals.excerpt import part_of
from steelyard.signals.log import Log
from steelyard.signals.prepare import motion_frequency

# Stretches of time: four per fold, so that error bars include the scatter between stretches.
FIT_PARTS = 4 * FOLDS
# Candidates for the cut-off, relative to the band of the motion. A lower cut-off removes motion; above ten times
# the band, accelerations of most encoders are noise.
_CUTOFFS = (1.0, 2.0, 4.0, 8.0)
# Gauss-Newton steps to the delays and biases of sensors: delays are short relative to the cut-off.
_STEPS = 2
# Samples for the choice of the cut-off: a longer log does not improve the choice of one number.
_CHOICE_SAMPLES = 200_000
# Samples for the error bars of each cut-off, which need several passes, and for first estimates.
FEW_SAMPLES = 60_000


class MechanismLogs:
    """The logs of one robot with its base parameters and prior.

    Args:
        preparer: Robot, mapping and filters.
        base: Base parameters of the robot and its terms.
        prior: Bodies of the description; None: none.
    """

    def __init__(self, preparer: Preparer, base: BaseParameters, prior: Prior | None) -> None:
        self.preparer, self.base, self.prior = preparer, base, prior
        self.dynamics: Dynamics = base.structure.dynamics
        self._bands: dict[tuple[int, ...], tuple[float, float]] = {}  # by the identities of the logs
        self._shown: dict[frozenset[tuple[int, ...]], BaseParameters] = {}  # base parameters by contact phases

    def stretches(
        self, logs: Sequence[Log], cutoff_hz: float, holdout: float | None
    ) -> tuple[list[PhasePiece], list[PhasePiece]]:
        """Return the stretches of fit and hold-out.

        Args:
            logs: Logs.
            cutoff_hz: Cut-off of the low-pass [Hz].
            holdout: Share of the end of each log for the hold-out; None: none.
        """
        self.preparer.left_out.clear()
        fit: list[PhasePiece] = []
        rest: list[PhasePiece] = []
        for log in logs:
            motions: list[FloatingMotion] = list(self.preparer.motions(log, cutoff_hz))
            border = np.inf if holdout is None else log.t[0] + (1.0 - holdout) * (log.t[-1] - log.t[0])
            for s in stretches_of(motions):
                first = s.motion.t[s.samples] < border
                for part, own in ((fit, first), (rest, ~first)):
                    if own.sum() >= 4:
                        part.append(replace(s, samples=s.samples[own]))
        if sum(len(s.samples) for s in fit) < 2 * 4 * FOLDS:
            raise LogError(
                "Too few samples remain: the log is too short for its cut-off, or its contacts change too often; "
                "raise the cut-off, or record longer phases."
            )
        return fit, rest

    def _band(self, logs: Sequence[Log]) -> tuple[float, float]:
        """Return the band of the motion and the highest cut-off [Hz]."""
        key = tuple(id(log) for log in logs)
        if key not in self._bands:
            period = max(float(np.median(np.diff(log.t))) for log in logs)
            parts = [_blocks_of(log, _CHOICE_SAMPLES // len(logs)) for log in logs]
            # The fastest log has the shortest contact phases.
            groups = [[part] for part in parts] if self.preparer.unknown else [parts]
            self._bands[key] = max(mechanism_band(self.preparer, group) for group in groups), 0.4 / period
        return self._bands[key]

    def middle_cutoff(self, logs: Sequence[Log]) -> float:
        """Return the middle of the candidates for the cut-off of `logs` [Hz]."""
        band, most = self._band(logs)
        return min(_CUTOFFS[len(_CUTOFFS) // 2] * band, most)

    def of_logs(self, logs: Sequence[Log], alike: int) -> tuple[list[RegressionData], BaseParameters, float]:
        """Make rows of unit noise of each log with common columns; return them with their columns and the cut-off.

        Args:
            logs: Logs of one robot; a payload may change after the first ones.
            alike: Number of logs without change, which determine cut-off, delays and biases.
        """
        self.find_errors(logs[:alike], self.middle_cutoff(logs[:alike]), None, FEW_SAMPLES)
        cutoff_hz = self.choose_cutoff(logs[:alike], None)
        self.find_errors(logs[:alike], cutoff_hz, None)
        each = [self.stretches([log], cutoff_hz, None)[0] for log in logs]
        maker = self.white([s for stretches in each for s in stretches])
        return [maker.data(stretches) for stretches in each], maker.base, cutoff_hz

    def find_errors(
        self, logs: Sequence[Log], cutoff_hz: float, holdout: float | None, samples: int = _CHOICE_SAMPLES
    ) -> None:
        """Estimate delays and biases of the sensors, and let the preparer take them off.

        Args:
            logs: Logs.
            cutoff_hz: Cut-off of the low-pass [Hz].
            holdout: Share of the end of each log that is not used; None: none.
            samples: Number of samples to use; fewer are enough before the cut-off is known.
        """
        if self.preparer.mechanism is not None or self.preparer.floating is None:
            return
        logs = [_blocks_of(log, samples // len(logs)) for log in logs]
        for _ in range(_STEPS):
            try:
                used, _ = self.stretches(logs, cutoff_hz, holdout)
            except OpenLoopError:
                raise
            except LogError:
                return
            maker = self.white(used)
            formulation, theta, hessian = white_fit(maker.data(used), maker.base, self.prior)
            rows = sensor_error_rows(maker, used, theta)
            if rows is None:
                return
            self.preparer.errors = rows.corrected(formulation, hessian, self.preparer.errors)

    def choose_cutoff(self, logs: Sequence[Log], holdout: float | None) -> float:
        """Return the cut-off whose fit predicts left-out rows best.

        The rows of the lowest cut-off judge all candidates. Joints of closed loops turn much faster than their drives
        at some poses, and a low cut-off distorts products of signals; for closed loops the measure is the product of
        the errors on the rows of all cut-offs.

        Args:
            logs: Logs.
            holdout: Share of the end of each log that is not used; None: none.
        """
        band, most = self._band(logs)
        if self.preparer.unknown:
            return self._most_precise(logs, holdout, sorted({min(factor * band, most) for factor in _CUTOFFS}))
        rows: dict[float, tuple[BaseParameters, list[RegressionData]]] = {}
        logs = [_blocks_of(log, _CHOICE_SAMPLES // len(logs)) for log in logs]
        for k, cutoff in enumerate(sorted({min(factor * band, most) for factor in _CUTOFFS})):
            report_progress("Choosing the cut-off", 0.02 + 0.02 * k, f"{cutoff:.3g} Hz")
            try:
                used, _ = self.stretches(logs, cutoff, holdout)
            except OpenLoopError:
                raise
            except LogError:
                continue
            maker = self.row_maker(used)
            parts = [maker.data(part) for part in divided(used, FOLDS)]
            if len(parts) == FOLDS:
                rows[cutoff] = maker.base, parts
        if not rows:
            raise LogError("The logs are too short to choose a cut-off; state one (--cutoff).")
        judged = [parts for _, parts in rows.values()]
        judged = judged if self.preparer.mechanism is not None else judged[:1]
        errors = {
            cutoff: float(np.prod(left_out_errors(parts, judged, base, self.prior)))
            for cutoff, (base, parts) in rows.items()
        }
        return min(errors, key=lambda c: errors[c])

    def _most_precise(self, logs: Sequence[Log], holdout: float | None, cutoffs: Sequence[float]) -> float:
        """Return the cut-off with the smallest error bars among those without a visible bias.

        A low cut-off spreads the forces of a step over its neighbours, so short contact phases lose their rows;
        left-out rows, which lack these phases as well, cannot show that, but error bars do.
        """
        logs = [_blocks_of(log, FEW_SAMPLES // len(logs)) for log in logs]
        fits: dict[float, Precision] = {}
        for k, cutoff in enumerate(cutoffs):
            report_progress("Choosing the cut-off", 0.02 + 0.02 * k, f"{cutoff:.3g} Hz")
            try:
                used, _ = self.stretches(logs, cutoff, holdout)
            except LogError:
                continue
            maker = self.white(used)
            fits[cutoff] = precision(maker.data(used), maker.base, self.prior)
        if not fits:
            raise LogError("The logs are too short to choose a cut-off; state one (--cutoff).")
        return most_precise(fits)

    def row_maker(self, stretches: Sequence[PhasePiece]) -> RowMaker:
        """Create the maker of the rows of `stretches`; it divides each equation by the size of its forces."""
        ones = np.ones(self.preparer.robot.dof)
        maker = RowMaker(self.preparer, self.dynamics, self.base, ones)
        if not maker.projects:
            return maker
        width = max(self._rows(s.closed, s.motion) for s in stretches)
        maker = RowMaker(self.preparer, self.dynamics, self.base, 1.0 / self._sizes(stretches), width)
        sets = frozenset(s.closed for s in stretches)
        if not self.preparer.unknown:  # redundant drives of closed loops: one combination for all rows
            return maker
        if sets not in self._shown:
            self._shown[sets] = base_of_phases(maker, stretches)
        return replace(maker, base=self._shown[sets])

    def _rows(self, closed: Sequence[int], motion: FloatingMotion) -> int:
        """Return an upper limit of the rows of a sample: several contacts may be redundant, one contact is not."""
        if (mechanism := self.preparer.mechanism) is not None:
            return mechanism.mobility
        most = max((len(CONTACT_ROWS[self.preparer.unknown[k].kind]) for k in closed), default=0)
        return self.preparer.robot.dof - max(most, int(motion.missing.sum()))

    def _sizes(self, stretches: Sequence[PhasePiece]) -> Array:
        """Return the size of each coordinate's force by the described bodies, as a scale before the noise is known."""
        robot = self.preparer.robot
        theta = np.zeros(len(self.base.parameters))
        bodies = robot.inertial_parameters if robot.has_inertia else default_bodies(robot).ravel()
        theta[: robot.inertial_count] = bodies
        sums, count = np.zeros(robot.dof), 0
        for s in stretches:
            own = s.samples[:: max(1, len(s.samples) // 200)]
            tau = self.dynamics.inverse_dynamics(s.motion.q[own], s.motion.dq[own], s.motion.ddq[own], theta)
            sums, count = sums + np.sum(tau**2, axis=0), count + len(own)
        sizes = np.sqrt(sums / max(count, 1))
        return np.maximum(sizes, 1e-3 * max(float(sizes.max()), 1e-9))

    def fit(self, stretches: Sequence[PhasePiece]) -> tuple[PossibleFit, RowMaker]:
        """Fit possible bodies to rows of unit noise of `stretches`; return the fit and the rows."""
        maker = self.white(stretches) if self.row_maker(stretches).projects else self.row_maker(stretches)
        parts = [maker.data(part, spectral=False) for part in divided(stretches, FIT_PARTS)]
        errors = self.preparer.errors

        def wider(base: BaseParameters, theta: Array) -> Array:
            rows = sensor_error_rows(maker, stretches, theta)
            return np.zeros((base.rank, base.rank)) if rows is None else rows.widening(base.independent, errors)

        more, whole = wider if errors.present.any() else None, maker.data(stretches)
        return fit_possible(parts, maker.base, self.prior, self.base, more, whole), maker

    def white(self, stretches: Sequence[PhasePiece]) -> RowMaker:
        """Make rows of unit noise of `stretches`: the residuals of a first fit give the noise of each coordinate."""
        maker = self.row_maker(stretches)
        theta = quick_fit(maker.data(stretches), maker.base, self.prior)
        return replace(maker, scale=1.0 / maker.noise(stretches, theta))


def _blocks_of(log: Log, samples: int) -> Log:
    """Return blocks of a long log, spread over it.

    Args:
        log: Log.
        samples: Largest number of samples of an uncut log.
    """
    if len(log) <= samples:
        return log
    starts = np.linspace(0, len(log), FOLDS, endpoint=False).astype(int)
    return part_of(log, [(int(start), int(start) + samples // FOLDS) for start in starts]) or log


def mechanism_band(preparer: Preparer, logs: Sequence[Log]) -> float:
    """Return the band of the motion of joints and base [Hz].

    Args:
        preparer: Preparer of the logs.
        logs: Logs.
    """
    bands = []
    for log in logs:
        if log.q.shape[1] and np.ptp(log.q, axis=0).max() > 0.0:
            bands.append(motion_frequency([log]))
        more: Mapping[str, Array] = {
            k: x for k, x in log.channels.items() if k.startswith(("base.", "passive.", "free."))
        }
        for name, x in more.items():
            signal = name.split(".")[-1]
            turning = signal == "orientation" and name.startswith("free.")
            if turning or signal in ("position", "angle", "gyroscope", "angular_velocity") or name[:8] == "passive.":
                bands.append(motion_frequency([Log(tuple(f"{name}{k}" for k in range(x.shape[1])), log.t, x)]))
    return float(np.median(bands)) if bands else 1.0

"""`identify_floating`: identifies a mechanism with a floating base or contacts from logs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from steelyard.dynamics.engine import Dynamics
from steelyard.dynamics.model import Model
from steelyard.errors import LogError, SteelyardError
from steelyard.estimation.estimate import Prior
from steelyard.estimation.linear.block_jackknife import JACKKNIFE_BLOCKS
from steelyard.estimation.possible.reference import default_bodies, nominal_prior
from steelyard.floating.closed_loops import loop_summary
from steelyard.floating.motion import FloatingMotion, OpenLoopError, Preparer
from steelyard.floating.phases import base_of_phases, phase_summaries
from steelyard.floating.projected_rows import PhasePiece, RowMaker, divided, stretches_of
from steelyard.floating.result import FloatingIdentification, RowScore
from steelyard.floating.scores import row_score
from steelyard.floating.sensor_errors import error_rows
from steelyard.floating.setup import CONTACT_ROWS, FloatingMapping
from steelyard.floating.weighted_fit import (
    FOLDS,
    PossibleFit,
    Precision,
    fit_possible,
    left_out_errors,
    precision,
    quick_fit,
    white_fit,
)
from steelyard.ground.arrays import Array
from steelyard.ground.progress import report_progress
from steelyard.parameters.terms import Terms, TermsLike, identification_terms
from steelyard.regression.base_parameters import BaseParameters, base_parameters
from steelyard.regression.data import RegressionData
from steelyard.robot.load import RobotLike, load_robot
from steelyard.robot.robot import Robot
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
# Relative uncertainty of error bars from the scatter of so many blocks.
_UNSURE = 1.0 / np.sqrt(2.0 * (JACKKNIFE_BLOCKS - 1))
# Samples for the error bars of each cut-off, which need several passes.
_PRECISION_SAMPLES = 60_000
# Terms of joints without a drive.
_PASSIVE_TERMS = ("viscous", "coulomb")


def identify_floating(
    robot: RobotLike,
    log: Any,
    validate: Any = (),
    *,
    mapping: Any = None,
    terms: TermsLike | None = None,
    prior: str = "nominal",
    cutoff_hz: float | None = None,
    holdout: float | None = None,
    source: Path | None = None,
) -> FloatingIdentification:
    """Identify a mechanism with a floating base, passive joints, contacts or closed loops.

    Measured contact forces enter the equations of motion. A projection removes unknown contact forces and torques.
    Joints of closed loops need no encoder: the loops determine their motion.

    Args:
        robot: Robot, as `load_robot` takes it, with `floating=True` or a floating joint; with `loops=…` for a loop
            table.
        log: Path of a log, a `Log` as `Preparer.read` returns it, or several.
        validate: Validation logs.
        mapping: Mapping file or dict with the tables [base], [contacts] and passive (`FloatingMapping`).
        terms: Joint terms; default: rotor, viscous, Coulomb and offset of driven joints, friction of passive ones with
            an encoder. Stated terms act on all joints, also on those of closed loops without an encoder.
        prior: "nominal" (inertias of the description) or "none".
        cutoff_hz: Cut-off of the low-pass of all signals [Hz]; None: chosen by the error of left-out stretches.
        holdout: Share of the end of each log for the hold-out.
        source: Description with the meshes and names of the exported file.
    """
    robot = robot if isinstance(robot, Robot) else load_robot(robot, loops=True)
    stated = FloatingMapping.of(mapping, robot)
    preparer = Preparer(robot, stated)
    logs, judged = ([preparer.read(x) for x in _several(some)] for some in (log, validate))
    if not logs:
        raise SteelyardError("Identification needs at least one log; name one.")
    robot = _trusted(robot, logs)
    preparer.robot = robot
    bound = bound_terms(robot, stated, terms)
    base = base_parameters(robot, bound)
    known = nominal_prior(robot, bound) if prior == "nominal" else None
    task = _Task(preparer, base, known)
    task.find_errors(logs, cutoff_hz or task.middle_cutoff(logs), holdout)
    chosen = cutoff_hz or task.choose_cutoff(logs, holdout)
    task.find_errors(logs, chosen, holdout)
    used, held = task.stretches(logs, chosen, holdout)
    fit, maker = task.fit(used)
    described = None
    if known is not None and robot.has_inertia:
        described = np.where(known.mask, known.theta, 0.0)
    scores: list[RowScore] = []
    checks = [("Hold-out", held), ("Validation", task.stretches(judged, chosen, None)[0] if judged else [])]
    for name, stretches in checks:
        if stretches:
            scores.append(row_score(name, [maker.data(stretches)], maker.base, fit.estimate.theta, described))
    model = Model(robot, bound, fit.estimate.theta)
    rows = {"used": sum(fit.estimate.details["rows"])}
    rows |= {f"samples left out: {reason}": n for reason, n in preparer.left_out.items() if n}
    findings = [f"{f.message} {f.advice}".strip() for f in preparer.findings]
    findings.append(f"Cut-off of all signals: {chosen:.3g} Hz{'' if cutoff_hz else ', chosen by stretches left out'}.")
    findings += [*preparer.errors.sentences(), *preparer.contact_states.sentences(), *_about_left_out(preparer)]
    mechanism = preparer.mechanism
    phases = phase_summaries(maker, used) if mechanism is None else ()
    loops = None if mechanism is None else loop_summary(mechanism, preparer, rows)
    return FloatingIdentification(
        robot, model, fit, tuple(e.name for e in maker.equations), tuple(scores), described, tuple(findings), rows,
        source, phases, loops, preparer.errors if preparer.errors.present.any() else None, chosen,
    )  # fmt: skip


def _about_left_out(preparer: Preparer) -> list[str]:
    """State the samples that contacts cost."""
    counts = {k: preparer.left_out.get(k, 0) for k in ("changes of contacts", "sliding feet")}
    text = ", ".join(f"{n} near {k}" if k.startswith("changes") else f"{n} with {k}" for k, n in counts.items() if n)
    return [f"Samples left out: {text}."] if text else []


def _several(some: Any) -> list[Any]:
    return list(some) if isinstance(some, Sequence) and not isinstance(some, str) else [some]


def _trusted(robot: Robot, logs: Sequence[Log]) -> Robot:
    """Return the robot without torques that the logs lack or distrust; joints without a drive have zero torque."""
    lacking = any(log.tau is None for log in logs)
    if lacking and robot.loops:
        raise LogError("A mechanism with closed loops needs torques, and the logs lack them; name their columns.")
    reliable = next((log.meta.get("torque_used") for log in logs if log.meta.get("torque_used")), None)
    if not lacking and reliable is None:
        return robot
    driven = set(logs[0].joints)
    names = [n for n in robot.joint_names if n not in driven or (not lacking and n in (reliable or ()))]
    if not names:
        raise LogError(
            "The logs lack torques and the base of the robot is fixed; name the torque columns, or let the base float."
        )
    return robot.with_torque_used(names)


def bound_terms(robot: Robot, stated: FloatingMapping, terms: TermsLike | None) -> Terms:
    """Bind the terms of joints with a measured torque, and the friction of passive joints.

    Args:
        robot: Robot.
        stated: Mapping with the passive joints.
        terms: Stated terms; None: the default.
    """
    if terms is not None:
        return identification_terms(robot, terms)
    from steelyard.parameters.terms import DEFAULT_TERMS, terms_named
    from steelyard.parameters.terms import terms as bind
    from steelyard.robot.free import driven_joints

    measures = dict(zip(robot.joint_names, robot.torque_used, strict=True))
    moving = [n for n in driven_joints(robot) or robot.joint_names if measures[n]]
    # Friction of joints without an encoder is optional: it is nearly collinear with the friction of the drives.
    if robot.loops:
        measured = {*(stated.log.joints or robot.actuated), *stated.passive}
        moving = [n for n in moving if n in measured]
    drives = tuple(n for n in moving if n not in stated.passive)
    result = [t for name in DEFAULT_TERMS for t in terms_named(robot, name, drives)] if drives else []
    passive = tuple(n for n in moving if n in stated.passive)
    result += [t for name in _PASSIVE_TERMS for t in terms_named(robot, name, passive)] if passive else []
    return bind(robot, *result)


class _Task:
    """The logs of one robot with its base parameters and prior."""

    def __init__(self, preparer: Preparer, base: BaseParameters, prior: Prior | None) -> None:
        self.preparer, self.base, self.prior = preparer, base, prior
        self.dynamics: Dynamics = base.structure.dynamics
        self._shown: dict[frozenset[tuple[int, ...]], BaseParameters] = {}  # base parameters by contact phases

    def stretches(
        self, logs: Sequence[Log], cutoff_hz: float, holdout: float | None
    ) -> tuple[list[PhasePiece], list[PhasePiece]]:
        """Return the stretches of fit and hold-out."""
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
        period = max(float(np.median(np.diff(log.t))) for log in logs)
        if self.preparer.unknown:  # the fastest log has the shortest contact phases
            return max(mechanism_band(self.preparer, [log]) for log in logs), 0.4 / period
        return mechanism_band(self.preparer, logs), 0.4 / period

    def middle_cutoff(self, logs: Sequence[Log]) -> float:
        """Return the middle of the candidates for the cut-off [Hz]."""
        band, most = self._band(logs)
        return min(_CUTOFFS[len(_CUTOFFS) // 2] * band, most)

    def find_errors(self, logs: Sequence[Log], cutoff_hz: float, holdout: float | None) -> None:
        """Estimate delays and biases of the sensors, and let the preparer take them off."""
        logs = [_blocks_of(log, _CHOICE_SAMPLES // len(logs)) for log in logs]
        for _ in range(_STEPS):
            try:
                used, _ = self.stretches(logs, cutoff_hz, holdout)
            except OpenLoopError:
                raise
            except LogError:
                return
            maker = self.white(used)
            parts = [maker.data(part) for part in divided(used, FIT_PARTS)]
            formulation, theta, hessian = white_fit(parts, maker.base, self.prior)
            rows = error_rows(maker, used, theta)
            if rows is None:
                return
            self.preparer.errors = rows.corrected(formulation, hessian, self.preparer.errors)

    def choose_cutoff(self, logs: Sequence[Log], holdout: float | None) -> float:
        """Return the cut-off whose fit predicts left-out rows best.

        The rows of the lowest cut-off judge all candidates. Joints of closed loops turn much faster than their drives
        at some poses, and a low cut-off distorts products of signals; for closed loops the measure is the product of
        the errors on the rows of all cut-offs.
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
            maker = self.maker(used)
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

        A low cut-off spreads the forces of a step over its neighbours, so short contact phases lose their rows; left-out
        rows, which lack these phases as well, cannot show that, but error bars do. Noise of accelerations and impacts
        bias the fit of a high cut-off: it differs from the fit of the next lower one by more than the bars of that one
        (the idea of Lepski's rule). Among bars of about the same size, the lowest cut-off passes the least noise.
        """
        logs = [_blocks_of(log, _PRECISION_SAMPLES // len(logs)) for log in logs]
        fits: dict[float, Precision] = {}
        for k, cutoff in enumerate(cutoffs):
            report_progress("Choosing the cut-off", 0.02 + 0.02 * k, f"{cutoff:.3g} Hz")
            try:
                used, _ = self.stretches(logs, cutoff, holdout)
            except LogError:
                continue
            maker = self.white(used)
            fit = precision([maker.data(part) for part in divided(used, FIT_PARTS)], maker.base, self.prior)
            fits[cutoff] = fit
        if not fits:
            raise LogError("The logs are too short to choose a cut-off; state one (--cutoff).")
        low = [*fits]
        while len(low) > 1 and fits[low[-2]].excludes(fits[low[-1]].theta):
            low.pop()
        least = min(fits[c].size for c in low)
        return min(c for c in low if fits[c].size <= least + _UNSURE)

    def maker(self, stretches: Sequence[PhasePiece]) -> RowMaker:
        """Make the rows, with each equation divided by the size of its forces."""
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
        """Fit, estimate the noise of each coordinate from the residuals, and fit again with rows of white noise."""
        maker = self.white(stretches) if self.maker(stretches).projects else self.maker(stretches)
        parts = [maker.data(part) for part in divided(stretches, FIT_PARTS)]
        errors = self.preparer.errors

        def wider(base: BaseParameters, theta: Array) -> Array:
            rows = error_rows(maker, stretches, theta)
            return np.zeros((base.rank, base.rank)) if rows is None else rows.widening(base.independent, errors)

        return fit_possible(parts, maker.base, self.prior, self.base, wider if errors.present.any() else None), maker

    def white(self, stretches: Sequence[PhasePiece]) -> RowMaker:
        """Make rows of unit noise: the residuals of a first fit give the noise of each coordinate."""
        maker = self.maker(stretches)
        parts = [maker.data(part) for part in divided(stretches, FIT_PARTS)]
        theta = quick_fit(parts, maker.base, self.prior)
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
        more: Mapping[str, Array] = {k: x for k, x in log.channels.items() if k.startswith(("base.", "passive."))}
        for name, x in more.items():
            if name.split(".")[-1] in ("position", "gyroscope", "angular_velocity") or name.startswith("passive."):
                bands.append(motion_frequency([Log(tuple(f"{name}{k}" for k in range(x.shape[1])), log.t, x)]))
    return float(np.median(bands)) if bands else 1.0

"""`fit_formats`: for every kind of robot file, the best model that it can hold, fitted to the rows of the full model.

A file that holds no more than damping and dry friction is not served by the full model with its other terms cut off:
what is left out was part of the sum. Its inertias, damping and friction are fitted again without those terms.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from steelyard.dynamics.model import Model
from steelyard.estimation.estimate import Estimate
from steelyard.estimation.linear.widening import motion_variance
from steelyard.export._simple_terms import COUPLED, simple_terms
from steelyard.export.capability import CAPABILITIES, FITTED
from steelyard.export.mjcf import model_to_mjcf
from steelyard.export.soft_friction import as_simulated, softened, usual_widths
from steelyard.export.urdf import model_to_urdf
from steelyard.ground.arrays import Array
from steelyard.identification._doubt import doubted, motion_doubt
from steelyard.parameters.friction import Coulomb
from steelyard.parameters.terms import Terms
from steelyard.regression.base_parameters import BaseParameters
from steelyard.regression.data import RegressionData
from steelyard.regression.schemes import Dynamic
from steelyard.signals.filters import LowPass
from steelyard.study import Study

# Friction that goes by the acceleration explains a part of the noise of real logs, up to a tenth of the residual. In
# logs of MuJoCo it leaves a third.
_SOFT_LEAVES = 0.7
# What the soft law must explain of so many first samples before it is fitted: of a log of MuJoCo it is three quarters,
# of ten robots' logs a hundredth to a sixth.
_WORTH_A_FIT, _LOOKED_AT = 0.35, 10_000
# Steps of a simulator from one sample of its log to the next that are told apart: of more, the torque acts half a
# sample late, and the steps themselves are short.
_STEPS = (1, 2, 4, 10)
_WRITERS: dict[str, Callable[[Model, Path, Path | None], tuple[str, ...]]] = {
    "urdf": model_to_urdf,
    "mjcf": model_to_mjcf,
}


@dataclass(frozen=True, eq=False)
class FormatModel:
    """The best model that a kind of file can hold.

    Args:
        name: of the format.
        model: what is written to the file.
        errors: standard error of each parameter of `model` that the rows show alone, by its name.
    """

    name: str
    model: Model
    errors: Mapping[str, float]

    @property
    def numbers(self) -> dict[str, Array]:
        """What the file states of the joints, by name, one number per joint, SI units."""
        terms = simple_terms(self.model, CAPABILITIES[self.name].numbers)
        return {name: getattr(terms, name) for name in CAPABILITIES[self.name].numbers if name != COUPLED}

    def write(self, path: Path, source: Path | None = None) -> tuple[str, ...]:
        """Write the file to `path`; `source` is the robot's own description, of which it keeps what it can."""
        return _WRITERS[self.name](self.model, path, source)


def fit_formats(study: Study, terms: Terms, fit: Callable[[Study], tuple[Estimate, Model]]) -> tuple[FormatModel, ...]:
    """The best model for each of `FITTED`.

    Args:
        study: the rows of the full model. Of logs that are streamed, their beginnings are fitted to.
        terms: those of the full model.
        fit: fits a study with its terms as they are.
    """
    plain = study.opening  # whose rows have been made already, where terms and scheme are the usual ones
    if not isinstance(plain.scheme, Dynamic) or plain.known_friction or plain.reference is not None:
        plain = replace(plain, scheme=Dynamic(), known_friction={}, reference=None)
    done: dict[tuple[str, ...], tuple[RegressionData, Estimate, Model]] = {}
    out = []
    for name in FITTED:
        own = CAPABILITIES[name].terms(study.robot, terms)
        if own.names not in done:
            fitted = plain if own.terms == plain.terms.terms else _with_terms(plain, own)
            done[own.names] = fitted.rows, *fit(fitted)
        rows, estimate, model = done[own.names]
        if name == "mjcf":
            rows, estimate, model = _sharp_or_soft(plain, done[own.names], fit)
        out.append(FormatModel(name, model, _errors(rows, estimate)))
    return tuple(out)


def _with_terms(study: Study, own: Terms) -> Study:
    """The `study` with the terms `own`. Where they are some of its own, its rows serve them and are not made anew."""
    made = replace(study, terms=own)
    if all(term in study.terms.terms for term in own.terms):
        parts = study.rows.parts or (study.rows,)
        rows = RegressionData.joined([_projected(part, study.base, made.base) for part in parts])
        vars(made)["rows"] = rows
    return made


def _projected(data: RegressionData, wide: BaseParameters, base: BaseParameters) -> RegressionData:
    """Rows over the base parameters `wide` as rows over `base`, those of the same robot with fewer terms.

    With the left-out terms at zero, β = M θ of the wider ones is a linear map of the narrower ones.
    """
    names = [p.name for p in wide.parameters]
    kept = [names.index(base.parameters[k].name) for k in base.independent]
    columns = np.array(base.independent, dtype=np.int64)
    maps = [wide.matrix[np.ix_(e.among(wide.independent)[1], kept)] for e in data.equations]
    # Columns of an equation that no wider base parameter reaches are those of joints beyond it.
    own = [np.flatnonzero(np.any(m != 0.0, axis=0)) for m in maps]
    equations = tuple(replace(e, columns=columns[k]) for e, k in zip(data.equations, own, strict=True))
    orders = [e.among(wide.independent)[0] for e in data.equations]
    blocks = [
        replace(b, A=b.A[:, orders[b.equation]] @ maps[b.equation][:, own[b.equation]], unfiltered=None)
        for b in data.blocks()
    ]
    return RegressionData(equations, len(base.parameters), lambda: blocks, data.period)


def _sharp_or_soft(
    study: Study, sharp: tuple[RegressionData, Estimate, Model], fit: Callable[[Study], tuple[Estimate, Model]]
) -> tuple[RegressionData, Estimate, Model]:
    """Rows, estimate and model with dry friction by the sign of the velocity, or as MuJoCo's usual settings have it.

    Logs of robots are told from those of MuJoCo: the soft law is taken where it leaves far less. Of the other one dry
    friction becomes sharp, which its file then asks MuJoCo for.

    Args:
        study: The rows of the full model.
        sharp: Rows, estimate and model with friction by the sign of the velocity, smoothed.
        fit: Fits a study with its terms as they are.
    """
    rows, estimate, model = sharp
    jumping = (replace(t, smooth=0.0) if isinstance(t, Coulomb) else t for t in model.terms.terms)
    sharpened = rows, estimate, Model(model.robot, Terms(model.robot, tuple(jumping)), model.theta)
    usual = replace(study, terms=Terms(study.robot, tuple(map(softened, model.terms.terms))))
    if not usual.terms.history or _explained(study, usual.terms, model) < _WORTH_A_FIT:
        return sharpened
    soft = fit(usual)
    if not np.mean(np.log(soft[0].residual_std / estimate.residual_std)) < np.log(_SOFT_LEAVES):
        return sharpened
    simulated = _as_simulated(usual, Model(model.robot, model.terms, soft[1].theta))
    estimate, found = fit(simulated)
    # Soft friction goes by the acceleration. Smoothing rounds that off, noise makes it shake, in every period of a
    # motion alike, so that blocks do not show it; an octave less of smoothing does.
    wider = replace(simulated.preparation, motion_factor=2.0 * (simulated.preparation.motion_factor or 1.0))
    shift = fit(replace(simulated, preparation=wider, _prepared={}))[0].beta - estimate.beta
    estimate = _widened(estimate, shift)
    return simulated.rows, estimate, Model(model.robot, model.terms, found.theta)


def _widened(estimate: Estimate, shift: Array) -> Estimate:
    """The `estimate` with error bars that hold its `shift` by another preparation.

    One difference says little of each parameter by itself: a small one may be chance, a large one counts.
    """
    noise = np.maximum(np.diag(estimate.covariance), 1e-300)
    added = np.maximum(shift**2, motion_variance(noise, noise + shift**2, blocks=2))
    grown = np.sqrt(1.0 + added / noise)
    return replace(estimate, covariance=estimate.covariance * np.outer(grown, grown))


def _as_simulated(soft: Study, model: Model) -> Study:
    """The study of a simulated log with friction as the simulator has it, and its torque where it acts.

    Both go by how many steps the simulator took from sample to sample: a torque that was held meanwhile acts later than
    its stamp, by half of all but one of them. The number that leaves least is taken.

    Args:
        soft: With soft friction.
        model: The first fit to it.
    """
    widths = usual_widths(model, simple_terms(model, CAPABILITIES["mjcf"].numbers).friction)
    period = soft.first_motions(0)[0].filter.period
    given, stated = soft.preparation, soft.between is not None and soft.between.stated
    # A delay that was found, not stated, is what the held torque looks like.
    late = 0.0 if given.delay is None or soft.delay is not None else given.delay

    def trial(steps: int, held: bool) -> Study:
        step = period / steps
        lag = -0.5 * (period - step) if held else 0.0
        between = given.torque_between if stated else "sampled"
        # Its motions are not kept: there are several trials.
        made = replace(soft, terms=as_simulated(soft.terms, widths, step), _prepared={})
        return replace(made, preparation=replace(given, delay=late + lag, torque_between=between))

    trials = [trial(n, held=False) for n in _STEPS] + [trial(n, held=True) for n in _STEPS[1:] if not stated]
    return min(trials, key=lambda one: float(np.mean(np.log(one.opening.quick_fit()[1]))))


def _explained(study: Study, soft: Terms, model: Model) -> float:
    """The share of what `model` leaves of the first samples that goes with the difference between both frictions.

    It is that of the typical joint, below the cut-off; a soft law that is true explains most of it.
    """
    m = next((m for m in study.first_motions(0) if m.long_enough), None)
    if m is None:
        return 0.0
    some = slice(0, min(len(m.t), _LOOKED_AT))
    q, dq, ddq = (x[some] for x in (m.q, m.dq, m.ddq))
    left = m.tau[some] - model.torque(q, dq, ddq, m.filter.period)
    theirs = Model(model.robot, soft, model.theta)
    other = theirs.torque(q, dq, ddq, m.filter.period) - model.torque(q, dq, ddq, m.filter.period)
    low_pass = LowPass(min(study.cutoff_hz, 0.45 / m.filter.period), m.filter.period)
    a, b = (low_pass(x) for x in (left, other))
    along = np.sum(a * b, axis=0) ** 2 / np.maximum(np.sum(b * b, axis=0), 1e-300)
    shares = along / np.maximum(np.sum(a * a, axis=0), 1e-300)
    return float(np.median(shares[list(study.robot.torque_used)]))


def _errors(rows: RegressionData, estimate: Estimate) -> dict[str, float]:
    """Standard errors of the parameters that are base parameters by themselves.

    A format holds less than the logs show: what it lacks leans on its numbers otherwise in every motion.

    Args:
        rows: What was fitted to.
        estimate: The fit.
    """
    estimate = doubted(estimate, motion_doubt(rows, estimate))
    base = estimate.base
    alone = np.count_nonzero(base.matrix, axis=1) == 1
    pairs = zip(base.names, estimate.standard_errors, alone, strict=True)
    return {name: float(error) for name, error, single in pairs if single}

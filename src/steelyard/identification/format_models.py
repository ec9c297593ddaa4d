"""Fits for each robot file format the best model that it can store.

Removing terms from the full model would bias the predictions of a file with only damping and dry friction. Therefore
inertias, damping and friction are fitted again without the terms that the format lacks.
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
from steelyard.identification._extra_variance import jackknife_variance, widen_error_bars
from steelyard.parameters.friction import Coulomb
from steelyard.parameters.terms import Terms
from steelyard.regression.base_parameters import BaseParameters
from steelyard.regression.data import RegressionData
from steelyard.regression.schemes import Dynamic
from steelyard.signals.filters import LowPass
from steelyard.study import Study

# Largest residual ratio to select MuJoCo's soft friction. It depends on the acceleration and explains up to
# a tenth of the residual of real logs. In MuJoCo logs a third of the residual remains.
_SOFT_LEAVES = 0.7
# Share of the residual that soft friction must explain before it is fitted, and number of samples for this test. The
# share is three quarters in MuJoCo logs and 1 to 17 % in the logs of ten robots.
_WORTH_A_FIT, _TEST_SAMPLES = 0.35, 10_000
# Numbers of simulator steps per sample to try. With more steps, the torque acts half a sample late in any case.
_STEPS = (1, 2, 4, 10)
_WRITERS: dict[str, Callable[[Model, Path, Path | None], tuple[str, ...]]] = {
    "urdf": model_to_urdf,
    "mjcf": model_to_mjcf,
}


@dataclass(frozen=True, eq=False)
class FormatModel:
    """The best model that a file format can store.

    Args:
        name: Name of the format.
        model: Model for the file.
        errors: Standard errors by name of the parameters of `model` that are identifiable alone.
    """

    name: str
    model: Model
    errors: Mapping[str, float]

    @property
    def numbers(self) -> dict[str, Array]:
        """Joint numbers of the file by name, one per joint, in SI units."""
        terms = simple_terms(self.model, CAPABILITIES[self.name].numbers)
        return {name: getattr(terms, name) for name in CAPABILITIES[self.name].numbers if name != COUPLED}

    def write(self, path: Path, source: Path | None = None) -> tuple[str, ...]:
        """Write the file and return notes on omitted terms.

        Args:
            path: File to write.
            source: Description of the robot to keep except for its numbers.
        """
        return _WRITERS[self.name](self.model, path, source)


def fit_formats(study: Study, terms: Terms, fit: Callable[[Study], tuple[Estimate, Model]]) -> tuple[FormatModel, ...]:
    """Fit the best model for each format in `FITTED`.

    Args:
        study: Study of the full model; of streamed logs only the beginnings are fitted.
        terms: Terms of the full model.
        fit: Function that fits a study with its given terms.
    """
    plain = study.opening  # Reuses existing rows for default terms and scheme.
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
    """Return the study with other terms; if these are a subset of its terms, its rows are reused."""
    changed = replace(study, terms=own)
    if all(term in study.terms.terms for term in own.terms):
        parts = study.rows.parts or (study.rows,)
        rows = RegressionData.concatenate([_projected(part, study.base, changed.base) for part in parts])
        vars(changed)["rows"] = rows
    return changed


def _projected(data: RegressionData, wide: BaseParameters, base: BaseParameters) -> RegressionData:
    """Convert rows over the base parameters `wide` to rows over `base` of the same robot with fewer terms.

    With the omitted terms at zero, the wide parameters are a linear function of the narrow ones.
    """
    names = [p.name for p in wide.parameters]
    common = [names.index(base.parameters[k].name) for k in base.independent]
    columns = np.array(base.independent, dtype=np.int64)
    maps = [wide.matrix[np.ix_(e.among(wide.independent)[1], common)] for e in data.equations]
    # Zero columns of an equation belong to joints that do not affect it.
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
    """Select sharp dry friction (sign of the velocity) or MuJoCo's default soft friction.

    Soft friction is selected if its residual is much smaller, which identifies logs of MuJoCo simulations. Otherwise
    the file sets MuJoCo to sharp friction.

    Args:
        study: Study of the full model.
        sharp: Rows, estimate and model with smoothed sharp friction.
        fit: Function that fits a study with its given terms.
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
    estimate, fitted = fit(simulated)
    # Soft friction depends on the acceleration, which smoothing and noise change equally in all blocks. A jackknife
    # does not show this error; a fit with one octave less smoothing does.
    wider = replace(simulated.preparation, motion_factor=2.0 * (simulated.preparation.motion_factor or 1.0))
    shift = fit(replace(simulated, preparation=wider, cache=simulated.cache.without_motions()))[0].beta - estimate.beta
    estimate = _widened(estimate, shift)
    return simulated.rows, estimate, Model(model.robot, model.terms, fitted.theta)


def _widened(estimate: Estimate, shift: Array) -> Estimate:
    """Widen the error bars of an estimate by its shift under another preparation.

    A single small difference can be chance; a large one counts.
    """
    noise = np.maximum(np.diag(estimate.covariance), 1e-300)
    added = np.maximum(shift**2, motion_variance(noise, noise + shift**2, blocks=2))
    grown = np.sqrt(1.0 + added / noise)
    return replace(estimate, covariance=estimate.covariance * np.outer(grown, grown))


def _as_simulated(soft: Study, model: Model) -> Study:
    """Return the study of a simulated log with the simulator's friction law and torque delay.

    Both depend on the number of simulator steps per sample. A torque command over n steps of length h acts (n − 1) h/2
    after its time stamp. The number of steps with the smallest residual is selected.

    Args:
        soft: Study with soft friction.
        model: First fit to it.
    """
    widths = usual_widths(model, simple_terms(model, CAPABILITIES["mjcf"].numbers).friction)
    period = soft.first_motions(0)[0].filter.period
    preparation, stated = soft.preparation, soft.between is not None and soft.between.stated
    # An estimated delay is an effect of the held torque.
    late = 0.0 if preparation.delay is None or soft.delay is not None else preparation.delay

    def trial(steps: int, held: bool) -> Study:
        step = period / steps
        lag = -0.5 * (period - step) if held else 0.0
        between = preparation.torque_between if stated else "sampled"
        # Motions are not cached, since there are several trials.
        changed = replace(soft, terms=as_simulated(soft.terms, widths, step), cache=soft.cache.without_motions())
        return replace(changed, preparation=replace(preparation, delay=late + lag, torque_between=between))

    trials = [trial(n, held=False) for n in _STEPS] + [trial(n, held=True) for n in _STEPS[1:] if not stated]
    return min(trials, key=lambda one: float(np.mean(np.log(one.opening.quick_fit()[1]))))


def _explained(study: Study, soft: Terms, model: Model) -> float:
    """Return the share of the model's residual that the difference between both friction laws explains.

    It is the median over joints, below the cut-off, on the first samples.
    """
    m = next((m for m in study.first_motions(0) if m.long_enough), None)
    if m is None:
        return 0.0
    some = slice(0, min(len(m.t), _TEST_SAMPLES))
    q, dq, ddq = (x[some] for x in (m.q, m.dq, m.ddq))
    left = m.tau[some] - model.torque(q, dq, ddq, m.filter.period)
    soft_model = Model(model.robot, soft, model.theta)
    other = soft_model.torque(q, dq, ddq, m.filter.period) - model.torque(q, dq, ddq, m.filter.period)
    low_pass = LowPass(min(study.cutoff_hz, 0.45 / m.filter.period), m.filter.period)
    a, b = (low_pass(x) for x in (left, other))
    along = np.sum(a * b, axis=0) ** 2 / np.maximum(np.sum(b * b, axis=0), 1e-300)
    shares = along / np.maximum(np.sum(a * a, axis=0), 1e-300)
    return float(np.median(shares[list(study.robot.torque_used)]))


def _errors(rows: RegressionData, estimate: Estimate) -> dict[str, float]:
    """Return the standard errors of parameters that are base parameters by themselves.

    They include the variation between blocks, since the omitted terms bias the numbers differently in every motion.

    Args:
        rows: Fitted rows.
        estimate: Fit to them.
    """
    estimate = widen_error_bars(estimate, jackknife_variance(rows, estimate))
    base = estimate.base
    alone = np.count_nonzero(base.matrix, axis=1) == 1
    pairs = zip(base.names, estimate.standard_errors, alone, strict=True)
    return {name: float(error) for name, error, single in pairs if single}

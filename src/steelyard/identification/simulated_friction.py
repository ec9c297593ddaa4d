"""Dry friction of an MJCF: sharp, or soft as in a simulation by MuJoCo with its default settings.

Logs of such simulations have soft friction, and torques that act later than their time stamps. Fits with sharp friction
then assign a part of the friction to damping.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np

from steelyard.dynamics.model import Model
from steelyard.estimation.estimate import Estimate
from steelyard.export._simple_terms import simple_terms
from steelyard.export.capability import CAPABILITIES
from steelyard.export.soft_friction import as_simulated, softened, usual_widths
from steelyard.identification._extra_variance import include_delay_error, widened_by_shift
from steelyard.parameters.friction import Coulomb
from steelyard.parameters.terms import Terms
from steelyard.regression.data import RegressionData
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
# Steps of the search for a delay; each is a parabola through three fits.
_MOST_DELAYS = 4


def sharp_or_soft(
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
    simulated, error = _as_simulated(usual, Model(model.robot, model.terms, soft[1].theta))
    estimate, fitted = fit(simulated)
    # Soft friction depends on the acceleration, which smoothing and noise change equally in all blocks. A jackknife
    # does not show this error; a fit with one octave less smoothing does.
    wider = replace(simulated.preparation, motion_factor=2.0 * (simulated.preparation.motion_factor or 1.0))
    shift = fit(replace(simulated, preparation=wider, cache=simulated.cache.without_motions()))[0].beta - estimate.beta
    estimate = widened_by_shift(estimate, shift)
    if error > 0.0:
        later = replace(simulated.preparation, delay=(simulated.preparation.delay or 0.0) + error)
        moved = fit(replace(simulated, preparation=later, cache=simulated.cache.without_motions()))[0].beta
        estimate = include_delay_error(estimate, moved - estimate.beta)
    return simulated.rows, estimate, Model(model.robot, model.terms, fitted.theta)


def _as_simulated(soft: Study, model: Model) -> tuple[Study, float]:
    """Return the study of a simulated log with the simulator's friction law and torque delay, and the delay's error.

    Both depend on the number of simulator steps per sample. A torque command over n steps of length h acts (n − 1) h/2
    after its time stamp. The number of steps with the smallest residual is selected. If the logs showed a delay, it was
    estimated with sharp friction, which soft friction shifts; it is then estimated again, together with the steps.

    Args:
        soft: Study with soft friction.
        model: First fit to it.
    """
    widths = usual_widths(model, simple_terms(model, CAPABILITIES["mjcf"].numbers).friction)
    period = soft.first_motions(0)[0].filter.period
    preparation, stated = soft.preparation, soft.between is not None and soft.between.stated

    def trial(steps: int, delay: float) -> Study:
        between = preparation.torque_between if stated else "sampled"
        # Motions are not cached, since there are several trials.
        changed = replace(
            soft, terms=as_simulated(soft.terms, widths, period / steps), cache=soft.cache.without_motions()
        )
        return replace(changed, preparation=replace(preparation, delay=delay, torque_between=between))

    estimated = soft.delay is not None
    late = 0.0 if preparation.delay is None or estimated else preparation.delay
    trials = [trial(n, late) for n in _STEPS]
    if not stated:
        trials += [trial(n, late - 0.5 * (period - period / n)) for n in _STEPS[1:]]
    best = min(trials, key=_misfit)
    if not estimated:
        return best, 0.0
    others = [_with_best_delay(trial(n, preparation.delay or 0.0), period) for n in _STEPS]
    other, error = min(others, key=lambda pair: _misfit(pair[0]))
    return (best, 0.0) if _misfit(best) < _misfit(other) else (other, error)


def _misfit(study: Study) -> float:
    """Return the mean logarithm of the residuals of a quick fit."""
    return float(np.mean(np.log(study.opening.quick_fit()[1])))


def _with_best_delay(study: Study, period: float) -> tuple[Study, float]:
    """Return the study with the delay of the smallest residual, and its standard error from the spread of the joints.

    Args:
        study: Study with a first delay.
        period: Sampling period [s], the first step of the search.
    """

    def at(delay: float) -> Study:
        changed = replace(study.preparation, delay=delay)
        return replace(study, preparation=changed, cache=study.cache.without_motions())

    delay, step, minima = study.preparation.delay or 0.0, period, np.zeros(1)
    for _ in range(_MOST_DELAYS):
        squares = np.array([at(delay + k * step).opening.quick_fit()[1] ** 2 for k in (-1, 0, 1)])
        slope, curvature = squares[2] - squares[0], squares[2] - 2.0 * squares[1] + squares[0]
        # Every joint has its own parabola; a joint without a minimum has no say.
        own = curvature > 0.0
        if not own.any():
            return study, step
        minima = np.clip(-0.5 * slope[own] / curvature[own], -2.0, 2.0) * step
        weight = curvature[own] / squares[1][own]
        move = float(weight @ minima / weight.sum())
        delay += move
        if abs(move) < 0.5 * step:
            break
    return at(delay), float(np.std(minima) / np.sqrt(max(len(minima) - 1, 1)))


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

"""`choose_effects`: select the size of the model by cross-validation over the poses.

It fits the nominal geometry, the offsets and all axes one after the other. Around the best of them the equations are
linear in further effects, so the left-out errors of each set of effects follow without another search.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from steelyard.calibration.deviation_fit import (
    Fit,
    Problem,
    Reduced,
    fit_deviations,
    prior_variances,
    reduced,
    typical_variances,
)
from steelyard.calibration.joint_effects import Deviations
from steelyard.calibration.measurement import Measurement, Setup
from steelyard.calibration.weights import (
    block_stds,
    distances,
    pose_means,
    products,
    row_weights,
    scales,
    shared_error,
    spent_readings,
    without_spent,
)
from steelyard.ground.arrays import Array
from steelyard.ground.student import quantile

LADDER: tuple[tuple[str, ...], ...] = ((), ("offsets",), ("offsets", "axes"))
FURTHER = ("compliance", "backlash", "bearings", "harmonics", "scales")
# The described geometry stays unless left-out poses are better without it at this level of a one-sided test.
_LEVEL = 0.95
_FOLDS = 10
_REWEIGHTINGS, _ROWS_PER_UNKNOWN = 4, 50
# Poses with positions closer than this [rad, m] are repeats; they share one fold.
_SAME_POSE = 1e-3


@dataclass(frozen=True, eq=False)
class EffectTrial:
    """A set of effects and its errors on left-out poses.

    Attributes:
        effects: Names of the effects.
        parameters: Number of parameters.
        errors: Error of every left-out pose, relative to the residual standard deviations of the reference.
        mean: Mean distance of the left-out poses by channel [m, rad].
    """

    effects: tuple[str, ...]
    parameters: int
    errors: Array
    mean: dict[str, float]

    @property
    def score(self) -> float:
        return float(np.nanmean(self.errors))

    @property
    def label(self) -> str:
        return ", ".join(self.effects) or "nominal"


def gain(simple: EffectTrial, other: EffectTrial) -> tuple[float, float]:
    """Compute the improvement of one candidate over another, and the standard error of the improvement.

    Args:
        simple: Candidate to improve on.
        other: Candidate that may be better.
    """
    change = simple.errors - other.errors
    change = change[np.isfinite(change)]
    return float(np.mean(change)), float(np.std(change) / np.sqrt(max(len(change), 1)))


def surely_better(simple: EffectTrial, other: EffectTrial, tried: int = 0) -> bool:
    """Whether one candidate improves on another by more than chance, on left-out poses.

    Args:
        simple: Candidate to improve on.
        other: Candidate that may be better.
        tried: Number of candidates of which the other one is the best (Bonferroni); errors then also count that the
            fits of the folds share poses (Nadeau and Bengio 2003). 0: a plain paired test.
    """
    better, error = gain(simple, other)
    poses = int(np.count_nonzero(np.isfinite(simple.errors - other.errors)))
    if tried:
        folds = min(_FOLDS, max(poses, 2))
        error *= float(np.sqrt(1.0 + folds / (folds - 1.0)))
    level = 1.0 - (1.0 - _LEVEL) / max(tried, 1)
    return better > quantile(2.0 * level - 1.0, max(poses - 1, 1)) * error


@dataclass(frozen=True, eq=False)
class EffectChoice:
    """The chosen effects with their fit, and all candidates.

    Attributes:
        problem: Poses with the parameters of the chosen effects.
        fit: Fit.
        candidates: All candidates that were tried.
        chosen: The chosen one.
        evidence: Improvement by each chosen effect when it was added, and its standard error.
        steps: Fits of the sets of effects that were fitted one after the other.
        rejected: Effects that left-out poses show, but that these poses do not determine well enough.
    """

    problem: Problem
    fit: Fit
    candidates: tuple[EffectTrial, ...]
    chosen: EffectTrial
    evidence: Mapping[str, tuple[float, float]]
    steps: tuple[tuple[Problem, Fit], ...] = ()
    rejected: tuple[str, ...] = ()

    def of_description(self, rejected: tuple[str, ...] = ()) -> EffectChoice:
        """Return the choice of no effect, with the effects that were `rejected`."""
        (problem, fit), *_ = self.steps
        return replace(self, problem=problem, fit=fit, chosen=self.candidates[0], evidence={}, rejected=rejected)


def folds_of(q: Array, seed: int = 0) -> Array:
    """Assign poses to folds at random, repeats of one pose to the same fold.

    Args:
        q: Joint positions, shape (poses, joints).
        seed: Seed.
    """
    _, own = np.unique(np.round(q / _SAME_POSE), axis=0, return_inverse=True)
    own = own.ravel()
    count = int(own.max()) + 1
    order = np.random.default_rng(seed).permutation(count)
    return np.asarray((order % min(_FOLDS, count))[own])


def choose_effects(
    effects: Sequence[str] | None,
    chain_problem: Problem,
    setup: Setup,
    further: Sequence[str] = FURTHER,
) -> EffectChoice:
    """Choose effects by left-out poses, and fit them.

    Args:
        effects: Effects of the model; None: choose.
        chain_problem: Poses and readings, with any parameters.
        setup: First setup.
        further: Effects to try beyond the ladder.
    """
    postures, measurement = chain_problem.postures, chain_problem.measurement
    chain = chain_problem.deviations.chain
    folds = folds_of(postures.q)
    ladder = LADDER if effects is None else ((), tuple(effects))
    steps: list[tuple[Problem, Fit]] = []
    for own in ladder:
        problem = Problem.of(Deviations.of(chain, own), postures, measurement)
        before = steps[-1] if steps else None
        first = before[1].setup if before else setup
        values = _carried(before, problem)
        steps.append((problem, fit_deviations(problem, first, values)))
    reference = steps[-1][1].stds
    candidates = [refitted(p, f, folds, reference) for p, f in steps]
    best, evidence = 0, dict[str, tuple[float, float]]()
    for k in range(1, len(candidates)):
        better = gain(candidates[best], candidates[k])
        if better[0] > 0.0 or effects is not None:
            evidence |= {name: better for name in set(ladder[k]) - set(ladder[best])}
            best = k
    problem, fit = steps[best]
    winner = candidates[best]
    more = [name for name in further if name not in winner.effects] if effects is None and len(ladder[best]) else []
    if more:
        trials, new_effects = _forward(problem, fit, more, folds, reference)
        if new_effects:
            larger = Problem.of(Deviations.of(chain, (*winner.effects, *new_effects)), postures, measurement)
            values = _carried((problem, fit), larger)
            wider = fit_deviations(larger, fit.setup, values)
            trial = refitted(larger, wider, folds, reference)
            trials = [c for c in trials if c.effects != trial.effects]
            # The trials are linear, with the weights of one fit: few poses may not confirm them.
            if gain(winner, trial)[0] > 0.0:
                problem, fit, winner, evidence = larger, wider, trial, evidence | new_effects
            trials.append(trial)
        candidates += trials
    choice = EffectChoice(problem, fit, tuple(candidates), winner, evidence, tuple(steps))
    if effects is None and not surely_better(candidates[0], winner):
        return choice.of_description()
    return choice


def _carried(before: tuple[Problem, Fit] | None, problem: Problem) -> Array | None:
    """Values of an earlier fit, for the same parameters of a larger one."""
    if before is None:
        return None
    values_by_name = dict(zip(before[0].deviations.names, before[1].values, strict=True))
    return np.array([values_by_name.get(name, 0.0) for name in problem.deviations.names])


def _forward(
    problem: Problem, fit: Fit, more: Sequence[str], folds: Array, reference: Mapping[str, float]
) -> tuple[list[EffectTrial], dict[str, tuple[float, float]]]:
    """Add the effect that helps most, as long as one helps by more than its standard error."""
    own = problem.deviations.effects
    whole = Problem.of(Deviations.of(problem.deviations.chain, (*own, *more)), problem.postures, problem.measurement)
    wide_fit = Fit(
        fit.setup,
        np.asarray(_carried((problem, fit), whole)),
        typical_variances(whole),
        fit.stds,
        fit.freedom,
        fit.weights,
        fit.spent,
    )
    trials: list[EffectTrial] = []
    evidence: dict[str, tuple[float, float]] = {}
    rest = list(more)
    (now,) = _left_out(whole, wide_fit, [own], folds, reference)
    while rest:
        new = _left_out(whole, wide_fit, [(*now.effects, name) for name in rest], folds, reference)
        trials += new
        best = min(new, key=lambda c: c.score)
        better, error = gain(now, best)
        if better <= error:
            break
        rest.remove(best.effects[-1])
        evidence[best.effects[-1]] = (better, error)
        now = best
    return trials, evidence


def _left_out(
    problem: Problem, fit: Fit, sets: Sequence[tuple[str, ...]], folds: Array, reference: Mapping[str, float]
) -> list[EffectTrial]:
    """Errors on left-out poses for several sets of effects, in the linear model around a fit."""
    measurement = problem.measurement
    residuals, J = problem.jacobian(fit.setup, fit.values)
    share = shared_error(measurement, residuals, fit.weights)
    weights = row_weights(measurement, fit.stds, fit.weights) / share
    clean = np.nan_to_num(residuals)
    by_fold = [products(clean[folds == k], J[folds == k], weights[folds == k]) for k in range(int(folds.max()) + 1)]
    total = np.sum(by_fold, axis=0)
    first = J.shape[2] - len(problem.deviations)
    typical = typical_variances(problem)
    out = []
    for effects in sets:
        part = Deviations.of(problem.deviations.chain, effects)
        index = np.array([problem.deviations.names.index(name) for name in part.names], dtype=np.intp)
        columns = np.concatenate([np.arange(first), first + index])
        picked = np.ix_(np.append(columns, len(total) - 1), np.append(columns, len(total) - 1))
        # Deviations outside of the set are zero in the fit, unless the set is smaller than the fit.
        values = fit.values[index]
        variances, _ = prior_variances(
            part, reduced(total[picked], values), typical[index], typical[index], lengths=measurement.has_length
        )
        predicted = np.full_like(residuals, np.nan)
        for k, own in enumerate(by_fold):
            step = _solve(reduced((total - own)[picked], values), variances, values)
            mask = folds == k
            predicted[mask] = residuals[mask] + J[mask][:, :, columns] @ step
        out.append(_candidate(measurement, predicted, tuple(effects), len(part), reference))
    return out


def refitted(problem: Problem, fit: Fit, folds: Array, reference: Mapping[str, float]) -> EffectTrial:
    """Compute the errors on left-out poses, with weights and prior variances from the other poses.

    Args:
        problem: Poses and parameters.
        fit: Fit to all poses.
        folds: Fold of every pose.
        reference: Standard deviation of each channel to compare errors with.
    """
    measurement, p = problem.measurement, problem.deviations
    residuals, J = problem.jacobian(fit.setup, fit.values)
    clean, typical = np.nan_to_num(residuals), typical_variances(problem)
    predicted = np.full_like(residuals, np.nan)
    if J.shape[2] * _ROWS_PER_UNKNOWN < clean.size:
        # Among this many poses, the effect of one pose on weights and variances is negligible.
        return _left_out(problem, fit, [p.effects], folds, reference)[0]
    for k in range(int(folds.max()) + 1):
        rest = folds != k
        own, step, variances, spent = measurement.rows(rest), np.zeros(J.shape[2]), fit.variances, fit.spent
        for _ in range(_REWEIGHTINGS):
            now = residuals[rest] + J[rest] @ step
            stds, weights = scales(own, without_spent(own, now, spent), fit.freedom)
            share = shared_error(own, now, weights)
            rows = row_weights(own, stds, weights) / share
            gram = products(clean[rest], J[rest], rows)
            equations = reduced(gram, fit.values)
            variances, values = prior_variances(p, equations, variances, typical, 5, measurement.has_length)
            used = spent_readings(own, J[rest], rows, gram, 1.0 / variances)
            spent = {channel: share * count for channel, count in used.items()}
            step = np.concatenate([equations.at_zero + equations.by_deviations @ values, values - fit.values])
        predicted[~rest] = residuals[~rest] + J[~rest] @ step
    return _candidate(measurement, predicted, p.effects, len(p), reference)


def _solve(equations: Reduced, variances: Array, values: Array) -> Array:
    """Step of setup and deviations with given prior variances."""
    root = np.sqrt(variances)
    inside = np.eye(len(values)) + root[:, None] * equations.gram * root
    x = root * np.linalg.solve(inside, root * equations.gradient)
    return np.concatenate([equations.at_zero + equations.by_deviations @ x, x - values])


def _candidate(
    measurement: Measurement, residuals: Array, effects: tuple[str, ...], count: int, reference: Mapping[str, float]
) -> EffectTrial:
    size = distances(measurement, residuals)
    relative = size / block_stds(measurement, reference)
    mean = {
        channel: float(np.nanmean(size[:, [k for k, (_, c) in enumerate(measurement.blocks) if c == channel]]))
        for channel in dict.fromkeys(c for _, c in measurement.blocks)
    }
    return EffectTrial(effects, count, pose_means(relative), mean)
